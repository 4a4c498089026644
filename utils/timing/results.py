"""Measured figures on disk: `results/<GPU>.json`, one file for each GPU.

    {"gpu": "NVIDIA H200", "entries": {"01_naive_gemm/gemm_naive": {
        "sizes": {"M": 4096, "N": 4096, "K": 4096}, "bytes": 201326592, "flops": 137438953472,
        "rows": [{"label": "gemm_naive", "kind": "ours",
                  "median_ms": 9.1, "p20_ms": 9.0, "p80_ms": 9.2,
                  "precision": "fp32", "error": 1.2e-06, "sustained_ms": 9.3,
                  "clock_mhz": 1755, "watts": 690}, ...],
        "driver": "...", "cuda": "13.0", "torch": "...", "date": "2026-11-20", "commit": "..."}}}

Every entry says when and with what it was measured, so that some can be measured anew. A key is
the exercise's id for its spec's `bench` size, and "id, rows=1024 channels=8192" for another size.
Rows of older files lack what stands behind their times: the precision then is that of the spec.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from utils.course import catalog
from utils.course.exercise import Exercise, Sizes
from utils.course.precision import Precision, precision_of
from utils.ground import files
from utils.ground.errors import WorkbookError
from utils.ground.paths import workspace
from utils.timing.rows import KINDS, Entry, Results, Row, id_of

CEILINGS = "ceilings.json"
OPTIONAL = ("error", "sustained_ms", "clock_mhz", "watts")  # numbers of a row; None: not known


def key(exercise: Exercise, sizes: Mapping[str, int]) -> str:
    """Where the figures of a size are kept, so that those of several sizes stand side by side."""
    if dict(sizes) == dict(exercise.at.bench):
        return exercise.id
    return f"{exercise.id}, {' '.join(f'{name}={value}' for name, value in sizes.items())}"


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
    rows = {key: _entry(value, f"{path.name}: {key}") for key, value in entries.items()}
    return Results(gpu, {key: _precise(key, entry) for key, entry in rows.items()})


def _field(data: object, name: str, kind: type | tuple[type, ...], where: str) -> Any:
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


def _row(data: Any, where: str) -> Row:
    label, kind = _field(data, "label", str, where), _field(data, "kind", str, where)
    if kind not in KINDS:
        raise WorkbookError(f"{where}: 'kind' is one of {', '.join(KINDS)}, not '{kind}'")
    median, p20, p80 = (_milliseconds(data, n, where) for n in ("median_ms", "p20_ms", "p80_ms"))
    error, sustained, clock, watts = (_number(data, name, where) for name in OPTIONAL)
    precision = _precision(data, where)
    return Row(label, kind, median, p20, p80, False, precision, error, sustained, clock, watts)


def _milliseconds(data: object, name: str, where: str) -> float:
    value: float = _field(data, name, (int, float), where)
    if not (math.isfinite(value) and value > 0):
        raise WorkbookError(f"{where}: '{name}' must be a time in milliseconds, not {value}")
    return value


def _number(data: Mapping[str, object], name: str, where: str) -> float | None:
    if data.get(name) is None:
        return None
    value: float = _field(data, name, (int, float), where)
    if not (math.isfinite(value) and value >= 0):
        raise WorkbookError(f"{where}: '{name}' must be a number from 0 on, not {value}")
    return value


def _precision(data: Mapping[str, Any], where: str) -> Precision | None:
    if (name := data.get("precision")) is None:
        return None
    try:
        return Precision(name)
    except ValueError:
        known = ", ".join(Precision)
        raise WorkbookError(f"{where}: 'precision' is one of {known}, not {name!r}") from None


def _precise(key: str, entry: Entry) -> Entry:
    """With the precision of rows that say none, by the spec, where there still is one."""
    if all(row.precision for row in entry.rows):
        return entry
    try:
        exercise = catalog.load(id_of(key))
        known = [row.precision or _by_spec(exercise, row, entry.sizes) for row in entry.rows]
    except (WorkbookError, TypeError):  # no such exercise, or with other sizes
        return entry
    rows = zip(entry.rows, known, strict=True)
    return replace(entry, rows=tuple(replace(row, precision=p) for row, p in rows))


def _by_spec(exercise: Exercise, row: Row, sizes: Sizes) -> Precision | None:
    own = exercise.precision_of(sizes)
    if row.kind == "ours":
        return own
    if row.kind == "compile":  # of the reference as it stands, with TF32 off
        return own if own is Precision.BF16 else Precision.FP32
    function = exercise.peers.get(row.label)
    if function is None:
        return None if exercise.peers else Precision.FP32
    return precision_of(function)


def write(path: Path, results: Results) -> None:
    """Write or extend a file: entries of the same keys are replaced, others stay, also those that
    another process adds meanwhile.

    Raises WorkbookError where the file holds figures of another GPU.
    """
    entries = dict(results.entries)
    with files.alone(workspace().build / "results" / path.name):
        if path.is_file():
            before = read(path)
            if before.gpu != results.gpu:
                other = f"figures of the {before.gpu}, not the {results.gpu}"
                raise WorkbookError(f"{path} holds {other}")
            entries = {**before.entries, **entries}
        kept = {key: plain(entries[key]) for key in sorted(entries)}
        data = {"gpu": results.gpu, "entries": kept}
        files.write_text(path, json.dumps(data, indent=1) + "\n")


def plain(entry: Entry) -> dict[str, Any]:
    """An entry as JSON has it, times to five digits."""
    plain = asdict(replace(entry, sizes=dict(entry.sizes)))
    for row in plain["rows"]:
        del row["stored"]
        for name in ("median_ms", "p20_ms", "p80_ms"):
            row[name] = float(f"{row[name]:.5g}")
        for name in OPTIONAL:
            if row[name] is not None:
                row[name] = float(f"{row[name]:.4g}")
    return plain


def stored(gpu: str | None = None) -> list[Results]:
    """What `results/` holds, of one GPU or of all: the one with the most entries first, of equals
    the one that was measured last."""
    measured = [
        read(path) for path in sorted(workspace().results.glob("*.json")) if path.name != CEILINGS
    ]
    measured = [results for results in measured if results.entries and gpu in (None, results.gpu)]
    return sorted(measured, key=_known, reverse=True)


def _known(results: Results) -> tuple[int, str]:
    return len(results.entries), max(entry.date for entry in results.entries.values())
