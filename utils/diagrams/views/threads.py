"""The view "threads": which thread of which block owns each element."""

import math

import numpy as np

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts import owned_cells
from utils.diagrams.parts.canvas import Canvas
from utils.diagrams.parts.owned_cells import FEW, STRIP
from utils.diagrams.parts.scene import Scene, coordinate_text, element, shape_text
from utils.ground.wording import many
from utils.watch.access_patterns import WARP, Owners, owners
from utils.watch.trace import GLOBAL, LOAD, Array, Launch

MANY = 8192  # elements of a strip
LARGEST = 256  # rows or columns of a matrix
NAMED = 7  # blocks that get a line of their own in the legend


def draw(scene: Scene) -> tuple[Canvas, str, str, str]:
    """(page, title, caption, description)"""
    scene.require_all()
    number, verb = _subject(scene)
    array = scene.arrays[number]
    flat = len(array.shape) != 2 or 1 in array.shape
    size = math.prod(array.shape)
    if size > MANY if flat else max(array.shape) > LARGEST:
        raise scene.too_large(f"{array.name} has {size:,} elements")
    launch = scene.launch_that(number if verb == "writes" else None)
    mine = launch.accesses[launch.accesses["array"] == number]
    mine = mine[(mine["kind"] == LOAD) == (verb == "reads")]
    owned = owners(mine, array, launch.threads)
    title = f"{scene.name}: which thread {verb} which element of {array.name}"
    page = Canvas(title, _subtitle(scene, launch, flat, size))
    (owned_cells.strip if flat else owned_cells.matrix)(page, array, owned, launch)
    page.y += 0.15
    _idle(page, owned, launch, verb, numbered=flat and size <= FEW)
    _legend(page, owned, launch, verb)
    caption = _caption(array, owned, launch, verb)
    alt = f"{array.name}, {shape_text(array)}, one cell for each element, coloured by block."
    return page, title, caption, alt


def _subject(scene: Scene) -> tuple[int, str]:
    """The array to draw: an output and its writes, or what is read where the output is tiny."""
    if scene.array:
        number = scene.number(scene.array)
        wrote = any(
            np.any((x.accesses["array"] == number) & (x.accesses["kind"] != LOAD))
            for x in scene.trace.launches
        )
        return number, "writes" if wrote or scene.array in scene.outputs else "reads"
    sizes = [math.prod(a.shape) if a.space == GLOBAL else 0 for a in scene.arrays]
    number = max((scene.number(name) for name in scene.outputs), key=lambda i: sizes[i])
    largest = int(np.argmax(sizes))
    if sizes[number] < WARP and sizes[largest] > 4 * sizes[number]:
        return largest, "reads"
    return number, "writes"


def _subtitle(scene: Scene, launch: Launch, flat: bool, size: int) -> str:
    blocks = math.prod(launch.grid)
    inside = " × ".join(str(b) for b in launch.block if b > 1) or "1"
    text = f"{scene.size_text}. {many(blocks, 'block')} of {inside} "
    text += f"thread{'s' * (launch.threads > 1)}. A colour "
    text += "is a block, stronger for its later threads."
    if flat and size <= FEW:
        text += " A number is the thread's own in its block."
    if not flat and launch.threads > WARP:
        text += " The 32 lanes of the first warp go from violet to yellow."
    return text.lstrip(". ")


def _idle(page: Canvas, owned: Owners, launch: Launch, verb: str, numbered: bool) -> None:
    """Threads that own nothing, as grey cells with their numbers."""
    threads = math.prod(launch.grid) * launch.threads
    idle = np.setdiff1d(np.arange(threads), owned.thread)
    if not numbered or not 0 < len(idle) <= 512:
        return
    cell, left = STRIP / WARP, cv.MARGIN + 0.75
    does = verb if len(idle) == 1 else verb[:-1]
    page.text(cv.MARGIN, page.y, f"{many(len(idle), 'thread')} {does} no element", bold=True)
    page.y += 0.17
    y = page.y - cell
    for block in np.unique(idle // launch.threads).tolist():
        own = idle[idle // launch.threads == block] % launch.threads
        name = f"block {coordinate_text(block, launch.grid)}"
        page.small(left - 0.08, y + 1.5 * cell, name, ha="right")
        for first in range(0, len(own), WARP):
            y += cell
            names = [str(thread) for thread in own[first : first + WARP].tolist()]
            for i in range(len(names)):
                page.box(left + i * cell, y, cell, cell, fill=cv.PALE, edge="white", width=0.6)
            page.in_cells(left, y + cell / 2, names, cell, [cv.GREY] * len(names))
    page.y = y + cell + 0.18


def _legend(page: Canvas, owned: Owners, launch: Launch, verb: str) -> None:
    blocks = math.prod(launch.grid)
    entries: list[cv.Swatch] = []
    busy = np.unique(owned.thread[owned.thread >= 0])
    for block in range(min(blocks, NAMED)):
        count = int((busy // launch.threads == block).sum())
        name = f"block {coordinate_text(block, launch.grid)}"
        does = verb if count == 1 else verb[:-1]
        entries.append(
            (
                cv.tint(cv.BLOCKS[block % len(cv.BLOCKS)], 0.7),
                f"{name}: {count} of {many(launch.threads, 'thread')} {does}",
            )
        )
    if blocks > NAMED:
        entries.append((None, f"and {blocks - NAMED} more, in the same colours again"))
    if np.any(owned.threads == 0):
        never = "never written" if verb == "writes" else "never read"
        entries.append((None, f"{never} (crossed out)", cv.RED))
    if np.any(owned.threads > 1):
        entries.append((None, "by several threads (struck through)", cv.RED))
    page.legend(entries)


def _caption(array: Array, owned: Owners, launch: Launch, verb: str) -> str:
    n, threads = len(owned.thread), math.prod(launch.grid) * launch.threads
    busy = len(np.unique(owned.thread[owned.thread >= 0]))
    done = "written" if verb == "writes" else "read"
    does = verb if busy == 1 else verb[:-1]
    text = f"{busy:,} of {many(threads, 'thread')} {does} {array.name}; "
    rest = threads - busy
    text += f"{rest:,} {verb if rest == 1 else verb[:-1]} no element." if rest else "none is idle."
    missed, shared = int((owned.threads == 0).sum()), int((owned.threads > 1).sum())
    if not missed and not shared:
        what = f"Each of the {n:,} elements" if n > 1 else "The one element"
        text += f" {what} is {done} by exactly one thread."
    are = "is" if missed == 1 else "are"
    if missed:
        text += f" {missed:,} of the {n:,} elements {are} never {done}."
    are = "is" if shared == 1 else "are"
    if shared:
        first = element(array, int(np.argmax(owned.threads > 1)))
        text += f" {shared:,} of the {n:,} elements {are} {done} by more than one thread, the "
        text += f"first of them {first}."
    most = int(np.bincount(owned.thread[owned.thread >= 0]).max(initial=0))
    passes = int(owned.turn.max(initial=0)) + 1
    if most > 1:
        several = (
            "one after the other" if passes == most else f"in {passes} pass{'es' * (passes > 1)}"
        )
        text += f" A thread {verb} up to {most:,} elements, {several}."
    often = owned.times.sum() / max(1, (owned.threads > 0).sum())
    if verb == "writes" and often > 1 and not shared:
        text += f" An element is written {often:.1f} times on average; once, at the end, would do."
    return text
