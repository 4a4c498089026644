"""The view "threads": which thread of which block owns each element."""

import math

import numpy as np
from matplotlib.figure import Figure

from utils.access_patterns import WARP, Owners, owners
from utils.diagrams import canvas as cv
from utils.diagrams.canvas import Canvas
from utils.diagrams.scene import Scene, coordinate_text, element, shape_text
from utils.tracing import GLOBAL, LOAD, Launch

FEW, MANY = 640, 8192  # elements of a strip: with a number in each cell; at all
LARGEST = 256  # rows or columns of a matrix
STRIP = 7.68  # inches
NAMED = 7  # blocks that get a line of their own in the legend


def draw(scene: Scene) -> tuple[Figure, str, str, str]:
    """(figure, title, caption, description)"""
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
    (_strip if flat else _matrix)(page, array, owned, launch)
    page.y += 0.15
    _idle(page, owned, launch, verb, numbered=flat and size <= FEW)
    _legend(page, owned, launch, verb)
    caption = _caption(array, owned, launch, verb)
    alt = f"{array.name}, {shape_text(array)}, one cell for each element, coloured by block."
    return page.finish(caption), title, caption, alt


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
    text = f"{scene.size_text}. {blocks} block{'s' * (blocks > 1)} of {inside} threads. A colour "
    text += "is a block, darker for its later threads."
    if flat and size <= FEW:
        text += " The number in a cell is the thread's own in its block."
    if not flat and launch.threads > WARP:
        text += " Black: the 32 lanes of the first warp."
    return text.lstrip(". ")


def _colors(owned: Owners, launch: Launch) -> np.ndarray:
    """A colour for each block, from light for its first thread to dark for its last."""
    return np.array([_shade(t, launch) for t in owned.thread.tolist()])


def _shade(thread: int, launch: Launch) -> np.ndarray:
    if thread < 0:
        return np.ones(3)
    block, inside = divmod(thread, launch.threads)
    return cv.tint(cv.BLOCKS[block % len(cv.BLOCKS)], 0.25 + 0.6 * inside / launch.threads)


