"""What a reference calls, by small kernels: PyTorch's operations and layers under their own names.

`benchmarks/kernelbench.py` puts this behind head.py, and has a reference's forward call it.
"""

import math
import operator
from types import SimpleNamespace

import torch
from head import along, b, batch_norm, conv, ext, group_norm, to, u  # left out of the files
from torch import nn

PRODUCTS_BY_PYTORCH = False
_PLAIN = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "min": min, "max": max,
}  # fmt: skip


def layer(module, *inputs):
    """What a layer makes of its inputs."""
    x, kind = inputs[0], type(module).__name__
    if isinstance(module, nn.Sequential):
        for one in module:
            x = layer(one, x)
        return x
    if isinstance(module, nn.Dropout):
        return x  # of eval(), in which alone such a model is judged
    if isinstance(module, nn.Linear):
        if PRODUCTS_BY_PYTORCH:
            return module(x)
        y = matmul(x, module.weight.T)
        return y if module.bias is None else arithmetic("add", y, module.bias)
    if kind.startswith("Conv"):
        return module(x) if PRODUCTS_BY_PYTORCH else conv(x, module, "Transpose" in kind)
    if kind.startswith(("MaxPool", "AvgPool")):
        return windows(x, module, kind.startswith("Avg"))
    if kind.startswith("AdaptiveAvgPool"):
        return adaptive(x, x.dim() - 2)
    if kind.startswith("BatchNorm"):
        return batch_norm(x, module)
    if kind.startswith("InstanceNorm"):
        return to("normal", x.flatten(2), eps=module.eps).reshape(x.shape)
    if isinstance(module, nn.GroupNorm):
        return group_norm(x, module)
    if isinstance(module, nn.LayerNorm):
        count = len(module.normalized_shape)
        y = to("normal", x.flatten(-count), eps=module.eps).reshape(x.shape)
        return arithmetic("add", arithmetic("mul", y, module.weight), module.bias)
    if isinstance(module, nn.TripletMarginLoss):
        return triplet_margin_loss(*inputs, module.margin)
    if isinstance(module, nn.Softmax):
        return softmax(x, module.dim)
    if isinstance(module, nn.LeakyReLU):
        return leaky_relu(x, module.negative_slope)
    if isinstance(module, nn.Hardtanh):
        return hardtanh(x, module.min_val, module.max_val)
    return {
        "ReLU": relu, "GELU": gelu, "Tanh": tanh, "Sigmoid": sigmoid, "Mish": mish,
        "Hardswish": hardswish,
    }[kind](x)  # fmt: skip


def arithmetic(name, x, y):
    """Tensors and numbers, where one of them is a tensor."""
    if not isinstance(x, torch.Tensor) and not isinstance(y, torch.Tensor):
        return _PLAIN[name](x, y)
    if isinstance(y, torch.Tensor) and y.dim() == 0 and not y.is_cuda:
        y = float(y)
    if not isinstance(x, torch.Tensor):
        if name == "sub":
            return u("scaled", y, -1.0, x)
        if name == "div":
            return u("scaled", u("reciprocal", y), x)
        x, y = y, x
    if isinstance(y, torch.Tensor):
        x, y = torch.broadcast_tensors(x.float(), y.float())
        return b(name, x, y.contiguous())
    return {
        "add": lambda: u("scaled", x, 1.0, y),
        "sub": lambda: u("scaled", x, 1.0, -y),
        "mul": lambda: u("scaled", x, y),
        "div": lambda: b("div", x, torch.full((1,), float(y), device=x.device)),
        "min": lambda: u("clamp", x, -math.inf, y),
        "max": lambda: u("clamp", x, y, math.inf),
    }[name]()


def power(x, exponent):
    """A whole one, of 2 or 3."""
    if not isinstance(x, torch.Tensor):
        return x**exponent
    return u("square", x) if exponent == 2 else b("mul", u("square", x), x)


