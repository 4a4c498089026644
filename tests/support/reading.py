"""Reads back what a picture says. What a cell means, its legend says: no test knows a colour."""

from dataclasses import dataclass

import numpy as np
from matplotlib.colors import to_rgb

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts.array_edge import CELL
from utils.diagrams.parts.excerpt import MARKED
from utils.diagrams.parts.timeline import GLYPH
from utils.diagrams.picture import Picture

SWATCH, NEAR = 0.13, 0.02  # inches


def _texts(picture: Picture) -> list:
    return picture.figure.axes[0].texts


def _boxes(picture: Picture) -> list:
    return picture.figure.axes[0].patches


def _grids(picture: Picture) -> list:
    return picture.figure.axes[0].get_images()


def _same(one, other) -> bool:
    return np.allclose(to_rgb(one), to_rgb(other), atol=1e-3)


def words(picture: Picture) -> list[str]:
    """Every text of the page, in the order in which it was set."""
    return [text.get_text() for text in _texts(picture)]


def place(picture: Picture, word: str, nth: int = 0) -> tuple[float, float]:
    """Where a text stands, in inches from the upper left corner."""
    return [t for t in _texts(picture) if t.get_text() == word][nth].get_position()


def legend(picture: Picture) -> dict[str, tuple]:
    """What is said beside each swatch -> the colour that it is filled with."""
    entries = {}
    for box in _boxes(picture):
        if np.allclose((box.get_width(), box.get_height()), SWATCH) and box.get_facecolor()[3]:
            x, y = box.get_x() + 0.2, box.get_y() + SWATCH / 2
            beside = [t for t in _texts(picture) if np.allclose(t.get_position(), (x, y))]
            entries |= {text.get_text(): box.get_facecolor()[:3] for text in beside}
    return entries


def meaning(picture: Picture, color) -> str:
    """What the legend says of a colour; "" where it does not know it."""
    known = [said for said, filled in legend(picture).items() if _same(color[:3], filled)]
    return known[0] if known else ""


def cells(picture: Picture, nth: int = 0) -> list[list[str]]:
    """What each cell of a grid means, row by row."""
    known = legend(picture)
    colors = np.asarray(_grids(picture)[nth].get_array())[:, :, None]
    wanted = np.array([color for color in known.values()])
    alike = np.isclose(colors, wanted, atol=1e-3).all(axis=3)
    names = [*known]
    return [[names[int(c.argmax())] if c.any() else "" for c in row] for row in alike]


def _under(picture: Picture, x: float, y: float):
    """(number of the grid, row, column) at a point of the page; None where there is no cell."""
    for number, grid in enumerate(_grids(picture)):
        left, right, bottom, top = grid.get_extent()
        rows, columns = grid.get_array().shape[:2]
        row, column = (y - top) / (bottom - top) * rows, (x - left) / (right - left) * columns
        if 0 <= row < rows and 0 <= column < columns:
            return number, int(row), int(column)
    return None


def beside(picture: Picture, word: str, nth: int = 0) -> list[str]:
    """What the cells mean in the row that a text stands before."""
    y = place(picture, word, nth)[1]
    for number, grid in enumerate(_grids(picture)):
        _, _, bottom, top = grid.get_extent()
        if top <= y < bottom:
            rows = cells(picture, number)
            return rows[int((y - top) / (bottom - top) * len(rows))]
    raise AssertionError(f"no cells beside {word}")


def at(picture: Picture, word: str, nth: int = 0) -> str:
    """What the cell means that a text stands in."""
    number, row, column = _under(picture, *place(picture, word, nth))
    return cells(picture, number)[row][column]


def framed(picture: Picture) -> list[tuple[int, int, str]]:
    """(row, column, meaning) of each cell with a dark frame."""
    rows = []
    for box in _boxes(picture):
        if _same(box.get_edgecolor()[:3], cv.INK) and box.get_linewidth() == 2:
            x, y = box.get_x() + box.get_width() / 2, box.get_y() + box.get_height() / 2
            if cell := _under(picture, x, y):
                number, row, column = cell
                rows.append((row, column, cells(picture, number)[row][column]))
    return rows


def numbered(picture: Picture) -> dict[int, str]:
    """The rows of the first grid that carry a number, or another word, at their left."""
    left, right, bottom, top = _grids(picture)[0].get_extent()
    numbers = {}
    for text in _texts(picture):
        x, y = text.get_position()
        if text.get_ha() == "right" and left - 0.1 < x < left and top < y < bottom:
            numbers[_under(picture, left, y)[1]] = text.get_text()
    return numbers


