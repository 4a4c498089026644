"""The cases that a kernel is tried on: which sizes meet which kinds of values."""

import functools
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from utils.course.case_sizes import elements, size_text
from utils.course.case_values import (
    CANCELLING,
    FAMILIES,
    FAR_FIRST,
    FINITE,
    INFINITE_ELSEWHERE,
    LARGE,
    LARGE_ELSEWHERE,
    NANS,
    NORMAL,
    OF_ONE_VALUE,
    OF_SCALES,
    OF_SCALES_ELSEWHERE,
    ORDERS,
    OUTLIERS,
    OWN,
    SELDOM,
    SIGNED,
    SORTED,
    TINY,
    WITH_ZEROS,
    ZERO_TIMES_INFINITY,
    Draw,
    add_outliers,
    columns_of_scales,
    in_pairs,
    normal,
    of_scales,
    some_infinite,
    uniform,
    whole_number,
    wide,
)
from utils.course.exercise import Exercise, Sizes, dimensions, inputs_of
from utils.course.precision import Precision
from utils.cuda.arguments import Argument


@dataclass(frozen=True)
class Case:
    """One call: what the launcher reads, on the CPU. Outputs that are not read are not in it."""

    sizes: Sizes
    family: str
    tensors: dict[str, Tensor]
    scalars: dict[str, float]
    order: str = ""  # in which the values are, where draws hardly ever are so
    note: str = ""  # what else is unusual about the call

    @property
    def values(self) -> dict[str, Argument]:
        """Everything the reference may ask for by name."""
        return {**self.tensors, **self.scalars, **self.sizes}

    def __str__(self) -> str:
        scalars = [f"{name}={value:.6g}" for name, value in self.scalars.items()]
        words = [size_text(self.sizes), *scalars, f"{self.family} values", self.order, self.note]
        return ", ".join(filter(None, words))


def sample(
    exercise: Exercise,
    sizes: Sizes,
    family: str,
    generator: Generator,
    dtypes: Mapping[str, torch.dtype] = MappingProxyType({}),
) -> Case:
    """A fresh case. What `exercise.inputs` gives, or the exercise's own kind of values of this
    name, is taken as it is; the family fills the rest.

    `dtypes` are those of the launcher's tensors, so that the reference sees what the kernel sees.
    """
    own = exercise.kinds.get(family, exercise.inputs)
    tensors = dict(own(sizes, generator)) if own else {}
    kind, others = _draws(exercise, family, generator)
    for name in inputs_of(exercise):
        if name not in tensors:
            tensors[name] = kind(dimensions(exercise.shapes[name], sizes), generator)
            kind = others
    if family == INFINITE_ELSEWHERE and not _plain(exercise):
        for name in _infinite_ones(exercise, generator):
            tensors[name] = some_infinite(dimensions(exercise.shapes[name], sizes), generator)
    if family == OUTLIERS and exercise.outliers:
        x, W = exercise.outliers
        add_outliers(tensors[x], tensors[W], generator)
    tensors = {name: tensor.to(dtypes.get(name, tensor.dtype)) for name, tensor in tensors.items()}
    scalars = {name: _scalar(*span, generator) for name, span in exercise.scalars.items()}
    return Case(sizes, family, tensors, scalars)


def _infinite_ones(exercise: Exercise, generator: Generator) -> list[str]:
    """Parameters that hold infinities in a call: all of them, or every second time one, since
    others may make NaN of all results."""
    if exercise.may_be_infinite:
        return [exercise.may_be_infinite]
    names = parameters(exercise)
    one = names[whole_number(0, len(names), generator)]
    return names if whole_number(0, 2, generator) else [one]


def _draws(exercise: Exercise, family: str, generator: Generator) -> tuple[Draw, Draw]:
    """How the first input is drawn that the exercise leaves open, and how the others are."""
    kind, others = FAMILIES.get(family, (normal, normal))
    if family == ZERO_TIMES_INFINITY and whole_number(0, 2, generator):
        kind, others = others, kind
    least, most = exercise.magnitudes
    large = functools.partial(wide, low=100.0, high=most)
    if family == LARGE:
        kind = large
    elif family == LARGE_ELSEWHERE:
        others = large
    elif family == INFINITE_ELSEWHERE and not _plain(exercise):
        others = normal  # but for one of them: see sample()
    elif family == OF_SCALES:
        kind = functools.partial(of_scales, low=least, high=most)
    elif family == OF_SCALES_ELSEWHERE:
        others = functools.partial(columns_of_scales, low=least, high=most)
    elif family == TINY:
        most = min(1e-6, 1e6 * least)
        most *= (1e-6 / most) ** uniform((), generator).item()  # or any decade above that
        kind = functools.partial(wide, low=least, high=most)
    return kind, others


