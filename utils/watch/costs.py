"""What each instruction of a traced launch costs a GPU's memory system.

Counts are those of one launch at a small size; utils.timing.scaling scales them. Beyond what a
diagnosing run counts, the addresses of a trace show which loads nvcc makes one wide load of, what
finds its data in the L1 cache, and how the sectors of a request lie in it.
"""

from dataclasses import dataclass

import numpy as np

from utils.watch.access_patterns import SECTOR, bank_conflicts, pieces, requests
from utils.watch.grouping import rank
from utils.watch.trace import ATOMIC, GLOBAL, LOAD, SHARED, Launch, Records

LINE = 128  # bytes: what a cache looks up at once
WIDEST = 16  # bytes that one lane can load at once
BODY = 32  # accesses of a thread: nvcc unrolls no loop of whose iterations four would have more


@dataclass(frozen=True)
class Cost:
    """What one instruction does in a launch."""

    space: int
    kind: int
    array: int  # that it touches, as numbered in the trace; -1: none that is known
    line: int  # of the source
    each: float  # executions by the thread that executes it most
    requests: float  # executions by a warp
    bytes: float  # that the lanes ask for
    wavefronts: float  # that its requests take in the L1 cache or in shared memory
    sectors: float  # of global memory
    missed: float  # sectors that no earlier access of the block touched; stores go through: all
    missed_lines: float  # lines of 128 bytes that they lie in
    distinct: float  # sectors that no earlier access of the launch touched
    hottest: float  # atomic updates of the word that has most of them


def costs(launch: Launch) -> dict[int, Cost]:
    """By instruction, which its place in the kernel's library stands for."""
    accesses = launch.accesses
    memory = accesses[(accesses["space"] == GLOBAL) | (accesses["space"] == SHARED)]
    turn = rank(memory["block"].astype("i8") * launch.threads + memory["thread"])
    each = {int(pc): memory["pc"] == pc for pc in np.unique(memory["pc"])}
    return {pc: _cost(memory[mine], turn[mine]) for pc, mine in each.items()}


def _cost(accesses: Records, turn: np.ndarray) -> Cost:
    space, kind = int(accesses["space"][0]), int(accesses["kind"][0])
    if space == SHARED and kind == LOAD:
        accesses = widened(accesses, turn)
    request = requests(accesses)
    count = int(request.max()) + 1
    sectors = missed = lines = distinct = hottest = 0
    if space == SHARED:
        wavefronts = int(bank_conflicts(accesses).wavefronts.sum())
    else:
        owner, sector = pieces(accesses["byte"], accesses["size"], SECTOR)
        sectors, wavefronts = global_wavefronts(request[owner], sector)
        distinct = len(np.unique(sector))
        if kind == LOAD:
            once = accesses["block"][owner].astype("i8")
            missed = len(_pairs(once, sector)[0])
        else:  # each request on its own
            once, missed = request[owner], sectors
        lines = len(_pairs(once, sector // (LINE // SECTOR))[0])
        if kind == ATOMIC:
            hottest = int(np.unique(accesses["byte"], return_counts=True)[1].max())
    array = int(accesses["array"][0])
    each = int(accesses["nth"].max()) + 1
    requested = int(accesses["size"].sum())
    traffic = wavefronts, sectors, missed, lines, distinct
    line = int(accesses["line"][0])
    return Cost(space, kind, array, line, each, count, requested, *traffic, hottest)


def _pairs(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different pairs of a and b, which are not negative."""
    width = int(b.max()) + 1
    keys = np.unique(a * width + b)
    return keys // width, keys % width


def global_wavefronts(request: np.ndarray, sector: np.ndarray) -> tuple[int, int]:
    """(sectors, wavefronts): a wavefront takes one sector from each quarter of a line."""
    request, sector = _pairs(request, sector)
    quarter = request * (LINE // SECTOR) + sector % (LINE // SECTOR)
    wavefronts = np.bincount(quarter, minlength=(int(request.max()) + 1) * (LINE // SECTOR))
    return len(sector), int(wavefronts.reshape(-1, LINE // SECTOR).max(axis=1).sum())


def widened(accesses: Records, turn: np.ndarray | None = None) -> np.ndarray:
    """The loads of an instruction as nvcc makes them where it unrolls the loops around them.

    Two or four by every thread that together fill an aligned piece, with no barrier in between,
    become one. So they do in any order, as nvcc unrolls inner loops and outer ones, if it is the
    same one for all threads; but a body that would become too large stays a loop: they are near
    each other in `turn`, which counts a thread's accesses (without it: those of this instruction).
    """
    turn = accesses["nth"].astype("i8") if turn is None else turn
    size, byte = int(accesses["size"][0]), accesses["byte"]
    owner = accesses["block"].astype("i8") * (int(accesses["thread"].max()) + 1)
    owner += accesses["thread"]
    between = owner * (int(accesses["phase"].max()) + 1) + accesses["phase"]
    again = rank(between * (int(byte.max()) + 1) + byte)  # of the same element
    order = np.lexsort((byte, again, between))
    for width in (4, 2):
        wide = width * size
        if wide > WIDEST or len(accesses) % width:
            continue
        rows = order.reshape(-1, width)
        first, step = rows[:, 0], np.arange(width)
        fits = (byte[rows] == byte[first, None] + step * size).all()
        fits &= (byte[first] % wide == 0).all() and (between[rows] == between[first, None]).all()
        rounds = np.unique(np.sort(accesses["nth"][rows]), axis=0)  # that a wide load is made of
        fits &= len(np.unique(rounds)) == rounds.size  # none of two wide loads
        if fits and (np.ptp(turn[rows], axis=1) < BODY * width // 4).all():
            merged = accesses[first]
            merged["size"] = wide
            merged["nth"] = rank(owner[first], merged["nth"])
            return merged
    return accesses
