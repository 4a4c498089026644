"""What each CUDA cell must compute, and its text: worked kernels, starters, solutions.

`kernels/NN_topic/spec.py` holds a tuple `EXERCISES`, in the order of the notebook. An id such as
`01_naive_gemm/gemm_naive` names the topic's folder and the launcher.
"""

import functools
import importlib.util
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from utils.errors import WorkbookError
from utils.paths import KERNELS, SOLUTIONS

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
    topic: str = ""  # set by load()

    @property
    def id(self) -> str:
        return f"{self.topic}/{self.name}"

    @property
    def has_eps(self) -> bool:
        """Whether eps is added to a variance: a parameter, or the constant of a GroupNorm."""
        return "eps" in self.scalars or bool({"gn", "groupnorm"} & set(self.name.split("_")))


BEGIN, END, STARTER = "// BEGIN SOLUTION", "// END SOLUTION", "// STARTER:"
_REGION = re.compile(
    rf"^(?P<indent>[ \t]*){BEGIN}[^\n]*\n(?P<body>.*?)^[ \t]*{END}[^\n]*\n",
    re.MULTILINE | re.DOTALL,
)


def _starter_lines(body: str) -> list[str]:
    lines = [line for line in body.splitlines() if line.lstrip().startswith(STARTER)]
    return [line.replace(STARTER + " ", "", 1).replace(STARTER, "", 1).rstrip() for line in lines]


def starter(text: str) -> str:
    """The learner's version of a solution file: each region becomes its starter lines."""

    def replace(region: re.Match) -> str:
        lines = _starter_lines(region["body"]) or [region["indent"] + "// your code here"]
        return "\n".join(lines) + "\n"

    return _REGION.sub(replace, text)


def solved(text: str) -> str:
    """The solution file without its markers and starter lines."""

    def replace(region: re.Match) -> str:
        lines = region["body"].splitlines(keepends=True)
        return "".join(line for line in lines if not line.lstrip().startswith(STARTER))

    return _REGION.sub(replace, text)


def _essence(text: str) -> str:
    """CUDA text without comments and white space, but with what a learner says of a fault."""
    return re.sub(r"//(?![ \t]*fault:)[^\n]*|/\*.*?\*/|\s+", "", text, flags=re.DOTALL)


def is_untouched(text: str, starter_text: str) -> bool:
    """Whether a learner's text still is the starter, comments and white space aside."""
    return _essence(text) == _essence(starter_text)


@functools.cache
def topic(name: str) -> dict[str, Exercise]:
    """The exercises of a folder such as `01_naive_gemm`, by name, in order."""
    path = KERNELS / name / "spec.py"
    if not path.is_file():
        raise WorkbookError(f"there is no topic '{name}': {path} does not exist")
    spec = importlib.util.spec_from_file_location(f"workbook_spec_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    exercises = {}
    for exercise in module.EXERCISES:
        object.__setattr__(exercise, "topic", name)  # the folder's name; a spec need not repeat it
        exercises[exercise.name] = exercise
    return exercises


def topics() -> list[str]:
    """All topics that have a spec, in order."""
    return sorted(path.parent.name for path in KERNELS.glob("*/spec.py"))


def load(id: str) -> Exercise:
    """The exercise of an id such as `01_naive_gemm/gemm_naive`.

    Raises WorkbookError naming what exists where the id does not.
    """
    folder, _, name = id.partition("/")
    exercises = topic(folder)
    if name not in exercises:
        raise WorkbookError(f"'{folder}' has no exercise '{name}'; it has {', '.join(exercises)}")
    return exercises[name]


def solution_path(exercise: Exercise) -> Path:
    return SOLUTIONS / exercise.topic / f"{exercise.name}.cu"


def kernel_path(exercise: Exercise) -> Path:
    return KERNELS / exercise.topic / f"{exercise.name}.cu"


def starter_text(exercise: Exercise) -> str:
    """What a notebook cell starts from: the worked kernel, or the starter of an exercise."""
    return kernel_path(exercise).read_text()


def solution_text(exercise: Exercise) -> str:
    """What compiles where solutions are asked for; a worked kernel is its own solution."""
    if exercise.number is None:
        return starter_text(exercise)
    return solved(solution_path(exercise).read_text())
