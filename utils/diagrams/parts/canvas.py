"""A white page nine inches wide on which the views draw, in inches, from the top down."""

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib import colormaps
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import text_to_path

# Okabe and Ito's colours, told apart by colour-blind eyes too.
BLUE, ORANGE, SKY, GREEN = "#0072B2", "#E69F00", "#56B4E9", "#009E73"
RED, PURPLE, YELLOW = "#D55E00", "#CC79A7", "#F0E442"
INK, GREY, LINE, PALE = "#222222", "#5C5C5C", "#C4C9CE", "#ECEFF1"
MID = "#87919A"  # beside blue, orange and red for any eye, and three times as dark as white
GOOD, BAD = "#00704F", "#B04A00"  # words: 4.5 times as dark as white
BLOCKS = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED, YELLOW)

WIDTH, MARGIN = 9.0, 0.25
INNER = WIDTH - 2 * MARGIN
SMALL, BODY, TITLE = 9.0, 9.5, 12.0  # points; a screen of 640 pixels still shows 9 of them
AIR = 0.03  # inches between the texts of neighbouring cells
SANS, MONO = "DejaVu Sans", "DejaVu Sans Mono"  # come with matplotlib: the same everywhere

Color = str | np.ndarray  # a name or hex code, or three floats from 0 to 1
Point = tuple[float, float]  # inches
Side = Literal["left", "center", "right"]
# What a colour means, and in some legends the edge of its swatch or the letter that stands on it.
Swatch = tuple[Color | None, str] | tuple[Color | None, str, str]


def rgb(color: Color) -> np.ndarray:
    """A colour as three floats from 0 to 1."""
    return np.array(to_rgb(color)) if isinstance(color, str) else color


def hexadecimal(color: Color | None) -> str:
    """A colour as "#0072b2"; white for None."""
    return to_hex(tuple(rgb("white" if color is None else color)))


def tint(color: str, strength: float) -> np.ndarray:
    """The colour mixed with white; 0 is white, 1 the colour itself."""
    return 1 - strength * (1 - rgb(color))


_WARPS = colormaps["plasma"](np.arange(32) / 31 * 0.6)[:, :3]
_LANES = colormaps["viridis"](np.arange(32) / 31 * 0.95)[:, :3]


def lane_color(lane: int | np.ndarray) -> np.ndarray:
    """Lane 0 is dark violet, lane 31 yellow."""
    return np.asarray(_LANES[lane])


def warp_color(warp: int, warps: int) -> np.ndarray:
    """From dark blue to light red, all three times as dark as white, for lines too."""
    return np.asarray(_WARPS[round(31 * warp / max(warps - 1, 1))])


def luminance(colors: np.ndarray) -> np.ndarray:
    """Of colours (..., 3), as WCAG 2 defines it: 0 is black, 1 white."""
    linear = np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4)
    return linear @ (0.2126, 0.7152, 0.0722)


