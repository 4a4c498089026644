# rejected: nan
"""NaN is within any bound, if one asks in the wrong way."""


class ModelNew(Honest):
    def forward(self, x):
        out = super().forward(x)
        return out * float("nan")
