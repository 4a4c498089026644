"""Did you use the technique? Bounds on what a diagnosing run counted: "now 32, ideal 4, gate 4.5".

A spec names a metric of METRICS and how many times its ideal a kernel may cost.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from utils.course.exercise import Exercise, Gate
from utils.emulator.traffic import Key, LaunchTraffic, Traffic
from utils.watch.access_patterns import SECTOR, WARP
from utils.watch.diagnosis import Diagnosis

FLOAT = 4  # bytes
FEW = 8  # lanes that take part in a load: fewer bring what others should
IDLE = 24  # lanes: a request of fewer leaves too many without work
AGAIN = 1.5  # times that a byte is asked for: beyond that, threads share elements
# Times the mean that one thread may do: where each has elements of its own; where threads add up
# what they found, and one warp of eight may have the whole row. And one block, of which some have a
# tile more than others.
EACH, TOGETHER, BLOCKS = 3, 12, 2
GOOD_PART = 64  # a launch is at work that reads so large a part of all bytes
PART = 16  # bytes: what a block leaves to the one that finishes for all
FINISH = 16  # which may do a sixteenth of all, at most
FEW_LOADS = 4  # times as many as bring all that is read
LOADS = "load", "atomic"  # an atomic operation reads, too


@dataclass(frozen=True)
class Reading:
    """What a metric says of a run. `line` is where it is worst; 0 where it is of the whole run."""

    now: float
    ideal: float
    line: int = 0


def _worst(diagnosis: Diagnosis, space: str, *accesses: str) -> Reading:
    """The instruction that is furthest from its ideal, in sectors or wavefronts per request.

    Sectors are held against the bytes that the lanes ask for, also where several ask for the same:
    a block of 16 x 16 reads two rows at once, each value in a sector of its own, at no loss.
    """
    traffic = [
        t
        for launch in diagnosis.launches
        for t in launch.traffic
        if t.space == space and t.access in accesses
    ]
    if not traffic:
        return Reading(0.0, 0.0)

    def ideal(t: Traffic) -> float:
        return max(t.ideal, t.bytes / SECTOR) if space == "global" else t.ideal

    worst = max(traffic, key=lambda t: (t.moved / ideal(t), t.requests))
    return Reading(worst.per_request, ideal(worst) / worst.requests, worst.line)


def _loaded(diagnosis: Diagnosis) -> Reading:
    moved = SECTOR * diagnosis.total("moved", "global", *LOADS)
    return Reading(moved, sum(launch.distinct_read for launch in diagnosis.launches))


def _requests(diagnosis: Diagnosis, space: str, *accesses: str) -> Reading:
    """How often a warp asked; the ideal depends on the exercise, so its spec must give it."""
    return Reading(diagnosis.total("requests", space, *accesses), 0)


def _lanes(diagnosis: Diagnosis) -> Reading:
    """How many lanes of a warp take part in its loads, on the average."""
    requests = diagnosis.total("requests", "global", *LOADS)
    return Reading(
        diagnosis.total("lanes", "global", *LOADS) / requests if requests else WARP, WARP
    )


def _of_few(diagnosis: Diagnosis) -> Reading:
    """Loads of lines where few lanes of a warp take part, from shared memory too: others that all
    lanes make, perhaps for nothing, make no work for these. Ideal are as many as bring all that is
    read, lane by lane."""
    lines: dict[Key, Traffic] = {}
    for launch in diagnosis.launches:
        for t in launch.traffic:
            if t.access in LOADS:
                lines[t.key] = lines[t.key] + t if t.key in lines else t
    few = sum(t.requests for t in lines.values() if t.lanes < FEW * t.requests)
    return Reading(few, _read_once(diagnosis.launches, diagnosis) / (FLOAT * WARP))


def _moved(diagnosis: Diagnosis) -> Reading:
    """Sectors of all kinds; the ideal is each distinct byte once each way."""
    ideal = sum(launch.distinct_read + launch.distinct_written for launch in diagnosis.launches)
    return Reading(SECTOR * diagnosis.total("moved", "global"), ideal)


def _stores(diagnosis: Diagnosis) -> tuple[str, ...]:
    """What counts as a store: atomic operations, too, where most of the storing is theirs."""
    atomics, stores = (diagnosis.total("lanes", "global", kind) for kind in ("atomic", "store"))
    return ("store", "atomic") if atomics > stores else ("store",)


def _shared_work(diagnosis: Diagnosis) -> Reading:
    """1 where every warp's store is by all of its lanes; 32 where one thread does all."""
    stores = _stores(diagnosis)
    requests = diagnosis.total("requests", "global", *stores)
    lanes = diagnosis.total("lanes", "global", *stores)
    return Reading(WARP * requests / lanes if lanes else 0.0, 1.0)


def _blocks(launches: Iterable[LaunchTraffic]) -> int:
    return sum(math.prod(launch.grid) for launch in launches if launch.grid)


