"""The view "tree": how one block makes one value of many in shared memory, phase by phase."""

import math
from dataclasses import dataclass

import numpy as np

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts import stepping
from utils.diagrams.parts.canvas import Canvas
from utils.diagrams.parts.captions import phases_left_out
from utils.diagrams.parts.phases import Block, launch_with_shared, some_phases
from utils.diagrams.parts.scene import Scene, listing, shape_text
from utils.ground.errors import WorkbookError
from utils.ground.wording import many
from utils.watch.access_patterns import WARP
from utils.watch.trace import LOAD, SHARED, Array, Records

LARGEST = 1024  # elements
ROWS = 12  # phases
CELL, STRIP, GAP = 0.3, 0.17, 0.3  # inches: widest cell; height of a row; between two rows
READ = cv.tint(cv.GREEN, 0.45)
MANY = 64  # links, which are drawn thin
WARPS = 8  # that a legend names


@dataclass(frozen=True)
class Step:
    """What the threads of a block do with an array between two barriers."""

    phase: int
    writes: dict[int, int]  # element -> the thread that writes it
    links: list[tuple[int, int, int]]  # element read, element written, thread
    reads: set[int]
    readers: set[int]  # threads

    def warps(self) -> set[int]:
        """The numbers of the warps that write."""
        return {thread // WARP for thread in self.writes.values()}


def is_tree(scene: Scene) -> bool:
    """Whether a thread takes one element of a shared array into another, all in one dimension."""
    shared = [array for array in scene.arrays if array.space == SHARED]
    if not shared or any(len(array.shape) > 1 for array in shared):
        return False
    launch = launch_with_shared(scene)
    block = launch.accesses["block"]
    first = launch.accesses[(block == block[:1]) & (launch.accesses["space"] == SHARED)]
    numbers = [i for i, array in enumerate(scene.arrays) if array.space == SHARED]
    return any(_joins(step) for i in numbers for step in _steps(first[first["array"] == i]))


def draw(scene: Scene) -> tuple[Canvas, str, str, str]:
    """(page, title, caption, description)"""
    block = Block.of(scene)
    accesses = block.accesses
    number = _array(scene, accesses)
    array, steps = scene.arrays[number], _steps(accesses[accesses["array"] == number])
    count = math.prod(array.shape)
    if count > LARGEST or len(array.shape) > 1:
        raise scene.too_large(f"{array.name} is {shape_text(array)}")
    kept = some_phases([step.phase for step in steps], ROWS)
    title = f"{scene.name}: what block {block.name} does with {array.name}, phase by phase"
    page = Canvas(title, f"{scene.size_text}. A phase ends where the block waits at a barrier.")
    warps = -(-block.launch.threads // WARP)
    _draw(page, array, [step for step in steps if step.phase in kept], warps)
    _legend(page, warps)
    caption = _caption(array, steps, block.name)
    if len(kept) < len(steps):
        caption += f" {phases_left_out(len(steps) - len(kept))}"
    alt = (
        f"A row of the {many(count, 'element')} of {array.name} for each of "
        f"{many(len(kept), 'phase')}. Lines lead from the elements that a thread reads to the one "
        "that it writes; their colour is that of its warp."
    )
    return page, title, caption, alt


def steps(scene: Scene) -> dict[str, object] | None:
    """Each phase for a page that shows one at a time: what is read above, what is written below."""
    block = Block.of(scene)
    accesses = block.accesses
    number = _array(scene, accesses)
    array, mine = scene.arrays[number], accesses[accesses["array"] == number]
    count, warps = math.prod(array.shape), -(-block.launch.threads // WARP)
    taken = [(cv.warp_color(warp, warps), f"written by warp {warp}") for warp in range(warps)]
    colors: list[cv.Swatch] = [(cv.PALE, "not touched"), (READ, "read"), *taken]
    walk, every = [], _steps(mine)
    for step in every:
        above, below = np.zeros(count, int), np.zeros(count, int)
        above[sorted(step.reads)] = 1
        for element, thread in step.writes.items():
            below[element] = 2 + thread // WARP
        lines = np.unique(mine["line"][mine["phase"] == step.phase]).tolist()
        links = [(a, b, 2 + thread // WARP) for a, b, thread in step.links]
        said = _said(array, step, last=step is every[-1])
        walk.append(stepping.Step(f"phase {step.phase}", said, (above, below), lines, links))
    panels = [
        stepping.Panel(array.name, f"{when}, 0 … {count - 1}", 1, count)
        for when in ("read", "written")
    ]
    return stepping.data(scene, "Phase", colors, panels, walk[: stepping.MOST])


def _said(array: Array, step: Step, last: bool) -> str:
    """All that happens in a phase."""
    does, name = [], array.name
    if step.reads:
        does.append(f"read {many(len(step.reads), 'element')}")
    if step.writes:
        does.append(f"write {many(len(step.writes), 'element')}")
    threads = step.readers | set(step.writes.values())
    warps = len({thread // WARP for thread in threads})
    who = f"{many(len(threads), 'thread')} of {many(warps, 'warp')}"
    text = f"{who} {listing(does)} of {name}."
    if joins := _joins(step):
        thread = joins[0][2]
        one = [link for link in step.links if link[2] == thread]
        sources = listing([f"{name}[{source}]" for source in sorted({a for a, _, _ in one})])
        text += f" Thread {thread} takes {sources} into {name}[{one[0][1]}]."
    return f"{text} {'Then the block is done.' if last else 'Then all wait at a barrier.'}"


def _array(scene: Scene, accesses: Records) -> int:
    """The shared array that was asked for, or the one with the most accesses."""
    shared = [i for i, array in enumerate(scene.arrays) if array.space == SHARED]
    counts = {i: int((accesses["array"] == i).sum()) for i in shared}
    if scene.array is not None:
        number = next((i for i in shared if scene.arrays[i].name == scene.array), None)
        if number is None or not counts[number]:
            raise WorkbookError(f"that block of {scene.name} uses no shared array '{scene.array}'")
        return number
    if not any(counts.values()):
        raise WorkbookError(
            f"that block of {scene.name} uses no shared memory, so there is no tree to draw"
        )
    return max(counts, key=lambda i: counts[i])


def _steps(accesses: Records) -> list[Step]:
    """`accesses` are those of one block to one array, in the order in which they ran."""
    steps = []
    for phase in np.unique(accesses["phase"]):
        step = Step(int(phase), {}, [], set(), set())
        pending: dict[int, list[int]] = {}  # what each thread has read since it last wrote
        mine = accesses[accesses["phase"] == phase]
        for thread, element, kind in zip(
            *(mine[field].tolist() for field in ("thread", "index", "kind")), strict=True
        ):
            if kind == LOAD:
                step.reads.add(element)
                step.readers.add(thread)
                pending.setdefault(thread, []).append(element)
            else:
                step.writes[element] = thread
                step.links.extend((read, element, thread) for read in pending.pop(thread, ()))
        steps.append(step)
    return steps


def _joins(step: Step) -> list[tuple[int, int, int]]:
    """Links from one element to another."""
    return [link for link in step.links if link[0] != link[1]]


def _draw(page: Canvas, array: Array, steps: list[Step], warps: int) -> None:
    """A row for each phase; lines come down from the row above."""
    count = math.prod(array.shape)
    notes = [(f"phase {step.phase}", _note(step)) for step in steps]
    names = 0.15 + max(cv.text_width(text, cv.SMALL, bold=True) for note in notes for text in note)
    left = cv.MARGIN + names
    cell = min((cv.WIDTH - cv.MARGIN - left) / count, CELL)
    middle = left + cell * (np.arange(count) + 0.5)
    page.text(left, page.y, array.name, bold=True)
    after = left + cv.text_width(array.name, bold=True) + 0.08
    page.small(after, page.y, f"0 … {count - 1}")
    page.y += 0.16
    above = None
    for step, (phase, note) in zip(steps, notes, strict=True):
        if above is not None:
            page.y += GAP
            links = sorted(step.links, key=lambda link: link[0] != link[1])
            segments = [((middle[a], above), (middle[b], page.y)) for a, b, _ in links]
            colors = [
                cv.warp_color(thread // WARP, warps) if a != b else cv.rgb(cv.MID)
                for a, b, thread in links
            ]
            page.lines(segments, colors, 0.4 if len(links) > MANY else 0.9, zorder=2)
        page.text(cv.MARGIN, page.y + STRIP / 2 - 0.07, phase, size=cv.SMALL, bold=True)
        page.small(cv.MARGIN, page.y + STRIP / 2 + 0.08, note)
        row = np.tile(cv.rgb(cv.PALE), (count, 1))
        row[sorted(step.reads)] = READ
        for element, thread in step.writes.items():
            row[element] = cv.warp_color(thread // WARP, warps)
        page.cells(left, page.y, row[None], cell, STRIP, edges=True)
        page.box(left, page.y, cell * count, STRIP, edge=cv.MID, width=0.6, zorder=3)
        above = page.y = page.y + STRIP
    page.y += 0.28


def _note(step: Step) -> str:
    if not step.writes:
        return f"{many(len(step.readers), 'thread')} read{'s' * (len(step.readers) == 1)}"
    threads, warps = len(set(step.writes.values())), len(step.warps())
    return f"{many(threads, 'thread')}, {many(warps, 'warp')}"


def _legend(page: Canvas, warps: int) -> None:
    shown = range(warps) if warps <= WARPS else (0, warps // 2, warps - 1)
    entries = [(cv.warp_color(warp, warps), f"written by warp {warp}") for warp in shown]
    page.legend([*entries, (READ, "read")])


def _caption(array: Array, steps: list[Step], name: str) -> str:
    """How many threads and warps work in the steps in which elements are taken into others."""
    joining = [step for step in steps if _joins(step)]
    if not joining:
        return f"Block {name} takes no element of {array.name} into another one."
    threads = [len(set(step.writes.values())) for step in joining]
    warps = [len(step.warps()) for step in joining]
    least = sum(-(-count // WARP) for count in threads)
    text = (
        f"{_when(joining)} block {name} has {_run(threads, 'thread')} at work, in "
        f"{_run(warps, 'warp')}. Together {many(sum(warps), 'issue slot')}"
    )
    if sum(warps) > least:
        return f"{text}; {least} would do for as many threads."
    return f"{text}, and no fewer would do for as many threads."


def _when(steps: list[Step]) -> str:
    if len(steps) == 1:
        return f"In phase {steps[0].phase}"
    return f"In phases {steps[0].phase} to {steps[-1].phase}"


def _run(counts: list[int], thing: str) -> str:
    return f"{', '.join(f'{count:,}' for count in counts)} {thing}{'s' * (counts != [1])}"
