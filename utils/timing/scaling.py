"""What a call of a kernel does at any size, from calls at small sizes.

The kernel's own text runs traced on the emulator at a small size, and once more with each size
doubled. That tells how each count of each instruction grows: as a product of powers of the sizes.
A size that follows another, as the number of groups follows the channels, is doubled with it: so a
group stays as large as it is, which may decide what the kernel does.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from utils.course.answers import Answer
from utils.course.case_calls import example
from utils.course.case_sizes import size_text
from utils.ground.errors import LaunchError, WorkbookError
from utils.watch.access_patterns import WARP
from utils.watch.costs import Cost, costs
from utils.watch.instructions import computed, functions
from utils.watch.trace import MOST, SHARED, Launch, Recorded, record

SMALL = 32, 64, 128, 256, 512  # of a tensor's side, from the smallest that will do
LONGER = 32  # times as much where a tensor has but one
OTHER = 2  # of a size that no tensor has, such as a number of blocks
EDGES = 0.2
LINEAR = 1.6  # the power that a linear count seems to grow with at most: 1 and 3 rounds
FEW = MOST // 6  # accesses: where there are more, no larger sizes are tried
ENOUGH = MOST // 16  # for edges to disturb little
HARDLY = 1.5  # times the accesses, of a side that is twice as long: much of it was edge


Kind = str | tuple[str, str]  # of instructions; ("looped", kind): of those in a loop


@dataclass(frozen=True)
class Work:
    """What one launch does. Counts are no whole numbers where they were scaled."""

    kernel: str
    blocks: float
    threads: float  # of a block
    shared: float  # bytes of a block
    barriers: float  # that a thread passes
    instructions: Mapping[int, Cost]
    begun: Mapping[int, float] = field(default_factory=dict)  # how often warps began a basic block,
    computed: Mapping[int, Counter[str]] = field(default_factory=dict)  # and what each computes
    arrays: tuple[str, ...] = ()  # names, by number
    symbol: str = ""  # the kernel's name with its template's arguments, as the C++ ABI writes it

    @property
    def warps(self) -> float:
        """In all of its blocks."""
        return self.blocks * math.ceil(self.threads / WARP)

    @property
    def arithmetic(self) -> dict[Kind, float]:
        """What the warps of the launch execute beside loads and stores, by kind.

        `("looped", kind)` is what a warp executes more than once.
        """
        total: dict[Kind, float] = defaultdict(float)
        for block, times in self.begun.items():
            for kind, count in self.computed.get(block, {}).items():
                total[("looped", kind) if times > 1.5 * self.warps else kind] += times * count
        return total


def work(kernel: Answer, sizes: Mapping[str, int]) -> list[Work]:
    """What each launch of a call does at these sizes.

    Raises what a run of the kernel raises, WorkbookError where it is too large to be recorded.
    """
    runs: dict[tuple[int, ...], Recorded] = {}
    follows = kernel.exercise.follows

    def run(base: Mapping[str, int]) -> Recorded:
        key = tuple(base.values())
        if key not in runs:
            shares = {n: base[of] * sizes[n] // sizes[of] or 1 for n, of in follows.items()}
            runs[key] = _run(kernel, {n: {**base, **shares}[n] for n in sizes})
        return runs[key]

    free = {name: size for name, size in sizes.items() if name not in follows}
    base = _small(kernel, free, run)
    launches = _works(_whole(kernel, base, run(base)))
    flat = [_flat(launch) for launch in launches]
    for name in (n for n in free if sizes[n] > base[n]):
        larger = {**base, name: 2 * base[name]}
        doubled = _works(_whole(kernel, larger, run(larger)))
        if len(doubled) != len(launches):
            raise WorkbookError(f"{kernel.name} launches more often where {name} is larger")
        ratio = sizes[name] / base[name]
        for counts, before, after in zip(flat, launches, doubled, strict=True):
            small, large = _flat(before), _flat(after)
            for key in counts:
                if small[key] and large.get(key):
                    counts[key] *= _factor(large[key] / small[key], ratio)
    return [_rebuilt(launch, counts) for launch, counts in zip(launches, flat, strict=True)]


def _factor(growth: float, ratio: float) -> float:
    """How much more there is of a count at `ratio` times a size, from its growth at twice the size.

    Edges of an array disturb small sizes; but for them most counts are powers of a size. What grows
    in between is taken for a constant and a linear part: a loop with a round more or less.
    """
    power = math.log2(growth)
    if abs(power - round(power)) < EDGES:
        return ratio ** round(power)
    if 1 < growth < 2**LINEAR:
        return 1 + (growth - 1) * (ratio - 1)
    return float(ratio**power)


def _small(
    kernel: Answer, sizes: Mapping[str, int], run: Callable[[Mapping[str, int]], Recorded]
) -> dict[str, int]:
    """Small sizes from which on the blocks of each launch grow with those sizes that they grow
    with at all. A size of few values stays."""
    few = kernel.exercise.at.choices
    shaped = {word for shape in kernel.exercise.shapes.values() for word in shape.split()}
    shaped = (shaped & sizes.keys()) - few.keys()
    sides = [side * LONGER if len(shaped) == 1 else side for side in SMALL]
    base = {
        n: v if n in few else min(v, sides[0] if n in shaped else OTHER) for n, v in sizes.items()
    }
    while True:
        try:
            _whole(kernel, base, run(base))
            break
        except LaunchError:  # no block at all: the kernel takes no sizes as small as these
            larger = {n: min(sizes[n], 2 * v if n in shaped else v) for n, v in base.items()}
            if larger == base or max(larger.values()) > sides[-1]:
                raise
            base = larger
    for name in sorted(shaped):
        most, chosen = 0, base[name]
        for side in sides:
            if base[name] <= side <= sizes[name] // 2:
                small, large = (run({**base, name: n}) for n in (side, 2 * side))
                if not large.whole:
                    break
                if (grown := _doubled(small, large)) > most:
                    most, chosen = grown, side
                if most == len(small.blocks) or large.accesses > FEW:
                    break
        base[name] = chosen
    # The larger, the less the edges disturb.
    while run(base).accesses * 2 ** len(shaped) <= ENOUGH and all(
        2 * base[n] <= sizes[n] for n in shaped
    ):
        base = {n: 2 * v if n in shaped else v for n, v in base.items()}
    for name in sorted(shaped):  # such as a row that a block has registers for, short or long
        while 2 * base[name] <= sizes[name]:
            larger = {**base, name: 2 * base[name]}
            if run(larger).accesses > HARDLY * run(base).accesses:
                break
            base = larger
    return base


def _run(kernel: Answer, sizes: Mapping[str, int]) -> Recorded:
    return record(kernel, example(kernel, sizes).arguments, counted=True)


def _whole(kernel: Answer, sizes: Mapping[str, int], run: Recorded) -> Recorded:
    """The run. Raises WorkbookError where not all of its accesses were recorded."""
    if run.whole:
        return run
    raise WorkbookError(f"{kernel.name} makes too many accesses with {size_text(sizes)}")


def _doubled(small: Recorded, large: Recorded) -> int:
    """How many launches have twice the blocks in a larger run."""
    return sum(b >= 2 * a for a, b in zip(small.blocks, large.blocks, strict=False))


def _works(run: Recorded) -> list[Work]:
    seen, library = run.read(), run.build.library
    shared = sum(math.prod(a.shape) * a.element for a in seen.arrays if a.space == SHARED)
    names = tuple(array.name for array in seen.arrays)
    return [replace(_work(launch, shared, library), arrays=names) for launch in seen.launches]


def _work(launch: Launch, shared: int, library: Path) -> Work:
    barriers = int(launch.accesses["phase"].max()) if len(launch.accesses) else 0
    blocks, known = math.prod(launch.grid), computed(library)
    basic = {block: known[block] for block in launch.begun if block in known}
    counts = costs(launch), launch.begun, basic
    symbol = _symbol(launch, library)
    return Work(launch.kernel, blocks, launch.threads, shared, barriers, *counts, symbol=symbol)


def _symbol(launch: Launch, library: Path) -> str:
    """Of the launch's kernel; "" where it is not known."""
    owners, part = functions(library), f"{len(launch.kernel)}{launch.kernel}"
    return next((owners[b] for b in launch.begun if part in owners.get(b, "")), "")


