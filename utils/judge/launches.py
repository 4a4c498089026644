"""What a call tells beside its values: how it was launched, how much it read of its inputs."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from utils.course.cases import Case
from utils.course.exercise import Exercise, inputs_of
from utils.cuda.isolation import Rehearsed
from utils.emulator.traffic import LaunchTraffic
from utils.ground.wording import many
from utils.watch.diagnosis import Diagnosis

WARP, MOST = 32, 1024  # what blocks are a multiple of, and at most
AGAIN = 1.02  # times that an input is read


@dataclass(frozen=True)
class Launches:
    """Those of a call, as far as they tell what a launcher does."""

    kinds: frozenset[tuple[str, int]]  # kernels, with the threads of a block
    blocks: int  # of all launches
    threads: int
    of_kernels: Mapping[str, int]  # blocks
    count: int  # of launches


def of(launches: Iterable[LaunchTraffic | Rehearsed]) -> Launches:
    """Those that a call made, or would have made."""
    kinds, all_threads, of_kernels = set(), 0, Counter[str]()
    count = 0
    for launch in launches:
        count += 1
        if isinstance(launch, Rehearsed):
            blocks, threads = launch.blocks, launch.threads
        else:
            blocks, threads = math.prod(launch.grid or ()), math.prod(launch.block or ())
        kinds.add((launch.kernel, threads))
        of_kernels[launch.kernel] += blocks
        all_threads += blocks * threads
    return Launches(frozenset(kinds), of_kernels.total(), all_threads, of_kernels, count)


def swapped(launches: Iterable[LaunchTraffic]) -> str:
    """A remark, where only the other way round a block would be of whole warps; else ""."""
    for launch in launches:
        blocks, threads = math.prod(launch.grid or ()), math.prod(launch.block or ())
        if threads % WARP and blocks % WARP == 0 and blocks <= MOST:
            return (
                f"remark: {launch.kernel} was launched with {blocks} blocks of "
                f"{many(threads, 'thread')}: is it the other way round? The order is "
                "<<<blocks, threads>>>"
            )
    return ""


def reading(exercise: Exercise, case: Case, seen: Diagnosis) -> Iterator[str]:
    """A remark on each input that is not read whole, and on one that a reduction reads again."""
    inputs = [name for name in inputs_of(exercise) if name in seen.covered]
    for name in inputs:
        covered, size = seen.covered[name], case.tensors[name].element_size()
        if covered.read < exercise.must_read.get(name, 1.0) * covered.bytes:
            have, all_of = covered.read // size, covered.bytes // size
            yield f"remark: only {have:,} of the {many(all_of, 'element')} of {name} are read"
    outputs = [len(exercise.shapes[name].split()) for name in exercise.outputs]
    if len(inputs) == 1 and max(outputs) < len(exercise.shapes[inputs[0]].split()):
        whole = seen.covered[inputs[0]].bytes
        requested = seen.total("bytes", "global", "load")
        if requested > AGAIN * whole:
            times = f"{requested / whole:.3g} times on the average"
            yield f"remark: each element of {inputs[0]} is read {times}"