def _scalar(low: float, high: float, generator: Generator) -> float:
    """A float32 value from the range; evenly over the magnitudes of a wide one, such as eps. Every
    second time it is one of the ends."""
    share = uniform((), generator).item()
    if whole_number(0, 2, generator):
        share = round(share)
    wide = low > 0 and high / low >= 100
    value = low * (high / low) ** share if wide else low + (high - low) * share
    return torch.tensor(value, dtype=torch.float32).item()


def arranged(exercise: Exercise, case: Case, own: random.Random) -> Case:
    """A case, more often than not with values in an order that draws hardly ever have: rows that
    are equal in pairs; or signs that alternate, elements that cancel, zeros, a parameter of one
    value, sorted rows.

    What is promised of a row still holds. Elements change only where nothing is promised of them,
    and no sum becomes less exact. None is infinite times 0, which is another kind's.
    """
    own_kind = case.family in exercise.kinds
    if exercise.hang_together or own_kind or own.random() < AS_DRAWN:
        return case
    inputs = [name for name in inputs_of(exercise) if case.tensors[name].ndim]
    promised = own_inputs(exercise)
    anything = exercise.exact or case.family == NORMAL
    free = [
        name
        for name in inputs
        if case.tensors[name].is_floating_point()
        and anything
        and (exercise.exact or name not in promised)
    ]
    if not free or own.random() < IN_PAIRS:
        pairs = {n: in_pairs(case.tensors[n]) for n in inputs if case.tensors[n].ndim > 1}
        return _with(case, pairs, "rows equal in pairs" if pairs else "")
    changed, orders = {}, []
    for name in free:
        if len(free) == 1 or own.random() < OF_TENSORS:
            parameter = name != inputs[0] and case.tensors[name].ndim == 1
            long = case.tensors[name].shape[-1] > LONG_ROW
            signed = SORTED if exercise.exact else (CANCELLING,) if long else SIGNED
            far = (FAR_FIRST,) if name == inputs[0] and not exercise.exact else ()
            more = (OF_ONE_VALUE,) if parameter else (*signed, *far)
            order = own.choice([*more, WITH_ZEROS])
            changed[name] = ORDERS[order](case.tensors[name])
            orders.append(f"{name} {order}")
    return _with(case, changed, ", ".join(orders))


def _with(case: Case, changed: Mapping[str, Tensor], order: str) -> Case:
    return replace(case, tensors={**case.tensors, **changed}, order=order)


# Elements; where signs alternate, every second element of a longer row adds up to so much that a
# kernel with two sums, or four, rounds away more than the bound allows.
LONG_ROW = 256
AS_DRAWN, IN_PAIRS, OF_TENSORS = 0.3, 0.25, 0.8  # of cases; of those; of tensors of a case


UNROUNDED = ("infinite", *NANS, INFINITE_ELSEWHERE)


def any_family(exercise: Exercise, generator: Generator) -> str:
    """Every second time the usual kind of values, else one of the exercise's own or of all.

    A size that is drawn may be long: a sum from front to back, which is right, is off there by more
    than the bound where all values have one sign, or a few are large. So where values are rounded,
    only kinds are drawn that add nothing to that.
    """
    names, own = families(exercise), kinds(exercise)
    way = whole_number(0, 4, generator)
    plain = [n for n in names[1:] if exercise.exact or n in UNROUNDED or n in own]
    others = own if way == 0 and own else plain or names[:1]
    return others[whole_number(0, len(others), generator)] if way < 2 else names[0]


def kinds(exercise: Exercise) -> list[str]:
    """Its own kinds of values, but for those that have one size alone."""
    return [name for name in exercise.kinds if name not in exercise.at.corners]


def usual(exercise: Exercise) -> str:
    """The kind of values that every size meets: normal ones, or all of them the exercise's own."""
    return OWN if set(inputs_of(exercise)) <= own_inputs(exercise) else NORMAL


def own_inputs(exercise: Exercise) -> set[str]:
    """The inputs whose values the exercise makes itself."""
    least = exercise.at.check[0]
    return set(exercise.inputs(least, Generator().manual_seed(0))) if exercise.inputs else set()


def alike(exercise: Exercise, case: Case) -> list[tuple[str, ...]]:
    """Inputs that could be one tensor: of one shape and dtype, and nothing is promised of them."""
    pairs = itertools.combinations(_free(exercise, case), 2)
    return [(a.name, b.name) for a, b in pairs if a.shape == b.shape and a.dtype == b.dtype]


