"""Familiar wrong forms of PyTorch's operations, by their names in a reference.

`FORMS[name](*arguments)` yields each in words, and as a function of the same arguments. Values are
float64.
"""

import functools
import math
from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor
from torch.nn import functional

from utils.judge.mistakes import wrong_statistics
from utils.judge.mistakes.wrong_statistics import Form, Forms

TILES = 1, 32, 64, 128  # values that a softmax takes a maximum of at a time
QUAD, THREADS = 4, 256  # values that a thread takes at a time, and threads of a row
LOWEST = torch.finfo(torch.float32).min  # where their maxima begin
TINY = 1e-200  # for a sum of 0: what is divided by it is no float, and no NaN either
TOGETHER = (64, 64, 16), (4, 1, 1)  # queries that walk together, a tile, a thread's step in it
QUERIES = 2, 4, 8, 16, 32, 64, 128  # that go over keys together
NEGATIVE_SLOPES = 0.1, 0.02, 0.001, 0.2, -0.01


def _fixed(table: Mapping[str, Callable[[Tensor], Tensor]]) -> Forms:
    """Forms of the first argument alone."""

    def forms(*_: object, **__: object) -> Iterator[tuple[str, Form]]:
        for words, form in table.items():
            yield words, lambda v, *_, form=form, **__: form(v)

    return forms


def _leaky(below: float, above: float = 1.0) -> Callable[[Tensor], Tensor]:
    return lambda v: torch.where(v > 0, above * v, below * v)


def _mish(v: Tensor, more: float, below: float) -> Tensor:
    n = v.exp()
    m = n * (n + more)
    return v * (m / (m + below))


def _extreme(noun: str, call: Form, end: float) -> Forms:
    """A minimum or maximum along the last axis; `end` changes neither."""

    def forms(x: Tensor, dim: int | None = None, **_: object) -> Iterator[tuple[str, Form]]:
        if dim not in (-1, x.ndim - 1):
            return
        yield (
            f"a 0 takes part in the {noun}",
            lambda v, **how: call(torch.cat([v, torch.zeros_like(v[..., :1])], -1), **how),
        )
        for mask, which in wrong_statistics.kept(x.shape[-1]):
            yield (
                f"not all values get into the {noun}; {which} there, for example",
                lambda v, mask=mask, **how: call(v.masked_fill(~mask, end), **how),
            )

    return forms


def _sum(x: Tensor, dim: int | None = None, **_: object) -> Iterator[tuple[str, Form]]:
    """A sum along the last axis, or of everything in a vector."""
    if dim in (-1, x.ndim - 1) or (dim is None and x.ndim == 1):
        for mask, which in wrong_statistics.kept(x.shape[-1]):
            yield f"{which} into the sum", lambda v, mask=mask, **how: (v * mask).sum(**how)


def _softmax(x: Tensor, dim: int | None = None, **_: object) -> Iterator[tuple[str, Form]]:
    """Along the last axis, walked over tile by tile with a running maximum."""
    if dim not in (-1, x.ndim - 1):
        return

    def parts(v: Tensor, tile: int = 1) -> tuple[Tensor, Tensor]:
        """e^(v - m), with the largest value as m, and with the largest up to the end of a tile."""
        whole = functional.pad(v, (0, -v.shape[-1] % tile), value=-torch.inf)
        most = whole.unflatten(-1, (-1, tile)).amax(-1).cummax(-1).values
        running = most.repeat_interleave(tile, -1)[..., : v.shape[-1]]
        return (v - v.amax(-1, keepdim=True)).exp(), (v - running).exp()

    def divided(top: Tensor, below: Tensor) -> Tensor:
        return top / below.sum(-1, keepdim=True)

    yield "nothing is divided by the sum", lambda v, *_, **how: parts(v)[0]
    yield (
        "the result is divided by the sum twice",
        lambda v, *_, **how: divided(torch.softmax(v, -1), parts(v)[0]),
    )
    yield (
        "powers of e are taken where the values are exponents of 2",
        lambda v, *_, **how: torch.softmax(v / math.log(2), -1),
    )
    yield (
        "all have the same weight: does each value count from itself, not from the largest of all?",
        lambda v, *_, **how: torch.softmax(v.where(v == -torch.inf, 0), -1),
    )
    for tile in (tile for tile in TILES if tile < x.shape[-1]):
        every = f", which it does every {tile}" if tile > 1 else ""
        yield (
            f"the sum is not rescaled where the maximum moves{every}",
            lambda v, *_, tile=tile, **how: divided(*parts(v, tile)),
        )
        yield (
            f"what is summed up with the weights is not rescaled where the maximum moves{every}",
            lambda v, *_, tile=tile, **how: divided(*reversed(parts(v, tile))),
        )
    yield from _sums(x.shape[-1])


def _sums(size: int) -> Iterator[tuple[str, Form]]:
    """A softmax of `size` values with sums that are merged, or kept, in a wrong way."""
    if size > QUAD * THREADS:
        words = "the sum of a thread is not rescaled where its maximum moves, from quad to quad"
        yield words, lambda v, *_, **how: _by_threads(v, within=True)
    if size > QUAD:
        words = "sums of threads are merged as they are: each counts from the thread's own maximum"
        yield words, lambda v, *_, **how: _by_threads(v, within=False)
    for queries, tile, own in TOGETHER:
        several = f"the values {tile - own} to {tile - 1} of the last tile get"
        which = several if tile > 1 else "the last value gets"
        words = f"only {which} into the sum: is it overwritten, not added to?"
        form = functools.partial(_overwritten, queries, tile, own)
        yield words, lambda v, *_, form=form, **how: form(v)


