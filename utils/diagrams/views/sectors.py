"""The view "sectors": what one warp's requests touch of global memory."""

import math

import numpy as np

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts.canvas import Canvas
from utils.diagrams.parts.captions import instructions_left_out
from utils.diagrams.parts.scene import (
    Instruction,
    Scene,
    coordinate_text,
    element,
    instructions,
    shape_text,
)
from utils.ground.errors import WorkbookError
from utils.ground.wording import many
from utils.watch.access_patterns import (
    CELL,
    SECTOR,
    WARP,
    ideal_sectors,
    lanes,
    sectors_per_request,
)
from utils.watch.trace import GLOBAL, KINDS

MOST = 8  # instructions in one picture
STRIP = 6.9  # inches for lanes and memory
TALL = 0.26  # inches of a sector
EMPTY, SEVERAL = cv.rgb("#DADEE1"), cv.rgb(cv.INK)  # cells wanted by no lane, by several
INSET = (1.3, 1.15)  # inches for the matrix beside it


def draw(scene: Scene) -> tuple[Canvas, str, str, str]:
    """(page, title, caption, description)"""
    chosen = instructions(scene, GLOBAL)
    if not chosen:
        raise WorkbookError(f"{scene.name} made no access to its arrays at {scene.size_text}")
    rows = [_Row(scene, one) for one in chosen[:MOST]]
    slots = max(8, 1 << (max(row.sectors for row in rows) - 1).bit_length())
    title = f"{scene.name}: what one warp asks of global memory"
    page = Canvas(
        title,
        f"{scene.size_text}. Each line of the kernel as its first warp runs it for the first time. "
        "A box is a sector, the 32 bytes that memory sends at a time; a coloured cell in it is "
        "what a lane of the same colour wants; a black one is wanted by several lanes, a grey one "
        "is brought for nobody.",
    )
    for row in rows:
        row.draw(page, STRIP / slots)
    caption = _caption(rows, len(chosen) - len(rows), averages=not scene.trace.truncated)
    described = "; ".join(f"{row.what}: {row.cost}" for row in rows)
    alt = f"For each access, 32 lanes joined by lines to the memory cells they touch. {described}."
    return page, title, caption, alt


def _caption(rows: list["_Row"], left_out: int, averages: bool) -> str:
    worst = max(rows, key=lambda row: row.sectors - row.ideal)
    if worst.sectors > worst.ideal:
        text = (
            f"Line {worst.one.line}, {worst.what}: one request of {worst.warp} touches "
            f"{many(worst.sectors, 'sector')}; {worst.ideal} would do if its lanes were neighbours "
            f"in memory. It moves {worst.sectors * SECTOR} bytes for {worst.wanted} that are "
            "wanted."
        )
    else:
        text = "No request here touches more sectors than it must."
    means = [row.mean for row in rows if row.varies and averages]
    if means:
        text += " Sectors per request on average, ragged warps included: "
        text += ", ".join(means) + "."
    if left_out:
        text += f" {instructions_left_out(left_out)}"
    return text


