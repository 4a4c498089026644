"""An estimate of a kernel's time on a GPU that this machine does not have.

    estimate(kernel, M=4096, N=4096, K=4096).seconds

Three times are set against each other. What the GPU needs to move all of it at full speed, in the
part of the memory system that is busiest; what it needs to issue all instructions; and what it
needs if every thread waits for each of its loads, with as many threads at a time as fit. None hides
the others completely, and a launch takes a time of its own.

Instructions are those of the kernel's build for this machine, with what is known of nvcc's: a
guess, and where it decides, the estimate says so. Not in it: data that is read again but has fallen
out of a cache, and how many registers nvcc gives a thread, where there is no nvcc. Of tensor cores,
the copy engine and conversions to halves nothing is known, so kernels that use them are not
estimated.
`benchmarks/estimates.py` prints estimated beside measured times.
"""

import functools
import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch

from utils.course.answers import Answer
from utils.course.case_sizes import size_text
from utils.ground.errors import WorkbookError
from utils.ground.paths import workspace
from utils.timing import roofline, sass
from utils.timing.sass import Occupied
from utils.timing.scaling import Kind, Work, work
from utils.watch.access_patterns import SECTOR, WARP
from utils.watch.costs import Cost
from utils.watch.trace import GLOBAL, LOAD

UNROLLED = 16  # iterations of a loop whose loads nvcc lets start together
BUSY = 3  # norm of two parts that are busy at a time: 26 % longer where both take as long
DRIFT = 12  # waits for loads after which warps that started together have drifted apart
SCHEDULERS = 4  # of a multiprocessor: each issues one instruction of a warp in a cycle
KEEPS = 0.5  # of a multiprocessor's memory: what its L1 cache keeps between blocks
START = 8  # instructions with which a warp begins and ends: its place, its arguments, EXIT
FLOATS = "sum", "product", "fused"  # that are the text's own
# Instructions that nvcc 13 makes of what a basic block computes (utils.watch.instructions), from
# its SASS. The sums are within 20 % of what Nsight Compute counted for two of three kernels of
# results/calibration; they are too small for the others, most where a quotient takes a slow path.
SLOTS: dict[Kind, int] = {
    "move": 0,
    "end": 0,
    "other": 1,
    "sum": 1,
    "product": 1,
    "fused": 1,
    "root": 4,
}
SLOTS |= {"division": 25, "quotient": 10, "quick quotient": 2}
# __fdividef: a comparison, two products that it decides, MUFU.RCP, a product (nvcc 13, sm_90a).
SLOTS["emu_quick_quotient"] = 5
SLOTS |= {"emu_collective": 1, "emu_barrier": 1}
SLOTS |= {"expf": 10, "exp2": 2, "log2": 4, "sin": 4, "cos": 4, "sqrtf": 8}
SLOTS |= {"fmaxf": 1, "fminf": 1}
FUNCTION = 20  # instructions of another function, such as tanhf
# nvcc knows the divisor where it unrolls the loop, and makes a few instructions of it, or does not.
SLOTS["looped", "division"] = 5


NOT_COVERED = (
    "what tensor cores, the copy engine and conversions to halves take is not in the model"
)


@dataclass(frozen=True)
class Gpu:
    """A GPU. Latencies and the like are in cycles, sizes in bytes, rates in units a second."""

    name: str
    architecture: str
    multiprocessors: int
    clock: float
    threads: int  # that a multiprocessor holds,
    blocks: int  # and blocks,
    registers: int  # and its registers
    shared: int  # memory of a multiprocessor,
    shared_of_system: int  # of which each block loses this
    l2_bytes: float
    l2_lines: float
    request_cycles: float  # that a warp's request occupies the L1 cache at least
    l1_latency: float
    l2_latency: float
    dram_latency: float  # with other threads' loads before it
    shared_latency: float
    issue_cycles: float  # from one memory instruction of a lone warp to its next
    turnover: float  # that a block's place stays empty before the next block runs
    atomic_cycles: float  # from one atomic update of an address to the next
    start_cycles: float  # from one block's start to the next one's, on the whole GPU
    launch_seconds: float  # of a call that does next to nothing
    bytes_per_second: float
    flops_per_second: float


