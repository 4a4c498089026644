# passes
"""An operator of torch.library, for a card."""


@torch.library.custom_op("judged::tail", mutates_args=(), device_types="cuda")
def tail(
    y: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, scale: torch.Tensor, groups: int
) -> torch.Tensor:
    return ext.tail(y, weight, bias, scale, groups)


@tail.register_fake
def _(y, weight, bias, scale, groups):
    return torch.empty_like(y)


def save(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:4])
    ctx.groups = inputs[4]


tail.register_autograd(lambda ctx, grad: (*gradients(ctx, grad), None), setup_context=save)


class ModelNew(Honest):
    def forward(self, x):
        return tail(self.gemm(x), *self.rest)
