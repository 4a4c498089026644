"""Measured figures on disk: `results/<GPU>.json`, one file for each GPU, and the README's table.

    {"gpu": "NVIDIA H200", "entries": {"01_naive_gemm/gemm_naive": {
        "sizes": {"M": 4096, "N": 4096, "K": 4096}, "bytes": 201326592, "flops": 137438953472,
        "rows": [{"label": "gemm_naive", "kind": "ours",
                  "median_ms": 9.1, "p20_ms": 9.0, "p80_ms": 9.2}, ...],
        "driver": "...", "cuda": "13.0", "torch": "...", "date": "2026-11-20", "commit": "..."}}}

Every entry says when and with what it was measured, so that some can be measured anew. One of
other sizes than those of the spec stands beside it, and has them in its name (see `key`).
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from utils import exercises
from utils.cases import size_text
from utils.errors import WorkbookError
from utils.exercises import Exercise
from utils.paths import RESULTS

KINDS = ("ours", "eager", "compile", "library")
CEILINGS = "ceilings.json"


@dataclass(frozen=True)
class Row:
    """One kernel's times at one size, in milliseconds."""

    label: str
    kind: str  # one of KINDS
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
        return next((row for row in self.rows if row.kind == "ours"), None)

    def library(self) -> Row | None:
        return next((row for row in self.rows if row.kind == "library"), None)


@dataclass(frozen=True)
class Results:
    """All entries of one GPU, by `key`: exercise id, and sizes where they are not the spec's."""

    gpu: str
    entries: Mapping[str, Entry]


def key(exercise: Exercise, sizes: Mapping[str, int]) -> str:
    """The name of an entry: `01_naive_gemm/linear`, or `01_naive_gemm/linear M=64 N=64 K=64`."""
    return exercise.id if sizes == exercise.bench else f"{exercise.id} {size_text(sizes)}"


def digits(value: float) -> str:
    """Three significant digits, without an exponent."""
    if value >= 99.95:
        return f"{value:.0f}"
    places = 2 - math.floor(math.log10(value)) if 0 < value < 1e-4 else 0
    return f"{value:.{places}f}" if places else f"{value:.3g}"


def path_of(gpu: str) -> Path:
    """`results/NVIDIA_H200.json`."""
    return RESULTS / f"{'_'.join(gpu.split())}.json"


def read(path: Path) -> Results:
    """A results file. Raises WorkbookError saying where it is not as it should be."""
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise WorkbookError(f"{path}: {error}") from None
    gpu = _field(data, "gpu", str, path.name)
    entries = _field(data, "entries", dict, path.name)
    return Results(gpu, {id: _entry(value, f"{path.name}: {id}") for id, value in entries.items()})


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
    """Write or extend a file: entries of the same ids are replaced, others stay.

    Raises WorkbookError where the file holds figures of another GPU.
    """
    entries = dict(results.entries)
    if path.is_file():
        before = read(path)
        if before.gpu != results.gpu:
            raise WorkbookError(f"{path} holds figures of the {before.gpu}, not the {results.gpu}")
        entries = {**before.entries, **entries}
    data = {"gpu": results.gpu, "entries": {id: plain(entries[id]) for id in sorted(entries)}}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1) + "\n")


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
    found = [read(path) for path in sorted(RESULTS.glob("*.json")) if path.name != CEILINGS]
    found = [results for results in found if results.entries and gpu in (None, results.gpu)]
    return sorted(found, key=_latest, reverse=True)


def _latest(results: Results) -> str:
    return max(entry.date for entry in results.entries.values())


def readme_table() -> str:
    """The README's table in Markdown: a row for each kernel that has been measured."""
    for results in stored()[:1]:
        lines = [_readme_row(exercise, results) for exercise in _measured(results)]
        dates = sorted({entry.date for entry in results.entries.values()})
        versions = sorted({f"torch {entry.torch}" for entry in results.entries.values()})
        when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
        caption = (
            f"Measured on an {results.gpu}, {when}, with {', '.join(versions)}: medians of float32 "
            "kernels with the L2 cache flushed, beside the library in the same run."
        )
        head = "| | kernel | size | ms | of the library's speed | library, ms |"
        return "\n".join([caption, "", head, "|---|---|---|---|---|---|", *lines]) + "\n"
    return "Nothing has been measured yet.\n"


def _measured(results: Results) -> list[Exercise]:
    everything = [e for topic in exercises.topics() for e in exercises.topic(topic).values()]
    return [e for e in everything if e.id in results.entries and results.entries[e.id].ours()]


def _readme_row(exercise: Exercise, results: Results) -> str:
    entry = results.entries[exercise.id]
    ours, library = entry.ours(), entry.library()
    size = size_text(entry.sizes)
    share = f"{digits(100 * library.median_ms / ours.median_ms)} %" if library else "–"
    theirs = f"{library.label}, {digits(library.median_ms)}" if library else "–"
    cells = [
        exercise.number or "",
        f"`{exercise.name}`",
        size,
        digits(ours.median_ms),
        share,
        theirs,
    ]
    return f"| {' | '.join(cells)} |"