@dataclass(frozen=True)
class Estimate:
    """What a kernel should take on a GPU. Nothing was measured."""

    kernel: str
    gpu: str
    sizes: Mapping[str, int]
    seconds: float
    bound: str  # the part that takes longest
    parts: Mapping[str, float]  # seconds, each as if there were nothing else
    caveats: tuple[str, ...] = ()  # why it may be far off

    def __str__(self) -> str:
        text = (
            f"{self.kernel} with {size_text(self.sizes)}: about {1e3 * self.seconds:.3g} ms "
            f"on an {self.gpu}, bound by {self.bound}."
        )
        if self.caveats:
            text += f" It may be off by half: {'; '.join(self.caveats)}."
        return f"{text} An estimate: nothing was measured."


def estimate(kernel: Answer, gpu: str = "NVIDIA H200", **sizes: int) -> Estimate:
    """Estimate a call of a kernel at the sizes of its bench, or those given in their place.

    Raises WorkbookError for a GPU that nothing is known of, and what a run of the kernel raises.
    """
    if not covers(kernel):
        raise WorkbookError(NOT_COVERED)
    chosen = {**kernel.exercise.at.bench, **sizes}
    return estimate_of(kernel, known_gpu(gpu), chosen, work(kernel, chosen))


def estimate_of(
    kernel: Answer, gpu: Gpu, sizes: Mapping[str, int], launches: Sequence[Work]
) -> Estimate:
    """The same, of what the kernel's launches do at these sizes."""
    flops, code = kernel.exercise.flops(**sizes), sass.compiled(kernel.source, gpu.architecture)
    seconds, parts = total(gpu, launches, flops, code)
    warnings = caveats(launches, parts)
    bound = max(parts, key=parts.__getitem__)
    return Estimate(kernel.name, gpu.name, sizes, seconds, bound, parts, warnings)


def covers(kernel: Answer) -> bool:
    """Whether the model knows what all that a kernel does costs."""
    exercise = kernel.exercise
    halves = exercise.halves(exercise.at.bench) or torch.float16 in kernel.dtypes.values()
    return not halves and exercise.needs != "sm_90a"  # with its copy engine


def total(
    gpu: Gpu, launches: Sequence[Work], flops: float, code: Mapping[str, Occupied]
) -> tuple[float, dict[str, float]]:
    """(seconds, those of each part) of a call. `code`: what a thread occupies, by kernel."""
    each = [launch_parts(gpu, launch, registers(launch, code)) for launch in launches]
    computing = sum(parts["instructions"] for parts in each)
    slower = max(1, flops / gpu.flops_per_second / computing) if computing else 1
    seconds, sums = gpu.launch_seconds, defaultdict(float, launch=gpu.launch_seconds)
    for launch, parts in zip(launches, each, strict=True):
        parts["instructions"] *= slower
        seconds += _together(parts, in_step(gpu, launch, registers(launch, code)))
        for name, part in parts.items():
            sums[name] += part
    return seconds, dict(sums)


def _together(parts: Mapping[str, float], in_step: bool) -> float:
    """Seconds of a launch, from those of its parts. None hides another completely."""
    moving = max(part for name, part in parts.items() if name not in ("latency", "instructions"))
    if in_step:
        return moving + parts["instructions"] + parts["latency"]
    busy = (moving**BUSY + parts["instructions"] ** BUSY) ** (1 / BUSY)
    return math.hypot(busy, parts["latency"])


def in_step(gpu: Gpu, launch: Work, registers: int = 0) -> bool:
    """Whether all warps start at once and end before they have drifted apart: they load at the same
    time and compute at the same time."""
    at_once = gpu.multiprocessors * resident(gpu, launch, registers)
    rounds = sum(count for count, _ in _rounds(gpu, launch).values())
    return launch.blocks <= at_once and rounds < DRIFT