Count = tuple[str | int, str | int]  # of a launch, of an instruction or of a basic block; its name
_PLACES = ("space", "kind", "array", "line")  # which instruction it is
_SCALED = ("blocks", "threads", "shared", "barriers")
_COUNTS = [field.name for field in fields(Cost) if field.name not in _PLACES]


def _flat(launch: Work) -> dict[Count, float]:
    counts: dict[Count, float] = {("launch", name): getattr(launch, name) for name in _SCALED}
    for key, cost in launch.instructions.items():
        counts |= {(key, name): getattr(cost, name) for name in _COUNTS}
    return counts | {("begun", block): times for block, times in launch.begun.items()}


def _rebuilt(launch: Work, counts: Mapping[Count, float]) -> Work:
    warps = counts["launch", "blocks"] * math.ceil(counts["launch", "threads"] / WARP)
    instructions = {
        key: Cost(cost.space, cost.kind, cost.array, cost.line, **_bounded(counts, key, warps))
        for key, cost in launch.instructions.items()
    }
    begun = {block: counts["begun", block] for block in launch.begun}
    scaled: dict[str, Any] = {name: counts["launch", name] for name in _SCALED}
    return replace(launch, **scaled, instructions=instructions, begun=begun)


def _bounded(counts: Mapping[Count, float], key: int, warps: float) -> dict[str, float]:
    """An instruction's counts, within what is possible: a request has a sector and a turn for each
    lane at most, no more sectors can miss than there are, nor more be distinct.

    Small sizes may not show it, where what blocks or lanes share at a large size is still one's.
    """
    bounded = {name: counts[key, name] for name in _COUNTS}
    bounded["each"] = max(bounded["each"], bounded["requests"] / warps)  # no less than the mean
    for name in ("sectors", "wavefronts"):
        bounded[name] = min(bounded[name], WARP * bounded["requests"])
    if bounded["missed"] > bounded["sectors"]:  # those that go take their lines with them
        bounded["missed_lines"] *= bounded["sectors"] / bounded["missed"]
        bounded["missed"] = bounded["sectors"]
    for name in ("missed_lines", "distinct"):
        bounded[name] = min(bounded[name], bounded["missed"])
    return bounded
