"""What was measured: the rows of a kernel and of its peers, in an entry for each size."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from utils.course.exercise import Exercise
from utils.course.precision import Precision, alike

KINDS = ("ours", "eager", "compile", "library")
ESTIMATE = "estimate"  # the kind of a row that nobody measured; it is in no file
WRONG = 0.05  # an error above this no rounding makes, in any precision that is measured


@dataclass(frozen=True)
class Row:
    """One kernel's times at one size, in milliseconds. None is "not known".

    Rested: of single calls, the L2 cache flushed between them. Sustained: of calls back to back.
    """

    label: str
    kind: str  # one of KINDS, or ESTIMATE
    median_ms: float  # rested, as the two that follow
    p20_ms: float
    p80_ms: float
    stored: bool = False  # read from a file, beside others that were measured just now
    precision: Precision | None = None
    error: float | None = None  # against float64, by the Frobenius norm, relative
    sustained_ms: float | None = None
    clock_mhz: float | None = None  # of the multiprocessors, while it was sustained
    watts: float | None = None  # that the card took meanwhile

    def alike(self, other: "Row") -> bool:
        """Whether their times may be compared: the same result, in the same precision."""
        return alike(self.precision, other.precision) and not other.wrong()

    def wrong(self) -> bool:
        """Whether it is another result, whatever its precision."""
        return self.error is not None and self.error > WRONG


@dataclass(frozen=True)
class Entry:
    """What was measured in one run for one exercise: its kernel and PyTorch's."""

    sizes: Mapping[str, int]
    bytes: int
    flops: int
    rows: tuple[Row, ...]
    driver: str = ""
    cuda: str = ""
    torch: str = ""
    date: str = ""  # YYYY-MM-DD
    commit: str = ""

    def ours(self) -> Row | None:
        """The row of the kernel itself."""
        return next((row for row in self.rows if row.kind == "ours"), None)

    def own(self) -> Row:
        """The same of an entry that has one."""
        return next(row for row in self.rows if row.kind == "ours")

    def library(self) -> Row | None:
        """The row that it is compared with: the library, where it has the kernel's precision, else
        another peer of that precision that is not compiled."""
        return self._like("library") or self._like("eager")

    def compiled(self) -> Row | None:
        """That of torch.compile, where it has the kernel's precision."""
        return self._like("compile")

    def _like(self, kind: str) -> Row | None:
        ours = self.ours()
        rows = (row for row in self.rows if row.kind == kind and ours and ours.alike(row))
        return next(rows, None)


@dataclass(frozen=True)
class Results:
    """All entries of one GPU, by exercise and size: see results.key()."""

    gpu: str
    entries: Mapping[str, Entry]

    def of(self, exercise: Exercise) -> list[Entry]:
        """The entries of an exercise, that of its spec's `bench` size first."""
        keys = sorted(key for key in self.entries if id_of(key) == exercise.id)
        return [self.entries[key] for key in keys]


def id_of(key: str) -> str:
    """The exercise whose figures a key names."""
    return key.partition(",")[0]


def digits(value: float) -> str:
    """Three significant digits, without an exponent."""
    if value >= 99.95:
        return f"{value:.0f}"
    places = 2 - math.floor(math.log10(value)) if 0 < value < 1e-4 else 0
    return f"{value:.{places}f}" if places else f"{value:.3g}"


def error_text(row: Row) -> str:
    """The error of a row as tables have it: `1.3e-06` is 1.3e-6, nothing known a dash."""
    if row.error is None:
        return "–"
    if not row.error or row.wrong():
        return digits(row.error)
    factor, _, exponent = f"{row.error:.1e}".partition("e")
    return f"{factor}e{int(exponent)}"
