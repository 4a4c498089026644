"""Wrong forms of means, variances and GroupNorm, in words and as functions of the values."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from utils.judge.mistakes.welford import Moments

Form = Callable[..., Tensor | tuple[Tensor, ...]]
Forms = Callable[..., Iterator[tuple[str, Form]]]  # of an operation's arguments
Root = Callable[[Tensor, float], Tensor]  # of a variance and eps
LANES = 32
TIMES = 2, 4, 8, 16, 32
ROUNDS = 32, 128, 256, 1024, 4096  # values that a warp, a block, or its quads go over at a time
BLOCKS = 64, 128, 256  # threads
OWN = 4, 8  # neighbouring values of one thread
STRETCHES = 4, 8, 16, 32, 64
EPS = 1e-3, 1e-5, 1e-6, 1e-8, 1e-12


def kept(size: int) -> Iterator[tuple[Tensor, str]]:
    """Which of `size` values a sum or a minimum may be of: as a mask, and in words."""
    at = torch.arange(size)
    for k in TIMES:
        if k < size:
            yield at % k == 0, f"only one value in {k}, 0, {k}, ..., gets"
    if size % 4 == 0:
        for i in range(4):
            yield at % 4 != i, f"of each four values all but number {i} get"
    for stretch in STRETCHES:
        if stretch < size:
            yield at // stretch % 2 == 0, f"only every second stretch of {stretch} gets"
    for n in ROUNDS:
        if n < size:
            yield at >= size - n, f"only the last {n} values get"
            yield at >= (size - 1) // n * n, f"only the values of the last round of {n} get"
    if size > LANES:
        yield at % 2 + at // LANES % 2 == 0, "only every second lane of every second warp gets"
    if 1 < size <= LANES:
        yield at == 0, "only the value of lane 0 gets"


def _mean(values: Tensor) -> Tensor:
    return values.mean(-1, keepdim=True)


def _usual(values: Tensor) -> tuple[Tensor, Tensor]:
    return _mean((values - _mean(values)).square()), _mean(values)


def _about(mean: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The variance that comes of another mean, and that mean."""
    return _mean((values - mean).square()), mean


