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
NAME, DETAIL = 0.07, 0.09  # inches: above and below the middle of a row, beside it
LABEL = 0.1  # inches: below a row or a glyph, where its lines are named
TWIN = 0.04  # inches: of two bars, each from their middle
ARROW, AFTER = 0.08, 0.34  # inches: below all that, the arrow; and what comes next
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
    names = max(cv.text_width(text, cv.SMALL, bold=True) for row in rows for text in row)
    top = page.y + GAP
    columns = _placed(shown, x + GAP + names, cv.WIDTH - cv.MARGIN)
    heights = [top + ABOVE + row * ROW + (BAND if row else 0) for row in range(len(rows))]
    end = heights[-1] + (BELOW if len(rows) > 1 else BELOW_ONE)
    for (name, detail), y in zip(rows, heights, strict=True):
        page.text(x, y - NAME, name, size=cv.SMALL, bold=True)
        page.small(x, y + DETAIL, detail)
    _phases(page, columns, top, end)
    for y in heights:
        page.lines([((columns.left, y), (columns.right, y))], cv.LINE, 1.2, zorder=0.5)
    placed = list(zip(shown, columns.middles, strict=True))
    for event, middle in placed:
        if isinstance(event, int):
            page.small(middle, heights[0] - DETAIL, "…", ha="center")
            page.small(middle, heights[0] + LABEL, _left_out(event), ha="center")
        else:
            _glyph(page, middle, heights[event.row], event)
    of_rows = [(event, middle) for event, middle in placed if isinstance(event, Event)]
    for row, y in enumerate(heights):
        mine = [(middle, e.line) for e, middle in of_rows if e.row == row and e.line]
        for middle, text in labels(mine):
            page.small(middle, y + GLYPH / 2 + LABEL, text, ha="center", zorder=7, color=cv.INK)
    marked = [(middle, heights[event.row]) for event, middle in of_rows if event.mark]
    _verdict(page, marked, verdict, columns.left, heights)
    _arrow(page, columns.left, columns.right, end + ARROW)
    page.y = end + AFTER


@dataclass(frozen=True)
class _Columns:
    """Where things stand from left to right."""

    left: float
    right: float
    middles: list[float]  # of what is shown
    bars: list[tuple[float, bool]]  # of barriers, and whether several are passed there
    phases: list[tuple[int | None, float, float]]  # number, and from where to where


def _placed(shown: Sequence[Event | int], left: float, most: float) -> _Columns:
    breaks = _barriers(shown)
    counts = {i: _left_out(e) for i, e in enumerate(shown) if isinstance(e, int)}
    fixed = {i: cv.text_width(text, cv.SMALL) + GAP for i, text in counts.items()}
    room = most - left - sum(fixed.values()) - BARRIER * len(breaks)
    unit = min(room / (len(shown) - len(fixed)), WIDEST)
    phase = next((e.phase for e in shown if isinstance(e, Event)), None) if breaks else None
    columns, at, begin = _Columns(left, left, [], [], []), left, left
    for i in range(len(shown)):
        if i in breaks:
            middle = at + BARRIER / 2
            columns.phases.append((phase, begin, middle))
            columns.bars.append((middle, phase is not None and breaks[i] > phase + 1))
            phase, begin, at = breaks[i], middle, at + BARRIER
        wide = fixed.get(i, unit)
        columns.middles.append(at + wide / 2)
        at += wide
    columns.phases.append((phase, begin, at))
    return replace(columns, right=at)


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


def _phases(page: Canvas, columns: _Columns, top: float, end: float) -> None:
    """The barriers, and between them what phase it is."""
    for phase, start, stop in columns.phases:
        if phase is not None:
            text = f"phase {phase}"
            if cv.text_width(text, cv.SMALL) > stop - start - 0.06:
                text = str(phase)
            page.small((start + stop) / 2, top - TWIN, text, ha="center")
    for middle, several in columns.bars:
        for x in (middle - TWIN, middle + TWIN) if several else (middle,):
            page.lines([((x, top - LABEL), (x, end))], cv.INK, 2.2, zorder=1)


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