@dataclass(frozen=True)
class Access:
    """An access in a time line."""

    row: str  # whose it is
    detail: str  # what stands below that
    letter: str
    count: str  # such as "12×"; "" for one
    marked: bool  # in the colour of the verdict
    x: float


def accesses(picture: Picture, verdict: str) -> list[Access]:
    """The time line, from left to right."""
    red = next(t.get_color() for t in _texts(picture) if t.get_text() == verdict)
    rows = []
    for box in _boxes(picture):
        if np.allclose((box.get_width(), box.get_height()), GLYPH):
            x, y = box.get_x() + GLYPH / 2, box.get_y() + GLYPH / 2
            row = _nearest(picture, y - 0.07, lambda t, x=x: t.get_position()[0] < x - 0.2)
            detail = _nearest(picture, y + 0.09, lambda t, x=x: t.get_position()[0] < x - 0.2)
            letter = _nearest(picture, y, lambda t, x=x: t.get_position()[0] == x)
            count = _nearest(picture, y - GLYPH / 2 - 0.08, lambda t, x=x: t.get_position()[0] == x)
            marked = _same(box.get_edgecolor()[:3], red)
            rows.append(Access(row, detail, letter, count, marked, x))
    return sorted(rows, key=lambda access: access.x)


def _nearest(picture: Picture, y: float, fits) -> str:
    """The rightmost text of those at a height that fit."""
    near = [t for t in _texts(picture) if abs(t.get_position()[1] - y) < NEAR and fits(t)]
    return max(near, key=lambda t: t.get_position()[0]).get_text() if near else ""


def order_of(picture: Picture, verdict: str) -> list[str]:
    """The time line in short: "thread 0 R!", the accesses of the verdict with a "!"."""
    return [f"{a.row} {a.letter}{'!' * a.marked}" for a in accesses(picture, verdict)]


def joined(picture: Picture, verdict: str) -> list[str]:
    """Whose accesses a line joins, in the colour of the verdict."""
    red = next(t.get_color() for t in _texts(picture) if t.get_text() == verdict)
    ends = {
        round(x, 6)
        for lines in picture.figure.axes[0].collections
        if len(lines.get_colors()) == 1 and _same(lines.get_colors()[0][:3], red)
        for segment in lines.get_segments()
        for x, _ in segment
    }
    return [a.row for a in accesses(picture, verdict) if round(a.x, 6) in ends]


@dataclass(frozen=True)
class Line:
    number: str
    source: str
    note: str
    marked: bool


def excerpt(picture: Picture) -> list[Line]:
    """The lines of the source below the picture."""
    lines = []
    for text in _texts(picture):
        if text.get_ha() == "right" and text.get_family() == [cv.MONO]:
            y = text.get_position()[1]
            source = _nearest(
                picture, y, lambda t: t.get_family() == [cv.MONO] and t.get_ha() == "left"
            )
            note = _nearest(
                picture, y, lambda t: t.get_family() != [cv.MONO] and t.get_ha() == "right"
            )
            marked = any(
                _same(box.get_facecolor()[:3], MARKED) and box.get_y() < y < box.get_bbox().y1
                for box in _boxes(picture)
            )
            lines.append(Line(text.get_text(), source, note, marked))
    return lines


@dataclass(frozen=True)
class Cell:
    """An element beside the end of an array."""

    meaning: str
    thread: str  # that comes here
    inside: bool  # of the array, as the colour of its number says
    x: float


def edge(picture: Picture) -> dict[str, Cell]:
    """Number of an element -> its cell, from left to right."""
    labels = {}
    boxes = [b for b in _boxes(picture) if np.isclose(b.get_height(), 0.28)]
    for box in sorted((b for b in boxes if b.get_width() >= CELL - NEAR), key=lambda b: b.get_x()):
        x, y = box.get_x() + box.get_width() / 2, box.get_y()
        mine = [t for t in _texts(picture) if abs(t.get_position()[0] - x) < 1e-6]
        thread = next(t for t in mine if abs(t.get_position()[1] - y - 0.14) < NEAR)
        number = next(t for t in mine if abs(t.get_position()[1] - y - 0.4) < NEAR)
        inside = not _same(number.get_color(), cv.BAD)
        said = meaning(picture, box.get_facecolor())
        labels[number.get_text()] = Cell(said, thread.get_text(), inside, x)
    return labels


def wall(picture: Picture) -> tuple[str, str]:
    """The elements on either side of the array's end."""
    (x,) = (
        lines.get_segments()[0][0][0]
        for lines in picture.figure.axes[0].collections
        if len(lines.get_segments()) == 1 and lines.get_linewidths()[0] == 3
    )
    numbers = edge(picture)
    left = [number for number, cell in numbers.items() if cell.x < x]
    return left[-1], [*numbers][len(left)]
