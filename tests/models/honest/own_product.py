# passes
"""The product is a kernel's, too."""


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return ext.linear(x, weight, bias, 23)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, grad.t() @ x, grad.sum(0)


class ModelNew(Honest):
    def forward(self, x):
        y = Product.apply(x.contiguous(), self.gemm.weight, self.gemm.bias)
        return Tail.apply(y, *self.rest)
