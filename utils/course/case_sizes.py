"""The sizes that a kernel is tried at: the exercise's, and others drawn around them."""

import functools
import itertools
import math
import random
from collections.abc import Callable, Sequence

import torch
from torch import Generator

from utils.course.case_values import uniform, whole_number
from utils.course.exercise import FLOAT, Exercise, Sizes, dimensions, inputs_of
from utils.ground.errors import WorkbookError


def size_text(sizes: Sizes) -> str:
    """Such as "M=8 N=4"."""
    return " ".join(f"{name}={value}" for name, value in sizes.items())


def bench_sizes(exercise: Exercise, sizes: Sizes) -> dict[str, int]:
    """The sizes that an exercise is timed at, some of them replaced. Raises WorkbookError for a
    size that it does not have."""
    unknown = [name for name in sizes if name not in exercise.at.bench]
    if unknown:
        raise WorkbookError(
            f"{exercise.name} has no size '{unknown[0]}'; it has {', '.join(exercise.at.bench)}"
        )
    return {**exercise.at.bench, **sizes}


def toy_sizes(exercise: Exercise, sizes: Sizes) -> dict[str, int]:
    """The sizes that an exercise is drawn at, with those `given` in their place.

    Raises WorkbookError for a size that it does not have, or that is no whole number from 1.
    """
    usual = exercise.at.draw or exercise.at.check[-1]
    for name, value in sizes.items():
        if name not in usual:
            raise WorkbookError(
                f"{exercise.name} has no size '{name}'; its sizes are {', '.join(usual)}"
            )
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise WorkbookError(f"{name} is {value!r}, but a size is a whole number from 1")
    return {**usual, **sizes}


def drawn(exercise: Exercise, generator: Generator) -> list[Sizes]:
    """One of each of the sizes that `at.drawn` leaves open, every second time beside a whole number
    of blocks. A size that another one follows is a multiple of that."""
    chosen: list[Sizes] = []
    for spans in exercise.at.drawn:
        sizes = {
            name: whole_number(low, high + 1, generator) for name, (low, high) in spans.items()
        }
        if whole_number(0, 2, generator):
            near = {name: _beside(size, generator) for name, size in sizes.items()}
            sizes |= {n: s for n, s in near.items() if spans[n][0] <= s <= spans[n][1]}
        _follow(exercise, sizes)
        order = [name for name in exercise.at.check[0] if name in sizes]
        chosen.append({name: sizes[name] for name in order})
    return chosen


def _beside(size: int, generator: Generator) -> int:
    """As many blocks of 32, 64 or 128, or one more or one less."""
    block = (32, 64, 128)[whole_number(0, 3, generator)]
    return round(size / block) * block + whole_number(-1, 2, generator)


def lengths(exercise: Exercise) -> list[str]:
    """The sizes that are dimensions of tensors, and of which there is no choice of a few."""
    named, choices = " ".join(exercise.shapes.values()).split(), exercise.at.choices
    return [name for name in exercise.at.check[0] if name in named and name not in choices]


def long_sizes(exercise: Exercise, name: str, span: tuple[int, int], generator: Generator) -> Sizes:
    """From `span` in the size `name`, and short in all others but those that this one follows."""
    sizes = _chosen(exercise, generator)
    for other in (other for other in sizes if other not in exercise.at.choices):
        sizes[other] = whole_number(1, 4, generator)
    sizes[name] = whole_number(*span, generator)
    _follow(exercise, sizes)
    return sizes


BYTE = 2  # operations that take the emulator as long as a byte of a tensor


