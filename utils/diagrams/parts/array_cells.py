"""An array as cells, one of them marked; of a large array, the part around that one."""

import numpy as np

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts.canvas import Canvas
from utils.diagrams.parts.scene import element, shape_text
from utils.watch.trace import Array

ROOM = (2.55, 3.0)  # inches across and down
LARGEST = 64  # rows or columns that are drawn


def draw(page: Canvas, array: Array, colors: np.ndarray, marked: int, note: str) -> None:
    """At the left of the page, from page.y down; moves y on. `colors`: (elements, 3).

    `note` stands beside the name. The marked element is named, with its row and column.
    """
    rows, columns = _part(array, marked)
    page.text(cv.MARGIN, page.y, array.name, bold=True)
    after = cv.MARGIN + cv.text_width(array.name, bold=True) + 0.1
    page.small(after, page.y, note)
    left, top = cv.MARGIN + 0.45, page.y + 0.38
    cell = cv.snap(min(ROOM[0] / len(columns), ROOM[1] / len(rows), 0.26))
    index = rows[:, None] * _width(array) + columns[None, :]
    inside = index < len(colors)
    shown = np.where(inside[..., None], colors[np.minimum(index, len(colors) - 1)], 1.0)
    page.cells(left, top, shown, cell, edges=True)
    wide, tall = len(columns) * cell, len(rows) * cell
    page.box(left, top, wide, tall, edge=cv.GREY, width=0.7, zorder=3)
    row, column = (int(i[0]) for i in np.nonzero(index == marked))
    x, y = left + column * cell, top + row * cell
    grown = max(0.0, (0.14 - cell) / 2)  # what would be too small to see is ringed
    side = cell + 2 * grown
    page.box(x - grown, y - grown, side, side, edge="white", width=4, zorder=4)
    page.box(x - grown, y - grown, side, side, edge=cv.INK, width=2, zorder=5)
    name = element(array, marked)
    half = cv.text_width(name, cv.SMALL, bold=True) / 2
    middle = min(max(x + cell / 2, cv.MARGIN + half), cv.MARGIN + 0.45 + ROOM[0] + 0.1 - half)
    page.text(middle, top - 0.13, name, size=cv.SMALL, bold=True, ha="center")
    _numbers(page, array, rows, left, top, cell)
    page.y = top + tall + 0.2
    drawn = len(rows) * len(columns)
    if drawn < len(colors):
        part = "a part of " + shape_text(array)
        page.small(left, page.y - 0.02, part)
        page.y += 0.2


def _numbers(
    page: Canvas, array: Array, rows: np.ndarray, left: float, top: float, cell: float
) -> None:
    """The number of the row, or of the first element, beside some lines of cells."""
    every = -(-0.15 // cell) if cell < 0.15 else 1
    every = int(next(n for n in (1, 2, 4, 8, 16, 32, 64) if n >= every))
    for i, row in enumerate(rows.tolist()):
        if i % every == 0 and len(rows) > 1:
            number = row * _width(array) if _flat(array) else row
            y = top + (i + 0.5) * cell
            page.small(left - 0.07, y, str(number), ha="right")


def _flat(array: Array) -> bool:
    return len(array.shape) < 2 or 1 in array.shape[-2:]


def _width(array: Array) -> int:
    """Elements in a line of cells."""
    if not _flat(array):
        return array.shape[-1]
    n = int(np.prod(array.shape, dtype=int))
    return 16 if n <= 256 else 32 if n <= 1024 else 64


def _part(array: Array, marked: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows and columns of cells to draw."""
    n = int(np.prod(array.shape, dtype=int))
    width = _width(array)
    row, column = divmod(marked, width)
    return _around(row, -(-n // width)), _around(column, min(width, n))


def _around(place: int, count: int) -> np.ndarray:
    start = min(max(0, place - LARGEST // 2) // 8 * 8, max(0, count - LARGEST))
    return np.arange(start, min(count, start + LARGEST))
