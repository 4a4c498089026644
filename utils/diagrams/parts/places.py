"""Where the matrices of the view "matrix" go on the page."""

import math
from dataclasses import dataclass

import numpy as np

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts.scene import shape_text
from utils.watch.trace import Array

PANEL, GAP = 4.1, 0.34  # inches
TALLEST = 4.6  # inches


@dataclass
class Place:
    """Where an array lies, in elements from the panel's corner, gaps included."""

    number: int
    array: Array
    counts: np.ndarray  # how often the grid reads each element
    upright: bool = False  # a vector drawn as a column
    x: float = 0
    y: float = 0
    cell: float = 0.0  # inches

    @property
    def rows(self) -> int:
        """Rows of its cells; an array of more dimensions is flattened to two."""
        shape = self.array.shape
        return shape[0] if self.upright else math.prod(shape[:-1])

    @property
    def columns(self) -> int:
        """Columns of its cells."""
        return 1 if self.upright else self.array.shape[-1]

    @property
    def detail(self) -> str:
        """What stands beside its name: shape and reads."""
        low, high = int(self.counts.min()), int(self.counts.max())
        reads = "" if high == 0 else f": {high}×" if low == high else f": {low} to {high}×"
        return shape_text(self.array) + reads

    @property
    def label_width(self) -> float:
        """Width of its name and what stands beside it, in inches."""
        name = cv.text_width(self.array.name, bold=True)
        return name + 0.08 + cv.text_width(self.detail, cv.SMALL)


def lay_out(places: list[Place], result: Place) -> list[Place]:
    """Places of all: the output at the lower right, what shares its rows to the left of it, what
    shares its columns above it. `result` is the output's, one of `places`."""
    shapes = [p.array.shape for p in places if len(p.array.shape) > 1]
    n = result.array.shape[0]
    if len(result.array.shape) == 1 and any(shape[-2] == n for shape in shapes):
        result.upright = True  # one value for each row of an input
    left, above, corner, below = [], [], [], []
    for place in places:
        vector = len(place.array.shape) == 1
        if place is result:
            continue
        if vector and place.columns == result.rows > 1 and place.columns != result.columns:
            place.upright = True
        if place.upright and result.upright:
            below.append(place)  # another output of one value for each row
        elif place.rows == result.rows and (place.upright or not vector):
            left.append(place)
        elif place.columns == result.columns:
            above.append(place)
        else:
            corner.append(place)  # such as W of x · Wᵀ, whose rows are as long as those of x
    wide = max([0, *(p.columns for p in left + corner)])
    tall = sum(p.rows for p in above), sum(p.rows for p in corner)
    low = max(sum(p.rows for p in [result, *below]), sum(p.rows for p in left))
    lines = max(len(above), len(corner)) + max(1 + len(below), len(left)) - 1
    room, gap, beyond = TALLEST - GAP * lines, GAP if wide else 0.0, 0.0
    for _ in range(4):  # the room that labels need depends on the cells, and they on it
        across = (PANEL - 0.15 - gap - beyond) / (wide + result.columns)
        cell = cv.snap(min(across, room / (max(tall) + low), 0.3))
        labels = [p.label_width - p.columns * cell + 0.15 for p in left + corner]
        gap = max([gap, *labels])
        beyond = max(beyond, result.label_width - result.columns * cell)
    side = max(len(above), len(corner))
    result.x, result.y = (wide + gap / cell if wide else 0), max(tall) + side * GAP / cell
    for group in (left, [result, *below]):
        y = result.y
        for place in group:
            place.x, place.y = (wide - place.columns if group is left else result.x), y
            y += place.rows + GAP / cell
    for group in (above, corner):
        y = result.y - GAP / cell
        for place in group:
            place.x = result.x if group is above else wide - place.columns
            place.y = y - place.rows
            y -= place.rows + GAP / cell
    for place in places:
        place.cell = cell
    return [*left, *above, *corner, *below, result]