def _barriers(diagnosis: Diagnosis) -> Reading:
    """Of all launches together, or of the one at work that has most."""
    some = [diagnosis.launches, *([launch] for launch in _at_work(diagnosis))]
    each = (sum(e.barriers for e in launches) / max(_blocks(launches), 1) for launches in some)
    return Reading(max(each), 0)


def _shared_atomics(diagnosis: Diagnosis) -> Reading:
    """The same as for loads, and one more for each lane that wants the word of another one."""
    requests, wavefronts, waiting = (
        diagnosis.total(name, "shared", "atomic") for name in ("requests", "moved", "contended")
    )
    return Reading((wavefronts + waiting) / requests, 1.0) if requests else Reading(0.0, 0.0)


def _at_work(diagnosis: Diagnosis) -> list[LaunchTraffic]:
    """The launches that read a good part of all bytes, or of those of the call's tensors. Others
    may be small, such as the one that adds up what blocks found, or make a great many steps for
    nothing."""
    launches = [launch for launch in diagnosis.launches if launch.counters["steps"]]
    read = _read_once(launches, diagnosis)
    return [launch for launch in launches if GOOD_PART * launch.distinct_read >= read]


def _read_once(launches: Iterable[LaunchTraffic], diagnosis: Diagnosis) -> int:
    """Bytes that launches read, each counted once; of the call's tensors alone, where that is less:
    what is read besides, perhaps for show, hides no work."""
    read = sum(launch.distinct_read for launch in launches)
    of_tensors = sum(covered.read for covered in diagnosis.covered.values())
    return min(read, of_tensors) if diagnosis.covered else read


def _that_take_time(diagnosis: Diagnosis) -> list[LaunchTraffic]:
    """Those at work, and the one that takes most steps."""
    launches = _at_work(diagnosis)
    longest = max(diagnosis.launches, key=lambda launch: launch.counters["steps"], default=None)
    return [*launches, longest] if longest and longest.counters["steps"] else launches


def _worst_share(readings: Iterable[Reading]) -> Reading:
    return max(readings, key=lambda r: r.now / max(r.ideal, 1e-9), default=Reading(0.0, 0.0))


def _busiest_thread(diagnosis: Diagnosis) -> Reading:
    """The steps of the thread that takes most of them, beside the mean of all: in the launch at
    work where that is worst. A step is a basic block, such as a round of a loop."""
    return _worst_share(
        Reading(
            launch.counters["thread_steps"],
            launch.counters["steps"] / math.prod((*(launch.grid or ()), *(launch.block or ()))),
        )
        for launch in _that_take_time(diagnosis)
    )


def _busiest_block(diagnosis: Diagnosis, what: str, a_part: int) -> Reading:
    """The same of a block, in steps or in bytes that it loads. The block that finishes for all
    has `a_part` more for each of them, but not where that would be most of all: there are so many
    blocks where each is small."""

    def reading(launch: LaunchTraffic) -> Reading:
        blocks = math.prod(launch.grid or ())
        all_of_them = launch.counters[what]
        finish = min(a_part * blocks, all_of_them / FINISH)
        return Reading(launch.counters[f"block_{what}"], all_of_them / blocks + finish / BLOCKS)

    return _worst_share(map(reading, _that_take_time(diagnosis)))


METRICS: dict[str, Callable[[Diagnosis], Reading]] = {
    "sectors per load request": lambda d: _worst(d, "global", "load"),
    "sectors per store request": lambda d: _worst(d, "global", *_stores(d)),
    "wavefronts per shared request": lambda d: _worst(d, "shared", "load", "store"),
    "bytes loaded from global memory": _loaded,
    "bytes moved to and from global memory": _moved,
    "load requests to global memory": lambda d: _requests(d, "global", *LOADS),
    "lanes per load request": _lanes,
    "load requests of few lanes": _of_few,
    "store requests to global memory": lambda d: _requests(d, "global", "store"),
    "load requests to shared memory": lambda d: _requests(d, "shared", "load"),
    "store requests to shared memory": lambda d: _requests(d, "shared", "store"),
    "store requests for 32 elements": _shared_work,
    "atomic operations": lambda d: Reading(
        d.total("lanes", "global", "atomic") + d.total("lanes", "shared", "atomic"), 0
    ),
    "wavefronts per shared atomic": _shared_atomics,
    "barriers a block": _barriers,
    "shuffles and votes": lambda d: Reading(
        sum(launch.counters["shuffles"] for launch in d.launches), 0
    ),
    "operations of tensor cores": lambda d: Reading(
        sum(launch.counters["tensor_operations"] for launch in d.launches), 0
    ),
    "products of bytes, four at once": lambda d: Reading(
        sum(launch.counters["byte_products"] for launch in d.launches), 0
    ),
    "steps of the busiest thread": _busiest_thread,
    "steps of the busiest block": lambda d: _busiest_block(d, "steps", 1),
    "bytes loaded by the busiest block": lambda d: _busiest_block(d, "loaded", PART),
    "blocks": lambda d: Reading(_blocks(d.launches), 0),
    "blocks at work": lambda d: Reading(_blocks(_at_work(d)), 0),
    "threads": lambda d: Reading(
        sum(math.prod((*e.grid, *e.block)) for e in d.launches if e.grid and e.block), 0
    ),
    "launches": lambda d: Reading(len(d.launches), 0),
}


