# rejected: host code
"""The launcher computes it, without a launch."""


class OnTheHost(Tail):
    @staticmethod
    def forward(ctx, y, weight, bias, scale, groups):
        ctx.save_for_backward(y, weight, bias, scale)
        ctx.groups = groups
        return ext.on_the_host(y, weight, bias, scale, groups)


class ModelNew(Honest):
    def forward(self, x):
        return OnTheHost.apply(self.gemm(x), *self.rest)
