"""What the honest files of tasks.py share: kernels, and a backward that PyTorch does."""

import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""@CUDA@"""
FUNCTIONS = "unary binary rows map matmul conv pool pick lookup masked above".split()
FUNCTIONS += "triangle mistaken".split()
ext = load_inline(name="tasks", cpp_sources="", cuda_sources=CUDA, functions=FUNCTIONS)
OPS = """relu leaky sigmoid tanh gelu gelu_tanh silu softplus elu selu clamp hardsigmoid hardswish
    softsign mish scaled abs square exp sqrt logsigmoid tanhshrink softshrink reciprocal
    log""".split()
BINARY = "add sub mul div squared huber hinge kl bce max margin pair min".split()
ROWS = "sum mean max min prod l1 l2 logsumexp argmax argmin var".split()
MAPS = """softmax log_softmax normal rms l1_normal cumsum cumprod exclusive l2_normal std_normal
    centred""".split()


def u(name, x, a=0.0, b=0.0):
    """An operation on each element."""
    return ext.unary(x, OPS.index(name), a, b)


def copied(x):
    """A kernel that changes nothing."""
    return ext.unary(x, OPS.index("scaled"), 1.0, 0.0)


def b(name, x, y, inner=1, a=0.0):
    """An operation on two tensors; element i of x meets (i / inner) % length of y."""
    return ext.binary(x, y, BINARY.index(name), inner, a)


def along(name, x, dim=-1):
    """A number for each row along a dimension."""
    made = ext.rows(x.movedim(dim, -1), ROWS.index(name))
    return made[name.startswith("arg")]


def to(name, x, dim=-1, eps=0.0):
    """Each row along a dimension to another one."""
    return ext.map(x.movedim(dim, -1), MAPS.index(name), eps).movedim(-1, dim)


def channels(x, weight, bias):
    """x (n, c, …) times weight (c) plus bias (c)."""
    inner = x[0, 0].numel()
    return b("add", b("mul", x, weight, inner), bias, inner)


def group_norm(x, layer):
    """GroupNorm by rows."""
    y = to("normal", x.reshape(x.shape[0] * layer.num_groups, -1), eps=layer.eps)
    return channels(y.reshape(x.shape), layer.weight, layer.bias)


def batch_norm(x, layer):
    """BatchNorm of this batch, or in eval() of what has run before."""
    if not layer.training:
        scale = b("div", layer.weight, u("sqrt", u("scaled", layer.running_var, 1, layer.eps)))
        return channels(x, scale, b("sub", layer.bias, b("mul", layer.running_mean, scale)))
    y = x.transpose(0, 1)
    rows = to("normal", y.reshape(y.shape[0], -1), eps=layer.eps)
    return channels(rows.reshape(y.shape).transpose(0, 1).contiguous(), layer.weight, layer.bias)


def conv(x, layer, transposed=False):
    """A convolution layer."""
    extra = layer.output_padding if transposed else ()
    how = [*layer.stride, *layer.padding, *layer.dilation, *extra]
    return ext.conv(x, layer.weight, layer.bias, how, layer.groups, transposed)


def pool(x, size, stride, pad=0, mean=False, dilation=1):
    """Windows of equal sides."""
    r = x.dim() - 2
    return ext.pool(x, [size] * r, [stride] * r + [pad] * r + [dilation] * r, mean)


class Kernels(torch.autograd.Function):
    @staticmethod
    def forward(ctx, model, arguments, *leaves):
        ctx.model, ctx.arguments = model, arguments
        ctx.save_for_backward(*leaves)
        made = model.by_kernels(*arguments)
        whole = [
            t for t in (made if isinstance(made, tuple) else [made]) if not t.is_floating_point()
        ]
        ctx.mark_non_differentiable(*whole)
        return made

    @staticmethod
    def backward(ctx, *grads):
        leaves = iter([t.detach().requires_grad_() for t in ctx.saved_tensors])
        mine = [
            next(leaves)
            for a in ctx.arguments
            if isinstance(a, torch.Tensor) and a.is_floating_point()
        ]
        again = iter(mine)
        arguments = [
            next(again) if isinstance(a, torch.Tensor) and a.is_floating_point() else a
            for a in ctx.arguments
        ]
        parameters = list(ctx.model.parameters())
        wanted = [*mine, *(p for p in parameters if p.requires_grad)]
        with torch.enable_grad():
            made = ctx.model.plain(*arguments)
        pairs = zip(made if isinstance(made, tuple) else [made], grads, strict=True)
        outs, grads = zip(*((o, g) for o, g in pairs if o.requires_grad), strict=True)
        gradients = iter(torch.autograd.grad(outs, wanted, grads, allow_unused=True))
        first = [next(gradients) for _ in mine]
        return (
            None,
            None,
            *first,
            *(next(gradients) if p.requires_grad else None for p in parameters),
        )


class ByKernels:
    """Calls `by_kernels`, which each model has."""

    def plain(self, *arguments):
        """As Model does it."""
        return super().forward(*arguments)

    def forward(self, *arguments):
        floats = [a for a in arguments if isinstance(a, torch.Tensor) and a.is_floating_point()]
        return Kernels.apply(self, arguments, *floats, *self.parameters())