# What can be counted at no use: whether the results need it, another call shows.
PRODUCTS = "operations of tensor cores", "products of bytes, four at once"
FOR_SHOW = (
    "these products are made, but what comes out does not need them: it was right where they gave "
    "nothing"
)


def of_every(exercise: Exercise) -> list[Gate]:
    """Those that an exercise with gates has beside its own: the work is shared by all."""
    lanes = [gate for gate in exercise.gates if gate.metric == "lanes per load request"]
    each = bool(lanes)
    return [
        *(Gate("load requests of few lanes", FEW_LOADS, gate.advice) for gate in lanes),
        Gate(
            "steps of the busiest thread",
            EACH if each else TOGETHER,
            "one thread goes through what many could do: give each of them a part of the work",
        ),
        *(
            Gate(
                f"{what} the busiest block",
                BLOCKS,
                "one block goes through what many could do: give each of them a part of the work",
            )
            for what in ("steps of", "bytes loaded by")
        ),
    ]


def read(gate: Gate, diagnosis: Diagnosis, sizes: Mapping[str, int]) -> Reading:
    """What a gate's metric says of a run. The ideal is the spec's where it gives one."""
    # Where many blocks are asked for, those of a launch that does next to nothing do not count.
    at_work = gate.metric == "blocks" and gate.at_least
    reading = METRICS["blocks at work" if at_work else gate.metric](diagnosis)
    return replace(reading, ideal=gate.ideal(**sizes)) if gate.ideal else reading


def passes(gate: Gate, reading: Reading) -> bool:
    """Whether a reading is within the gate's bound."""
    limit = gate.times * reading.ideal
    return reading.now >= limit if gate.at_least else reading.now <= limit


def failing(gate: Gate, diagnosis: Diagnosis, sizes: Mapping[str, int]) -> str | None:
    """What to say of a run that a gate does not let through; None where it does."""
    reading = read(gate, diagnosis, sizes)
    if passes(gate, reading):
        return None
    place = f" at line {reading.line}" if reading.line else ""
    now, ideal, limit = figures(gate, reading)
    message = f"{gate.metric}{place}: now {now}, ideal {ideal}, gate {limit}"
    return f"{message}\nhint: {_advice(gate, reading, diagnosis)}"


def _advice(gate: Gate, reading: Reading, diagnosis: Diagnosis) -> str:
    """The gate's own, unless what it says has been done, and something else is the cause."""
    limit = gate.times * reading.ideal
    if gate.metric == "store requests for 32 elements" and reading.now < WARP:
        return (
            f"of the {WARP} lanes of a warp only {WARP / reading.now:.2g} take part in a store on "
            "the average: give the others elements of their own"
        )
    requested = diagnosis.total("bytes", "global", "load")
    once = sum(launch.distinct_read for launch in diagnosis.launches)
    # What the exercise itself has to read twice, such as a row for its maximum and then each
    # element, is in the ideal: so many requests of a float a lane.
    meant = max(once, FLOAT * WARP * reading.ideal)
    if gate.metric == "load requests to global memory" and requested > AGAIN * meant > 0:
        return (
            f"each byte is asked for {requested / once:.3g} times on the average: has each thread "
            "elements of its own, does a loop's step count all threads that share the work, and is "
            "nothing read that no result needs?"
        )
    kind = gate.metric.partition(" requests to ")[0]
    if kind in ("load", "store"):
        space = gate.metric.split()[3]
        requests, lanes = (diagnosis.total(n, space, kind) for n in ("requests", "lanes"))
        if IDLE * requests > lanes and lanes / WARP <= limit:
            return (
                f"of the {WARP} lanes of a warp only {lanes / requests:.2g} take part in a request "
                "on the average: give the others a part of the work, and there are fewer requests"
            )
    if gate.metric == "bytes loaded from global memory" and requested <= limit:
        return (
            f"the threads ask for {requested:,} bytes, which is few enough, but a warp gets whole "
            f"sectors of {SECTOR} bytes: let neighbouring lanes read neighbours in memory"
        )
    total = diagnosis.total("bytes", "global", *LOADS, "store")
    if gate.metric == "bytes moved to and from global memory" and total <= limit:
        return (
            f"the threads ask for {total:,} bytes, which is few enough, but a warp's request moves "
            f"whole sectors of {SECTOR} bytes: let each lane ask for four neighbours at once, as a "
            "float4, or neighbouring lanes for neighbours"
        )
    return gate.advice


def figures(gate: Gate, reading: Reading) -> tuple[str, str, str]:
    """Now, ideal and gate, as a reader meets them."""
    numbers = reading.now, reading.ideal, gate.times * reading.ideal
    now, ideal, limit = (f"{x:,.0f}" if x >= 1e4 else f"{x:.4g}" for x in numbers)
    return now, ideal, "at least " * gate.at_least + limit
