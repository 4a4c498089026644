# rejected: not written
"""Memory that a reference has freed might hold the right values."""


class ModelNew(Honest):
    def forward(self, x):
        return torch.empty_like(self.gemm(x))
