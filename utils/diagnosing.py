"""Watch a kernel on the emulator: what goes wrong, and what each line costs.

The kernel's own text is built once more, instrumented. `diagnose_call` runs that build on given
arguments and returns hazards and counters; `check` and `diagnose` are made of it.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from utils import tracing
from utils.emulator import reports
from utils.emulator.reports import Position, Report
from utils.errors import LaunchError
from utils.instrumenting import instrumented
from utils.kernel import Kernel
from utils.tracing import Trace

SECTOR = 32  # bytes


@dataclass(frozen=True)
class Traffic:
    """What one instruction of a launch cost. Names as in Nsight Compute, where it has them."""

    line: int  # 0 where it is not known
    space: str  # "global" or "shared"
    access: str  # "load", "store" or "atomic"
    size: int  # bytes of one thread's access
    requests: int  # executions by a warp
    lanes: int  # executions by a thread
    bytes: int  # that the threads asked for
    moved: int  # global: 32-byte sectors; shared: wavefronts, one more for each bank conflict
    ideal: int  # sectors that the distinct bytes would fill; wavefronts without conflicts
    contended: int = 0  # atomics that had to wait for another lane of the warp

    @property
    def per_request(self) -> float:
        """Sectors, or wavefronts, of one request of a warp."""
        return self.moved / self.requests

    @property
    def ideal_per_request(self) -> float:
        return self.ideal / self.requests


@dataclass(frozen=True)
class Launch:
    """The counters of one launch."""

    kernel: str
    grid: Position
    block: Position
    static_shared: int  # bytes in a block
    dynamic_shared: int
    barriers: int  # passed by a block, summed over the blocks
    shuffles: int  # by a warp; votes and reductions too
    syncwarps: int
    distinct_read: int  # bytes of global memory, each counted once
    distinct_written: int
    traffic: tuple[Traffic, ...]  # by line

    def total(self, what: str, space: str, *accesses: str) -> int:
        """The sum of a field of `traffic` over a space and kinds of access."""
        return sum(
            getattr(t, what)
            for t in self.traffic
            if t.space == space and (not accesses or t.access in accesses)
        )


@dataclass(frozen=True)
class Diagnosis:
    hazards: tuple[Report, ...]
    launches: tuple[Launch, ...]
    error: LaunchError | None  # what ended the run early
    after: Mapping[str, Tensor]
    trace: Trace | None = None  # every access, where it was asked for and there are hazards

    def total(self, what: str, space: str, *accesses: str) -> int:
        return sum(launch.total(what, space, *accesses) for launch in self.launches)


SHOWN = 3  # hazards whose story is told; the rest are counted


def tell(hazards: Sequence[Report]) -> str:
    """The first few hazards in words, and how many more there are."""
    told = [str(hazard) for hazard in hazards[:SHOWN]]
    if len(hazards) > SHOWN:
        told.append(f"and {len(hazards) - SHOWN} more places like these")
    return "\n".join(told)


def diagnose_call(
    kernel: Kernel,
    arguments: Mapping[str, Tensor | int | float],
    *,
    unwritten: Collection[str] = (),
    order: int = 0,
    timeout: float = 10.0,
    most: int = 0,
) -> Diagnosis:
    """Diagnose one call of a kernel on copies of `arguments` (by parameter name).

    `unwritten` names tensors that hold nothing yet: to read them before writing is a hazard.
    `order` other than 0 runs the threads in another order. `most` accesses are recorded, for the
    picture of a hazard. Raises KernelCrash and KernelTimeout.
    """
    build = instrumented(kernel)
    seen = build.watched(arguments, unwritten=unwritten, most=most, order=order, timeout=timeout)
    hazards, launches = tuple(reports.read(seen.events)), _launches(seen.events, build)
    trace = tracing.read(seen, build, arguments) if most and hazards else None
    return Diagnosis(hazards, launches, seen.error, seen.after, trace)


def _launches(events: str, kernel: Kernel) -> tuple[Launch, ...]:
    """The launches that the runtime told of, with the lines of their instructions."""
    told = [e for e in map(json.loads, events.splitlines()) if e.get("event") == "launch"]
    offsets = sorted({i["offset"] for e in told for i in e["instructions"] if "offset" in i})
    lines = reports.resolve_lines(kernel.library, [int(o, 16) for o in offsets], kernel.filename)
    line_of = dict(zip(offsets, lines, strict=True))
    return tuple(
        Launch(
            kernel=e["kernel"],
            grid=tuple(e["grid"]),
            block=tuple(e["block"]),
            static_shared=e["static_shared"],
            dynamic_shared=e["dynamic_shared"],
            barriers=e["barriers"],
            shuffles=e["shuffles"],
            syncwarps=e["syncwarps"],
            distinct_read=e["distinct_bytes_read"],
            distinct_written=e["distinct_bytes_written"],
            traffic=tuple(
                sorted(
                    (_traffic(i, line_of.get(i.get("offset"), 0)) for i in e["instructions"]),
                    key=lambda t: (t.line, t.space, t.access),
                )
            ),
        )
        for e in told
    )


def _traffic(told: dict, line: int) -> Traffic:
    moved = told["sectors"] if told["space"] == "global" else told["wavefronts"]
    same = {n: told[n] for n in ("space", "access", "size", "requests", "lanes", "bytes", "ideal")}
    return Traffic(line=line, moved=moved, contended=told.get("contended", 0), **same)
