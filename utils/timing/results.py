"""Measured figures on disk: `results/<GPU>.json`, one file for each GPU.

    {"gpu": "NVIDIA H200", "entries": {"01_naive_gemm/gemm_naive": {
        "sizes": {"M": 4096, "N": 4096, "K": 4096}, "bytes": 201326592, "flops": 137438953472,
        "rows": [{"label": "gemm_naive", "kind": "ours",
                  "median_ms": 9.1, "p20_ms": 9.0, "p80_ms": 9.2}, ...],
        "driver": "...", "cuda": "13.0", "torch": "...", "date": "2026-11-20", "commit": "..."}}}

Every entry says when and with what it was measured, so that some can be measured anew. A key is
the exercise's id for its spec's `bench` size, and "id, rows=1024 channels=8192" for another size.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from utils import files
from utils.course.exercise import Exercise
from utils.errors import WorkbookError
from utils.paths import workspace

KINDS = ("ours", "eager", "compile", "library")
ESTIMATE = "estimate"  # the kind of a row that nobody measured; it is in no file
CEILINGS = "ceilings.json"


@dataclass(frozen=True)
class Row:
    """One kernel's times at one size, in milliseconds."""

    label: str
    kind: str  # one of KINDS, or ESTIMATE
    median_ms: float
    p20_ms: float
    p80_ms: float
    stored: bool = False  # read from a file, beside others that were measured just now


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

    def library(self) -> Row | None:
        """The row of the library that it is compared with."""
        return next((row for row in self.rows if row.kind == "library"), None)


@dataclass(frozen=True)
class Results:
    """All entries of one GPU, by exercise and size: see key()."""

    gpu: str
    entries: Mapping[str, Entry]

    def of(self, exercise: Exercise) -> list[Entry]:
        """The entries of an exercise, that of its spec's `bench` size first."""
        keys = sorted(key for key in self.entries if id_of(key) == exercise.id)
        return [self.entries[key] for key in keys]


def key(exercise: Exercise, sizes: Mapping[str, int]) -> str:
    """Where the figures of a size are kept, so that those of several sizes stand side by side."""
    if dict(sizes) == dict(exercise.at.bench):
        return exercise.id
    return f"{exercise.id}, {' '.join(f'{name}={value}' for name, value in sizes.items())}"


def id_of(key: str) -> str:
    """The exercise whose figures a key names."""
    return key.partition(",")[0]


def digits(value: float) -> str:
    """Three significant digits, without an exponent."""
    if value >= 99.95:
        return f"{value:.0f}"
    places = 2 - math.floor(math.log10(value)) if 0 < value < 1e-4 else 0
    return f"{value:.{places}f}" if places else f"{value:.3g}"


def path_of(gpu: str) -> Path:
    """`results/NVIDIA_H200.json`."""
    return workspace().results / f"{'_'.join(gpu.split())}.json"


def read(path: Path) -> Results:
    """A results file. Raises WorkbookError saying where it is not as it should be."""
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise WorkbookError(f"{path}: {error}") from None
    gpu = _field(data, "gpu", str, path.name)
    entries = _field(data, "entries", dict, path.name)
    return Results(
        gpu, {key: _entry(value, f"{path.name}: {key}") for key, value in entries.items()}
    )


def _field(data: object, name: str, kind: type | tuple, where: str):
    if not isinstance(data, dict) or name not in data:
        raise WorkbookError(f"{where}: '{name}' is missing")
    if not isinstance(data[name], kind) or isinstance(data[name], bool):
        raise WorkbookError(f"{where}: '{name}' must not be {data[name]!r}")
    return data[name]


def _entry(data: object, where: str) -> Entry:
    rows = _field(data, "rows", list, where)
    sizes = _field(data, "sizes", dict, where)
    for name in sizes:
        _field(sizes, name, int, f"{where}: sizes")
    texts = {
        name: _field(data, name, str, where)
        for name in ("driver", "cuda", "torch", "date", "commit")
    }
    return Entry(
        sizes=sizes,
        bytes=_field(data, "bytes", int, where),
        flops=_field(data, "flops", int, where),
        rows=tuple(_row(row, f"{where}: row {i}") for i, row in enumerate(rows, 1)),
        **texts,
    )


def _row(data: object, where: str) -> Row:
    label, kind = _field(data, "label", str, where), _field(data, "kind", str, where)
    if kind not in KINDS:
        raise WorkbookError(f"{where}: 'kind' is one of {', '.join(KINDS)}, not '{kind}'")
    times = {
        name: _field(data, name, (int, float), where) for name in ("median_ms", "p20_ms", "p80_ms")
    }
    for name, value in times.items():
        if not (math.isfinite(value) and value > 0):
            raise WorkbookError(f"{where}: '{name}' must be a time in milliseconds, not {value}")
    return Row(label, kind, **times)


def write(path: Path, results: Results) -> None:
    """Write or extend a file: entries of the same keys are replaced, others stay.

    Raises WorkbookError where the file holds figures of another GPU.
    """
    entries = dict(results.entries)
    if path.is_file():
        before = read(path)
        if before.gpu != results.gpu:
            raise WorkbookError(f"{path} holds figures of the {before.gpu}, not the {results.gpu}")
        entries = {**before.entries, **entries}
    data = {"gpu": results.gpu, "entries": {key: plain(entries[key]) for key in sorted(entries)}}
    files.write_text(path, json.dumps(data, indent=1) + "\n")


def plain(entry: Entry) -> dict:
    """An entry as JSON has it, times to five digits."""
    plain = asdict(replace(entry, sizes=dict(entry.sizes)))
    for row in plain["rows"]:
        del row["stored"]
        for name in ("median_ms", "p20_ms", "p80_ms"):
            row[name] = float(f"{row[name]:.5g}")
    return plain


def stored(gpu: str | None = None) -> list[Results]:
    """What `results/` holds, of one GPU or of all, the file with the latest figures first."""
    found = [
        read(path) for path in sorted(workspace().results.glob("*.json")) if path.name != CEILINGS
    ]
    found = [results for results in found if results.entries and gpu in (None, results.gpu)]
    return sorted(found, key=_latest, reverse=True)


def _latest(results: Results) -> str:
    return max(entry.date for entry in results.entries.values())
