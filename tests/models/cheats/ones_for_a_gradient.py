# rejected: wrong gradient
"""Right for out.sum().backward()."""


class Wrong(Tail):
    @staticmethod
    def backward(ctx, grad):
        return *gradients(ctx, torch.ones_like(grad)), None


class ModelNew(Honest):
    def forward(self, x):
        return Wrong.apply(self.gemm(x), *self.rest)
