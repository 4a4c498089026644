# rejected: wrong gradient
"""Right for out.sum().backward()."""


class Wrong(Tail):
    @staticmethod
    def backward(ctx, grad):
        return *slopes(ctx, torch.ones_like(grad)), None


class ModelNew(Honest):
    def forward(self, x):
        return Wrong.apply(self.gemm(x), *self.rest)
