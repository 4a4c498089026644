"""Times of calls back to back, as a training run makes them: no flush, no idle moment between them.
The clock falls until the card keeps to its power limit, and so a card tells both meanwhile.
"""

import contextlib
import functools
import os
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from utils.process import card

SECONDS = 0.3  # of calls, at least
BATCH, MOST = 20.0, 200  # milliseconds between two events, and calls, at most
LONG = 100.0  # ms: calls that take longer are not sustained
QUEUED = 0.9  # of the batches, at least, must have been queued before their turn came
EVERY = 50  # ms between two looks at the card
START = 3.0  # seconds that the first one may take
FIELDS = "power.draw.instant", "power.draw"  # the latter, of older drivers, lags by a second


@dataclass(frozen=True)
class Sustained:
    """Of a call: the median over the batches of the last half of the time."""

    milliseconds: float
    clock_mhz: float | None = None  # of the multiprocessors; None: the card does not tell
    watts: float | None = None


def sustained(
    calls: Sequence[Callable[[], object]], once_ms: float, looks: "Looks | None" = None
) -> Sustained | None:
    """The time of calls in rotation, made for SECONDS; `once_ms` is about what one takes.

    None where one takes so long that this would take seconds, or so short that the GPU waits for
    Python: what was timed then would be the launch.
    """
    if once_ms > LONG:
        return None
    count = min(max(1, round(BATCH / once_ms)), MOST)
    with card.alone():
        begun = time.monotonic()
        batches, queued = _batches(calls, count)
        half = begun + (time.monotonic() - begun) / 2
        seen = looks.since(half) if looks else (None, None)
    if queued < QUEUED:
        return None
    total, later = 0.0, list[float]()
    for milliseconds in reversed(batches):
        if later and total >= sum(batches) / 2:
            break
        later.append(milliseconds)
        total += milliseconds
    return Sustained(statistics.median(later) / count, *seen)


def _batches(calls: Sequence[Callable[[], object]], count: int) -> tuple[list[float], float]:
    """Milliseconds of each batch of so many calls, and which part of them was queued in time.

    One batch runs while the next one is queued.
    """
    made, taken, in_time = 0, list[float](), list[bool]()
    marks = [_mark()]
    while sum(taken) < 1e3 * SECONDS:
        for _ in range(count):
            calls[made % len(calls)]()
            made += 1
        in_time.append(len(marks) == 1 or not marks[-1].query())
        marks.append(_mark())
        if len(marks) > 2:
            marks[-2].synchronize()
            taken.append(marks[-3].elapsed_time(marks[-2]))
    torch.cuda.synchronize()
    return taken, statistics.mean(in_time)


def _mark() -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


class Looks:
    """What nvidia-smi tells of the card, again and again, until it is closed."""

    def __init__(self, words: Sequence[str]) -> None:
        self._seen: list[tuple[float, float, float]] = []  # when, MHz, watts
        self._begun = threading.Event()
        reading, writing = os.openpty()  # to a pipe, a program may write when it likes
        self._process = subprocess.Popen(
            [*words, f"--loop-ms={EVERY}"], stdout=writing, stderr=subprocess.DEVNULL
        )
        os.close(writing)
        self._thread = threading.Thread(target=self._read, args=(reading,), daemon=True)
        self._thread.start()
        self._begun.wait(START)

    def _read(self, file: int) -> None:
        with contextlib.suppress(OSError), open(file) as lines:  # OSError: it has ended
            for line in lines:
                with contextlib.suppress(ValueError):  # "[N/A]"
                    clock, watts = map(float, line.split(","))
                    self._seen.append((time.monotonic(), clock, watts))
                    self._begun.set()

    def since(self, when: float) -> tuple[float | None, float | None]:
        """Medians since a time.monotonic(): MHz and watts."""
        seen = [(clock, watts) for at, clock, watts in list(self._seen) if at >= when]
        if not seen:
            return None, None
        return tuple(statistics.median(column) for column in zip(*seen, strict=True))

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        self._thread.join()


@contextlib.contextmanager
def looking() -> Iterator[Looks | None]:
    """While it lasts, the card is looked at; None where it does not tell."""
    words = _words()
    looks = Looks(words) if words else None
    try:
        yield looks
    finally:
        if looks:
            looks.close()


@functools.cache
def _words() -> tuple[str, ...]:
    """The command that tells MHz and watts of the current card; none where there is no such one."""
    which: tuple[str, ...] = ()
    if torch.cuda.device_count() > 1:
        which = (f"--id=GPU-{torch.cuda.get_device_properties().uuid}",)
    for power in FIELDS:
        query = f"--query-gpu=clocks.sm,{power}", "--format=csv,noheader,nounits"
        words = ("nvidia-smi", *which, *query)
        with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
            done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=True)
            _clock, _watts = map(float, done.stdout.split(","))
            return words
    return ()