def _strip(page: Canvas, array, owned: Owners, launch: Launch) -> None:
    """A row of elements, broken into lines."""
    n = len(owned.thread)
    columns = WARP if n <= FEW else 2 * WARP
    rows = -(-n // columns)
    cell, left, top = STRIP / columns, cv.MARGIN + 0.75, page.y
    tall = cell if n <= FEW else 0.16
    colors = np.ones((rows * columns, 3))
    colors[:n] = _colors(owned, launch)
    page.cells(left, top, colors.reshape(rows, columns, 3), cell, tall)
    labels = {}
    for row in range(rows):
        y = top + (row + 0.5) * tall
        small = {"size": cv.SMALL, "color": cv.GREY, "ha": "right"}
        if n <= FEW or row % 2 == 0:
            page.text(left - 0.08, y, element(array, row * columns), **small)
    for i in range(n):
        x, y = left + i % columns * cell, top + i // columns * tall
        if owned.threads[i] != 1:
            _mark(page, x, y, cell, tall, owned.threads[i] > 1)
        elif n <= FEW:
            labels[i] = str(owned.thread[i] % launch.threads)
            page.text(
                x + cell / 2,
                y + tall / 2,
                labels[i],
                size=cv.SMALL,
                ha="center",
                color=cv.ink_on(colors[i]),
            )
    _outlines(page, owned, launch, left, top, cell, tall, columns, named=n > FEW)
    page.y = top + rows * tall + 0.05


def _mark(page: Canvas, x: float, y: float, wide: float, tall: float, twice: bool) -> None:
    """A red cross in an element that nobody touches, a filled corner where several threads do."""
    page.box(x, y, wide, tall, edge=cv.RED, width=1.2, zorder=5)
    a, b, c, d = (x, y), (x + wide, y + tall), (x + wide, y), (x, y + tall)
    page.lines([(a, b)] if twice else [(a, b), (c, d)], cv.RED, 1.2, zorder=5)


def _outlines(page, owned, launch, left, top, cell, tall, columns, named) -> None:
    """A line around each run of elements of one block and pass; their names where there is room."""
    n = len(owned.thread)
    block = np.where(owned.thread < 0, -1, owned.thread // launch.threads)
    passes = np.where(owned.thread < 0, 0, owned.turn)
    keys = block if n <= FEW and passes.max() == 0 else block * (passes.max() + 1) + passes
    starts = np.r_[0, np.flatnonzero(np.diff(keys)) + 1, n]
    if len(starts) > 65:  # scattered: outlines would be all there is to see
        return
    for first, end in zip(starts[:-1], starts[1:], strict=True):
        if block[first] < 0:
            continue
        color = cv.BLOCKS[block[first] % len(cv.BLOCKS)]
        page.lines(
            [
                ((left + x0 * cell, top + y0 * tall), (left + x1 * cell, top + y1 * tall))
                for x0, y0, x1, y1 in _border(first, end, columns)
            ],
            color,
            2.2,
            zorder=4,
            capstyle="projecting",
        )
        if not named or end - first < 12:
            continue
        text = f"block {coordinate_text(int(block[first]), launch.grid)}"
        if passes.max() > 0:
            text += f", pass {passes[first] + 1}"
        row, last = -(-first // columns), end // columns - 1  # whole lines of cells
        x0, x1 = 0, columns
        if last < row:
            row = last = first // columns
            x0, x1 = first % columns, min(columns, first % columns + end - first)
        x, y = left + (x0 + x1) / 2 * cell, top + (row + last + 1) / 2 * tall
        wide = cv.text_width(text, cv.SMALL)
        if wide < (x1 - x0) * cell:
            page.box(x - wide / 2 - 0.05, y - 0.08, wide + 0.1, 0.16, fill="white", zorder=6)
            page.text(x, y, text, size=cv.SMALL, ha="center", zorder=7)


def _border(first: int, end: int, columns: int) -> list[tuple[int, int, int, int]]:
    """The outline of cells first..end-1 of a strip in lines, in cells."""
    edges = []
    for row in range(first // columns, (end - 1) // columns + 1):
        a, b = max(first - row * columns, 0), min(end - row * columns, columns)
        edges += [(a, row, a, row + 1), (b, row, b, row + 1)]
        above = max(first - (row - 1) * columns, 0) if row > first // columns else columns
        below = min(end - (row + 1) * columns, columns) if end > (row + 1) * columns else 0
        if a < above:
            edges.append((a, row, min(b, above), row))
        if below < b:
            edges.append((max(a, below), row + 1, b, row + 1))
    return edges


def _matrix(page: Canvas, array, owned: Owners, launch: Launch) -> None:
    """Rows and columns as they are; the lanes of the first warp carry their numbers."""
    rows, columns = array.shape
    cell = cv.snap(min(0.2, 7.5 / columns, 6.2 / rows))
    left, top = cv.MARGIN + 0.5, page.y + 0.1
    colors = _colors(owned, launch)
    if launch.threads > WARP:
        first = (owned.thread >= 0) & (owned.thread < WARP)
        colors[first] = cv.rgb(cv.INK)
    page.cells(left, top, colors.reshape(rows, columns, 3), cell)
    page.box(left, top, columns * cell, rows * cell, edge=cv.GREY, width=0.7, zorder=3)
    block = np.where(owned.thread < 0, -1, owned.thread // launch.threads).reshape(rows, columns)
    _walls(page, block, left, top, cell)
    for i in np.flatnonzero(owned.threads != 1):
        x, y = left + i % columns * cell, top + i // columns * cell
        _mark(page, x, y, cell, cell, owned.threads[i] > 1)
    if cell >= 0.15 and launch.threads > WARP:
        for i in np.flatnonzero(first & (owned.threads == 1)):
            x, y = left + (i % columns + 0.5) * cell, top + (i // columns + 0.5) * cell
            page.text(x, y, str(owned.thread[i]), size=cv.SMALL, color="white", ha="center")
    small = {"size": cv.SMALL, "color": cv.GREY}
    for row in range(0, rows, 8):
        page.text(left - 0.07, top + (row + 0.5) * cell, str(row), ha="right", **small)
    for column in range(0, columns, 8):
        page.text(left + (column + 0.5) * cell, top - 0.09, str(column), ha="center", **small)
    page.y = top + rows * cell + 0.05


def _walls(page: Canvas, block: np.ndarray, left: float, top: float, cell: float) -> None:
    """Thick lines wherever two neighbours belong to different blocks."""
    rows, columns = block.shape
    walls = [
        ((left + c * cell, top + r * cell), (left + c * cell, top + (r + 1) * cell))
        for r, c in np.argwhere(block[:, 1:] != block[:, :-1]) + (0, 1)
    ]
    walls += [
        ((left + c * cell, top + r * cell), (left + (c + 1) * cell, top + r * cell))
        for r, c in np.argwhere(block[1:] != block[:-1]) + (1, 0)
    ]
    if len(walls) < rows * columns / 2:
        page.lines(walls, cv.INK, 2.0, zorder=4, capstyle="projecting")


def _idle(page: Canvas, owned: Owners, launch: Launch, verb: str, numbered: bool) -> None:
    """Threads that own nothing, as hollow cells with their numbers."""
    threads = math.prod(launch.grid) * launch.threads
    idle = np.setdiff1d(np.arange(threads), owned.thread)
    if not numbered or not 0 < len(idle) <= 512:
        return
    cell, left = STRIP / WARP, cv.MARGIN + 0.75
    shown = f"Idle threads: {len(idle)} that {verb[:-1]} nothing"
    page.text(cv.MARGIN, page.y, shown, size=cv.BODY, bold=True)
    page.y += 0.17
    block, y = -1, page.y - cell
    column = WARP
    for thread in idle.tolist():
        if thread // launch.threads != block or column == WARP:
            column, y = 0, y + cell
            if thread // launch.threads != block:
                block = thread // launch.threads
                name = f"block {coordinate_text(block, launch.grid)}"
                page.text(left - 0.08, y + cell / 2, name, size=cv.SMALL, color=cv.GREY, ha="right")
        x = left + column * cell
        page.box(x, y, cell, cell, fill=cv.PALE, edge="white", width=0.6)
        page.text(
            x + cell / 2,
            y + cell / 2,
            str(thread % launch.threads),
            size=cv.SMALL,
            color=cv.GREY,
            ha="center",
        )
        column += 1
    page.y = y + cell + 0.18


def _legend(page: Canvas, owned: Owners, launch: Launch, verb: str) -> None:
    blocks = math.prod(launch.grid)
    entries = []
    busy = np.unique(owned.thread[owned.thread >= 0])
    for block in range(min(blocks, NAMED)):
        count = int((busy // launch.threads == block).sum())
        name = f"block {coordinate_text(block, launch.grid)}"
        entries.append(
            (
                cv.tint(cv.BLOCKS[block % len(cv.BLOCKS)], 0.7),
                f"{name}: {count} of {launch.threads} threads {verb[:-1] if count != 1 else verb}",
            )
        )
    if blocks > NAMED:
        entries.append((None, f"and {blocks - NAMED} more blocks, in the same colours again"))
    if np.any(owned.threads == 0):
        entries.append((None, f"{_never(verb)} (crossed out)", {"edge": cv.RED}))
    if np.any(owned.threads > 1):
        entries.append((None, "by several threads (struck through)", {"edge": cv.RED}))
    page.legend(entries)


def _never(verb: str) -> str:
    return "never written" if verb == "writes" else "never read"


def _caption(array, owned: Owners, launch: Launch, verb: str) -> str:
    n, threads = len(owned.thread), math.prod(launch.grid) * launch.threads
    busy = len(np.unique(owned.thread[owned.thread >= 0]))
    done = "written" if verb == "writes" else "read"
    text = f"{busy:,} of {threads:,} threads {verb[:-1]} {array.name}"
    text += f"; {threads - busy:,} are idle." if busy < threads else "; none is idle."
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
    passes = int(owned.turn.max(initial=0)) + 1
    if passes > 1:
        text += f" A thread {verb} up to {passes:,} elements, one after the other."
    often = owned.times.sum() / max(1, (owned.threads > 0).sum())
    if verb == "writes" and often > 1 and not shared:
        text += f" An element is written {often:.1f} times on average; once, at the end, would do."
    return text