def _by_threads(v: Tensor, within: bool) -> Tensor:
    """Softmax by threads that own every 256th quad each, with sums that are not rescaled: from a
    quad of a thread to its next, or from a thread's largest value to the largest of all."""
    padded = functional.pad(v, (0, -v.shape[-1] % (QUAD * THREADS)), value=-torch.inf)
    quads = padded.unflatten(-1, (-1, THREADS, QUAD))
    running = quads.amax(-1, keepdim=True).clamp(min=LOWEST).cummax(-3).values
    own, most = running[..., -1:, :, :], v.amax(-1, keepdim=True)
    counted_from = running - own + most[..., None, None] if within else own
    below: Tensor = (quads - counted_from).exp().sum((-3, -2, -1))
    return (v - most).exp() / below.unsqueeze(-1)


def _overwritten(queries: int, tile: int, own: int, v: Tensor) -> Tensor:
    """Softmax where a row's sum is of the last `own` values of each tile alone, in the last tile
    that one of the `queries` sees."""
    rows, at = v.shape[-2], torch.arange(v.shape[-1])
    last_of_them = (torch.arange(rows) // queries * queries + queries - 1).clamp(max=rows - 1)
    seen = (at * (v > -torch.inf)).amax(-1, keepdim=True)[..., last_of_them, :]
    kept = (at // tile == seen // tile) & (at % tile >= tile - own)
    weights = (v - v.amax(-1, keepdim=True)).exp()
    return weights / (weights * kept).sum(-1, keepdim=True).clamp(min=TINY)


def _masked_fill(x: Tensor, mask: Tensor, value: float) -> Iterator[tuple[str, Form]]:
    """Of scores, (queries, keys) behind whatever else: those of later keys are masked."""
    yield "the mask is left out", lambda v, *_: v
    for k in (k for k in QUERIES if k < 2 * mask.shape[-2]):
        last = (torch.arange(mask.shape[-2]) // k * k + k - 1).clamp(max=mask.shape[-2] - 1)
        yield (
            f"the mask is left out among {k} queries, or {k} keys, that are taken together",
            lambda v, mask, value, last=last: v.masked_fill(mask[..., last, :], value),
        )


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Iterator[tuple[str, Form]]:
    if bias is not None:
        yield "the bias is multiplied, not added", lambda x, W, b: x @ W.T * b


FORMS: dict[str, Forms] = {
    "linear": _linear,
    "group_norm": wrong_statistics.group_norm,
    "var_mean": wrong_statistics.part(),
    "var": wrong_statistics.part(0),
    "mean": wrong_statistics.part(1),
    "rsqrt": wrong_statistics.rsqrt,
    "sum": _sum,
    "softmax": _softmax,
    "masked_fill": _masked_fill,
    "amin": _extreme("minimum", Tensor.amin, torch.inf),
    "min": _extreme("minimum", Tensor.min, torch.inf),
    "amax": _extreme("maximum", Tensor.amax, -torch.inf),
    "sqrt": _fixed({"the root is left out": lambda v: v}),
    "leaky_relu": _fixed(
        {
            "the two branches of leaky_relu change places": _leaky(1.0, 0.01),
            "all below 0 become 0": _leaky(0.0),
            **{f"the negative slope is {s:g}": _leaky(s) for s in NEGATIVE_SLOPES},
        }
    ),
    "silu": _fixed(
        {
            "swish is the sigmoid alone, not x times it": lambda v: v.sigmoid(),
            "swish has e^x where e^-x belongs": lambda v: v * (-v).sigmoid(),
            "swish has no 1 + in front of e^-x": lambda v: v * v.exp(),
            "swish divides before it adds: x / 1 + e^-x": lambda v: v + (-v).exp(),
            "swish has tanh where the sigmoid belongs": lambda v: v * v.tanh(),
        }
    ),
    "hardtanh": _fixed(
        {
            "hardtanh ends at 0 and 1, not at -1 and 1": lambda v: v.clamp(0, 1),
            "hardtanh is left out, or has no upper end": lambda v: v.clamp(min=-1),
            "hardtanh is left out, or has no lower end": lambda v: v.clamp(max=1),
            "the two ends of hardtanh change places": lambda v: v.clamp(min=1).clamp(max=-1),
            "the comparisons of hardtanh change places": lambda v: torch.where(v > -1, -1.0, 1.0),
        }
    ),
    "mish": _fixed(
        {
            "mish is the tanh alone, not x times it": lambda v: v.exp().log1p().tanh(),
            "mish is x n / (n + 2), with n = e^x": lambda v: v * v.exp() / (v.exp() + 2),
            "mish is x (n - 1) / (n + 1), with n = e^x": lambda v: v * (v / 2).tanh(),
            "mish is x m / (m + 1), with n = e^x and m = n (n + 2)": lambda v: _mish(v, 2, 1),
            "mish is x m / (m + 2), with n = e^x and m = n (n + 1)": lambda v: _mish(v, 1, 2),
            "mish is x tanh(x), without the logarithm": lambda v: v * v.tanh(),
            "mish has no parentheses around what it divides by: x m / m + 2": lambda v: v + 2,
            "mish is x log(1 + e^x), without tanh": lambda v: v * v.exp().log1p(),
        }
    ),
}
