"""The story of one element: its place in the array, the accesses to it, and their lines."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from utils.diagrams.parts import array_cells, excerpt, timeline
from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts.canvas import Canvas
from utils.diagrams.parts.conflicts import Party, Sighting, find, first_common_element
from utils.diagrams.parts.scene import Scene, coordinate_text, element, linear
from utils.diagrams.parts.timeline import LETTERS, Event
from utils.emulator.reports import Report
from utils.ground.wording import many
from utils.watch.access_patterns import WARP
from utils.watch.trace import ATOMIC, LOAD, SHARED, STORE, Array, Records

# None of them is a colour of timeline.COLORS.
HERE, ALSO, FINE = cv.RED, cv.tint(cv.RED, 0.5), cv.rgb(cv.MID)
WORDS = {LOAD: "reads", STORE: "writes", ATOMIC: "updates at once (atomic)"}


@dataclass(frozen=True)
class Subject:
    """The element that a hazard is about, and the threads that come to it."""

    scene: Scene
    report: Report

    @cached_property
    def seen(self) -> Sighting:
        """The hazard in the trace."""
        return find(self.scene, self.report)

    @cached_property
    def party(self) -> Party:
        """Whom the hazard is about."""
        return Party.of(self.report)

    @cached_property
    def racers(self) -> tuple[Party, Party]:
        """Of a race: who came first in this run, and who came then."""
        first = Party.other(self.report)
        assert first  # else it is no race
        return first, self.party

    @property
    def array(self) -> Array | None:
        """The array that the element is of; None where the trace does not know it."""
        return None if self.seen.number is None else self.scene.arrays[self.seen.number]

    @property
    def reported(self) -> int:
        """The element at which the reported access begins."""
        assert self.report.index is not None  # else it has no picture
        return self.report.index

    @property
    def index(self) -> int:
        """Of the element in its array."""
        if self.array is None or self.seen.at is None:
            return self.reported
        return first_common_element(self.seen, self.array)

    @property
    def name(self) -> str:
        """The element as C++ would have it: tile[3][0]."""
        array, index = self.array, self.index
        if array is None or not 0 <= index < np.prod(array.shape):
            return f"{self.report.array}[{index}]"
        return element(array, index)

    def numbers(self, party: Party) -> tuple[int, int]:
        """Of its block in the grid, and of its thread in the block."""
        launch = self.seen.launch
        block = linear(party.block, launch.grid, "block")
        return block, linear(party.thread, launch.block, "thread")

    def thread(self, party: Party) -> str:
        """Its thread in words."""
        return f"thread {coordinate_text(self.numbers(party)[1], self.seen.launch.block)}"

    def block(self, party: Party) -> str:
        """Its block in words."""
        return f"block {coordinate_text(self.numbers(party)[0], self.seen.launch.grid)}"

    def warp(self, party: Party) -> int:
        """The number of its warp in its block."""
        return self.numbers(party)[1] // WARP

    @property
    def memory(self) -> str:
        """Where the array lies."""
        if self.report.space == "shared":
            return f"shared memory of {self.block(self.party)}"
        return "global memory"

    def accesses(self, block: int | None = None) -> np.ndarray:
        """The numbers of the launch's accesses to the element, all or those of one block, in the
        order of the run."""
        seen, a = self.seen, self.seen.launch.accesses
        if seen.at is None:
            return np.zeros(0, int)
        one = a[seen.at]
        first, end = int(one["byte"]), int(one["byte"]) + int(one["size"])
        if self.array is not None:
            first = self.index * self.array.element + self.array.offset
            end = first + self.array.element
        mine = (a["space"] == one["space"]) & (a["array"] == one["array"])
        mine &= (a["byte"] < end) & (a["byte"] + a["size"].astype("i8") > first)
        if one["space"] == SHARED:
            block = int(one["block"])
        if block is not None:
            mine &= a["block"] == block
        return np.flatnonzero(mine)


def opening(scene: Scene) -> str:
    """How a subtitle begins: the sizes, and which hazard it is."""
    count = len(scene.hazards)
    which = f"Hazard {scene.hazard} of {count}. " if count > 1 else ""
    return f"{scene.size_text}. {which}".lstrip(". ")


def tell(
    page: Canvas,
    subject: Subject,
    colors: np.ndarray | None,
    rows: Sequence[tuple[str, str]],
    events: Sequence[Event],
    verdict: str,
    legend: Sequence[cv.Swatch],
    notes: Mapping[int, str],
) -> None:
    """The array at the left, the time line at the right, the lines of the source below."""
    top = bottom = page.y
    if colors is not None and subject.array is not None:
        array_cells.draw(page, subject.array, colors, subject.index, f"in {subject.memory}")
        bottom, page.y = page.y, top
    x = cv.MARGIN if colors is None else cv.MARGIN + 3.45
    page.text(x, page.y, f"Accesses to {subject.name}", bold=True)
    page.y += 0.22
    timeline.draw(page, x, rows, events, verdict)
    page.y = max(page.y, bottom)
    kinds = sorted({event.kind for event in events})
    letters: list[cv.Swatch] = [(timeline.COLORS[k], f"{LETTERS[k]}: {WORDS[k]}") for k in kinds]
    if len({event.phase for event in events}) > 1:
        letters.append((cv.INK, "barrier: a phase of the block ends"))
    page.legend(legend)
    page.legend(letters)
    page.y += 0.1
    excerpt.draw(page, subject.scene, notes)


def events_of(
    subject: Subject,
    accesses: Records,
    who: Sequence[tuple[int, int]],
    marks: Collection[int | None],
    phases: bool,
) -> list[Event]:
    """The accesses of these numbers as events, neighbours alike as one. `who`: (block, thread) of
    each row; all others share the row after those. `marks`: what the hazard is about."""
    a = subject.seen.launch.accesses
    events = []
    for i in accesses.tolist():
        party = int(a["block"][i]), int(a["thread"][i])
        row = who.index(party) if party in who else len(who)
        phase = int(a["phase"][i]) if phases else None
        events.append(Event(row, int(a["kind"][i]), int(a["line"][i]), phase, 1, i in marks))
    return timeline.together(events)


def others(
    subject: Subject, accesses: Records, who: Sequence[tuple[int, int]]
) -> tuple[str, str] | None:
    """The name of the row of all other threads; None where there is none."""
    a = subject.seen.launch.accesses[accesses]
    parties = set(zip(a["block"].tolist(), a["thread"].tolist(), strict=True)) - set(who)
    if not parties:
        return None
    what, places = "warp", {thread // WARP for _, thread in parties}
    if len(np.unique(a["block"])) > 1:
        what, places = "block", {block for block, _ in parties}
    where = f"of {len(places)} {what}s" if len(places) > 1 else f"of {what} {min(places)}"
    return many(len(parties), "other thread"), where
