"""Times of single calls on the GPU, which is idle for moments between them: a flushed L2, several
input sets in rotation. A rested card clocks higher than one under load: see sustained.py.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch

from utils.process import card

BUDGET = 0.2  # seconds of GPU time for each row: nobody else has the card meanwhile
CALLS = 5, 100  # at least, and at most for that budget
LATE = 0.2  # ms; an idle device answers much sooner
FLUSHES = 4  # reads of the buffer: about 0.5 ms

Set = TypeVar("Set")  # of inputs


def flusher() -> Callable[[], None]:
    """A function that drives everything out of the L2 cache, and keeps the GPU busy for so long
    that the call behind it is queued before its turn comes, Python's overhead and all.

    It reads: after writes the cache is full of lines that must go to memory first, at the cost of
    whoever comes next. torch.sum of 2^26 floats took 0.1045 ms behind writes, 0.0948 behind reads,
    0.0937 back to back (H100, 2026-11-27).
    """
    cache = torch.cuda.get_device_properties().L2_cache_size
    buffer = torch.zeros(max(256 << 20, 8 * cache) // 4, dtype=torch.int32, device="cuda")
    most = torch.empty((), dtype=torch.int32, device="cuda")

    def flush() -> None:
        for _ in range(FLUSHES):
            torch.amax(buffer, 0, out=most)

    return flush


def times(
    call: Callable[[Set], object],
    sets: Sequence[Set],
    flush: Callable[[], None],
    prepare: Callable[[Set], None] = lambda chosen: None,
    verify: Callable[[Set], None] = lambda chosen: None,
    share: float = 1.0,
) -> list[float]:
    """Milliseconds of each call, alone on the device, the sets in rotation; a `share` of the
    budget's calls.

    Where the CPU was too busy to queue a call in time, it is made again; as often as there are
    calls, lest a call that waits for the device itself is made forever.
    """
    with card.alone():
        for chosen in sets:  # loads, allocates
            call(chosen)
        once = timed(lambda: call(sets[0]), flush).milliseconds
        least, most = CALLS
        count = int(max(share * min(BUDGET / (once / 1e3 + 1e-4), most), least))
        taken: list[Timing] = []
        while sum(t.queued for t in taken) < count and len(taken) < 2 * count:
            chosen = sets[len(taken) % len(sets)]
            prepare(chosen)
            taken.append(timed(partial(call, chosen), flush))
            verify(chosen)
    good = [t for t in taken if t.queued]
    return [t.milliseconds for t in (good if len(good) >= least else taken)]


@dataclass(frozen=True)
class Timing:
    """Of a call."""

    milliseconds: float
    queued: bool  # before its turn came: no gap in it is the CPU's


def timed(call: Callable[[], object], flush: Callable[[], None]) -> Timing:
    """One call, between two events on PyTorch's stream.

    Work that a call hides on another stream goes on after the second event; it is counted too.
    """
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    flush()
    start.record()
    call()
    stop.record()
    queued = not start.query()
    stop.synchronize()
    seen = time.perf_counter()
    torch.cuda.synchronize()
    late = 1e3 * (time.perf_counter() - seen)
    return Timing(start.elapsed_time(stop) + (late if late > LATE else 0.0), queued)
