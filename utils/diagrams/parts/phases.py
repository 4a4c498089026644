"""One block's phases, which end at its barriers, and what each does with the elements of arrays."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts.scene import Scene, coordinate_text, linear
from utils.watch.access_patterns import touches
from utils.watch.trace import GLOBAL, LOAD, SHARED, STORE, Array, Launch, Records

# What an element may be in a phase: its colour, and what that means.
STATES = (
    (cv.PALE, "not touched"),
    (cv.tint(cv.BLUE, 0.35), "read in an earlier phase"),
    (cv.BLUE, "read from global memory"),
    (cv.GREEN, "read from shared memory"),
    (cv.ORANGE, "written"),
    (cv.YELLOW, "written without a read"),
    (cv.PURPLE, "read and written in one phase"),
)
NONE, BEFORE, GLOBAL_READ, SHARED_READ, WRITE, FILLED, BOTH = range(len(STATES))
COLORS = np.array([cv.rgb(color) for color, _ in STATES])


def launch_with_shared(scene: Scene) -> Launch:
    """The busiest launch, of those with shared memory if there are any."""
    with_shared = [x for x in scene.trace.launches if np.any(x.accesses["space"] == SHARED)]
    return max(with_shared or scene.trace.launches, key=lambda x: len(x.accesses))


def _chosen(scene: Scene, launch: Launch) -> int:
    """The block asked for, or the last of the busiest, whose tiles are not in the first corner."""
    counts = np.bincount(launch.accesses["block"], minlength=math.prod(launch.grid))
    recorded = len(counts)
    if scene.trace.truncated and launch is scene.trace.launches[-1]:
        recorded = int(launch.accesses["block"].max())  # the last one recorded is cut short
    if scene.block is not None:
        block = linear(scene.block, launch.grid, "block")
        if block >= recorded:
            raise scene.too_large(f"block {scene.block} of {scene.name} was not recorded")
        return block
    if recorded == 0:
        raise scene.too_large(f"one block of {scene.name} alone has too many accesses")
    counts = counts[:recorded]
    return int(np.flatnonzero(counts == counts.max())[-1])


def some_phases(phases: Sequence[int], most: int) -> list[int]:
    """All phases, or the first ones and the last one."""
    return list(phases) if len(phases) <= most else [*phases[: most - 1], phases[-1]]


@dataclass(frozen=True)
class Block:
    """One block of a launch, and what it does with arrays in its phases."""

    scene: Scene
    launch: Launch
    number: int

    @classmethod
    def of(cls, scene: Scene) -> "Block":
        """The one asked for, or the last of the busiest."""
        launch = launch_with_shared(scene)
        return cls(scene, launch, _chosen(scene, launch))

    @property
    def name(self) -> str:
        """Such as "7" or "(3, 1)"."""
        return coordinate_text(self.number, self.launch.grid)

    @cached_property
    def accesses(self) -> Records:
        """All of its own."""
        return np.compress(self.launch.accesses["block"] == self.number, self.launch.accesses)

    @property
    def arrays(self) -> dict[int, Array]:
        """Those that it touches, by number."""
        touched = set(self.accesses["array"].tolist())
        return {i: array for i, array in enumerate(self.scene.arrays) if i in touched}

    @property
    def phases(self) -> list[int]:
        """Those in which it touches anything."""
        return sorted(set(self.accesses["phase"].tolist()))

    @cached_property
    def filled(self) -> np.ndarray:
        """Which accesses store into shared memory without a read, where others of the same line
        read global memory for what they store: `s[t] = i < n ? x[i] : 0.0f` beyond n."""
        a = self.accesses
        load = (a["kind"] == LOAD) & (a["space"] == GLOBAL)
        store = (a["kind"] == STORE) & (a["space"] == SHARED)
        phase, line, thread = (a[f].astype("i8") for f in ("phase", "line", "thread"))
        lines = phase * (line.max(initial=0) + 1) + line
        threads = lines * (thread.max(initial=0) + 1) + thread
        return np.asarray(store & np.isin(lines, lines[load]) & ~np.isin(threads, threads[load]))

    def states(self, number: int, phase: int) -> np.ndarray:
        """Which of STATES each element of an array is in, in a phase; flat."""
        a, array = self.accesses, self.scene.arrays[number]
        mine, loads = a["array"] == number, a["kind"] == LOAD
        now, before = mine & (a["phase"] == phase), mine & (a["phase"] < phase)

        def touched(which: np.ndarray) -> np.ndarray:
            return touches(a[which], array).reshape(-1) > 0

        reads, writes = touched(now & loads), touched(now & ~loads)
        states = np.zeros(len(reads), int)
        if array.space == GLOBAL:
            states[touched(before & loads)] = BEFORE
        states[reads] = GLOBAL_READ if array.space == GLOBAL else SHARED_READ
        states[writes] = WRITE
        states[touched(now & self.filled)] = FILLED
        states[reads & writes] = BOTH
        return states


def as_matrix(array: Array) -> tuple[int, int]:
    """(rows, columns) to draw an array in; a long one is broken into lines of 64."""
    if len(array.shape) == 2:
        return array.shape
    n = math.prod(array.shape)
    if len(array.shape) > 2:
        return n // array.shape[-1], array.shape[-1]
    return -(-n // 64), min(n, 64)
