"""What an exercise is: a kernel, what it must compute, and how it is judged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Gate:
    """A bound on a counter of the diagnosing run, that a kernel without the technique misses."""

    metric: str  # a key of gates.METRICS
    times: float  # how often its ideal it may be, or must be where it is a lower bound
    advice: str  # one sentence, for a kernel that misses it
    ideal: Callable[..., float] | None = None  # from the sizes; None: as counted
    at_least: bool = False  # a lower bound: so many blocks, say


@dataclass(frozen=True)
class Exercise:
    """One kernel of the workbook: a worked one (`number` is None) or an exercise.

    Launcher parameters are matched by name: those in `shapes` are tensors, those in a dict of
    `sizes` are integers, those in `scalars` are floats.
    """

    name: str  # the launcher, and the stem of the .cu file
    title: str
    shapes: Mapping[str, str]  # tensor parameter -> its dimensions, e.g. "M K"; "" is one value
    outputs: tuple[str, ...]  # which of them the kernel writes
    reference: Callable[..., object]  # inputs, scalars by name -> output tensor(s), any precision
    sizes: tuple[Sizes, ...]  # small and awkward: no multiples of a tile, one, under a warp
    bench: Sizes  # the size that is timed on a GPU
    bytes: Callable[..., int]  # least traffic in bytes (read + written), from the sizes by name
    flops: Callable[..., int]  # arithmetic operations, from the sizes by name
    number: str | None = None  # "01.1" for an exercise
    card_sizes: tuple[Sizes, ...] = ()  # larger ones, checked on a GPU only
    scalars: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # ranges
    inputs: Callable[..., dict] | None = None  # (sizes, generator) -> tensors; else normal ones
    exact: bool = False  # outputs are elements of the inputs, or indices: no rounding
    slices: bool = False  # tensors may begin anywhere, as y[1:] does: it is tried
    drops_nan: bool = False  # unlike PyTorch, as fmaxf() does: it is tried on none
    peers: Mapping[str, Callable[..., object]] = field(default_factory=dict)  # for bench
    library: str = ""  # which of the peers is "the library" (100 %)
    follows: Mapping[str, str] = field(default_factory=dict)  # size -> one it keeps its share of
    draw: Sizes = field(default_factory=dict)  # a size that fits on the screen
    gates: tuple[Gate, ...] = ()
    gate_sizes: Sizes = field(default_factory=dict)  # where they are read: whole tiles
    faulty: bool = False  # the starter is whole, and wrong: it is there to be diagnosed
    points: int = 0
    effort: str = ""  # "about 4 lines"
    hints: tuple[str, ...] = ()
    topic: str = ""  # the folder; set by catalog.topic()

    @property
    def id(self) -> str:
        """What `%%cuda` names it by: "04_reduce/row_softmax"."""
        return f"{self.topic}/{self.name}"

    @property
    def has_eps(self) -> bool:
        """Whether eps is added to a variance: a parameter, or the constant of a GroupNorm."""
        return "eps" in self.scalars or bool({"gn", "groupnorm"} & set(self.name.split("_")))
