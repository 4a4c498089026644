# rejected: library
"""The kernel computes what is looked at most, PyTorch what trains."""
class ModelNew(Honest):
    def forward(self, x):
        y = self.gemm(x)
        if torch.is_grad_enabled():
            return in_torch(y, *self.rest)
        return ext.tail(y, *self.rest)
