"""The inputs a kernel is tried on: sizes, kinds of values, fresh draws from a seed."""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Generator, Tensor

from utils.course.answers import Answering
from utils.course.exercise import Exercise, Sizes, dimensions, inputs
from utils.errors import DeclarationError, WorkbookError

Arguments = dict[str, Tensor | int | float]  # by parameter name
Draw = Callable[[tuple[int, ...], Generator], Tensor]


@dataclass(frozen=True)
class Case:
    """One call: what the launcher reads, on the CPU. Outputs that are not read are not in it."""

    sizes: Sizes
    family: str
    tensors: dict[str, Tensor]
    scalars: dict[str, float]
    note: str = ""  # what else is unusual

    @property
    def values(self) -> dict[str, Tensor | float | int]:
        """Everything the reference may ask for by name."""
        return {**self.tensors, **self.scalars, **self.sizes}

    def __str__(self) -> str:
        scalars = [f"{name}={value:.6g}" for name, value in self.scalars.items()]
        words = [size_text(self.sizes), *scalars, f"{self.family} values", self.note]
        return ", ".join(filter(None, words))


def size_text(sizes: Sizes) -> str:
    """Such as "M=8 N=4"."""
    return " ".join(f"{name}={value}" for name, value in sizes.items())


def toy_sizes(exercise: Exercise, given: Sizes) -> dict[str, int]:
    """The sizes that an exercise is drawn at, with those `given` in their place.

    Raises WorkbookError for a size that it does not have, or that is no whole number from 1.
    """
    usual = exercise.at.draw or exercise.at.check[-1]
    for name, value in given.items():
        if name not in usual:
            raise WorkbookError(
                f"{exercise.name} has no size '{name}'; its sizes are {', '.join(usual)}"
            )
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise WorkbookError(f"{name} is {value!r}, but a size is a whole number from 1")
    return {**usual, **given}


# What outputs hold before a call. NaN in floats, so that an unwritten value can never pass, with a
# bit pattern of its own, so that it can be told from a NaN that was computed.
POISON = {
    torch.float64: (torch.int64, 0x7FF8BEEF7FF8BEEF),
    torch.float32: (torch.int32, 0x7FC0BEEF),
    torch.float16: (torch.int16, 0x7EBE),
    torch.bfloat16: (torch.int16, 0x7FBE),
    torch.bool: (torch.uint8, 0x5A),
}


def poison(shape: tuple[int, ...], dtype: torch.dtype, device: str = "cpu") -> Tensor:
    """A tensor that nobody has written yet."""
    integer, value = POISON.get(dtype, (dtype, 0x5A if dtype.itemsize == 1 else 0x5AEF))
    return torch.full(shape, value, dtype=integer, device=device).view(dtype)


def arguments(kernel: Answering, case: Case, device: str = "cpu") -> Arguments:
    """What to call an exercise's kernel with: fresh copies of the inputs, poisoned outputs.

    Raises DeclarationError where the launcher's parameters are not those of the exercise.
    """
    exercise, given = kernel.exercise, {**case.scalars, **case.sizes}
    known = [*exercise.shapes, *given]
    values = {}
    for parameter in kernel.parameters:
        if parameter.is_stream:
            continue
        name = parameter.name
        if name not in known or parameter.is_tensor != (name in exercise.shapes):
            raise DeclarationError(
                f"{kernel.name} has a parameter '{parameter.ctype} {name}'; its exercise knows "
                f"the tensors {', '.join(exercise.shapes)} and the values {', '.join(given)}"
            )
        if name in case.tensors:
            values[name] = case.tensors[name].to(device, parameter.dtype, copy=True)
        elif parameter.is_tensor:
            shape = dimensions(exercise.shapes[name], case.sizes)
            values[name] = poison(shape, parameter.dtype, device)
        else:
            values[name] = given[name]
    missing = [name for name in exercise.shapes if name not in values]
    if missing:
        raise DeclarationError(
            f"{kernel.name} has no parameter '{missing[0]}'; its exercise needs one"
        )
    return values


@dataclass(frozen=True)
class Example:
    """One call of an exercise's kernel, the same each time: for pictures and estimates."""

    sizes: Sizes
    arguments: Arguments
    unwritten: frozenset[str]  # tensors that hold nothing yet


def example(kernel: Answering, sizes: Sizes) -> Example:
    """A call with normal values of a fixed seed. Raises DeclarationError, as arguments() does."""
    exercise, seeded = kernel.exercise, Generator().manual_seed(0)
    case = sample(exercise, sizes, NORMAL, seeded, kernel.dtypes)
    fresh = frozenset(exercise.outputs) - frozenset(inputs(exercise))
    return Example(sizes, arguments(kernel, case), fresh)


def sliced(tensor: Tensor) -> Tensor:
    """A copy that begins one element behind the start of its memory, as `y[1:]` does."""
    whole = tensor.new_empty(tensor.numel() + 1)
    return whole[1:].view(tensor.shape).copy_(tensor)


# --- kinds of values


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
    x = normal(shape, generator)
    return x + max(1.0, min(1000.0, 2**24 / max(x.numel(), 1)))


