"""The view "banks": how one warp's requests spread over the 32 banks of shared memory."""

import numpy as np

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts.canvas import Canvas
from utils.diagrams.parts.captions import instructions_left_out
from utils.diagrams.parts.scene import Instruction, Scene, instructions, shape_text
from utils.ground.errors import WorkbookError
from utils.ground.wording import many
from utils.watch.access_patterns import BANKS, WARP, WORD, bank_conflicts, lanes, service_phases
from utils.watch.trace import KINDS, SHARED

MOST = 8  # instructions in one picture
COLUMN = 0.2  # inches of a bank
INSET = (1.5, 1.5)  # inches for the shared array beside it
PARTS = ("", "half", "quarter")  # of a warp, served at once: there are 1, 2 or 4 phases


def draw(scene: Scene) -> tuple[Canvas, str, str, str]:
    """(page, title, caption, description)"""
    chosen = instructions(scene, SHARED)
    if not chosen:
        raise WorkbookError(f"{scene.name} uses no shared memory at {scene.size_text}")
    distinct = list({row.look: row for row in (_Row(scene, one) for one in chosen)}.values())
    rows = distinct[:MOST]
    title = f"{scene.name}: one warp's requests in the 32 banks of shared memory"
    page = Canvas(
        title,
        f"{scene.size_text}. Each line of the kernel as its first warp runs it, at its worst. A "
        "column is a bank; each cell in it is a 4-byte word that lanes want from it. A bank hands "
        "out one word in a wavefront, to all lanes that want it: the tallest column counts.",
    )
    for row in rows:
        row.draw(page)
    caption = _caption(rows)
    if len(distinct) > len(rows):
        caption += f" {instructions_left_out(len(distinct) - len(rows))}"
    described = "; ".join(f"line {row.one.line}, {row.what}: {row.verdict}" for row in rows)
    alt = f"For each access to shared memory, the words wanted from each bank. {described}."
    return page, title, caption, alt


def _caption(rows: list["_Row"]) -> str:
    worst = max(rows, key=lambda row: row.degree)
    if worst.degree == 1:
        return "No request here has a bank conflict."
    return (
        f"Line {worst.one.line}, {worst.what}: {worst.verdict}. One request of "
        f"{worst.warp} wants {worst.degree} different words of bank {worst.bank} and takes "
        f"{many(worst.wavefronts, 'wavefront')}; {worst.ideal} would do if they lay in different "
        "banks."
    )


