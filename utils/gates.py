"""Did you use the technique? Bounds on what a diagnosing run counted: "now 32, ideal 4, gate 4.5".

A spec names a metric of METRICS and how many times its ideal a kernel may cost.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from utils.diagnosing import SECTOR, Diagnosis
from utils.exercises import Gate


@dataclass(frozen=True)
class Reading:
    """What a metric says of a run. `line` is where it is worst; 0 where it is of the whole run."""

    now: float
    ideal: float
    line: int = 0


def _worst(diagnosis: Diagnosis, space: str, *accesses: str) -> Reading:
    """The instruction that is furthest from its ideal, in sectors or wavefronts per request."""
    traffic = [
        t
        for launch in diagnosis.launches
        for t in launch.traffic
        if t.space == space and t.access in accesses
    ]
    if not traffic:
        return Reading(0.0, 0.0)
    worst = max(traffic, key=lambda t: (t.moved / t.ideal, t.requests))
    return Reading(worst.per_request, worst.ideal_per_request, worst.line)


def _loaded(diagnosis: Diagnosis) -> Reading:
    moved = SECTOR * diagnosis.total("moved", "global", "load")
    return Reading(moved, sum(launch.distinct_read for launch in diagnosis.launches))


def _load_requests(diagnosis: Diagnosis, space: str) -> Reading:
    """How often a warp asked; the ideal depends on the exercise, so its spec must give it."""
    return Reading(diagnosis.total("requests", space, "load"), 0)


def _shared_work(diagnosis: Diagnosis) -> Reading:
    """1 where every warp's store is by all of its lanes; 32 where one thread does all."""
    requests = diagnosis.total("requests", "global", "store")
    lanes = diagnosis.total("lanes", "global", "store")
    return Reading(32 * requests / lanes if lanes else 0.0, 1.0)


def _barriers(diagnosis: Diagnosis) -> Reading:
    blocks = sum(a * b * c for a, b, c in (launch.grid for launch in diagnosis.launches))
    return Reading(sum(launch.barriers for launch in diagnosis.launches) / blocks, 0)


METRICS: dict[str, Callable[[Diagnosis], Reading]] = {
    "sectors per load request": lambda d: _worst(d, "global", "load"),
    "sectors per store request": lambda d: _worst(d, "global", "store"),
    "wavefronts per shared request": lambda d: _worst(d, "shared", "load", "store"),
    "bytes loaded from global memory": _loaded,
    "load requests to global memory": lambda d: _load_requests(d, "global"),
    "load requests to shared memory": lambda d: _load_requests(d, "shared"),
    "store requests for 32 elements": _shared_work,
    "barriers a block": _barriers,
}


def failing(gate: Gate, diagnosis: Diagnosis, sizes: Mapping[str, int]) -> str | None:
    """What to say of a run that a gate does not let through; None where it does.

    The ideal is the counters' own, or the spec's where it gives one.
    """
    reading = METRICS[gate.metric](diagnosis)
    ideal = gate.ideal(**sizes) if gate.ideal else reading.ideal
    now, limit = reading.now, gate.times * ideal
    if now <= limit:
        return None
    place = f" at line {reading.line}" if reading.line else ""
    now, ideal, limit = (f"{x:,.0f}" if x >= 1e4 else f"{x:.4g}" for x in (now, ideal, limit))
    numbers = f"now {now}, ideal {ideal}, gate {limit}"
    return f"{gate.metric}{place}: {numbers}\nhint: {gate.advice}"