def caveats(launches: Sequence[Work], parts: Mapping[str, float]) -> tuple[str, ...]:
    """What an estimate hangs on that is not known: why it may be far off, in words."""
    if not any(launch.computed for launch in launches):
        return ("instructions are not counted, for which objdump (of binutils) is needed",)
    every = sum(_slots(launch) for launch in launches)
    floats = sum(_slots(launch, FLOATS) for launch in launches)
    if max(parts, key=parts.__getitem__) == "instructions" and floats < every / 2:
        return ("instructions decide, and how many nvcc makes of the text is a guess",)
    return ()


def plain_name(name: str) -> str:
    """A kernel's name without its template's arguments."""
    return name.partition("<")[0]


@functools.cache
def known_gpu(name: str) -> Gpu:
    """The figures of a GPU. Raises WorkbookError where there are none."""
    known = known_gpus()
    if name not in known:
        raise WorkbookError(
            f"nothing is known of an '{name}' to estimate with; of {', '.join(known)}"
        )
    own = known[known[name].get("like", name)]
    figures = {key: value for key, value in own.items() if not key.endswith("source")}
    top = roofline.ceilings(name)
    return Gpu(
        name,
        bytes_per_second=top.bytes_per_second,
        flops_per_second=top.flops_per_second,
        **figures,
    )


def known_gpus() -> Mapping[str, Mapping[str, Any]]:
    """What is known of each GPU: figures with their sources, or which other one it is like."""
    known = (workspace().results / "calibration/model.json").read_text()
    return cast(Mapping[str, Mapping[str, Any]], json.loads(known))


def launch_parts(gpu: Gpu, launch: Work, registers: int = 0) -> dict[str, float]:
    """Seconds of a launch in each part of the GPU that could hold it up."""
    instructions = launch.instructions.values()
    apiece = math.ceil(launch.blocks / gpu.multiprocessors)  # blocks of the busiest
    cycles = sum(max(i.wavefronts, gpu.request_cycles * i.requests) for i in instructions)
    done = launch.arithmetic
    shuffles = done["emu_collective"] + done["looped", "emu_collective"]
    cycles += gpu.request_cycles * shuffles
    cycles *= apiece / launch.blocks
    slots = _slots(launch) * apiece / launch.blocks
    reads = [_kept(gpu, i) for i in _by_array(instructions).values()]
    writes = [i for i in instructions if i.space == GLOBAL and i.kind != LOAD]
    missed = sum(i.missed for i in (*reads, *writes))
    lines = sum(i.missed_lines for i in (*reads, *writes))
    distinct = sum(i.distinct for i in (*reads, *writes))
    return {
        "L1 and shared memory": cycles / gpu.clock,
        "L2": max(missed * SECTOR / gpu.l2_bytes, lines / gpu.l2_lines),
        "DRAM": distinct * SECTOR / gpu.bytes_per_second,
        "atomics": gpu.atomic_cycles * sum(i.hottest for i in writes) / gpu.clock,
        "block starts": gpu.start_cycles * launch.blocks / gpu.clock,
        "instructions": slots / SCHEDULERS / gpu.clock,
        "latency": _latency(gpu, launch, registers),
    }


def executed(launch: Work) -> dict[Kind, float]:
    """What the warps of a launch execute beside loads and stores, by kind, as nvcc unrolls it."""
    requests, done = sum(i.requests for i in launch.instructions.values()), launch.arithmetic
    used = requests + done["looped", "emu_collective"]
    if done["looped", "fused"] > 2 * used:  # what is used so often lies in registers, which no
        # loop can number: it is unrolled, and has known indices but for those into memory.
        done["looped", "other"] = min(done["looped", "other"], requests)
    return done


def _slots(launch: Work, only: Collection[str] = ()) -> float:
    """Instructions of all warps of a launch, as nvcc might make them; `only` some kinds."""
    requests = sum(i.requests for i in launch.instructions.values())
    slots = 0 if only else START * launch.warps + requests
    for kind, count in executed(launch).items():
        plain = kind[1] if isinstance(kind, tuple) else kind
        if not only or plain in only:
            own = 0 if plain.startswith(("_", "emu_")) else FUNCTION  # the emulator's are none
            slots += SLOTS.get(kind, SLOTS.get(plain, own)) * count
    return slots


