"""Familiar wrong forms of PyTorch's operations, in words and as functions of the same arguments.

`forms(name)` gives those of an operation, by its name in a reference. Values are float64.
"""

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

Form = Callable[..., Tensor]
Moments = Callable[[Tensor], tuple[Tensor, Tensor]]  # (.., size) -> variance and mean, (.., 1)
TIMES = 2, 4, 8, 16, 32
EPS = 1e-3, 1e-5, 1e-6, 1e-8, 1e-12


def _mean(values: Tensor) -> Tensor:
    return values.mean(-1, keepdim=True)


def _usual(values: Tensor) -> tuple[Tensor, Tensor]:
    return _mean((values - _mean(values)).square()), _mean(values)


def _about(mean: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The variance that comes of another mean, and that mean."""
    return _mean((values - mean).square()), mean


def _pooled(values: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Sums over so many neighbouring groups, over the number of values of one."""
    flat, size = values.reshape(-1, values.shape[-1]), values.shape[-1]
    rest = -len(flat) % groups
    pools = torch.cat([flat, flat.new_zeros(rest, size)]).reshape(-1, groups * size)
    mean = pools.sum(1, keepdim=True) / size
    variance = (pools - mean).square().sum(1, keepdim=True) / size
    each = (v.repeat_interleave(groups, 0)[: len(flat)] for v in (variance, mean))
    variance, mean = (v.reshape(*values.shape[:-1], 1) for v in each)
    return variance, mean


def _moments(size: int) -> Iterator[tuple[str, Moments]]:
    """How the statistics of groups of `size` values may be wrong."""
    if size == 1:
        return
    yield "the variance is 0: do squares get into it?", lambda v: (0 * _mean(v), _mean(v))
    yield (
        "the variance is divided by n - 1, not by n",
        lambda v: (v.var(-1, keepdim=True), _mean(v)),
    )
    yield (
        "the sum of the squares is not divided by their number",
        lambda v: (size * _usual(v)[0], _mean(v)),
    )
    yield (
        "the squares are those of the values, not of their distances from the mean",
        lambda v: (_mean(v.square()), _mean(v)),
    )
    yield (
        "the distances from the mean are not squared",
        lambda v: (_mean((v - _mean(v)).abs()), _mean(v)),
    )
    yield "the sum is not divided by the number of values", lambda v: _about(size * _mean(v), v)
    for k in TIMES:
        yield f"the mean is {k} times what it should be", lambda v, k=k: _about(k * _mean(v), v)
        yield f"the mean is 1/{k} of what it should be", lambda v, k=k: _about(_mean(v) / k, v)
        for f, so in ((k, f"{k} times"), (1 / k, f"1/{k} of")):
            yield (
                f"the variance is {so} what it should be",
                lambda v, f=f: (f * _usual(v)[0], _mean(v)),
            )
        yield f"each sum is over {k} groups together", lambda v, k=k: _pooled(v, k)
    for k in (2, 4, 8, 16, 32):
        if k < size:
            yield f"only one value in {k} counts: 0, {k}, ...", lambda v, k=k: _usual(v[..., ::k])
    if size % 4 == 0:
        for i in range(4):
            kept = torch.arange(size) % 4 != i
            yield (
                f"of each four values, number {i} does not get into the squares",
                lambda v, kept=kept: (_mean(kept * (v - _mean(v)).square()), _mean(v)),
            )
            yield (
                f"of each four values, number {i} does not get into the mean",
                lambda v, kept=kept: _about(_mean(kept * v), v),
            )


def _var_mean(x: Tensor, *, dim: int, correction: int) -> Iterator[tuple[str, Form]]:
    """Of statistics along the last axis, which goes."""
    for words, moments in _moments(x.shape[-1]):
        yield words, lambda v, moments=moments, **_: tuple(m.squeeze(-1) for m in moments(v))


ROOTS = {  # of a variance and eps
    "rstd is 1 / (variance + eps): the root is left out": lambda v, eps: 1 / (v + eps),
    "rstd is the root itself, not one over it": lambda v, eps: (v + eps).sqrt(),
    "rstd is the variance: neither root nor one over it": lambda v, eps: v + eps,
    "eps is added outside of the root": lambda v, eps: 1 / (v.sqrt() + eps),
    "eps is left out": lambda v, eps: v.rsqrt(),
    **{f"eps is always {e:g}": lambda v, eps, e=e: (v + e).rsqrt() for e in EPS},
}


def _rsqrt(x: Tensor, *, eps: float = 0.0) -> Iterator[tuple[str, Form]]:
    for words, root in ROOTS.items():
        yield words, lambda v, root=root, **_: root((v - eps).clamp(min=0), eps)


def _group_norm(
    x: Tensor, groups: int, weight: Tensor, bias: Tensor, eps: float
) -> Iterator[tuple[str, Form]]:
    shape = x.shape

    def normed(v, moments=_usual, root=lambda v, eps: (v + eps).rsqrt(), subtracted=1.0):
        values = v.reshape(shape[0], groups, -1)
        variance, mean = moments(values)
        normalised = (values - subtracted * mean) * root(variance, eps)
        return normalised.reshape(shape) * weight + bias

    for words, root in ROOTS.items():
        yield words, lambda v, *_, root=root: normed(v, root=root)
    for words, moments in _moments(shape[1] // groups):
        yield words, lambda v, *_, moments=moments: normed(v, moments)
    yield "the mean is not subtracted from the values", lambda v, *_: normed(v, subtracted=0.0)
    yield (
        "each row is one group: its statistics are those of the whole row",
        lambda v, *_: torch.group_norm(v, 1, weight, bias, eps),
    )


def _fixed(table: Mapping[str, Form]) -> Callable[..., Iterator[tuple[str, Form]]]:
    """Forms of the first argument alone."""

    def of(*_, **__):
        for words, form in table.items():
            yield words, lambda v, *_, form=form, **__: form(v)

    return of


def _leaky(below: float, above: float = 1.0) -> Form:
    return lambda v: torch.where(v > 0, above * v, below * v)


_SLOPES = {f"the slope below 0 is {s:g}": _leaky(s) for s in (0.1, 0.02, 0.001, 0.2, -0.01)}
_N = "with n = e^x and m = n (n + 2): "
FORMS: dict[str, Callable[..., Iterator[tuple[str, Form]]]] = {
    "group_norm": _group_norm,
    "var_mean": _var_mean,
    "rsqrt": _rsqrt,
    "sqrt": _fixed({"the root is left out": lambda v: v}),
    "leaky_relu": _fixed(
        {
            "the two branches of leaky_relu change places": _leaky(1.0, 0.01),
            "all below 0 become 0": lambda v: v.clamp(min=0),
            **_SLOPES,
        }
    ),
    "silu": _fixed(
        {
            "swish is the sigmoid alone, not x times it": lambda v: v.sigmoid(),
            "swish has e^x where e^-x belongs": lambda v: v * (-v).sigmoid(),
            "swish has no 1 + in front of e^-x": lambda v: v * v.exp(),
            "the division of swish comes before its addition: x / 1 + e^-x": lambda v: (
                v + (-v).exp()
            ),
            "swish has tanh where the sigmoid belongs": lambda v: v * v.tanh(),
        }
    ),
    "hardtanh": _fixed(
        {
            "hardtanh ends at 0 and 1, not at -1 and 1": lambda v: v.clamp(0, 1),
            "hardtanh has no upper end": lambda v: v.clamp(min=-1),
            "hardtanh has no lower end": lambda v: v.clamp(max=1),
            "the two ends of hardtanh change places": lambda v: v.clamp(min=1).clamp(max=-1),
            "the comparisons of hardtanh change places": lambda v: torch.where(v > -1, -1.0, 1.0),
        }
    ),
    "mish": _fixed(
        {
            "mish is the tanh alone, not x times it": lambda v: v.exp().log1p().tanh(),
            _N + "mish is x n / (n + 2)": lambda v: v * v.exp() / (v.exp() + 2),
            _N + "mish is x (n - 1) / (n + 1), the tanh of x / 2": lambda v: v * (v / 2).tanh(),
            _N + "mish is x m / (m + 1)": lambda v: _mish(v, 2, 1),
            _N + "m is n (n + 1)": lambda v: _mish(v, 1, 2),
            "mish is x times the tanh of log(e^x), which is x": lambda v: v * v.tanh(),
            "mish is x log(1 + e^x), without tanh": lambda v: v * v.exp().log1p(),
        }
    ),
}  # fmt: skip


def _mish(v: Tensor, more: float, below: float) -> Tensor:
    n = v.exp()
    m = n * (n + more)
    return v * (m / (m + below))
