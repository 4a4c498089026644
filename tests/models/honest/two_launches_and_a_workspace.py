# passes
"""The statistics go into memory that is kept, and written anew in each call."""


class Twice(Tail):
    @staticmethod
    def forward(ctx, y, weight, bias, scale, groups, space):
        ctx.save_for_backward(y, weight, bias, scale)
        ctx.groups = groups
        return ext.tail_twice(y, weight, bias, scale, space, groups)

    @staticmethod
    def backward(ctx, grad):
        return *gradients(ctx, grad), None, None


class ModelNew(Honest):
    space = None

    def forward(self, x):
        y = self.gemm(x)
        if self.space is None or self.space.numel() < 2 * len(y) * self.groups:
            self.space = torch.empty(2 * len(y) * self.groups, device=x.device)
        return Twice.apply(y, *self.rest, self.space)
