"""Times of several calls, rested and sustained, in one run: what the benchmarks of models share.

Rested: medians of rounds in which all take turns, with the L2 flushed before each. Sustained: each
back to back for 0.3 s, with the clock and the power that the card has meanwhile.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from utils.process import card
from utils.timing import rested
from utils.timing.sustained import looking, sustained

ROUNDS = 15
HEAD = ("rested, ms", "sustained, ms", "MHz", "W")
WAYS = (
    "Rested: medians of rounds in which all take turns, the L2 flushed before each. Sustained: "
    "each back to back for 0.3 s. Ratios: rested / sustained; – between unlike precisions."
)


@dataclass(frozen=True)
class Time:
    """Milliseconds; None is "not known"."""

    rested: float
    sustained: float | None = None
    clock_mhz: float | None = None
    watts: float | None = None

    def cells(self) -> list[str]:
        """As the columns of HEAD."""
        whole = [f"{value:.0f}" if value else "–" for value in (self.clock_mhz, self.watts)]
        return [f"{self.rested:.4f}", f"{self.sustained:.4f}" if self.sustained else "–", *whole]

    def over(self, other: "Time", places: int = 2) -> str:
        """How many times as long as another one it takes, both ways."""
        rested = f"{self.rested / other.rested:.{places}f}"
        if not (self.sustained and other.sustained):
            return rested
        return f"{rested} / {self.sustained / other.sustained:.{places}f}"


def times(
    calls: dict[str, Callable[[], object]], rounds: int = ROUNDS, ahead: int = 200_000
) -> dict[str, Time]:
    """By name. ahead: cycles that the card waits for the host, rested."""
    single = _rested(calls, rounds, ahead)
    rows = {}
    with looking() as looks:
        for name, call in calls.items():
            load = sustained([call], single[name], looks)
            more = (load.milliseconds, load.clock_mhz, load.watts) if load else ()
            rows[name] = Time(single[name], *more)
    return rows


@card.alone()
def _rested(calls: dict[str, Callable[[], object]], rounds: int, ahead: int) -> dict[str, float]:
    flush = rested.flusher()
    timed: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            flush()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(ahead)  # so that the host is ahead of the card
            start.record()
            call()
            end.record()
            torch.cuda.synchronize()
            timed[name].append(start.elapsed_time(end))
    return {name: sorted(ms)[rounds // 2] for name, ms in timed.items()}