class _Row:
    """One instruction: numbers first, then the drawing."""

    def __init__(self, scene: Scene, one: Instruction):
        self.one, self.array = one, scene.arrays[one.array]
        self.source = scene.text_of(one.line)
        self.request = request = _worst(one)
        self.lanes = lanes(request)
        self.phase = service_phases(request)
        banks = bank_conflicts(request)
        self.degree, self.wavefronts, self.ideal = (
            int(x[0]) for x in (banks.degree, banks.wavefronts, banks.ideal)
        )
        self.what = f"{KINDS[one.kind]} of {self.array.name}"
        self.warp = f"warp {int(request['thread'][0]) // WARP}"
        self.words = self._words()
        self.bank = max(self.words, key=lambda place: len(self.words[place]))[1]

    def _words(self) -> dict[tuple[int, int], dict[int, list[int]]]:
        """(phase, bank) -> word -> the lanes that want it."""
        words: dict[tuple[int, int], dict[int, list[int]]] = {}
        for x, lane, phase in zip(self.request, self.lanes, self.phase, strict=True):
            for word in range(x["byte"] // WORD, (x["byte"] + x["size"] - 1) // WORD + 1):
                column = words.setdefault((int(phase), int(word % BANKS)), {})
                column.setdefault(int(word), []).append(int(lane))
        return words

    @property
    def look(self) -> tuple[object, ...]:
        """What its drawing shows: a line that is unrolled, or called twice, may do so twice."""
        columns = [(at, *sorted(map(tuple, who.values()))) for at, who in self.words.items()]
        return (self.one.line, self.what, self.wavefronts, self.ideal, *sorted(columns))

    @property
    def verdict(self) -> str:
        return "no conflict" if self.degree == 1 else f"{self.degree}-way conflict"

    @property
    def note(self) -> str:
        sharers = max(len(who) for column in self.words.values() for who in column.values())
        notes = []
        if self.degree == 1 and sharers > 1 and self.request["size"][0] >= WORD:
            notes.append(f"{sharers} lanes share a word: one broadcast, no conflict")
        if self.ideal > 1:
            part = PARTS[int(self.phase.max()).bit_length()]
            notes.append(f"{self.request['size'][0]} bytes a lane: served by {part} warps")
        return "; ".join(notes)

    def draw(self, page: Canvas) -> None:
        top, wavefronts = page.y, many(self.wavefronts, "wavefront")
        page.heading(
            self.one.line,
            self.source,
            f"{self.what}: {self.verdict}, {wavefronts} per request, ideal {self.ideal}",
            self.note,
            good=self.degree == 1,
            room=INSET[0] if self._spans_rows() else 0,
        )
        start = page.y + 0.16
        tall = max(0.055, 0.2 if self.wavefronts <= 4 else 1.7 / self.wavefronts)
        bottom = start + max(tall * self.wavefronts, 0.2)
        self._columns(page, bottom, tall)
        low = self._inset(page, top + 0.1) if self._spans_rows() else 0.0
        page.y = max(bottom + 0.5, low + 0.3)

    def _columns(self, page: Canvas, bottom: float, tall: float) -> None:
        """The banks, words piled up from the bottom; phases one upon the other."""
        left, base = cv.MARGIN, 0
        for phase in range(4):
            piles = {bank: words for (p, bank), words in self.words.items() if p == phase}
            for bank, words in piles.items():
                crowded = len(words) > 1
                for level, (_, who) in enumerate(sorted(words.items())):
                    x, y = left + bank * COLUMN, bottom - (base + level + 1) * tall
                    self._cell(page, x, y, tall, who)
                if crowded:
                    top = bottom - (base + len(words)) * tall
                    page.box(
                        left + bank * COLUMN,
                        top,
                        COLUMN,
                        len(words) * tall,
                        edge=cv.RED,
                        width=2.2,
                        zorder=4,
                    )
            base += max(map(len, piles.values()), default=0)
            if piles and base < self.wavefronts:
                y = bottom - base * tall
                page.lines([((left, y), (left + BANKS * COLUMN, y))], cv.INK, 0.8, zorder=5)
        page.lines([((left, bottom), (left + BANKS * COLUMN, bottom))], cv.INK, 1.2)
        for bank in range(BANKS):
            x = left + (bank + 0.5) * COLUMN
            page.small(x, bottom + 0.1, str(bank), ha="center")
        end = left + BANKS * COLUMN + 0.05
        page.small(end, bottom + 0.1, "bank")
        if self.degree > 4:
            self._explain(page, bottom, tall)

    def _cell(self, page: Canvas, x: float, y: float, tall: float, who: list[int]) -> None:
        color = cv.rgb(cv.INK) if len(who) > 1 else cv.lane_color(who[0])
        gap = 0.01 if tall > 0.1 else 0.004
        page.box(x + 0.01, y + gap, COLUMN - 0.02, tall - 2 * gap, fill=color)
        if tall > 0.15:
            text = "all" if len(who) == WARP else f"×{len(who)}" if len(who) > 1 else str(who[0])
            if cv.text_width(text, cv.SMALL) < COLUMN:
                ink = cv.ink_on(color)
                page.small(x + COLUMN / 2, y + tall / 2, text, ha="center", color=ink)

    def _explain(self, page: Canvas, bottom: float, tall: float) -> None:
        """Words beside the tallest columns, on the side with more room, if there is any."""
        busy = {bank for _, bank in self.words}
        crowded = {bank for (_, bank), words in self.words.items() if len(words) == self.degree}
        text = f"{self.degree} different words in bank {self.bank}"
        if len(crowded) > 1:
            text = f"{self.degree} different words in each of {len(crowded)} banks"
        right = BANKS - 1 - max(busy) >= min(busy)
        x = max(busy) + 1.5 if right else min(busy) - 0.5
        room = (BANKS - x if right else x) * COLUMN
        if cv.text_width(text) < room:
            x, y = cv.MARGIN + x * COLUMN, bottom - self.wavefronts * tall + 0.12
            page.text(x, y, text, color=cv.BAD, ha="left" if right else "right")

    def _spans_rows(self) -> bool:
        shape = self.array.shape
        return len(shape) == 2 and len(set(self.request["index"] // shape[1])) > 1

    def _inset(self, page: Canvas, y: float) -> float:
        """The shared array as declared, the cells of the busiest bank marked. Returns its end."""
        rows, columns = self.array.shape
        if max(rows, columns) > 256:
            return 0.0
        cell = cv.snap(min(INSET[0] / columns, INSET[1] / rows))
        tall = max(cell, min(0.05, INSET[1] / rows))  # few rows of many columns are to be seen, too
        right = cv.WIDTH - cv.MARGIN
        x, y = right - cell * columns, y + 0.02
        index = np.arange(rows * columns)
        word = (self.array.offset + index * self.array.element) // WORD
        colors = np.tile(cv.rgb(cv.PALE), (rows * columns, 1))
        colors[word % BANKS == self.bank] = cv.rgb(cv.ORANGE)
        touched = {}
        for lane, first, size in zip(
            self.lanes, self.request["index"], self.request["size"], strict=True
        ):
            for i in range(first, first + max(1, size // self.array.element)):
                touched[i] = cv.rgb(cv.INK) if i in touched else cv.lane_color(lane)
        for i, color in touched.items():
            if word[i] % BANKS == self.bank:  # the bank shows around it
                left, top = x + (i % columns + 0.2) * cell, y + (i // columns) * tall
                page.box(left, top + 0.2 * tall, 0.6 * cell, 0.6 * tall, fill=color, zorder=2)
            else:
                colors[i] = color
        page.cells(x, y, colors.reshape(rows, columns, 3), cell, tall)
        page.box(x, y, cell * columns, tall * rows, edge=cv.GREY, width=0.6, zorder=3)
        page.small(right, y - 0.11, f"{self.array.name}, {shape_text(self.array)}", ha="right")
        page.small(right, y + tall * rows + 0.11, f"orange: bank {self.bank}", ha="right")
        return y + tall * rows + 0.11


def _worst(one: Instruction) -> np.ndarray:
    """The request with most wavefronts among those of the first warp that ran the instruction."""
    accesses, lead = one.accesses, one.accesses[0]
    warp = accesses[
        (accesses["block"] == lead["block"])
        & (accesses["thread"] // WARP == lead["thread"] // WARP)
    ]
    times = np.unique(warp["nth"])
    tries = [np.sort(warp[warp["nth"] == nth], order="thread") for nth in times]
    return max(tries, key=lambda request: int(bank_conflicts(request).wavefronts[0]))