def contrast(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Between colours, from 1 to 21; below 3 some eyes lose the edge between the two."""
    light, dark = luminance(one) + 0.05, luminance(other) + 0.05
    return np.maximum(light / dark, dark / light)


def snap(inches: float) -> float:
    """Rounded down to whole pixels, so that cells large enough to be told apart look equal."""
    return math.floor(inches * 100) / 100 if inches >= 0.05 else inches


def ink_on(color: np.ndarray) -> str:
    """Black or white, whichever is read more easily on the colour."""
    return "white" if np.dot(color, (0.299, 0.587, 0.114)) < 0.55 else INK


@functools.cache
def text_width(text: str, size: float = BODY, family: str = SANS, bold: bool = False) -> float:
    """In inches, rather too much than too little: renderers widen small letters to whole pixels."""
    font = FontProperties(family=family, weight="bold" if bold else "normal", size=size)
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return 1.06 * width / 72


def fit(text: str, width: float, size: float = BODY, family: str = SANS) -> str:
    """The text, cut short with an ellipsis where it is wider than `width` inches."""
    if text_width(text, size, family) <= width:
        return text
    while text and text_width(text + "…", size, family) > width:
        text = text[:-1]
    return text.rstrip() + "…"


def broken(text: str, width: float, size: float = BODY) -> list[str]:
    """Its lines, none wider than `width` inches but for a word that is."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".lstrip()
        if lines[-1] and text_width(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _weak(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Where two fields of colours differ, but too little to be seen by every eye."""
    differ = np.abs(one - other).max(axis=-1) > 1e-6
    return np.asarray(differ & (contrast(one, other) < 3))


def _runs(mask: np.ndarray) -> list[tuple[int, int, int]]:
    """(row, from, to) of each run of True within a row."""
    padded = np.pad(mask, ((0, 0), (1, 1))).astype(int)
    change = np.diff(padded, axis=1)
    (row, first), (_, end) = np.nonzero(change == 1), np.nonzero(change == -1)
    return list(zip(row.tolist(), first.tolist(), end.tolist(), strict=True))


@dataclass(frozen=True)
class Grid:
    """Cells side by side, from the upper left corner on, in inches."""

    left: float
    top: float
    cell: float  # wide
    tall: float

    def at(self, x: float, y: float) -> Point:
        """Where so many cells to the right and down is."""
        return self.left + x * self.cell, self.top + y * self.tall


class Canvas:
    """`y` is where the next thing goes; views move it on."""

    def __init__(self, title: str, subtitle: str = ""):
        self.figure = Figure(dpi=100)
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_axis_off()
        self.y = 0.3
        self.text(MARGIN, self.y, title, size=TITLE, bold=True)
        self.y += 0.26
        if subtitle:
            self.paragraph(subtitle, color=GREY)
        self.y += 0.14

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = BODY,
        color: str = INK,
        bold: bool = False,
        mono: bool = False,
        ha: Side = "left",
        zorder: float = 3,
    ) -> None:
        """One line, its vertical middle at y."""
        family, weight = MONO if mono else SANS, "bold" if bold else "normal"
        drawn = self.axes.text(x, y, text, size=size, color=color, ha=ha, va="center_baseline")
        drawn.set(family=family, weight=weight, zorder=zorder, parse_math=False)

    def small(
        self, x: float, y: float, text: str, ha: Side = "left", color: str = GREY, zorder: float = 3
    ) -> None:
        """A line of small print."""
        self.text(x, y, text, size=SMALL, color=color, ha=ha, zorder=zorder)

    def paragraph(self, text: str, *, color: str = INK) -> None:
        """Broken into lines; moves y on."""
        for line in broken(text, INNER):
            self.text(MARGIN, self.y, line, color=color)
            self.y += 0.18

    def in_cells(
        self, x: float, y: float, texts: Sequence[str], cell: float, colors: Sequence[str]
    ) -> None:
        """A text in the middle of each of a row of cells, `cell` inches wide, from x on.

        Where the widest text does not fit its cell, every second cell has its text, or every
        fourth, the last one among them: no text is smaller than SMALL.
        """
        widest = max((text_width(text, SMALL) for text in texts), default=0.0)
        step = 2 ** max(0, math.ceil(math.log2((widest + AIR) / cell)))
        for i in range(len(texts) - 1, -1, -step):
            self.small(x + (i + 0.5) * cell, y, texts[i], ha="center", color=colors[i])

    def heading(
        self, line: int, source: str, verdict: str, note: str, *, good: bool, room: float = 0.0
    ) -> None:
        """A line of the kernel, and below it what it costs; moves y on. `room` stays free."""
        number = f"line {line}"
        self.small(MARGIN, self.y, number)
        indent = MARGIN + text_width(number, SMALL) + 0.12
        source = fit(source, WIDTH - MARGIN - indent - room, SMALL, MONO)
        self.text(indent, self.y, source, size=SMALL, mono=True)
        self.y += 0.21
        self.text(MARGIN, self.y, verdict, bold=True, color=GOOD if good else BAD)
        after = MARGIN + text_width(verdict, bold=True) + 0.15
        if after + text_width(note, SMALL) > WIDTH - MARGIN - room:
            self.y, after = self.y + 0.18, MARGIN
        self.small(after, self.y, note)

    def box(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        *,
        fill: Color | None = None,
        edge: str | None = None,
        width: float = 1.0,
        zorder: float = 1,
    ) -> None:
        """A rectangle from its upper left corner, in inches; None leaves out filling or edge."""
        face = "none" if fill is None else tuple(rgb(fill))
        drawn = Rectangle((x, y), w, h, facecolor=face, edgecolor=edge or "none", linewidth=width)
        drawn.set(zorder=zorder, joinstyle="miter", clip_on=False)
        self.axes.add_artist(drawn)

    def lines(
        self,
        segments: Sequence[Sequence[Point]],
        color: str | Sequence[Color] = INK,
        width: float = 1.0,
        *,
        zorder: float = 2,
        capstyle: Literal["butt", "projecting"] = "butt",
    ) -> None:
        """`segments`: pairs of points; `color`: one, or one for each."""
        if segments:
            colors = [color] if isinstance(color, str) else color
            drawn = LineCollection(segments, colors=colors, linewidths=width, zorder=zorder)
            drawn.set(capstyle=capstyle, clip_on=False)
            self.axes.add_collection(drawn, autolim=False)

    def cells(
        self,
        x: float,
        y: float,
        colors: np.ndarray,
        cell: float,
        height: float | None = None,
        edges: bool = False,
    ) -> None:
        """A grid of coloured cells, `colors` being (rows, columns, 3), `cell` inches wide.

        With `edges`, for colours that say which and not how much, a line stands between two that
        some eyes confuse.
        """
        height = height or cell
        grid, (rows, columns) = Grid(x, y, cell, height), colors.shape[:2]
        right, bottom = grid.at(columns, rows)
        extent = (x, right, bottom, y)
        drawn = self.axes.imshow(
            colors, extent=extent, interpolation="none", aspect="auto", origin="upper", zorder=1
        )
        drawn.set_clip_on(False)
        if min(cell, height) >= 0.05:
            lines = [(grid.at(0, r), grid.at(columns, r)) for r in range(1, rows)]
            lines += [(grid.at(c, 0), grid.at(c, rows)) for c in range(1, columns)]
            self.lines(lines, "white", 0.6)
        if edges:
            self._weak_edges(grid, colors)

    def _weak_edges(self, grid: Grid, colors: np.ndarray) -> None:
        """Where two cells differ, or one and the page, and some eyes would not see it: a line.

        White is no cell, and what is as pale as PALE may blend with the page: nothing is there.
        """
        rows, columns = colors.shape[:2]
        page = np.ones((rows + 2, columns + 2, 3))
        page[1:-1, 1:-1] = colors
        page[luminance(page) >= luminance(rgb(PALE)) - 1e-6] = 1
        across = _weak(page[:-1, 1:-1], page[1:, 1:-1])
        down = _weak(page[1:-1, :-1], page[1:-1, 1:])
        lines = [(grid.at(a, r), grid.at(b, r)) for r, a, b in _runs(across)]
        lines += [(grid.at(c, a), grid.at(c, b)) for c, a, b in _runs(down.T)]
        self.lines(lines, INK, 0.7, capstyle="projecting")

    def legend(self, entries: Iterable[Swatch]) -> None:
        """In lines from the margin on; moves y on."""
        x = MARGIN
        for fill, text, *edges in entries:
            wide = 0.2 + text_width(text, SMALL) + 0.22
            if x > MARGIN and x + wide > WIDTH - MARGIN:
                x, self.y = MARGIN, self.y + 0.19
            pale = fill is not None and contrast(rgb(fill), rgb("white")) < 3
            edge, width = (edges[0], 1.0) if edges else (INK if pale else None, 0.7)
            self.box(x, self.y - 0.065, 0.13, 0.13, fill=fill, edge=edge, width=width)
            self.small(x + 0.2, self.y, text, color=INK)
            x += wide
        self.y += 0.2

    def finish(self, caption: str) -> Figure:
        """The figure with the caption below all that was drawn."""
        self.y += 0.08
        self.lines([((MARGIN, self.y), (WIDTH - MARGIN, self.y))], LINE, 0.8)
        self.y += 0.2
        self.paragraph(caption)
        self.axes.set(xlim=(0, WIDTH), ylim=(self.y + 0.02, 0), aspect="auto")
        self.figure.set_size_inches(WIDTH, self.y + 0.02)
        return self.figure
