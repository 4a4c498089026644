"""What an exercise is: a kernel, what it must compute, and how it is judged."""

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from utils.course.precision import Precision, precision_of
from utils.ground.errors import WorkbookError

if TYPE_CHECKING:
    from torch import Tensor

Reference = Callable[..., "Tensor | tuple[Tensor, ...]"]
V = TypeVar("V")
F = TypeVar("F", bound=Callable[..., object])
Sizes = Mapping[str, int]
FLOAT = 4  # bytes


@dataclass(frozen=True)
class Gate:
    """A bound on a counter of the diagnosing run, that a kernel without the technique misses."""

    metric: str  # a key of gates.METRICS
    times: float  # how often its ideal it may be, or must be where it is a lower bound
    advice: str  # one sentence, for a kernel that misses it
    ideal: Callable[..., float] | None = None  # from the sizes; None: as counted
    at_least: bool = False  # a lower bound: so many blocks, say


@dataclass(frozen=True)
class At:
    """The sizes that a kernel is met at."""

    check: tuple[Sizes, ...]  # small and awkward: no multiples of a tile, one, under a warp
    bench: Sizes  # timed on a GPU
    card: tuple[Sizes, ...] = ()  # larger ones, checked on a GPU only
    draw: Sizes = field(default_factory=dict)  # fits on the screen
    gates: Sizes = field(default_factory=dict)  # gates are read at multiples of it: whole tiles
    # Gates are read where no size is a multiple of a tile, too; False: a right kernel may cost
    # much more there.
    edges: bool = True
    both: bool = False  # at whole tiles and at edges in each check: where that takes no time
    # Of sizes that no tensor has: the least and the most, one of them each time gates are read.
    gated: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    # Sizes that nobody knows before: of each the least and the most, one of them for each check.
    drawn: tuple[Mapping[str, tuple[int, int]], ...] = ()
    choices: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # a size of few values
    # Sizes that kernels take in tiles: a part of one costs the emulator as much as the whole.
    tiles: Mapping[str, int] = field(default_factory=dict)
    # Called many times, by turns: a kernel that counts its calls gives itself away. None: small
    # ones of `check`, but for the smallest.
    counted: tuple[Sizes, ...] = ()
    # Kinds of values that tell something at one size alone, such as a counter that is full.
    corners: Mapping[str, Sizes] = field(default_factory=dict)
    part: int = 0  # at most so many elements share one of a size that follows; 0: any number
    anywhere: bool = True  # sizes are drawn from all that is promised; False: they hang together


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a kernel must compute.

    Launcher parameters are matched by name: those in `shapes` are tensors, those of the sizes in
    `at` are integers, those in `scalars` are floats.
    """

    name: str  # the launcher, and the stem of the .cu file
    shapes: Mapping[str, str]  # tensor parameter -> its dimensions, e.g. "M K"; "" is one value
    outputs: tuple[str, ...]  # which of them the kernel writes
    reference: Reference  # inputs, scalars by name -> output tensor(s), any precision
    at: At
    scalars: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # ranges
    # (sizes, generator) -> tensors; else normal ones
    inputs: Callable[..., "dict[str, Tensor]"] | None = None
    # Further kinds of values by name, each given as by `inputs`, beside all others.
    kinds: Mapping[str, Callable[..., "dict[str, Tensor]"]] = field(default_factory=dict)
    follows: Mapping[str, str] = field(default_factory=dict)  # size -> one it keeps its share of
    # Of the factors of its products and of their sums, or the same from the sizes by name.
    precision: Precision | Callable[..., Precision] = Precision.FP32
    needs: str = ""  # "sm_90a": of a card; on others the emulator runs the kernel


@dataclass(frozen=True, kw_only=True)
class Judging:
    """What decides whether a kernel computes it."""

    eps: bool = False  # it adds an eps to a variance, so a mismatch may be for want of it
    exact: bool = False  # outputs are elements of the inputs, or indices: no rounding
    share: float = 1.0  # of the bound on rounding that it must keep to: see judge/oracle.py
    # The reference again, in operations that show what each step rounds, as a fused one does not.
    in_operations: Reference | None = None
    between: float = 0.0  # relative error of what is rounded between two products; 0: as floats
    # Two tensors that are multiplied along their last size: outliers in one place are tried, too.
    outliers: tuple[str, str] | None = None
    may_be_infinite: str = ""  # an input of several that is added last: an infinity stays one
    products: bool = False  # sums of products: a zero times an infinity makes NaN of one
    slices: bool = False  # tensors may begin anywhere, as y[1:] does: it is tried
    magnitudes: tuple[float, float] = (1e-12, 1e12)  # of values far from 1, tiny and large ones
    # Tensors of which kernels need not read all: the share that they must. Of others it is 1.
    must_read: Mapping[str, float] = field(default_factory=dict)
    hang_together: bool = False  # some inputs follow from others: none is changed by itself
    may_be_one: tuple[str, ...] = ()  # of `inputs`, those that a call may give one tensor for
    drops_nan: bool = False  # unlike PyTorch, as fmaxf() does: it is tried on none
    gates: tuple[Gate, ...] = ()
    multiprocessors: int = 0  # of the emulator's card: few, for blocks that work on; 0: any number


@dataclass(frozen=True, kw_only=True)
class Timing:
    """What its times are compared with."""

    flops: Callable[..., int]  # arithmetic operations, from the sizes by name
    traffic: Callable[..., int] | None = None  # bytes, where they are not the tensors': see bytes()
    peers: Mapping[str, Reference] = field(default_factory=dict)  # for bench
    library: str = ""  # which of the peers is "the library" (100 %)
    ladder: str = ""  # a name that kernels share which compute the same, the slowest idea first
    # In the README's table; None: if its chapter has no later rung of the same ladder.
    listed: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a learner reads of it."""

    title: str
    number: str | None = None  # "01.1" for an exercise
    topic: str = ""  # the folder; set by catalog.topic()
    notebook: str = ""  # where it stands, if not in the topic's first: see catalog.notebooks()
    points: int = 0
    effort: str = ""  # "about 4 lines"
    faulty: bool = False  # the starter is whole, and wrong: it is there to be diagnosed


