"""The kinds of values that a kernel is tried on, as fresh draws of a generator."""

import math
from collections.abc import Callable

import torch
from torch import Generator, Tensor

Draw = Callable[[tuple[int, ...], Generator], Tensor]


def normal(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Mean 0, variance 1, on the generator's device."""
    return torch.randn(shape, generator=generator, device=generator.device)


def uniform(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """From 0 to below 1, on the generator's device."""
    return torch.rand(shape, generator=generator, device=generator.device)


def heavy_tailed(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Most values small, a few in the tens: a lost large term shows, overflow does not occur."""
    return normal(shape, generator) * normal(shape, generator).clamp(-2.5, 2.5).exp()


def shifted(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Large mean, small spread: a variance as E[x²] - E[x]² has no correct digit left.

    The sum of all stays below 2**24, where float counts in ones: beyond, adding one after the
    other would round every term the same way, and fail for that alone.
    """
    return normal(shape, generator) + _shift(shape)


def _shift(shape: tuple[int, ...]) -> float:
    return max(1.0, min(1000.0, 2**24 / max(math.prod(shape), 1)))


def below_zero(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """None near 0: a maximum that begins at 0, and not at a value, stays there."""
    return -normal(shape, generator).abs() - _shift(shape)


def small(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Variance below the usual eps, so that a wrong or missing eps shows; of every second row any
    deviation from there up to a tenth, where an eps still tells."""
    values = normal(shape, generator) * 1e-3
    if len(shape) > 1:
        rows = values.view(-1, shape[-1])
        rows[1::2] *= 100 ** uniform((len(rows) // 2, 1), generator)
    return values


def lowest(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Down to the least of all floats: what a mask adds up to that is no infinity."""
    return -3.4e38 + normal(shape, generator).abs().clamp(max=9.0) * 1e37


def constant(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """One short binary fraction: its sums are exact in any order. Variance is zero."""
    quarters = whole_number(1, 9, generator) * (0.5 - whole_number(0, 2, generator))
    return torch.full(shape, quarters / 2, device=generator.device)


def zeros(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """All 0, or all -0."""
    zero = (0.0, -0.0)[whole_number(0, 2, generator)]
    return torch.full(shape, zero, device=generator.device)


def infinite(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Normal, with one infinity in about half of the rows, in one at least.

    Times a zero that stands for what lies beyond an edge, an infinity makes NaN of a result. So
    most lie near an end of their row, where a neighbour that reads too far meets them.
    """
    x = normal(shape, generator)
    rows = x.view(-1, x.shape[-1])
    chosen = _some_rows(rows, 0.5, generator)
    columns = _near_ends(rows.shape[1], len(chosen), generator)
    negative = uniform((len(chosen),), generator) < 0.5
    rows[chosen, columns] = torch.where(negative, float("-inf"), float("inf")).to(x.dtype)
    return x


def some_infinite(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """The same, and infinities in the place of an element of 16: of a bias, say, which is a row."""
    x = infinite(shape, generator)
    return x.where(uniform(shape, generator) >= 1 / 16, float("inf") * x.sign())


def _near_ends(width: int, count: int, generator: Generator) -> Tensor:
    """Columns of rows of so many elements: of three two lie near an end, half of them each, every
    second time in the first column or the last."""
    near = min((1, 8)[whole_number(0, 2, generator)], width)
    begin = torch.tensor([0, 0, width - near], device=generator.device)
    long = torch.tensor([width, near, near], device=generator.device)
    span = torch.randint(3, (count,), generator=generator, device=generator.device)
    share = uniform((count,), generator)
    return begin[span] + (share * long[span]).long().minimum(long[span] - 1)


def _some_rows(rows: Tensor, share: float, generator: Generator) -> Tensor:
    """Numbers of about so many rows, of one at least."""
    chosen = uniform((len(rows),), generator) < share
    chosen[whole_number(0, len(rows), generator)] = True
    return chosen.nonzero()[:, 0]


def whole(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Whole numbers from -4 to 4, zeros among them: many are equal."""
    return torch.randint(-4, 5, shape, generator=generator, device=generator.device).float()


def with_gap(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """The same, and zeros alone in half of the columns, or of the rows, which lie together: whole
    tiles of zeros."""
    x = whole(shape, generator)
    axis = -1 - whole_number(0, min(len(shape), 2), generator)
    length = (shape[axis] + 1) // 2
    begin = whole_number(0, shape[axis] - length + 1, generator)
    x.narrow(axis, begin, length).zero_()
    return x


def not_numbers(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Normal, with one NaN in about a quarter of the rows, in one at least; most near an end. Every
    second time the last element of all is one, and of a row more."""
    x = normal(shape, generator)
    rows = x.view(-1, x.shape[-1])
    chosen = _some_rows(rows, 0.25, generator)
    rows[chosen, _near_ends(rows.shape[1], len(chosen), generator)] = float("nan")
    if whole_number(0, 2, generator):
        rows[[-1, chosen[0]], -1] = float("nan")
    return x


def with_nan(x: Tensor, generator: Generator) -> Tensor:
    """`x` with a NaN in the place of one element."""
    x.view(-1)[whole_number(0, x.numel(), generator)] = float("nan")
    return x


def sometimes_nan(x: Tensor, generator: Generator) -> Tensor:
    """`x`, every second time with a NaN in the place of one element."""
    return with_nan(x, generator) if whole_number(0, 2, generator) else x


def wide(shape: tuple[int, ...], generator: Generator, low: float, high: float) -> Tensor:
    """Either sign; magnitudes from `low` to `high`, evenly spread over the powers of ten."""
    share = uniform(shape, generator).double()
    sign = 1 - 2 * (uniform(shape, generator) < 0.5).double()
    return (sign * (low * (high / low) ** share)).float()


def of_scales(shape: tuple[int, ...], generator: Generator, low: float, high: float) -> Tensor:
    """Normal, each row times a scale of its own: of some rows evenly spread over the powers of ten
    from `low` to `high`, of others over those within SCALES. Where there is one row, every second
    time each element has its own."""
    one_row = math.prod(shape[:-1]) == 1
    if one_row and whole_number(0, 2, generator):
        each = wide(shape, generator, max(low, SCALES[0]), min(high, SCALES[1]))
        return _half(each, generator)
    rows = (*shape[:-1], 1)
    near = wide(rows, generator, max(low, SCALES[0]), min(high, SCALES[1]))
    scales = torch.where(uniform(rows, generator) < NEAR, near, wide(rows, generator, low, high))
    scaled = normal(shape, generator) * scales
    return _half(scaled, generator) if one_row else scaled


def _half(values: Tensor, generator: Generator) -> Tensor:
    """Half of the values, and ones near 1 in place of the others: these say what is typical."""
    ordinary = wide(tuple(values.shape), generator, 0.1, 3.0)
    return torch.where(uniform(tuple(values.shape), generator) < 0.5, values, ordinary)


def columns_of_scales(
    shape: tuple[int, ...], generator: Generator, low: float, high: float
) -> Tensor:
    """The same, every second time of columns."""
    if len(shape) < 2 or whole_number(0, 2, generator):
        return of_scales(shape, generator, low, high)
    turned = of_scales((*shape[:-2], shape[-1], shape[-2]), generator, low, high)
    return turned.transpose(-1, -2).contiguous()


SCALES, NEAR = (1e-3, 1e3), 0.7  # where most values are; of rows, so many are between these


def in_turn(count: int, kinds: int, generator: Generator, first: int = 0) -> Tensor:
    """Numbers below `kinds`, beginning with `first`, each as often as the others or once more, in
    any order: so that the kind of a row does not follow from its place."""
    places = torch.randperm(count, generator=generator, device=generator.device)
    return (places + first) % kinds


def between(low: float, high: float, count: int, generator: Generator) -> Tensor:
    """(count, 1): a factor for each row, evenly spread over the powers of ten."""
    return wide((count, 1), generator, low, high).abs()


WIDE = 3  # of `spread` kinds, for who draws more by them


def spread(rows: Tensor, kinds: Tensor, generator: Generator) -> Tensor:
    """(count, n) normal values, changed in place, each row by its kind, which `in_turn(count, 5)`
    gives: as it is, very small, far from zero beside its spread, wide, or somewhat smaller."""
    kinds = kinds[:, None]
    factors = torch.where(kinds == 4, between(1e-3, 1.0, len(rows), generator), 1.0)
    for kind, factor in ((1, 1e-3), (2, 1e-2), (WIDE, 3.0)):
        factors = torch.where(kinds == kind, factor, factors)
    return rows.mul_(factors).add_(torch.where(kinds == 2, 0.5, 0.0))


def add_outliers(a: Tensor, b: Tensor, generator: Generator) -> None:
    """Put elements far above all others into one column of `a`, or of `b`: (rows, K) both.

    Of four rows one has an ordinary element there, the others one of 2^10, 2^20 and 2^30. The
    other tensor has zeros in that column, and a one in every fourth row: where it has a zero,
    what an outlier costs its row in precision is all that it does to a result.
    """
    a, b = (a, b) if whole_number(0, 2, generator) else (b, a)
    column = whole_number(0, a.shape[-1], generator)
    a, b = a.view(-1, a.shape[-1]), b.view(-1, b.shape[-1])
    exponents = 10 * in_turn(len(a), 4, generator, first=whole_number(0, 4, generator))
    a[:, column] *= torch.exp2(exponents.to(a.dtype))
    b[:, column] = (in_turn(len(b), 4, generator) == 3).to(b.dtype)


def whole_number(low: int, high: int, generator: Generator) -> int:
    """An integer from `low` to `high - 1`."""
    return int(torch.randint(low, high, (), generator=generator, device=generator.device))


NORMAL, LARGE, TINY, OUTLIERS = "standard normal", "large", "tiny", "outliers among normal"
NAN_ELSEWHERE, LARGE_ELSEWHERE = "NaN elsewhere", "large elsewhere"
BELOW_ZERO, WHOLE, INFINITE_ELSEWHERE = "below zero", "whole", "infinite elsewhere"
ZEROS, ZERO_TIMES_INFINITY = "zero", "zeros times infinite"
OF_SCALES, OF_SCALES_ELSEWHERE = "rows of any scale", "any scale elsewhere"
# Of the first tensor, and of the others.
FAMILIES: dict[str, tuple[Draw, Draw]] = {
    NORMAL: (normal, normal),
    "uniform": (uniform, uniform),
    "heavy-tailed": (heavy_tailed, heavy_tailed),
    "shifted": (shifted, normal),
    "small": (small, normal),
    "constant": (constant, normal),
    # Up to, or down to, the exercise's own magnitudes, as the last three; see sample().
    LARGE: (normal, normal),
    TINY: (normal, normal),
    "infinite": (infinite, normal),
    # Of the first tensor, a row of results may be all NaN; of a weight, some results of each row.
    "NaN": (not_numbers, normal),
    NAN_ELSEWHERE: (
        normal,
        lambda shape, generator: with_nan(normal(shape, generator), generator),
    ),
    BELOW_ZERO: (below_zero, normal),
    WHOLE: (whole, normal),
    ZEROS: (zeros, normal),
    INFINITE_ELSEWHERE: (normal, infinite),
    ZERO_TIMES_INFINITY: (with_gap, infinite),
    LARGE_ELSEWHERE: (normal, normal),
    OF_SCALES: (normal, normal),
    OF_SCALES_ELSEWHERE: (normal, normal),
}
NANS = ("NaN", NAN_ELSEWHERE)
# Of these the largest size alone has a call, and the one that is watched shows nothing new.
SELDOM = (
    *(BELOW_ZERO, WHOLE, ZEROS, INFINITE_ELSEWHERE),
    *(ZERO_TIMES_INFINITY, LARGE_ELSEWHERE, OF_SCALES, OF_SCALES_ELSEWHERE),
)
FINITE = [name for name in FAMILIES if name not in ("infinite", *NANS, *SELDOM)]
OWN = "the exercise's own"


def in_pairs(x: Tensor) -> Tensor:
    """The same, in which every second row is that before it."""
    rows = torch.arange(x.shape[0] if x.ndim == 2 else x[..., 0].numel(), device=x.device)
    return x.reshape(len(rows), -1)[rows - rows % 2].reshape(x.shape)


def _numbers(x: Tensor) -> Tensor:
    return torch.arange(x.shape[-1], device=x.device).expand(x.shape)


# Of the elements of each row; of sorted ones a sum may be less exact.
SIGNED = ALTERNATING, CANCELLING = "of alternating signs", "that cancels"
SORTED = RISING, FALLING = "rising", "falling"
WITH_ZEROS, OF_ONE_VALUE = "with zeros", "of one value"
FAR_FIRST, FAR = "far off in the first column", 1e3
ORDERS: dict[str, Callable[[Tensor], Tensor]] = {
    ALTERNATING: lambda x: x.abs().where(_numbers(x) % 2 == 0, -x.abs()),
    CANCELLING: lambda x: x.where(_numbers(x) % 2 == 0, -x.roll(1, -1)),
    RISING: lambda x: x.sort(dim=-1).values,
    FALLING: lambda x: x.sort(dim=-1, descending=True).values,
    WITH_ZEROS: lambda x: x.where(_numbers(x) * 7 % 5 > 1, torch.zeros_like(x)),
    FAR_FIRST: lambda x: x.where(_numbers(x) > 0, FAR * x),
    OF_ONE_VALUE: lambda x: x.reshape(-1)[:1].expand(x.numel()).reshape(x.shape).clone(),
}
