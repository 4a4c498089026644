"""The outcome of a diagnosing run of a whole program: for a person, and as JSON."""

import json
import operator
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table

from utils.emulator.reports import Report, messages, read, remarks
from utils.emulator.symbols import places
from utils.emulator.traffic import LaunchTraffic, Traffic, read_launches
from utils.ground.wording import many

SHOWN = 3  # hazards of a kind that are told in full
ROWS = 20  # of a table
TABLES = 6  # launches that get a table of their own; more are added up, kernel by kernel

# What the runtime calls faults are hazards like the others.
KINDS = {"illegal-address": "out-of-bounds"}


@dataclass(frozen=True)
class Outcome:
    """What a diagnosing run of a program found."""

    exit: int  # the program's own status
    hazards: tuple[Report, ...]  # each once, with the number of times
    launches: tuple[LaunchTraffic, ...]
    untold: Mapping[str, int]  # by kind: how often it was met beyond what `hazards` tells of
    remarks: tuple[Report, ...] = ()  # what looks wrong and has had no consequences


def read_outcome(status: int, events: str) -> Outcome:
    """Read what the runtime wrote during a run that ended with `status`."""
    untold: Counter[str] = Counter()
    for line in events.splitlines():
        if line.startswith('{"event":"more-hazards"') and line.endswith("}"):
            more = json.loads(line)
            untold[more["of"]] += more["count"]
    launches = tuple(read_launches(events, places))
    return Outcome(status, _merged(read(events)), launches, untold, _merged(remarks(events)))


def _merged(reports: Iterable[Report]) -> tuple[Report, ...]:
    """Many launches tell of the same hazard: the first of them, with the sum of the counts."""
    merged: dict[tuple[object, ...], Report] = {}
    for report in reports:
        r = replace(report, kind=KINDS.get(report.kind, report.kind))
        sides = sorted([(r.file or "", r.line or 0), (r.other_file or "", r.other_line or 0)])
        key = (r.kind, r.equal, r.kernel, r.address, r.array, *sides)
        first = merged.get(key)
        merged[key] = replace(first, count=first.count + r.count) if first else r
    return tuple(merged.values())


def write_json(outcome: Outcome, path: Path) -> None:
    """Write an outcome to a file, for other programs."""
    whole = {
        "exit": outcome.exit,
        "hazards": [_to_json(hazard) for hazard in outcome.hazards],
        "remarks": [_to_json(remark) for remark in outcome.remarks],
        "untold": outcome.untold,
        "launches": [launch.to_json() for launch in outcome.launches],
    }
    path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


def _to_json(hazard: Report) -> dict[str, object]:
    always = """kind variant space kernel file line other_line block thread other_thread
        count""".split()
    record = {name: getattr(hazard, name) for name in always}
    more = {name: value for name, value in vars(hazard).items() if name not in record and value}
    return record | more


def show(outcome: Outcome, console: Console) -> None:
    """Tell the first few hazards of each kind, and what each line of each kernel cost."""
    out = console.out
    by_kind: dict[str, list[Report]] = defaultdict(list)
    for hazard in outcome.hazards:
        by_kind[hazard.kind].append(hazard)
    for kind, hazards in by_kind.items():
        for text in messages(hazards[:SHOWN]):
            out(text)
        if rest := hazards[SHOWN:]:
            lines = ", ".join(dict.fromkeys(str(h.line) for h in rest[:10] if h.line))
            more = "many" if kind in outcome.untold else str(len(rest))
            out(f"… and {more} more of this kind, such as at line {lines}")
    for text in messages(outcome.remarks[:SHOWN]):
        out(text)
    for launch in _runs(outcome.launches):
        out(_title(launch))
        if launch.traffic:
            console.print(_table(launch))
    out(_verdict(outcome))


def _verdict(outcome: Outcome) -> str:
    if not outcome.hazards:
        return f"no hazards in {many(len(outcome.launches), 'launch')}"
    kinds = Counter(hazard.kind for hazard in outcome.hazards)
    counts = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
    return f"{many(len(outcome.hazards), 'hazard')}: {counts}"


def _runs(launches: Sequence[LaunchTraffic]) -> list[LaunchTraffic]:
    """Launches in a row of one kernel with one configuration, added up; or all of a kernel's."""
    runs = _added(launches, lambda one: (one.kernel, one.grid, one.block))
    if len(runs) <= TABLES:
        return runs
    return _added(sorted(runs, key=lambda one: one.kernel), lambda one: one.kernel)


def _added(
    launches: Iterable[LaunchTraffic], key: Callable[[LaunchTraffic], object]
) -> list[LaunchTraffic]:
    return [reduce(operator.add, group) for _, group in groupby(launches, key)]


def _title(launch: LaunchTraffic) -> str:
    title = f"{launch.kernel}: {many(launch.times, 'launch')}"
    if launch.grid and launch.block:
        title += f", grid {_shape(launch.grid)}, block {_shape(launch.block)}"
    return title


def _table(launch: LaunchTraffic) -> Table:
    costly = sorted(launch.lines, key=lambda t: -t.moved)
    table = Table()
    for name in ("line", "access", "requests", "bytes", "per request", "ideal"):
        table.add_column(name, justify="left" if name == "access" else "right", no_wrap=True)
    several = len({t.file for t in launch.lines}) > 1
    for t in sorted(costly[:ROWS], key=lambda t: t.key):
        table.add_row(*_cells(t, several))
    if rest := costly[ROWS:]:
        table.add_row("…", f"{len(rest)} more, which cost less")
    return table


def _cells(t: Traffic, with_file: bool) -> tuple[str, ...]:
    place = f"{os.path.basename(t.file)}:{t.line}" if with_file else str(t.line or "?")
    access = f"{t.space} {t.access}, {t.size} B"
    moved, ideal = t.per_request, t.ideal_per_request
    counts = f"{t.requests:,}", f"{t.bytes:,}"
    return (
        place,
        access,
        *counts,
        f"{moved:.3g} {t.unit.removesuffix('s' if moved == 1 else '')}",
        f"{ideal:.3g}",
    )


def _shape(sizes: tuple[int, int, int]) -> str:
    length = max((i + 1 for i, n in enumerate(sizes) if n > 1), default=1)
    return "×".join(map(str, sizes[:length]))
