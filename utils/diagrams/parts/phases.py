"""One block's phases, which end at its barriers, and what each does with the elements of arrays."""

import math
from collections.abc import Sequence

import numpy as np

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts.scene import Scene, linear
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


def chosen_block(scene: Scene, launch: Launch) -> int:
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


def fills(accesses: Records) -> np.ndarray:
    """Which accesses of a block store into shared memory without a read, where others of the same
    line read global memory for what they store: `s[t] = i < n ? x[i] : 0.0f` beyond n."""
    load = (accesses["kind"] == LOAD) & (accesses["space"] == GLOBAL)
    store = (accesses["kind"] == STORE) & (accesses["space"] == SHARED)
    phase, line, thread = (accesses[f].astype("i8") for f in ("phase", "line", "thread"))
    lines = phase * (line.max(initial=0) + 1) + line
    threads = lines * (thread.max(initial=0) + 1) + thread
    return np.asarray(store & np.isin(lines, lines[load]) & ~np.isin(threads, threads[load]))


def states(array: Array, now: np.ndarray, before: np.ndarray, filled: np.ndarray) -> np.ndarray:
    """Which of STATES each of an array's elements is in, flat. `now`, `before` and `filled` are
    accesses to it."""
    reads = touches(now[now["kind"] == LOAD], array).reshape(-1) > 0
    writes = touches(now[now["kind"] != LOAD], array).reshape(-1) > 0
    states = np.zeros(len(reads), int)
    if array.space == GLOBAL:
        states[touches(before[before["kind"] == LOAD], array).reshape(-1) > 0] = BEFORE
    states[reads] = GLOBAL_READ if array.space == GLOBAL else SHARED_READ
    states[writes] = WRITE
    states[touches(filled, array).reshape(-1) > 0] = FILLED
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