def _both(values: Tensor, average: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Both statistics, with another way to take an average."""
    mean = average(values)
    return average((values - mean).square()), mean


def _scaled(variance: float, mean: float, values: Tensor) -> tuple[Tensor, Tensor]:
    """The mean times a number, and what variance comes of that; or the variance times one."""
    return variance * _mean((values - mean * _mean(values)).square()), mean * _mean(values)


def _of_these(mask: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    return _usual(values[..., mask])


def _mean_of_these(mask: Tensor, values: Tensor) -> Tensor:
    return _mean(mask * values)


def _first_group(values: Tensor) -> Tensor:
    """The mean of the first group in place of every other."""
    first = _mean(values.reshape(-1, values.shape[-1])[:1])
    return first.expand(*values.shape[:-1], 1)


def _pieces(piece: int) -> Callable[[Tensor], Tensor]:
    """Sums over so many values that follow each other through all groups, over the size of one. The
    last piece is filled up with zeros, as by lanes without a value."""

    def average(values: Tensor) -> Tensor:
        flat = values.reshape(-1)
        full = torch.cat([flat, flat.new_zeros(-len(flat) % piece)]).reshape(-1, piece)
        each = full.sum(1) / values.shape[-1]
        return each.repeat_interleave(piece)[: len(flat)].reshape(values.shape)

    return average


def _centred_pieces(piece: int) -> Moments:
    """Both sums over so many values, where lanes without a value bring 0 - mean to the squares."""

    def moments(values: Tensor) -> tuple[Tensor, Tensor]:
        flat, size = values.reshape(-1), values.shape[-1]
        full = torch.cat([flat, flat.new_zeros(-len(flat) % piece)]).reshape(-1, piece)
        mean = full.sum(1, keepdim=True) / size
        variance = (full - mean).square().sum(1, keepdim=True) / size
        variance, mean = (
            m.expand_as(full).reshape(-1)[: len(flat)].reshape(values.shape)
            for m in (variance, mean)
        )
        return variance, mean

    return moments


WHOLE: dict[str, Moments] = {
    "the mean is 0, or subtracted nowhere": lambda v: _about(0 * _mean(v), v),
    "the variance is 0: do squares get into it?": lambda v: (0 * _mean(v), _mean(v)),
    "the variance is divided by n - 1, not by n": lambda v: (v.var(-1, keepdim=True), _mean(v)),
    "the sum of the squares is not divided by their number": lambda v: (
        v.shape[-1] * _usual(v)[0],
        _mean(v),
    ),
    "the sum is not divided by the number of values": lambda v: _about(v.shape[-1] * _mean(v), v),
    "neither sum is divided by the number of values": lambda v: _both(
        v, lambda values: values.sum(-1, keepdim=True)
    ),
    "the squares are those of the values, not of their distances from the mean": lambda v: (
        _mean(v.square()),
        _mean(v),
    ),
    "the distances from the mean are not squared": lambda v: (
        _mean((v - _mean(v)).abs()),
        _mean(v),
    ),
}


def _moments(size: int) -> Iterator[tuple[str, Moments]]:
    """How the statistics of groups of `size` values may be wrong."""
    if size == 1:
        return
    yield from WHOLE.items()
    for k in TIMES:
        for f, so in ((k, f"{k} times"), (1 / k, f"1/{k} of")):
            so = f"is {so} what it should be"
            yield f"the mean {so}", partial(_scaled, 1, f)
            yield f"the variance {so}", partial(_scaled, f, 1)
    for mask, which in kept(size):
        yield f"{which} into the statistics", partial(_of_these, mask)
        yield from _averaged(partial(_mean_of_these, mask), f"{which} into")
    yield from _averaged(_first_group, "the values of the very first group get into")
    often = torch.arange(1, size + 1).clamp(max=LANES)
    words = f"each lane goes on by 1, not by {LANES}, and later values get several times into"
    yield from _averaged(partial(_mean_of_these, often), words)
    for k in TIMES:
        yield from _averaged(_pieces(size * k), f"the values of {k} groups get into")
        yield f"the values of {k} groups get into both sums", _centred_pieces(size * k)
        if size % k == 0:
            yield from _averaged(_pieces(size // k), f"only 1/{k} of a group gets into")


def _averaged(average: Callable[[Tensor], Tensor], words: str) -> Iterator[tuple[str, Moments]]:
    yield f"{words} the mean", lambda v: _about(average(v), v)
    yield f"{words} the squares", lambda v: (average((v - _mean(v)).square()), _mean(v))
    yield f"{words} both sums", lambda v: _both(v, average)


def _of_a_group(size: int) -> Iterator[tuple[str, Moments]]:
    yield from _moments(size)
    yield from _of_own_lanes(size)


def part(
    number: int | None = None,
    wrong: Callable[[int], Iterator[tuple[str, Moments]]] = _of_a_group,
) -> Forms:
    """The forms of var_mean along the last axis, or of the one of the two that `number` says.

    `wrong` gives the wrong statistics of so many values, or those of each value.
    """

    def forms(
        x: Tensor, dim: int | None = None, keepdim: bool = False, **_: object
    ) -> Iterator[tuple[str, Form]]:
        if dim not in (-1, x.ndim - 1):
            return
        for words, moments in wrong(x.shape[-1]):

            def form(
                v: Tensor, *_: object, moments: Moments = moments, **__: object
            ) -> Tensor | tuple[Tensor, ...]:
                both = tuple(m if keepdim else m[..., 0] for m in moments(v))
                return both if number is None else both[number]

            yield words, form

    return forms


def _root(variance: Tensor, eps: float) -> Tensor:
    return (variance + eps).rsqrt()


def _root_with(eps: float) -> Root:
    return lambda v, _: _root(v, eps)


ROOTS: dict[str, Root] = {
    "rstd is 1 / (variance + eps): the root is left out": lambda v, eps: 1 / (v + eps),
    "rstd is the root itself, not one over it": lambda v, eps: (v + eps).sqrt(),
    "rstd is the variance: neither root nor one over it": lambda v, eps: v + eps,
    "rstd is left out (1 in its place)": lambda v, eps: torch.ones_like(v),
    "eps is added outside of the root": lambda v, eps: 1 / (v.sqrt() + eps),
    "eps is added behind the root": lambda v, eps: v.rsqrt() + eps,
    "eps is left out": lambda v, eps: v.rsqrt(),
    **{f"eps is always {eps:g}": _root_with(eps) for eps in EPS},
}


def rsqrt(x: Tensor, *, eps: float = 0.0) -> Iterator[tuple[str, Form]]:
    """Of variance + eps."""
    for words, root in ROOTS.items():
        yield words, lambda v, root=root: root((v - eps).clamp(min=0), eps)


def group_norm(
    x: Tensor, groups: int, weight: Tensor, bias: Tensor, eps: float
) -> Iterator[tuple[str, Form]]:
    """Of torch.group_norm; x: (rows, channels)."""
    shape = x.shape

    def normed(
        v: Tensor, moments: Moments = _usual, root: Root = _root, subtracted: float = 1.0
    ) -> Tensor:
        values = v.reshape(shape[0], groups, -1)
        variance, mean = moments(values)
        normalised = (values - subtracted * mean) * root(variance, eps)
        return normalised.reshape(shape) * weight + bias

    for words, root in ROOTS.items():
        yield words, lambda v, *_, root=root: normed(v, root=root)
    yield "the mean is not subtracted from the values", lambda v, *_: normed(v, subtracted=0.0)
    yield (
        "each row is one group: its statistics are those of the whole row",
        lambda v, *_: torch.group_norm(v, 1, weight, bias, eps),
    )
    size = shape[1] // groups
    yield (
        "eps is divided by the number of values, too",
        lambda v, *_: normed(v, root=lambda variance, eps: (variance + eps / size).rsqrt()),
    )
    if groups > 1:
        words = "the sum is divided by the number of all channels, not of a group's"
        yield words, lambda v, *_: normed(v, partial(_scaled, 1, 1 / groups))
    for words, moments in (*_by_place(size), *_moments(size)):
        yield words, lambda v, *_, moments=moments: normed(v, moments)


def _by_place(size: int) -> Iterator[tuple[str, Moments]]:
    """Means that are another for each value of a group, by its place."""
    at = torch.arange(size)
    for i in range(4 if size % 4 == 0 else 0):
        words = f"the mean is not subtracted from number {i} of each four values"
        yield words, partial(_subtracted_where, at % 4 != i)
    for own in (own for own in OWN if own < size and size % own == 0):
        words = f"each {own} neighbours have a mean of their own"
        yield words, partial(_mean_by, at // own, 1 / own)
    yield from _of_own_lanes(size)
    for threads in (threads for threads in BLOCKS if LANES < size):
        sums = partial(_summed_by, at % threads // LANES, 1 / size)
        yield from _averaged(sums, "each warp of the block has a sum of its own for")


def _of_own_lanes(size: int) -> Iterator[tuple[str, Moments]]:
    """Sums that do not reach the other lanes of a group: of every 32nd value, of a quad, or of what
    lanes of `mma` own, every fourth pair of columns."""
    at = torch.arange(size)
    for part, words in (
        (at % LANES, "each lane has a sum of its own for"),
        (at // 4, "each lane has a sum of its own, that of its quad, for"),
        (at % 8 // 2, "each of a row's four lanes has a sum of its own for"),
        (at // 4 % 2, "two of a row's four lanes have one sum, and two another, for"),
    ):
        if int(part.max()):
            yield from _averaged(partial(_summed_by, part, 1 / size), words)


def _summed_by(part: Tensor, share: float, values: Tensor) -> Tensor:
    """For each value a `share` of the sum of its part of the group."""
    none = values.new_zeros(*values.shape[:-1], int(part.max()) + 1)
    return share * none.index_add(-1, part, values)[..., part]


def _subtracted_where(mask: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    return _about(mask * _mean(values), values)


def _mean_by(part: Tensor, share: float, values: Tensor) -> tuple[Tensor, Tensor]:
    """Statistics where the mean of a value is a `share` of the sum of its part of the group."""
    return _about(_summed_by(part, share, values), values)