@dataclass(frozen=True, kw_only=True)
class Exercise(Task, Judging, Timing, Page):
    """One kernel of the workbook: a worked one (`number` is None) or an exercise. Its fields are
    those of the four classes, one for each that asks."""

    @property
    def id(self) -> str:
        """What `%%cuda` names it by: "04_reduce/row_softmax"."""
        return f"{self.topic}/{self.name}"

    def precision_of(self, sizes: Sizes) -> Precision:
        """`precision` of a call."""
        of = self.precision
        return of if isinstance(of, Precision) else of(**sizes)

    def halves(self, sizes: Sizes) -> int:
        """Products of halves, by tensor cores, for each of floats; 0: none."""
        return self.precision_of(sizes).halves

    def truth(self, sizes: Sizes) -> Reference:
        """What a call should compute, in float64. That is the reference, but for one that rounds
        its factors as the kernel does: then it is the first of the peers that rounds nothing."""
        exact = [f for f in self.peers.values() if precision_of(f) is Precision.FP32]
        rounds = self.precision_of(sizes).peer is not Precision.FP32
        return exact[0] if rounds and exact else self.reference

    def bytes(self, **sizes: int) -> int:
        """The least traffic of a call: each tensor read once, written once, or both; of floats."""
        if self.traffic:
            return self.traffic(**sizes)
        moved = [*inputs_of(self), *self.outputs]
        return FLOAT * sum(math.prod(dimensions(self.shapes[name], sizes)) for name in moved)


def inputs_of(exercise: Exercise) -> list[str]:
    """Tensors that hold something before the call: all but the pure outputs."""
    taken = reads(exercise.reference, exercise.shapes)
    return [name for name in exercise.shapes if name not in exercise.outputs or name in taken]


def reads(function: Callable[..., object], values: Mapping[str, V]) -> Mapping[str, V]:
    """Those of `values` that a function takes by name; all of them where it takes **anything."""
    parameters = _parameters(function)
    if parameters is None:
        return values
    return {name: value for name, value in values.items() if name in parameters}


def takes(*names: str) -> Callable[[F], F]:
    """A decorator: says which arguments a function takes by name that has **others."""

    def mark(function: F) -> F:
        function.__dict__["takes"] = frozenset(names)
        return function

    return mark


@functools.cache
def _parameters(function: Callable[..., object]) -> frozenset[str] | None:
    """The names of a function's parameters; None where it takes **anything."""
    named: frozenset[str] | None = getattr(function, "takes", None)
    if named is not None:
        return named
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return None
    return frozenset(parameters)


def dimensions(text: str, sizes: Sizes) -> tuple[int, ...]:
    """A shape such as "M K" or "rows 4" in numbers; "" is a single value, of shape ()."""
    try:
        return tuple([w if isinstance(w, int) else sizes[w] for w in _words(text)])
    except KeyError as error:
        raise WorkbookError(f"the shape '{text}' needs a size that is not given: {error}") from None


@functools.cache  # a check asks thousands of times
def _words(text: str) -> tuple[int | str, ...]:
    return tuple(int(word) if word.isdigit() else word for word in text.split())