def all_alike(exercise: Exercise, case: Case) -> list[tuple[str, ...]]:
    """Three inputs or more that could be one tensor, likewise."""
    of_kind: dict[object, list[str]] = {}
    for a in _free(exercise, case):
        of_kind.setdefault((a.shape, a.dtype), []).append(a.name)
    return [tuple(names) for names in of_kind.values() if len(names) > 2]


def parts(exercise: Exercise, case: Case) -> list[tuple[str, ...]]:
    """Inputs of which the second could be the first row of the first, likewise."""
    pairs = itertools.permutations(_free(exercise, case), 2)
    return [(a.name, b.name) for a, b in pairs if a.shape[1:] == b.shape and a.dtype == b.dtype]


def beginnings(exercise: Exercise, case: Case) -> list[tuple[str, ...]]:
    """Inputs of which the second could be the first few rows of the first, likewise."""
    pairs = itertools.permutations(_free(exercise, case), 2)
    return [
        (a.name, b.name)
        for a, b in pairs
        if a.shape[1:] == b.shape[1:] and a.shape > b.shape and a.dtype == b.dtype
    ]


class _Free(NamedTuple):
    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype


def _free(exercise: Exercise, case: Case) -> list[_Free]:
    """Inputs that may hold anything."""
    if exercise.hang_together:
        return []
    promised = own_inputs(exercise) - set(exercise.may_be_one)
    kept = {*promised, *exercise.outputs}
    free = {name: tensor for name, tensor in case.tensors.items() if name not in kept}
    return [_Free(name, tuple(tensor.shape), tensor.dtype) for name, tensor in free.items()]


def plan(exercise: Exercise, sizes: Sequence[Sizes]) -> Iterator[tuple[Sizes, list[str]]]:
    """Which kinds of values each size meets. Always the same; only the values are fresh.

    Every size has normal values and one other kind; the two with the most elements meet all but
    those that the largest alone meets: values far from 1, and some that few kernels mind.
    """
    if usual(exercise) == OWN:
        own = [OWN, *kinds(exercise)]
        yield from ((size, own if own[1:] else [OWN, OWN]) for size in sizes)
        return
    first, *others = families(exercise)
    finite = FINITE[1:]
    largest = sorted(range(len(sizes)), key=lambda i: elements(exercise, sizes[i]))[-2:]
    near = [name for name in others if name not in (LARGE, TINY, *SELDOM)]
    for i, size in enumerate(sizes):
        more = others if i == largest[-1] else near if i in largest else [finite[i % len(finite)]]
        yield size, [first, *more]


def large_plan(exercise: Exercise, generator: Generator) -> Iterator[tuple[Sizes, list[str]]]:
    """Which kinds of values each size meets that only a card can do: the usual one and one other,
    drawn anew each time: most of such a call's time goes into making its values."""
    first, *others = families(exercise)
    for size in exercise.at.card:
        yield size, [first, others[whole_number(0, len(others), generator)] if others else first]


def families(exercise: Exercise) -> list[str]:
    """All kinds of values that it is tried on, the usual one first."""
    if usual(exercise) == OWN:
        return [OWN, *kinds(exercise)]
    left_out = NANS if exercise.drops_nan else NANS[1:] if len(inputs_of(exercise)) == 1 else ()
    left_out = (*left_out, *_impossible(exercise))
    names = [*(name for name in FAMILIES if name not in left_out), *kinds(exercise)]
    return [*names, OUTLIERS] if exercise.outliers else names


def _impossible(exercise: Exercise) -> Iterator[str]:
    """Kinds of values at which an exercise says nothing of what a kernel has to make of them."""
    rounds = exercise.precision is not Precision.FP32
    if not _plain(exercise) or rounds:
        yield from (LARGE_ELSEWHERE, OF_SCALES_ELSEWHERE)
    if rounds or exercise.hang_together or not (_plain(exercise) or parameters(exercise)):
        yield INFINITE_ELSEWHERE
    if not exercise.products:
        yield ZERO_TIMES_INFINITY


def _plain(exercise: Exercise) -> bool:
    """Whether all formulas make the same of any values, such as infinities."""
    return len(inputs_of(exercise)) == 2 or exercise.products


def parameters(exercise: Exercise) -> list[str]:
    """Its inputs but the first, if they may hold anything."""
    promised = own_inputs(exercise)
    return [name for name in inputs_of(exercise)[1:] if name not in promised]


def formula_decides(exercise: Exercise, case: Case) -> bool:
    """Whether one right formula may make NaN of a case where another has a limit: such as
    x * (weight * rstd) + (bias - mean * weight * rstd), where a weight is infinite."""
    infinity = case.family == INFINITE_ELSEWHERE and not _plain(exercise)
    return infinity and not exercise.may_be_infinite