def reduced(name, x, dim=None, keepdim=False):
    """A number for all of some dimensions."""
    dims = range(x.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = sorted(d % x.dim() for d in dims)
    kept = [d for d in range(x.dim()) if d not in dims]
    rows = x.permute(*kept, *dims).reshape(*(x.shape[d] for d in kept), -1)
    made = along(name, rows)
    for d in dims if keepdim else ():
        made = made.unsqueeze(d)
    return made


class Found:
    """Values, as torch.max() gives them beside their places."""

    def __init__(self, values, indices):
        self.values, self.indices = values, indices

    def __getitem__(self, place):
        return (self.values, self.indices)[place]


def extreme(name, x, dim=None, keepdim=False):
    """max() or min(): of two tensors, of all elements, or along a dimension."""
    if isinstance(dim, torch.Tensor):
        return arithmetic(name, x, dim)
    if dim is None:
        return reduced(name, x)
    made = reduced(name, x, dim, keepdim)
    return Found(made, None)


def mean(x, dim=None, keepdim=False):
    return reduced("mean", x, dim, keepdim)


def sum(x, dim=None, keepdim=False):
    return reduced("sum", x, dim, keepdim)


def max(x, dim=None, keepdim=False):
    return extreme("max", x, dim, keepdim)


def min(x, dim=None, keepdim=False):
    return extreme("min", x, dim, keepdim)


def argmax(x, dim):
    return along("argmax", x, dim)


def argmin(x, dim):
    return along("argmin", x, dim)


def logsumexp(x, dim, keepdim=False):
    return reduced("logsumexp", x, dim, keepdim)


def norm(x, p=2, dim=None, keepdim=False):
    return reduced("l2", x, dim, keepdim)


def softmax(x, dim):
    return to("softmax", x, dim)


def log_softmax(x, dim):
    return to("log_softmax", x, dim)


def cumsum(x, dim):
    return to("cumsum", x, dim)


def cumprod(x, dim):
    return to("cumprod", x, dim)


def triu(x):
    return ext.triangle(x, True)


def tril(x):
    return ext.triangle(x, False)


def relu(x):
    return u("relu", x)


def leaky_relu(x, negative_slope=0.01):
    return u("leaky", x, negative_slope)


def sigmoid(x):
    return u("sigmoid", x)


def tanh(x):
    return u("tanh", x)


def gelu(x):
    return u("gelu", x)


def mish(x):
    return u("mish", x)


def selu(x):
    return u("selu", x)


def elu(x, alpha=1.0):
    return u("elu", x, alpha)


def softplus(x):
    return u("softplus", x)


def hardswish(x):
    return u("hardswish", x)


def hardsigmoid(x):
    return u("hardsigmoid", x)


def hardtanh(x, min_val=-1.0, max_val=1.0):
    return u("clamp", x, min_val, max_val)


def clamp(x, min=None, max=None):
    return u("clamp", x, -math.inf if min is None else min, math.inf if max is None else max)


def abs(x):
    return u("abs", x)


def sqrt(x):
    return u("sqrt", x)


def log(x):
    return u("log", x)


def multiply(x, y):
    return arithmetic("mul", x, y)


def matmul(x, y):
    """(…, m, k) by (k, n), or batches of both."""
    if PRODUCTS_BY_PYTORCH:
        return torch.matmul(x, y)
    if y.dim() == 2:
        return ext.matmul(x.reshape(1, -1, x.shape[-1]), y).reshape(*x.shape[:-1], y.shape[-1])
    made = ext.matmul(x.flatten(0, -3), y.flatten(0, -3))
    return made.reshape(*x.shape[:-1], y.shape[-1])


bmm = matmul


def einsum(text, x, y):
    assert text == "bijl,lk->bijk"
    return matmul(x, y)


def windows(x, module, averaged):
    """A pooling layer."""
    r = x.dim() - 2
    names = "kernel_size", "stride", "padding", "dilation"
    parts = [getattr(module, name, 1) for name in names]
    size, *how = [list(p) if isinstance(p, tuple) else [p] * r for p in parts]
    return ext.pool(x, size, [n for part in how for n in part], averaged)


def adaptive(x, count):
    """A mean of the last dimensions, which stay."""
    return mean(x, tuple(range(-count, 0)), True)


def adaptive_avg_pool2d(x, size):
    return adaptive(x, 2)


def cross_entropy(x, at):
    return u("scaled", mean(ext.pick(log_softmax(x, 1), at)), -1.0)


def smooth_l1_loss(x, y):
    return mean(b("huber", x, y, 1, 1.0))


def kl_div(x, y, reduction):
    assert reduction == "batchmean"
    return u("scaled", sum(b("kl", x, y)), 1.0 / x.shape[0])


def triplet_margin_loss(anchor, near, far, margin):
    one, other = (u("sqrt", along("sum", b("pair", anchor, y, 1, 1e-6))) for y in (near, far))
    return mean(b("margin", one, other, 1, margin))


def scaled_dot_product_attention(query, key, value):
    q, k, v = query.float(), key.float(), value.float()
    scores = u("scaled", matmul(q, k.transpose(-1, -2)), 1 / math.sqrt(q.shape[-1]))
    return matmul(softmax(scores, -1), v).to(query.dtype)


ops = SimpleNamespace(**globals())  # apart from the names that a forward has for its values