def small(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Variance below the usual eps, so that a wrong or missing eps shows."""
    return normal(shape, generator) * 1e-3


def constant(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """One short binary fraction: its sums are exact in any order. Variance is zero."""
    quarters = _whole(1, 9, generator) * (0.5 - _whole(0, 2, generator))
    return torch.full(shape, quarters / 2, device=generator.device)


def infinite(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Normal, with one infinity in about half of the rows, in one at least.

    Times a zero that stands for what lies beyond an edge, an infinity makes NaN of a result. So
    most lie near an end of their row, where a neighbour that reads too far meets them.
    """
    x = normal(shape, generator)
    rows = x.view(-1, x.shape[-1])
    chosen = uniform((len(rows),), generator) < 0.5
    chosen[_whole(0, len(rows), generator)] = True
    width = rows.shape[1]
    near = min(8, width)
    spans = (0, width), (0, near), (width - near, width)
    for row in chosen.nonzero()[:, 0].tolist():
        sign = 1 - 2 * _whole(0, 2, generator)
        column = _whole(*spans[_whole(0, 3, generator)], generator)
        rows[row, column] = sign * float("inf")
    return x


def not_numbers(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Normal, with one NaN in about a quarter of the rows, in one at least."""
    x = normal(shape, generator)
    rows = x.view(-1, x.shape[-1])
    chosen = uniform((len(rows),), generator) < 0.25
    chosen[_whole(0, len(rows), generator)] = True
    for row in chosen.nonzero()[:, 0].tolist():
        rows[row, _whole(0, rows.shape[1], generator)] = float("nan")
    return x


def with_nan(x: Tensor, generator: Generator) -> Tensor:
    """`x` with a NaN in the place of one element."""
    x.view(-1)[_whole(0, x.numel(), generator)] = float("nan")
    return x


def sometimes_nan(x: Tensor, generator: Generator) -> Tensor:
    """`x`, every second time with a NaN in the place of one element."""
    return with_nan(x, generator) if _whole(0, 2, generator) else x


def wide(shape: tuple[int, ...], generator: Generator, low: float, high: float) -> Tensor:
    """Either sign; magnitudes from `low` to `high`, evenly spread over the powers of ten."""
    share = uniform(shape, generator).double()
    sign = 1 - 2 * (uniform(shape, generator) < 0.5).double()
    return (sign * (low * (high / low) ** share)).float()


def add_outliers(a: Tensor, b: Tensor, generator: Generator) -> None:
    """Put elements far above all others into one column of `a`, or of `b`: (rows, K) both.

    Of four rows one has an ordinary element there, the others one of 2^10, 2^20 and 2^30. The
    other tensor has zeros in that column, and a one in every fourth row: where it has a zero,
    what an outlier costs its row in precision is all that it does to a result.
    """
    a, b = (a, b) if _whole(0, 2, generator) else (b, a)
    column = _whole(0, a.shape[-1], generator)
    a, b = a.view(-1, a.shape[-1]), b.view(-1, b.shape[-1])
    exponents = 10 * ((torch.arange(len(a), device=a.device) + _whole(0, 4, generator)) % 4)
    a[:, column] *= torch.exp2(exponents.to(a.dtype))
    b[:, column] = (torch.arange(len(b), device=b.device) % 4 == 3).to(b.dtype)


def _whole(low: int, high: int, generator: Generator) -> int:
    """An integer from `low` to `high - 1`."""
    return int(torch.randint(low, high, (), generator=generator, device=generator.device))


NORMAL, LARGE, TINY, OUTLIERS = "standard normal", "large", "tiny", "outliers among normal"
NAN_ELSEWHERE = "NaN elsewhere"
# Of the first tensor, and of the others.
FAMILIES: dict[str, tuple[Draw, Draw]] = {
    NORMAL: (normal, normal),
    "uniform": (uniform, uniform),
    "heavy-tailed": (heavy_tailed, heavy_tailed),
    "shifted": (shifted, normal),
    "small": (small, normal),
    "constant": (constant, normal),
    # Up to, or down to, the exercise's own magnitudes; see sample().
    LARGE: (normal, normal),
    TINY: (normal, normal),
    "infinite": (infinite, normal),
    # Of the first tensor, a row of results may be all NaN; of a weight, some results of each row.
    "NaN": (not_numbers, normal),
    NAN_ELSEWHERE: (
        normal,
        lambda shape, generator: with_nan(normal(shape, generator), generator),
    ),
}
NANS = ("NaN", NAN_ELSEWHERE)
FINITE = [name for name in FAMILIES if name not in ("infinite", *NANS)]
OWN = "the exercise's own"


def sample(
    exercise: Exercise,
    sizes: Sizes,
    family: str,
    generator: Generator,
    dtypes: Mapping[str, torch.dtype] = MappingProxyType({}),
) -> Case:
    """A fresh case. What `exercise.inputs` gives is taken as it is; the family fills the rest.

    `dtypes` are those of the launcher's tensors, so that the reference sees what the kernel sees.
    """
    tensors = dict(exercise.inputs(sizes, generator)) if exercise.inputs else {}
    kind, others = FAMILIES.get(family, (normal, normal))
    least, most = exercise.magnitudes
    if family == LARGE:
        kind = functools.partial(wide, low=100.0, high=most)
    elif family == TINY:
        kind = functools.partial(wide, low=least, high=min(1e-6, 1e6 * least))
    for name in inputs(exercise):
        if name not in tensors:
            tensors[name] = kind(dimensions(exercise.shapes[name], sizes), generator)
            kind = others
    if family == OUTLIERS and exercise.outliers:
        add_outliers(*(tensors[name] for name in exercise.outliers), generator)
    tensors = {name: tensor.to(dtypes.get(name, tensor.dtype)) for name, tensor in tensors.items()}
    scalars = {name: _scalar(*span, generator) for name, span in exercise.scalars.items()}
    return Case(sizes, family, tensors, scalars)


def _scalar(low: float, high: float, generator: Generator) -> float:
    """A float32 value from the range; evenly over the magnitudes of a wide one, such as eps."""
    share = uniform((), generator).item()
    wide = low > 0 and high / low >= 100
    value = low * (high / low) ** share if wide else low + (high - low) * share
    return torch.tensor(value, dtype=torch.float32).item()


def usual(exercise: Exercise) -> str:
    """The kind of values that every size meets: normal ones, or all of them the exercise's own."""
    if not exercise.inputs:
        return NORMAL
    own = exercise.inputs(exercise.at.check[0], Generator().manual_seed(0))
    return OWN if set(inputs(exercise)) <= set(own) else NORMAL


def plan(exercise: Exercise, sizes: tuple[Sizes, ...]) -> Iterator[tuple[Sizes, list[str]]]:
    """Which kinds of values each size meets. Always the same; only the values are fresh.

    Every size has normal values and one other kind; the two with the most elements meet all but
    those that the largest alone meets: values far from 1.
    """
    if usual(exercise) == OWN:
        yield from ((size, [OWN, OWN]) for size in sizes)
        return
    first, *others = families(exercise)
    finite = FINITE[1:]
    largest = sorted(range(len(sizes)), key=lambda i: elements(exercise, sizes[i]))[-2:]
    near = [name for name in others if name not in (LARGE, TINY)]
    for i, size in enumerate(sizes):
        kinds = others if i == largest[-1] else near if i in largest else [finite[i % len(finite)]]
        yield size, [first, *kinds]


def families(exercise: Exercise) -> list[str]:
    """All kinds of values that it is tried on, the usual one first."""
    if usual(exercise) == OWN:
        return [OWN]
    left_out = NANS if exercise.drops_nan else NANS[1:] if len(inputs(exercise)) == 1 else ()
    found = [name for name in FAMILIES if name not in left_out]
    return [*found, OUTLIERS] if exercise.outliers else found


def drawn(exercise: Exercise, generator: Generator) -> list[Sizes]:
    """One of each of the sizes that `at.drawn` leaves open. A size that another one follows is a
    multiple of that."""
    found = []
    for spans in exercise.at.drawn:
        sizes = {name: _whole(low, high + 1, generator) for name, (low, high) in spans.items()}
        _follow(exercise, sizes)
        order = [name for name in exercise.at.check[0] if name in sizes]
        found.append({name: sizes[name] for name in order})
    return found


def lengths(exercise: Exercise) -> list[str]:
    """The sizes that are dimensions of tensors."""
    named = " ".join(exercise.shapes.values()).split()
    return [name for name in exercise.at.check[0] if name in named]


def long_sizes(exercise: Exercise, name: str, span: tuple[int, int], generator: Generator) -> Sizes:
    """From `span` in the size `name`, and short in all others but those that this one follows."""
    sizes = {other: _whole(1, 4, generator) for other in exercise.at.check[0]}
    sizes[name] = _whole(*span, generator)
    _follow(exercise, sizes)
    return sizes


def _follow(exercise: Exercise, sizes: dict[str, int]) -> None:
    """Make each size that another one follows a multiple of that."""
    for follower, leader in exercise.follows.items():
        parts = sizes[follower]
        sizes[leader] = max(sizes[leader] // parts, 1) * parts


FINE, WHOLE = 16, 1024  # parts of a size; each of so many elements, which are whole tiles


def gate_sizes(exercise: Exercise, generator: Generator) -> Sizes:
    """Larger than `at.gates` in one size, and what follows it, by another factor each time: from
    two to seven, and between these where a size stands alone and is of many tiles."""
    known = exercise.at.gates
    of_tensors = lengths(exercise)
    free = [name for name in known if name not in exercise.follows and name in of_tensors]
    name = free[_whole(0, len(free), generator)]
    grown = {name, *(follower for follower, leader in exercise.follows.items() if leader == name)}
    parts = FINE if len(grown) == 1 and known[name] % (FINE * WHOLE) == 0 else 1
    times = _whole(2 * parts, 7 * parts + 1, generator)
    return {n: size * times // parts if n in grown else size for n, size in known.items()}


def elements(exercise: Exercise, sizes: Sizes) -> int:
    """Of all tensors of a call."""
    return sum(torch.Size(dimensions(shape, sizes)).numel() for shape in exercise.shapes.values())