class _Row:
    """One instruction: numbers first, then the drawing."""

    def __init__(self, scene: Scene, one: Instruction):
        self.one, self.array = one, scene.arrays[one.array]
        self.source = scene.text_of(one.line)
        self.request = request = one.first_request()
        self.lanes = lanes(request)
        self.sectors = int(sectors_per_request(request)[0])
        self.ideal = int(ideal_sectors(request)[0])
        self.what = f"{KINDS[one.kind]} of {self.array.name}"
        lead = request[0]
        block = coordinate_text(int(lead["block"]), one.launch.grid)
        self.warp = f"warp {int(lead['thread']) // WARP} of block {block}"
        every = sectors_per_request(one.accesses)
        self.varies = len(set(every.tolist())) > 1
        self.mean = f"{every.mean():.1f} for the {self.what} ({many(len(every), 'request')})"

    @property
    def cost(self) -> str:
        return f"{many(self.sectors, 'sector')} per request, ideal {self.ideal}"

    @property
    def wanted(self) -> int:
        """Distinct bytes that the lanes want."""
        r = self.request
        return len({b for x in r for b in range(int(x["byte"]), int(x["byte"]) + int(x["size"]))})

    @property
    def apart(self) -> str:
        steps = np.diff(self.request["byte"])
        if len(steps) == 0:
            return "one lane is active"
        if np.all(steps == 0):
            return f"all {len(self.lanes)} lanes want the same element"
        if np.all(steps == steps[0]):
            return f"neighbouring lanes are {abs(int(steps[0]))} bytes apart"
        return f"{len(self.lanes)} lanes are active" if len(self.lanes) < WARP else ""

    def draw(self, page: Canvas, slot: float) -> None:
        good = self.sectors <= self.ideal
        verdict = f"{self.what}: {self.cost}"
        page.heading(self.one.line, self.source, verdict, self.apart, good=good)
        lane_y, strip_y = page.y + 0.15, page.y + 0.87
        self._lanes(page, lane_y)
        self._strip(page, lane_y + 0.2, strip_y, slot)
        if len(self.array.shape) == 2 and max(self.array.shape) <= 512:
            self._inset(page, lane_y)
        page.y = strip_y + 0.66

    def _lanes(self, page: Canvas, y: float) -> None:
        wide = STRIP / WARP
        active = set(self.lanes.tolist())
        for lane in range(WARP):
            x = cv.MARGIN + lane * wide
            color = cv.lane_color(lane) if lane in active else cv.rgb("white")
            edge = None if lane in active else cv.LINE
            page.box(x + 0.01, y, wide - 0.02, 0.2, fill=color, edge=edge, width=0.6)
            ink = cv.ink_on(color) if lane in active else cv.LINE
            page.small(x + wide / 2, y + 0.1, str(lane), color=ink, ha="center")

    def _strip(self, page: Canvas, lane_y: float, y: float, slot: float) -> None:
        """Sectors side by side, a gap where memory between them is left out."""
        request, cell = self.request, (slot - min(0.06, slot / 7)) / (SECTOR // CELL)
        byte, size = request["byte"], request["size"].astype("i8")
        ends = zip(byte // SECTOR, (byte + size - 1) // SECTOR, strict=True)
        touched = sorted({int(s) for first, last in ends for s in range(first, last + 1)})
        place = {}
        for i, sector in enumerate(touched):
            after = i and touched[i - 1] == sector - 1
            place[sector] = cv.MARGIN + i * slot + (0 if after else 0.015)
        end = 0.0
        for sector, x in place.items():
            colors = np.tile(EMPTY, (1, SECTOR // CELL, 1))
            for lane, b, n in zip(self.lanes, byte, size, strict=True):
                first, last = b // CELL - sector * 8, (b + n - 1) // CELL - sector * 8
                here = slice(max(first, 0), max(last + 1, 0))
                alone = np.count_nonzero(byte == b) == 1
                colors[0, here] = cv.lane_color(lane) if alone else SEVERAL
            page.box(x, y, 8 * cell, TALL, edge=cv.INK, width=1.6, zorder=0.5)
            page.cells(x, y, colors, cell, TALL)
            end = x + 8 * cell
        segments = []
        for lane, b, n in zip(self.lanes, byte, size, strict=True):
            start = cv.MARGIN + (lane + 0.5) * STRIP / WARP
            to = place[b // SECTOR] + (b % SECTOR + min(n, SECTOR) / 2) / CELL * cell
            segments.append(((start, lane_y), (to, y)))
        page.lines(segments, [cv.lane_color(lane) for lane in self.lanes], 0.9)
        self._labels(page, touched, y + 0.33, end)

    def _labels(self, page: Canvas, touched: list[int], y: float, end: float) -> None:
        array, last = self.array, math.prod(self.array.shape) - 1
        first = element(array, touched[0] * SECTOR // array.element)
        final = element(array, min((touched[-1] + 1) * SECTOR // array.element - 1, last))
        gaps = touched[-1] - touched[0] + 1 - len(touched)
        are = "is" if gaps == 1 else "are"
        skipped = f"  ({many(gaps, 'sector')} between them {are} left out)" if gaps else ""
        if first == final:
            page.small(cv.MARGIN, y, first)
        elif end - cv.MARGIN < 3:
            page.small(cv.MARGIN, y, f"{first} … {final}{skipped}")
        else:
            page.small(cv.MARGIN, y, first)
            page.small(end, y, final, ha="right")
            page.small((cv.MARGIN + end) / 2, y, skipped.strip(" "), ha="center")

    def _inset(self, page: Canvas, y: float) -> None:
        """The whole matrix, small, with the touched elements in the lanes' colours."""
        rows, columns = self.array.shape
        cell = min(INSET[0] / columns, INSET[1] / rows)
        x = cv.WIDTH - cv.MARGIN - INSET[0] + (INSET[0] - cell * columns) / 2
        page.box(x, y, cell * columns, cell * rows, fill="#E3E6E9", edge=cv.GREY, width=0.6)
        mark = max(cell, 0.035)  # what would be too small to see is drawn larger
        for one, lane in zip(self.request, self.lanes, strict=True):
            row, column = divmod(int(one["index"]), columns)
            wide = max(1, int(one["size"]) // self.array.element) * cell
            left, top = x + column * cell, y + (row + 0.5) * cell - mark / 2
            page.box(left, top, max(wide, mark), mark, fill=cv.lane_color(lane))
        label, middle = f"{self.array.name}, {shape_text(self.array)}", cv.MARGIN + INSET[0] / 2
        page.small(cv.WIDTH - middle, y - 0.11, label, ha="center")
