"""Where a reported hazard is in the trace, and what else in its array is like it."""

from dataclasses import dataclass

import numpy as np

from utils.diagrams.parts.scene import Scene, linear
from utils.emulator.reports import Report
from utils.emulator.traffic import Position
from utils.watch.access_patterns import WARP, elements
from utils.watch.trace import ATOMIC, GLOBAL, KINDS, LOAD, SHARED, STORE, Array, Launch, Records


@dataclass(frozen=True)
class Party:
    """One of the threads that a hazard is about, and what it does."""

    block: Position
    thread: Position
    access: str  # "load", "store" or "atomic"
    line: int | None

    @classmethod
    def of(cls, report: Report) -> "Party":
        """Whom the report is about."""
        assert report.block and report.thread and report.access  # else it has no picture
        return cls(report.block, report.thread, report.access, report.line)

    @classmethod
    def other(cls, report: Report) -> "Party | None":
        """The one that it raced with, which came before."""
        if not (report.other_block and report.other_thread and report.other_access):
            return None
        return cls(report.other_block, report.other_thread, report.other_access, report.other_line)


@dataclass(frozen=True)
class Sighting:
    """A hazard in the trace. `at` and `other` count the launch's accesses; None: not recorded."""

    launch: Launch
    number: int | None  # of the array; None where it is no array of the trace
    at: int | None = None  # the access that the report is about
    other: int | None = None  # the one that it races with, which ran before


def find(scene: Scene, report: Report) -> Sighting:
    """The hazard in a launch of its kernel, which the trace must have."""
    launches = [x for x in scene.trace.launches if x.kernel == (report.kernel or "")[:63]]
    space = SHARED if report.space == "shared" else GLOBAL
    names = [a.name if a.space == space else None for a in scene.arrays]
    number = names.index(report.array) if report.array in names else None
    for launch in launches:
        for lines in (True, False):  # lines of headers are not those of the trace
            if seen := _find(scene, report, launch, number, lines):
                return seen
    return Sighting(launches[0], number)


def _find(
    scene: Scene, report: Report, launch: Launch, number: int | None, lines: bool
) -> Sighting | None:
    a = launch.accesses
    array = None if number is None else scene.arrays[number]
    mine = _accesses(launch, number, Party.of(report), lines)
    if array is not None:
        mine = mine[element_of(a[mine], array) == report.index]
    if (other := Party.other(report)) is None:
        return Sighting(launch, number, int(mine[0])) if len(mine) else None
    theirs = _accesses(launch, number, other, lines)
    for at in mine:
        before = theirs[theirs < at]
        if len(before := before[overlap(launch, before, at)]):
            return Sighting(launch, number, int(at), int(before[-1]))
    return None


def _accesses(launch: Launch, number: int | None, party: Party, lines: bool) -> np.ndarray:
    """The numbers of a party's accesses of its kind, those of its line if `lines`, to an array or
    to beside it."""
    a = launch.accesses
    mine = a["kind"] == KINDS.index(party.access)
    mine &= a["block"] == linear(party.block, launch.grid, "block")
    mine &= a["thread"] == linear(party.thread, launch.block, "thread")
    if lines:
        mine &= a["line"] == party.line
    return np.flatnonzero(mine & np.isin(a["array"], (-1, -1 if number is None else number)))


def element_of(accesses: Records, array: Array) -> np.ndarray:
    """The element of the array that each access begins at, counted on beyond its ends."""
    byte = accesses["byte"] - array.offset
    if array.space == GLOBAL:
        byte = np.where(accesses["array"] < 0, byte - array.address, byte)
    return np.asarray(byte // array.element)


def overlap(launch: Launch, others: np.ndarray, at: int) -> np.ndarray:
    """Which of the accesses `others` touch a byte that the access `at` touches."""
    a, one = launch.accesses, launch.accesses[at]
    theirs = a[others]
    mine = (theirs["space"] == one["space"]) & (theirs["array"] == one["array"])
    if one["space"] == SHARED:
        mine &= theirs["block"] == one["block"]
    mine &= theirs["byte"] < one["byte"] + int(one["size"])
    return np.asarray(mine & (theirs["byte"] + theirs["size"].astype("i8") > one["byte"]))


def first_common_element(seen: Sighting, array: Array) -> int:
    """The element that the accesses of a hazard have in common."""
    a = seen.launch.accesses
    byte = max(int(a["byte"][i]) for i in (seen.at, seen.other) if i is not None)
    return (byte - array.offset) // array.element


def of_array(seen: Sighting, block: int | None = None) -> Records:
    """The launch's accesses to the hazard's array; of one block alone where that is given."""
    a = seen.launch.accesses
    mine = a["array"] == seen.number
    return np.compress(mine if block is None else mine & (a["block"] == block), a)


def racing(accesses: Records, array: Array, threads: int, across: bool, warps: bool) -> np.ndarray:
    """Which elements two threads touch unordered, one of them writing: True or False for each.

    `threads` are those of a block. `across` looks for races between blocks instead of races within
    one; `warps` leaves out those within a warp, whose lanes may have met at a __syncwarp().
    """
    access, element = elements(accesses, array)
    a, n = accesses[access], int(np.prod(array.shape, dtype=int))
    who = a["block"].astype("i8")
    moment = np.zeros(len(a), "i8")
    if not across:
        moment = who * (int(a["phase"].max(initial=0)) + 1) + a["phase"]
        who = who * threads + (a["thread"] // WARP * WARP if warps else a["thread"])
    _, group = np.unique(moment * n + element, return_inverse=True)
    most = int(who.max(initial=0)) + 1

    def parties(*kinds: int) -> np.ndarray:
        """How many there are in each group with an access of these kinds."""
        mine = np.isin(a["kind"], kinds)
        pairs = np.unique(group[mine] * most + who[mine])
        return np.bincount(pairs // most, minlength=int(group.max(initial=-1)) + 1)

    plain = (parties(STORE) > 0) & (parties(LOAD, STORE, ATOMIC) > 1)
    mixed = (parties(ATOMIC) > 0) & (parties(LOAD) > 0) & (parties(LOAD, ATOMIC) > 1)
    mask = np.zeros(n, bool)
    mask[element[(plain | mixed)[group]]] = True
    return mask


def read_unwritten(accesses: Records, array: Array) -> np.ndarray:
    """Which elements are read before the first write to them."""
    access, element = elements(accesses, array)
    touched, first = np.unique(element, return_index=True)
    mask = np.zeros(int(np.prod(array.shape, dtype=int)), bool)
    mask[touched] = accesses["kind"][access[first]] != STORE
    return mask
