"""The elements of an array, coloured by the thread that owns each: a strip, or a matrix."""

import math

import numpy as np

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts.canvas import Canvas, Grid
from utils.diagrams.parts.scene import coordinate_text, element
from utils.watch.access_patterns import WARP, Owners
from utils.watch.trace import Array, Launch

FEW = 640  # elements of a strip that are so few that each carries a number
STRIP = 7.68  # inches


def strip(page: Canvas, array: Array, owned: Owners, launch: Launch) -> None:
    """A row of elements, broken into lines."""
    n = len(owned.thread)
    columns = WARP if n <= FEW else 2 * WARP
    rows = -(-n // columns)
    cell, left, top = STRIP / columns, cv.MARGIN + 0.75, page.y
    tall = cell if n <= FEW else 0.16
    grid = Grid(left, top, cell, tall)
    colors = np.ones((rows * columns, 3))
    colors[:n] = _colors(owned, launch)
    page.cells(left, top, colors.reshape(rows, columns, 3), cell, tall)
    for row in range(rows):
        y = top + (row + 0.5) * tall
        if n <= FEW or row % 2 == 0:
            page.small(left - 0.08, y, element(array, row * columns), ha="right")
        if n <= FEW:
            cells = range(row * columns, min(n, (row + 1) * columns))
            names = [_name(owned, launch, i) for i in cells]
            page.in_cells(left, y, names, cell, [cv.ink_on(colors[i]) for i in cells])
    for i in np.flatnonzero(owned.threads != 1).tolist():
        _mark(page, *grid.at(i % columns, i // columns), cell, tall, owned.threads[i] > 1)
    _outlines(page, owned, launch, grid, columns, named=n > FEW)
    page.y = top + rows * tall + 0.05


def _name(owned: Owners, launch: Launch, element: int) -> str:
    """The number, within its block, of the one thread that owns an element; "" where none does."""
    return str(owned.thread[element] % launch.threads) if owned.threads[element] == 1 else ""


def _outlines(
    page: Canvas, owned: Owners, launch: Launch, grid: Grid, columns: int, named: bool
) -> None:
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
        border = [(grid.at(*a), grid.at(*b)) for a, b in _border(first, end, columns)]
        page.lines(border, color, 2.2, zorder=4, capstyle="projecting")
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
        x, y = grid.at((x0 + x1) / 2, (row + last + 1) / 2)
        wide = cv.text_width(text, cv.SMALL)
        if wide < (x1 - x0) * grid.cell:
            page.box(x - wide / 2 - 0.05, y - 0.08, wide + 0.1, 0.16, fill="white", zorder=6)
            page.small(x, y, text, ha="center", zorder=7, color=cv.INK)


def _border(first: int, end: int, columns: int) -> list[tuple[cv.Point, cv.Point]]:
    """The outline of cells first..end-1 of a strip in lines, in cells."""
    edges: list[tuple[cv.Point, cv.Point]] = []
    for row in range(first // columns, (end - 1) // columns + 1):
        a, b = max(first - row * columns, 0), min(end - row * columns, columns)
        edges += [((a, row), (a, row + 1)), ((b, row), (b, row + 1))]
        above = max(first - (row - 1) * columns, 0) if row > first // columns else columns
        below = min(end - (row + 1) * columns, columns) if end > (row + 1) * columns else 0
        if a < above:
            edges.append(((a, row), (min(b, above), row)))
        if below < b:
            edges.append(((max(a, below), row + 1), (b, row + 1)))
    return edges


def matrix(page: Canvas, array: Array, owned: Owners, launch: Launch) -> None:
    """Rows and columns as they are; the lanes of the first warp carry their numbers."""
    rows, columns = array.shape
    cell = cv.snap(min(0.2, 7.5 / columns, 6.2 / rows))
    left, top = cv.MARGIN + 0.5, page.y + 0.1
    grid, colors = Grid(left, top, cell, cell), _colors(owned, launch)
    first = (owned.thread >= 0) & (owned.thread < WARP) & (launch.threads > WARP)
    colors[first] = cv.lane_color(owned.thread[first])
    page.cells(left, top, colors.reshape(rows, columns, 3), cell)
    page.box(left, top, columns * cell, rows * cell, edge=cv.GREY, width=0.7, zorder=3)
    block = np.where(owned.thread < 0, -1, owned.thread // launch.threads).reshape(rows, columns)
    _walls(page, block, grid)
    if cell < 0.05:  # too small for a grid: lines between lanes, and around the warp
        lane = np.where(first, owned.thread, -1).reshape(rows, columns)
        page.lines(_between(lane, lane >= 0, grid), "white", 0.8, zorder=3)
        around = _between(lane >= 0, np.ones(lane.shape, bool), grid)
        page.lines(around, cv.INK, 1.2, zorder=4)
    for i in np.flatnonzero(owned.threads != 1).tolist():
        _mark(page, *grid.at(i % columns, i // columns), cell, cell, owned.threads[i] > 1)
    for i, run, deep in _first_runs(np.where(first, owned.thread, -1).reshape(rows, columns)):
        name = str(owned.thread[i])
        if run * cell >= cv.text_width(name, cv.SMALL) and deep * cell >= 0.1:
            middle, ink = (
                grid.at(i % columns + run / 2, i // columns + deep / 2),
                cv.ink_on(colors[i]),
            )
            page.small(*middle, name, color=ink, ha="center", zorder=5)
    for row in range(0, rows, _step(0.13, cell)):
        page.small(left - 0.07, top + (row + 0.5) * cell, str(row), ha="right")
    widest = cv.text_width(f"{columns} ", cv.SMALL)
    for column in range(0, columns, _step(widest, cell)):
        page.small(left + (column + 0.5) * cell, top - 0.09, str(column), ha="center")
    page.y = top + rows * cell + 0.05


def _step(needed: float, cell: float) -> int:
    """Cells from one number to the next: 8, or more where a number needs more inches."""
    return 8 << max(0, math.ceil(math.log2(needed / (8 * cell))))


def _first_runs(lane: np.ndarray) -> list[tuple[int, int, int]]:
    """The first elements of each lane that are neighbours: (index, how many across, and down)."""
    flat, columns = lane.reshape(-1), lane.shape[1]
    runs = []
    for one in np.unique(flat[flat >= 0]):
        first = int(np.argmax(flat == one))
        rest = flat[first : first - first % columns + columns] != one
        under = lane[first // columns :, first % columns] != one
        across, down = (int(np.argmax(x)) if x.any() else len(x) for x in (rest, under))
        runs.append((first, across, down))
    return runs


def _between(values: np.ndarray, where: np.ndarray, grid: Grid) -> list[list[cv.Point]]:
    """Lines between neighbours of different value, one of them in `where`; neighbours' as one."""
    segments = []
    for turned in (False, True):
        v, w = (values.T, where.T) if turned else (values, where)
        differ = (v[:, 1:] != v[:, :-1]) & (w[:, 1:] | w[:, :-1])  # left and right of a line
        for column in range(differ.shape[1]):
            ends = np.flatnonzero(np.diff(np.r_[0, differ[:, column].astype(int), 0]))
            for start, end in zip(ends[::2].tolist(), ends[1::2].tolist(), strict=True):
                line = [(column + 1, start), (column + 1, end)]
                line = [point[::-1] for point in line] if turned else line
                segments.append([grid.at(*point) for point in line])
    return segments


def _walls(page: Canvas, block: np.ndarray, grid: Grid) -> None:
    """Thick lines wherever two neighbours belong to different blocks."""
    across, down = block[:, 1:] != block[:, :-1], block[1:] != block[:-1]
    walls = [(grid.at(c + 1, r), grid.at(c + 1, r + 1)) for r, c in np.argwhere(across)]
    walls += [(grid.at(c, r + 1), grid.at(c + 1, r + 1)) for r, c in np.argwhere(down)]
    if len(walls) < block.size / 2:
        page.lines(walls, cv.INK, 2.0, zorder=4, capstyle="projecting")


def _colors(owned: Owners, launch: Launch) -> np.ndarray:
    """A colour for each block, from light for its first thread to dark for its last."""
    return np.array([_shade(t, launch) for t in owned.thread.tolist()])


def _shade(thread: int, launch: Launch) -> np.ndarray:
    if thread < 0:
        return np.ones(3)
    block, inside = divmod(thread, launch.threads)
    return cv.tint(cv.BLOCKS[block % len(cv.BLOCKS)], 0.25 + 0.6 * inside / launch.threads)


def _mark(page: Canvas, x: float, y: float, wide: float, tall: float, twice: bool) -> None:
    """A red cross in an element that nobody touches, a filled corner where several threads do."""
    page.box(x, y, wide, tall, edge=cv.RED, width=1.2, zorder=5)
    a, b, c, d = (x, y), (x + wide, y + tall), (x + wide, y), (x, y + tall)
    page.lines([(a, b)] if twice else [(a, b), (c, d)], cv.RED, 1.2, zorder=5)
