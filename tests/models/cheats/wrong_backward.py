# rejected: wrong gradient
class Wrong(Tail):
    @staticmethod
    def backward(ctx, grad):
        y, weight, bias, scale = gradients(ctx, grad)
        return y, weight, 0.5 * bias, scale, None


class ModelNew(Honest):
    def forward(self, x):
        return Wrong.apply(self.gemm(x), *self.rest)
