"""The end of an array in memory, or its beginning, and an access beyond it."""

import numpy as np

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts.canvas import Canvas
from utils.diagrams.parts.scene import coordinate_text, shape_text
from utils.diagrams.parts.story import ALSO, FINE, HERE, Subject
from utils.ground.wording import many
from utils.watch.trace import Array

INSIDE, OUTSIDE = 6, 8  # cells on either side of the edge, at most
CELL, GAP = 0.56, 0.3  # inches


def elements_in(array: Array) -> int:
    """How many elements an array has."""
    return int(np.prod(array.shape, dtype=int))


def draw(
    page: Canvas,
    subject: Subject,
    array: Array,
    who: np.ndarray,
    index: np.ndarray,
    beyond: np.ndarray,
    width: int,
) -> None:
    """The cells on both sides of the edge that the access is beyond, and its own."""
    at, n = subject.reported, elements_in(array)
    comes = _comers(subject, index, who, width)
    groups = _groups(at, n, comes)
    page.text(cv.MARGIN, page.y, f"{array.name} in memory", bold=True)
    after = cv.MARGIN + cv.text_width(f"{array.name} in memory", bold=True) + 0.1
    rows = f"row after row, {shape_text(array)} = " if len(array.shape) > 1 else ""
    note = f"{rows}{many(n, 'element')}; in a cell, the thread of "
    note += f"{subject.block(subject.party)} that comes here"
    if "" in [comes.get(i) for group in groups for i in group]:
        note += " (blank: another block's)"
    page.small(after, page.y, note)
    top, x = page.y + 0.36, cv.MARGIN
    outside = {i + k for i in index[beyond].tolist() for k in range(width)}
    own = range(at, at + width)
    if groups[0][0] > 0:
        page.text(x, top + 0.14, "…", color=cv.GREY)
        x += 0.2
    wall = x
    for number, group in enumerate(groups):
        wide = _width(group, comes)
        for i in group:
            wall = x if i == 0 and at < 0 else x + wide if i == n - 1 and at >= 0 else wall
            inside = 0 <= i < n
            color = cv.rgb(HERE) if i in own else ALSO if i in outside else cv.rgb("white")
            if inside and i not in own:
                color = FINE if i in comes else cv.rgb(cv.PALE)
            _cell(page, x, top, wide, i, comes.get(i, ""), color, inside, i in own)
            x += wide
        if number + 1 < len(groups) and groups[number + 1][0] != group[-1] + 1:
            page.text(x + GAP / 2, top + 0.14, "…", color=cv.GREY, ha="center")
            x += GAP
    page.lines([((wall, top - 0.1), (wall, top + 0.52))], cv.INK, 3, zorder=6)
    label = f"{array.name} {'begins' if at < 0 else 'ends'} here"
    middle = max(wall, cv.MARGIN + cv.text_width(label, cv.SMALL, bold=True) / 2)
    page.text(middle, top + 0.62, label, size=cv.SMALL, bold=True, ha="center")
    page.y = top + 0.95


def _groups(at: int, n: int, comes: dict[int, str]) -> list[list[int]]:
    """The elements to show: beside the edge, and where the access is; as many as there is room."""
    for few in range(3):
        inside, outside = INSIDE - 2 * few, OUTSIDE - 2 * few
        if at < 0:
            edge, beyond = range(0, min(n, inside)), range(-outside, 0)
        else:
            edge, beyond = range(max(0, n - inside), n), range(n, n + outside)
        groups = [[*edge], [*beyond]]
        if at not in edge and at not in beyond:
            groups = [[*edge], [*beyond][-3:] if at < 0 else [*beyond][:3], [at - 1, at, at + 1]]
        groups = groups[::-1] if at < 0 else groups
        if sum(len(group) * _width(group, comes) for group in groups) < cv.INNER - GAP - 0.2:
            break
    return groups


def _width(group: list[int], comes: dict[int, str]) -> float:
    """Of a cell, in inches."""
    words = [word for i in group for word in (f"{i:,}", comes.get(i, ""))]
    return max(CELL, *(0.12 + cv.text_width(word, cv.SMALL, bold=True) for word in words))


def _comers(subject: Subject, index: np.ndarray, who: np.ndarray, width: int) -> dict[int, str]:
    """The first thread of the block that touches each element; "" where another block's does."""
    launch, threads = subject.seen.launch, subject.seen.launch.threads
    block, _ = subject.numbers(subject.party)
    comes = {int(i) + k: "" for i in index for k in range(width)}
    for i, thread in zip(index[::-1].tolist(), who[::-1].tolist(), strict=True):
        if thread // threads == block:
            name = coordinate_text(thread % threads, launch.block)
            comes |= dict.fromkeys(range(i, i + width), name)
    return comes


def _cell(
    page: Canvas,
    x: float,
    y: float,
    wide: float,
    number: int,
    text: str,
    color: np.ndarray,
    inside: bool,
    own: bool,
) -> None:
    edge, width = (cv.INK, 2.0) if own else (cv.GREY, 0.8) if inside else (cv.RED, 0.8)
    page.box(x, y, wide, 0.28, fill=color, edge=edge, width=width, zorder=5 if own else 2)
    middle, ink = x + wide / 2, cv.GREY if inside else cv.BAD
    page.small(middle, y + 0.14, text, ha="center", color=cv.ink_on(color), zorder=7)
    page.text(middle, y + 0.4, f"{number:,}", size=cv.SMALL, ha="center", color=ink, bold=own)