def _kept(gpu: Gpu, load: Cost) -> Cost:
    """A load of what is so little that the L1 cache keeps it from block to block."""
    share = load.distinct * gpu.multiprocessors / (load.missed or 1)
    if share >= 1 or load.distinct * SECTOR > KEEPS * gpu.shared:
        return load
    return replace(load, missed=share * load.missed, missed_lines=share * load.missed_lines)


def _by_array(instructions: Iterable[Cost]) -> dict[int, Cost]:
    """For each array the load that brings most of it; the others find it in the cache."""
    most: dict[int, Cost] = {}
    for i in instructions:
        if i.space == GLOBAL and i.kind == LOAD:
            if i.array not in most or i.missed > most[i.array].missed:
                most[i.array] = i
    return most


def _latency(gpu: Gpu, launch: Work, registers: int) -> float:
    """Seconds until all blocks have run, as many at a time as fit, if each thread just waits."""
    cycles = sum(wait for _, wait in _rounds(gpu, launch).values())
    cycles += launch.barriers * gpu.shared_latency
    cycles += gpu.issue_cycles * sum(i.each for i in launch.instructions.values())
    at_once = gpu.multiprocessors * resident(gpu, launch, registers)
    waves = launch.blocks / at_once
    return (max(1, waves) * cycles + max(0, waves - 1) * gpu.turnover) / gpu.clock


def _rounds(gpu: Gpu, launch: Work) -> dict[float, tuple[float, float]]:
    """(how often a thread waits for loads, cycles in all), by trip count: what is in one loop waits
    together."""
    instructions = launch.instructions.values()
    loads = [i for i in instructions if i.space == GLOBAL and i.kind == LOAD]
    stores = [i.each for i in instructions if i.space == GLOBAL and i.kind != LOAD]
    # Loads start together up to the next barrier, or store that might be to the same address.
    stops = max(1, launch.barriers, *stores)
    rounds: dict[float, tuple[float, float]] = {}
    for i in loads:
        together = min(UNROLLED, max(1, i.each / stops))
        # Of those that start together the slowest counts.
        l2, dram = (
            1 - (1 - min(1, sectors / i.sectors)) ** together for sectors in (i.missed, i.distinct)
        )
        wait = gpu.l1_latency + l2 * (gpu.l2_latency - gpu.l1_latency)
        wait += dram * (gpu.dram_latency - gpu.l2_latency)
        trips, count = round(i.each, 3), i.each / together
        rounds[trips] = max(rounds.get(trips, (0, 0)), (count, count * wait))
    return rounds


def resident(gpu: Gpu, launch: Work, registers: int = 0) -> int:
    """Blocks that a multiprocessor holds at a time; `registers` of a thread, 0: not known."""
    return min(places(gpu, launch, registers).values())


def places(gpu: Gpu, launch: Work, registers: int = 0) -> dict[str, int]:
    """Blocks that a multiprocessor would hold if there were no other limit, by what limits them."""
    threads = math.ceil(launch.threads / WARP) * WARP
    limits = {
        "blocks": gpu.blocks,
        "threads": gpu.threads // threads,
        "shared memory": gpu.shared // int(launch.shared + gpu.shared_of_system),
    }
    if registers:
        limits["registers"] = gpu.registers // (math.ceil(registers / 8) * 8 * threads)
    return {name: max(1, int(limit)) for name, limit in limits.items()}


def registers(launch: Work, code: Mapping[str, Occupied]) -> int:
    """Of a thread of a launch's kernel, from those of all kernels; 0: not known."""
    if launch.symbol in code:
        return code[launch.symbol].registers
    name = plain_name(launch.kernel)
    alike = (occupied for symbol, occupied in code.items() if f"{len(name)}{name}" in symbol)
    return max((occupied.registers for occupied in alike), default=0)
