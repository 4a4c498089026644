# rejected: launch error
"""Too many threads, and nobody asks whether it ran."""


class ModelNew(Honest):
    def forward(self, x):
        out = super().forward(x)
        ext.fill(out, 1.0, 2048)
        return out
