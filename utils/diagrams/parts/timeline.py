"""Accesses to one element in the order in which they ran: a row for each thread."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts.canvas import Canvas
from utils.watch.trace import ATOMIC, LOAD, STORE

LETTERS = {LOAD: "R", STORE: "W", ATOMIC: "A"}
COLORS = {LOAD: cv.BLUE, STORE: cv.ORANGE, ATOMIC: cv.PURPLE}
GLYPH = 0.27  # inches
ROW, BAND = 0.62, 0.42  # inches: of a row; between the first two
BARRIER = 0.36  # inches
GAP = 0.12  # inches: beside the names, above the picture, around what is left out
ABOVE = 0.32  # inches: of the first row, for the phases
BELOW, BELOW_ONE = 0.38, 0.56  # inches: the last row, for the verdict; where there is one row alone
WIDEST = 0.8  # inches: of an event's column
MOST = 6  # columns


@dataclass(frozen=True)
class Event:
    """Accesses of one row, one after the other, from one line."""

    row: int
    kind: int
    line: int
    phase: int | None  # None where barriers order nothing here
    count: int = 1
    mark: bool = False  # one of those that the hazard is about


def together(events: Sequence[Event]) -> list[Event]:
    """Neighbours that are alike as one."""
    merged: list[Event] = []
    for event in events:
        last = merged[-1] if merged else None
        if last and replace(last, count=0, mark=False) == replace(event, count=0, mark=False):
            count, mark = last.count + event.count, last.mark or event.mark
            merged[-1] = replace(last, count=count, mark=mark)
        else:
            merged.append(event)
    return merged


def some(events: Sequence[Event]) -> list[Event | int]:
    """The marked ones and their neighbours; a number is how many accesses are left out there."""
    marks = [i for i, event in enumerate(events) if event.mark]
    near = sorted(range(len(events)), key=lambda i: (min(abs(i - m) for m in marks), i))
    kept: list[int] = sorted(near[:MOST])
    shown: list[Event | int] = []
    for i, before in zip([*kept, len(events)], [-1, *kept], strict=True):
        if i > before + 1:
            shown.append(sum(event.count for event in events[before + 1 : i]))
        if i < len(events):
            shown.append(events[i])
    return shown


def draw(
    page: Canvas,
    x: float,
    rows: Sequence[tuple[str, str]],
    events: Sequence[Event],
    verdict: str,
) -> None:
    """From x to the page's edge, from page.y down; moves y on.

    `rows`: a thread's name, and what stands below it. One event is marked, in the first row, or
    two, the other in the second, which a line joins; `verdict` stands there.
    """
    shown = some(events)
    used = sorted({event.row for event in shown if isinstance(event, Event)})
    rows = [rows[i] for i in used]
    shown = [replace(e, row=used.index(e.row)) if isinstance(e, Event) else e for e in shown]
    names = GAP + max(cv.text_width(text, cv.SMALL, bold=True) for row in rows for text in row)
    left, right, top = x + names, cv.WIDTH - cv.MARGIN, page.y + GAP
    breaks = _barriers(shown)
    fixed = {
        i: cv.text_width(_left_out(e), cv.SMALL) + GAP
        for i, e in enumerate(shown)
        if isinstance(e, int)
    }
    room = right - left - sum(fixed.values()) - BARRIER * len(breaks)
    unit = min(room / (len(shown) - len(fixed)), WIDEST)
    heights = [top + ABOVE]
    for row in range(1, len(rows)):
        heights.append(heights[-1] + ROW + (BAND if row == 1 else 0))
    end = heights[-1] + (BELOW if len(rows) > 1 else BELOW_ONE)
    for (name, detail), y in zip(rows, heights, strict=True):
        page.text(x, y - 0.07, name, size=cv.SMALL, bold=True)
        page.small(x, y + 0.09, detail)
    places, at, begin = [], left, left
    phase = next((e.phase for e in shown if isinstance(e, Event)), None) if breaks else None
    for i in range(len(shown)):
        if i in breaks:
            middle = at + BARRIER / 2
            _phase(page, phase, begin, middle, top)
            several = phase is not None and breaks[i] > phase + 1
            for line in (middle - 0.04, middle + 0.04) if several else (middle,):
                page.lines([((line, top - 0.1), (line, end))], cv.INK, 2.2, zorder=1)
            phase, begin, at = breaks[i], middle, at + BARRIER
        wide = fixed.get(i, unit)
        places.append(at + wide / 2)
        at += wide
    _phase(page, phase, begin, at, top)
    for y in heights:
        page.lines([((left, y), (at, y))], cv.LINE, 1.2, zorder=0.5)
    for event, middle in zip(shown, places, strict=True):
        if isinstance(event, int):
            y = heights[0]
            page.small(middle, y - 0.09, "…", ha="center")
            page.small(middle, y + 0.1, _left_out(event), ha="center")
        else:
            _glyph(page, middle, heights[event.row], event)
    for row, y in enumerate(heights):
        placed = zip(shown, places, strict=True)
        mine = [(x, e.line) for e, x in placed if isinstance(e, Event) and e.row == row and e.line]
        for x, text in labels(mine):
            page.small(x, y + GLYPH / 2 + 0.1, text, ha="center", zorder=7, color=cv.INK)
    marked = [
        (middle, heights[event.row])
        for event, middle in zip(shown, places, strict=True)
        if isinstance(event, Event) and event.mark
    ]
    _verdict(page, marked, verdict, left, heights)
    _arrow(page, left, at, end + 0.08)
    page.y = end + 0.34


def _left_out(count: int) -> str:
    return f"{count:,} more"


def _arrow(page: Canvas, left: float, right: float, y: float) -> None:
    text = "order of this run"
    page.small(left, y, text)
    start = left + cv.text_width(text, cv.SMALL) + 0.1
    tip = max(start + 0.5, right)
    head = [((tip - 0.08, y + d), (tip, y)) for d in (-0.04, 0.04)]
    page.lines([((start, y), (tip, y)), *head], cv.GREY, 1.0)


def _barriers(shown: Sequence[Event | int]) -> dict[int, int]:
    """Where a barrier stands before an event: its place -> the phase that begins."""
    barriers, phase = {}, None
    for i, event in enumerate(shown):
        if isinstance(event, int) or event.phase is None:
            continue
        if phase is not None and event.phase != phase:
            barriers[i] = event.phase
        phase = event.phase
    return barriers


def _phase(page: Canvas, phase: int | None, start: float, end: float, y: float) -> None:
    if phase is not None:
        text = f"phase {phase}"
        if cv.text_width(text, cv.SMALL) > end - start - 0.06:
            text = str(phase)
        page.small((start + end) / 2, y - 0.04, text, ha="center")


def _glyph(page: Canvas, x: float, y: float, event: Event) -> None:
    edge, width = (cv.BAD, 2.6) if event.mark else (cv.GREY, 0.8)
    color, half = COLORS[event.kind], GLYPH / 2
    page.box(x - half, y - half, GLYPH, GLYPH, fill=color, edge=edge, width=width, zorder=6)
    letter = LETTERS[event.kind]
    page.text(x, y, letter, bold=True, ha="center", color=cv.ink_on(cv.rgb(color)), zorder=7)
    if event.count > 1:
        times = f"{event.count:,}×"
        page.small(x, y - half - 0.08, times, ha="center", zorder=7)


def labels(places: Sequence[tuple[float, int]]) -> list[tuple[float, str]]:
    """Where the lines of a row's events are named: once for close neighbours of one line, and by
    the number alone where words would touch."""
    groups: list[tuple[list[float], int]] = []
    for x, line in places:
        close = groups and x - groups[-1][0][-1] < _wide(f"line {line}")
        if close and groups[-1][1] == line:
            groups[-1][0].append(x)
        else:
            groups.append(([x], line))
    middles = [(sum(xs) / len(xs), line) for xs, line in groups]
    tight = any(
        x - before < (_wide(f"line {line}") + _wide(f"line {other}")) / 2
        for (before, other), (x, line) in pairwise(middles)
    )
    return [(x, str(line) if tight else f"line {line}") for x, line in middles]


def _wide(text: str) -> float:
    return cv.text_width(text, cv.SMALL) + 0.06


def _verdict(
    page: Canvas, marked: list[cv.Point], verdict: str, left: float, heights: list[float]
) -> None:
    """In the band below the first row, joined to what it is about."""
    wide = cv.text_width(verdict, bold=True)
    middle = heights[0] + (ROW + BAND) / 2 + 0.06 if len(heights) > 1 else heights[0] + 0.42
    (x0, y0), (x1, y1) = marked[0], marked[-1]
    if len(marked) > 1:
        path = [(x0, y0 + 0.36), (x0, middle), (x1, middle), (x1, y1 - GLYPH / 2 - 0.03)]
        page.lines(list(pairwise(path)), cv.BAD, 2.2, zorder=4)
        x = max(x0, x1) + 0.12
        if x + wide > cv.WIDTH - cv.MARGIN:
            x = min(x0, x1) - 0.12 - wide
    else:
        x = min(max(left, x0 - wide / 2), cv.WIDTH - cv.MARGIN - wide)
    page.box(x - 0.04, middle - 0.09, wide + 0.08, 0.18, fill="white", zorder=5)
    page.text(x, middle, verdict, bold=True, color=cv.BAD, zorder=7)