def cost(exercise: Exercise, sizes: Sizes) -> int:
    """About how long a call takes on the emulator, in operations of arithmetic."""
    tiles = exercise.at.tiles
    whole = {n: -(-size // tiles.get(n, 1)) * tiles.get(n, 1) for n, size in sizes.items()}
    operations = exercise.flops(**whole) * (1 + SLOWER * exercise.halves(sizes))
    return operations + BYTE * FLOAT * elements(exercise, sizes)


SLOWER = 3  # a product of halves by tensor cores, beside one of floats


def promised(exercise: Exercise, name: str) -> int:
    """The largest value of a size that the exercise speaks of."""
    at = exercise.at
    most = max(sizes[name] for sizes in (at.bench, *at.card, *at.check))
    follower = next((f for f, leader in exercise.follows.items() if leader == name), None)
    return min(most, at.part * promised(exercise, follower)) if at.part and follower else most


def anywhere(
    exercise: Exercise, generator: Generator, most: float, far: str | None = None
) -> Sizes:
    """Sizes from all that the exercise promises, as far as the call costs at most `most`.

    Each is evenly spread over the powers of ten. One, another each time, has the whole range, the
    next has what is left of the cost. That is the one named `far` where one is: then a part of its
    range is left out from the small end, half of it or more; and every second time one of what is
    left for the next, so that a matrix is large as a whole.
    """
    at = exercise.at
    sizes = _chosen(exercise, generator)
    free = [name for name in sizes if name not in at.choices]
    leaders = [name for name in free if name not in exercise.follows]
    parts = [name for name in free if name in exercise.follows]
    order = [leaders[i] for i in torch.randperm(len(leaders), generator=generator).tolist()]
    of_tensors = lengths(exercise)
    # Such as the number of blocks: last.
    order.sort(key=lambda name: (name != far, name not in of_tensors))
    several = len([name for name in order if name in of_tensors]) > 1
    large = order[: 1 + (several and whole_number(0, 2, generator))] if far else []
    for name in (*order, *parts):
        limit = promised(exercise, name)
        least = 1
        if leader := exercise.follows.get(name):
            limit = min(limit, sizes[leader])
            least = -(-sizes[leader] // at.part) if at.part else 1
        limit = _dearest(exercise, sizes, name, limit, most)
        if name not in of_tensors and name not in parts and whole_number(0, 2, generator):
            limit = math.ceil(limit**FEW)  # so that loops go round often
        if name in large:
            low, high = LARGE[several]
            least = int(limit ** (low + (high - low) * uniform((), generator).item()))
        sizes[name] = log_uniform(min(least, limit), limit, generator)
    _follow(exercise, sizes)
    _whole_vectors(exercise, sizes, generator)
    return sizes


def dearest_of(
    draws: int, exercise: Exercise, generator: Generator, most: float, far: str
) -> Sizes:
    """The sizes whose call costs most, of several draws `anywhere`: where only one large size is
    tried in some way, few kernels may be wrong beyond it alone."""
    drawn = [anywhere(exercise, generator, most, far) for _ in range(draws)]
    return max(drawn, key=lambda sizes: cost(exercise, sizes))


# What is left out of the range of a large size, in powers of ten: where it stands alone, and where
# draws of other sizes meet what is in between.
LARGE = (0.5, 0.95), (0.7, 0.98)
FEW = 0.15  # of the powers of ten of a size such as the number of blocks


def all_large(exercise: Exercise, generator: Generator, most: float) -> Sizes:
    """Sizes of which none is small: as long a side for each as the call may cost `most`, then a
    little less of each."""
    sizes = _chosen(exercise, generator)
    names = [name for name in leaders(exercise) if name not in exercise.at.choices]

    def sides(side: int) -> dict[str, int]:
        return {name: min(side, promised(exercise, name)) for name in names}

    longest = _largest(
        max(promised(exercise, name) for name in names),
        lambda side: cost(exercise, {**sizes, **sides(side)}) <= most,
    )
    for name, side in sides(longest).items():
        sizes[name] = log_uniform(math.ceil(side**NEARLY), side, generator)
    for name, leader in exercise.follows.items():
        if name not in exercise.at.choices:
            sizes[name] = log_uniform(1, sizes[leader], generator)
    _follow(exercise, sizes)
    _whole_vectors(exercise, sizes, generator, least=MANY_VECTORS)
    return sizes


NEARLY = 0.85  # of the powers of ten of a side


def as_met(
    exercise: Exercise, sizes: Sizes, most: float, equal: float = 0.75, rounded: float = 0.25
) -> Sizes:
    """Drawn sizes made such as people have, which draws hardly ever are: in a share `equal` of them
    some are so, as those of a square matrix are; in a share `rounded` all are round numbers. Not
    where the call would cost more than `most`.

    That depends on the sizes alone: a seed goes on with what it would have drawn.
    """
    own = random.Random(size_text(sizes))
    met = dict(_equal(exercise, sizes, own) if own.random() < equal else sizes)
    if own.random() < rounded:
        near = own.choice(ROUND)
        met |= {n: near(met[n]) for n in met if met[n] >= FEWEST and n not in _bound(exercise)}
    _follow(exercise, met)
    free = [name for name in met if name not in _bound(exercise)]
    promises = all(met[name] <= promised(exercise, name) for name in free)
    return met if promises and cost(exercise, met) <= most else sizes


def square(exercise: Exercise, generator: Generator, most: float) -> Sizes:
    """Two sizes that are equal, as large as a call that costs `most` may have them or a little
    less; the others are small."""
    sizes = _chosen(exercise, generator)
    names = [name for name in leaders(exercise) if name not in exercise.at.choices]
    pair = [names[i] for i in torch.randperm(len(names), generator=generator)[:2].tolist()]
    for name in (name for name in sizes if name not in exercise.at.choices):
        sizes[name] = log_uniform(1, min(FEW_BESIDE, promised(exercise, name)), generator)
    longest = _largest(
        min(promised(exercise, name) for name in pair),
        lambda side: cost(exercise, {**sizes, **dict.fromkeys(pair, side)}) <= most,
    )
    side = log_uniform(math.ceil(longest**NEARLY), longest, generator)
    sizes |= dict.fromkeys(pair, side)
    for name, leader in exercise.follows.items():
        if name not in exercise.at.choices:
            sizes[name] = next(n for n in range(sizes[name], 0, -1) if sizes[leader] % n == 0)
    _follow(exercise, sizes)
    return sizes


FEW_BESIDE = 16  # of other sizes, where two are equal


def of_one_side(exercise: Exercise, generator: Generator) -> Sizes:
    """A few of each, the same number of all: a product of square matrices, say. A known size where
    an exercise says nothing of others."""
    known = exercise.at.check
    if not exercise.at.anywhere:
        return known[whole_number(0, len(known), generator)]
    sizes = _chosen(exercise, generator)
    side = log_uniform(LEAST_SIDE, FLAGGED if _flags(exercise) else MOST_SIDE, generator)
    for name in (name for name in sizes if name not in exercise.at.choices):
        sizes[name] = min(side, promised(exercise, name))
    _follow(exercise, sizes)
    return sizes


def with_fewer_rows(exercise: Exercise, sizes: Sizes) -> Sizes:
    """The same, but for the first input, which has half as many rows."""
    rows = exercise.shapes[inputs_of(exercise)[0]].split()[0]
    if rows not in sizes or rows in exercise.at.choices:
        return sizes
    fewer = {**sizes, rows: max(sizes[rows] // 2, 1)}
    _follow(exercise, fewer)
    return fewer


LEAST_SIDE, MOST_SIDE = 4, 40
FLAGGED = 28  # where calls are made with each flag, so that they take no longer


def _flags(exercise: Exercise) -> dict[str, tuple[int, ...]]:
    """Sizes that have few values, and are no length of a tensor, such as whether a query sees the
    keys behind it."""
    named = " ".join(exercise.shapes.values()).split()
    return {n: values for n, values in exercise.at.choices.items() if n not in named}


def with_each_flag(exercise: Exercise, sizes: Sizes) -> list[Sizes]:
    """The same sizes, with each value of each flag."""
    flags = _flags(exercise)
    return [
        {**sizes, **dict(zip(flags, v, strict=True))} for v in itertools.product(*flags.values())
    ]


def tiny(exercise: Exercise, generator: Generator) -> Sizes:
    """A few of each, in few parts: what a large call left behind is more than such a one needs."""
    sizes = _chosen(exercise, generator)
    for name in (name for name in sizes if name not in exercise.at.choices):
        most = FEW_PARTS if name in exercise.follows else TINY
        sizes[name] = min(whole_number(1, most, generator), promised(exercise, name))
    _follow(exercise, sizes)
    return sizes


TINY, FEW_PARTS = 8, 3  # above all of them


def _equal(exercise: Exercise, sizes: Sizes, own: random.Random) -> Sizes:
    """The same, of which two are equal, or all that are free to be. Whole vectors stay whole."""
    text = " ".join(exercise.shapes.values()).split()
    named = [name for name in sizes if name in text or name in exercise.follows]
    free = [name for name in named if name not in _bound(exercise)]
    pairs = [
        (name, other)
        for name, other in itertools.combinations(named, 2)
        if (name in free or other in free)
        and 1 < max(sizes[name], sizes[other])
        and exercise.follows.get(name) != other != name != exercise.follows.get(other)
    ]
    if not pairs:
        return sizes
    names = free if len(free) > 2 and own.random() < ALL else own.choice(pairs)
    stay = [sizes[name] for name in names if name not in free]
    mean = int(math.prod(sizes[name] for name in names) ** (1 / len(names)) + 1e-9)
    vector = math.gcd(LONGEST_VECTOR, *(sizes[name] for name in names))
    side = stay[0] if stay else max(mean // vector, 1) * vector
    return {n: side if n in names and n in free else s for n, s in sizes.items()}


def _bound(exercise: Exercise) -> set[str]:
    """Sizes that have few values, or follow another one."""
    return {*exercise.at.choices, *exercise.follows}


ALL = 0.33  # of draws in which some sizes are equal
FEWEST = 8  # of which there are round numbers
ROUND: tuple[Callable[[int], int], ...] = (
    lambda size: 1 << size.bit_length() - 1,
    lambda size: (1 << size.bit_length() - 1) - 1,
    lambda size: size // 10 ** (len(str(size)) - 1) * 10 ** (len(str(size)) - 1),
)


def leaders(exercise: Exercise) -> list[str]:
    """The sizes that are dimensions of tensors and follow no other."""
    return [name for name in lengths(exercise) if name not in exercise.follows]


def _chosen(exercise: Exercise, generator: Generator) -> dict[str, int]:
    """Sizes of 1, and those that the exercise has a choice of: one of its values each."""
    sizes = {name: 1 for name in exercise.at.check[0]}
    for name, values in exercise.at.choices.items():
        sizes[name] = values[whole_number(0, len(values), generator)]
    return sizes


def _dearest(exercise: Exercise, sizes: Sizes, name: str, limit: int, most: float) -> int:
    """The largest value of a size whose call costs so much at most; 1 at least."""
    return _largest(limit, lambda value: cost(exercise, {**sizes, name: value}) <= most)


def _largest(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `limit` that fits, where all below it do; 1 at least."""
    low, high = 1, limit + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def log_uniform(least: int, most: int, generator: Generator) -> int:
    """A whole number, evenly spread over the powers of ten."""
    share = uniform((), generator).item()
    return min(int(least * ((most + 1) / least) ** share), most)


def grown(exercise: Exercise, names: Sequence[str], share: float) -> dict[str, int]:
    """The last known sizes, of which those `names` have gone a share of the way to the largest that
    is promised, counted in powers of ten."""
    sizes = dict(exercise.at.check[-1])
    for name in names:
        sizes[name] = math.ceil(
            sizes[name] ** (1 - share) * promised(exercise, name) ** share - 1e-9
        )
    _follow(exercise, sizes)
    return sizes


def _follow(exercise: Exercise, sizes: dict[str, int]) -> None:
    """Make each size that another one follows a multiple of that."""
    for follower, leader in exercise.follows.items():
        if most := exercise.at.part:
            sizes[follower] = max(sizes[follower], -(-sizes[leader] // most))
        parts = sizes[follower]
        sizes[leader] = max(sizes[leader] // parts, 1) * parts


LONGEST_VECTOR = 1024  # elements: a quad of each thread
MANY_VECTORS = 8  # of a size that must not become much smaller


def _whole_vectors(
    exercise: Exercise, sizes: dict[str, int], generator: Generator, least: int = 1
) -> None:
    """Make every second draw one of whole vectors, `least` of them: each size, and each part of a
    size that another one follows, a multiple of 4 to 1024, if it is that long. Fast paths want
    that, and of several sizes drawn evenly one draw of many has it.

    Every fourth draw lies beside: each size is one more, or one less, than a multiple of a long
    vector, where kernels of tiles go wrong, and few sizes are that are drawn evenly.
    """
    way = whole_number(0, 4, generator)
    leading = {} if exercise.at.part else {of: name for name, of in exercise.follows.items()}
    for name in leaders(exercise) if way != AS_DRAWN else ():
        most = min(sizes[name] // least, LONGEST_VECTOR).bit_length()
        if name in exercise.at.choices or most < 3:
            continue
        beside = 1 - 2 * whole_number(0, 2, generator) if way == BESIDE else 0
        shortest = max(most - BLOCKS, 2) if beside else 2
        vector = 2 ** whole_number(shortest, most, generator)
        parts = sizes[name] // vector
        each = parts if name in leading else 1  # how often there is one more, or one less
        if parts * vector + each > promised(exercise, name):
            beside = -abs(beside)
        sizes[name] = parts * vector + each * beside
        if name in leading:
            sizes[leading[name]] = parts


AS_DRAWN, BESIDE = 0, 1  # of four draws; the others are of whole vectors
BLOCKS = 3  # lengths of vectors, from the longest, that blocks and tiles may have


FINE, WHOLE = 64, 1024  # parts of a size; each of so many elements, which are whole tiles
LEAST, MOST, GATED = 7, 28, 4e6  # times at.gates, at most: as many as keep to this cost
DEAR = 8, 12, 3e7  # times the cost at at.gates, at most: twice each of three sizes; more up to here


def gate_sizes(exercise: Exercise, generator: Generator, edges: bool = False) -> Sizes:
    """Larger than `at.gates` in each size: in one, and what follows it, by from two to LEAST times,
    and further where that takes no time; between these where a size stands alone and is of many
    tiles. Each other size is two or three times as large, unless that would be dear: a kernel that
    knows sizes of the gates meets none of them. Parts of a size are twice as long, or half as long.
    What `at.gated` leaves open is drawn. With `edges` each size that is long enough is a little
    less: no multiple of a tile."""
    spans = exercise.at.gated
    opened = {n: whole_number(low, high + 1, generator) for n, (low, high) in spans.items()}
    known: Sizes = {**exercise.at.gates, **opened}
    of_tensors = lengths(exercise)
    free = [name for name in known if name not in exercise.follows and name in of_tensors]
    name = free[whole_number(0, len(free), generator)]
    least, more, most = DEAR
    once = cost(exercise, known)  # it may grow with the square of a size
    dear = max(GATED, least * once, min(more * once, most))
    # Each of the others two times; then three, every second time. Not where that would be dear.
    for factor, parts in ((2, 1), (3, 2)):
        for other in (other for other in free if other != name):
            larger = _times(exercise, known, other, factor, parts)
            cheap = cost(exercise, _times(exercise, larger, name, 2)) <= dear
            if cheap and (factor == 2 or whole_number(0, 2, generator)):
                known = larger
    followed = name in exercise.follows.values()
    parts = FINE if not followed and known[name] % (FINE * WHOLE) == 0 else 1
    times = int(min(max(GATED / cost(exercise, known), LEAST), MOST) * parts)
    grown = functools.partial(_times, exercise, known, name, parts=parts)
    times = min(times, _largest(times, lambda larger: cost(exercise, grown(larger)) <= dear))
    sizes = grown(log_uniform(2 * parts, max(times, 2 * parts), generator))
    sizes = _other_parts(exercise, sizes, generator)
    for name in free if edges else ():
        sizes = _less(exercise, sizes, name) or sizes
    return sizes


WARP = 32  # lanes


def _other_parts(exercise: Exercise, sizes: Sizes, generator: Generator) -> Sizes:
    """The same sizes, with half as many parts of one that another one follows, or twice as many:
    they stay whole vectors, and a kernel that knows how long parts are at the gates meets others.
    Where their number is even it stays even, and above two, since one part may be left out: one
    alone would be a whole row. A length above WARP is not halved to WARP: there each lane has one
    element, whichever way they are shared out."""
    if exercise.at.part or not exercise.at.anywhere:
        return sizes
    changed = dict(sizes)
    for of, name in exercise.follows.items():
        length, lengthen = sizes[name] // sizes[of], whole_number(0, 2, generator)
        can_halve = length % 2 == 0 and not length // 2 <= WARP < length
        if sizes[of] % 4 == 0 and sizes[of] > 4 and (lengthen or not can_halve):
            changed[of] = sizes[of] // 2
        elif can_halve:
            changed[of] = sizes[of] * 2
    return changed


def _less(exercise: Exercise, sizes: Sizes, name: str) -> Sizes | None:
    """The same with one size that 8 divides, and 16 does not: rows begin at whole sectors, and it
    is no multiple of a tile. Of a size that another one follows, that one is odd, and its parts
    are as long. None where it is too short for that."""
    of = next((of for of, leader in exercise.follows.items() if leader == name), None)
    if of is None:
        return {**sizes, name: sizes[name] // 16 * 16 - 8} if sizes[name] >= 32 else None
    if sizes[of] % 2 or exercise.at.part:
        return None
    return {**sizes, name: sizes[name] - sizes[name] // sizes[of], of: sizes[of] - 1}


def _times(exercise: Exercise, sizes: Sizes, name: str, times: int, parts: int = 1) -> Sizes:
    """The same, of which one size, and what follows it, is so many times as large, over `parts`."""
    grown = {name, *(follower for follower, leader in exercise.follows.items() if leader == name)}
    return {n: size * times // parts if n in grown else size for n, size in sizes.items()}


def elements(exercise: Exercise, sizes: Sizes) -> int:
    """Of all tensors of a call."""
    return sum(math.prod(dimensions(shape, sizes)) for shape in exercise.shapes.values())
