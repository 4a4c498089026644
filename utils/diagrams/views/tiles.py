"""The view "tiles": what one block touches, phase by phase, a phase ending at each barrier."""

import math

import numpy as np

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts import stepping
from utils.diagrams.parts.canvas import Canvas
from utils.diagrams.parts.captions import phases_left_out
from utils.diagrams.parts.phases import (
    BEFORE,
    BOTH,
    COLORS,
    FILLED,
    GLOBAL_READ,
    SHARED_READ,
    STATES,
    WRITE,
    Block,
    as_matrix,
    some_phases,
)
from utils.diagrams.parts.scene import Scene, listing, shape_text, times
from utils.ground.errors import WorkbookError
from utils.ground.wording import many
from utils.watch.access_patterns import touches
from utils.watch.trace import GLOBAL, LOAD, SHARED, Array, Records

COLUMNS = 8  # phases of matrices side by side
ROWS = 12  # phases of one-dimensional arrays, one below the other
LARGEST = 512  # rows or columns of a matrix
LEAST = 0.1, 0.35  # inches: height of a row, width of an array; what is smaller is drawn larger


def draw(scene: Scene) -> tuple[Canvas, str, str, str]:
    """(page, title, caption, description)"""
    block = Block.of(scene)
    arrays, phases = list(block.arrays.values()), block.phases
    if not arrays:
        raise WorkbookError(f"that block of {scene.name} touches none of its arrays")
    for array in arrays:
        if len(array.shape) == 2 and max(array.shape) > LARGEST:
            raise scene.too_large(f"{array.name} is {shape_text(array)}")
    flat = all(len(array.shape) < 2 for array in arrays)
    shown = some_phases(phases, ROWS if flat else COLUMNS)
    title = f"{scene.name}: what block {block.name} touches, phase by phase"
    page = Canvas(title, f"{scene.size_text}. A phase ends where the block waits at a barrier.")
    (_rows if flat else _columns)(page, block, shown)
    _legend(page, block)
    caption = _caption(block)
    if len(shown) < len(phases):
        caption += f" {phases_left_out(len(phases) - len(shown))}"
    alt = (
        f"A panel for each phase and array; {many(len(shown), 'phase')} of "
        f"{', '.join(array.name for array in arrays)}, with the elements touched in colour."
    )
    return page, title, caption, alt


def steps(scene: Scene) -> dict[str, object] | None:
    """The same phases for a page that shows one at a time, with the lines that run in each."""
    block = Block.of(scene)
    accesses, phases = block.accesses, block.phases
    panels, parts = [], []
    for number, array in block.arrays.items():
        first, end = 0, math.prod(array.shape)
        detail, (rows, columns) = shape_text(array), as_matrix(array)
        if len(array.shape) == 1:  # of a long one, what the block touches
            first, end = _span(block, number)
            detail = f"{first} … {end - 1}"
            rows, columns = -(-(end - first) // 64), min(end - first, 64)
        panels.append(stepping.Panel(array.name, detail, rows, columns))
        parts.append((number, first, end))
    walk = []
    for phase in some_phases(phases, stepping.MOST):
        now = accesses["phase"] == phase
        cells = [block.states(number, phase)[first:end] for number, first, end in parts]
        lines = np.unique(accesses["line"][now]).tolist()
        said = _said(scene, accesses[now], last=phase == phases[-1])
        walk.append(stepping.Step(f"phase {phase}", said, cells, lines))
    return stepping.data(scene, "Phase", STATES, panels, walk)


def _said(scene: Scene, now: np.ndarray, last: bool) -> str:
    """All that happens in a phase."""
    does = []
    for space, memory in ((GLOBAL, "global"), (SHARED, "shared")):
        loads = now[(now["kind"] == LOAD) & (now["space"] == space) & (now["array"] >= 0)]
        counts = [
            _reads(scene.arrays[i], loads[loads["array"] == i]) for i in np.unique(loads["array"])
        ]
        does += [f"reads {listing(counts)} from {memory} memory"] if counts else []
    stores = now[(now["kind"] != LOAD) & (now["array"] >= 0)]
    counts = [
        _elements(len(np.unique(stores["index"][stores["array"] == i])), scene.arrays[i])
        for i in np.unique(stores["array"])
    ]
    does += [f"writes {listing(counts)}"] if counts else []
    end = "Then the block is done." if last else "Then all its threads wait at a barrier."
    return f"The block {listing(does) or 'touches none of its arrays'}. {end}"


def _span(block: Block, number: int) -> tuple[int, int]:
    """The first element of an array that a block touches, and the end behind the last."""
    index = block.accesses["index"][block.accesses["array"] == number]
    return int(index.min()), int(index.max()) + 1


def _columns(page: Canvas, block: Block, shown: list[int]) -> None:
    """Phases from left to right, a row for each array; all at the same scale but the smallest."""
    accesses, arrays = block.accesses, block.arrays.values()
    shapes = [as_matrix(a) for a in arrays]
    names = 0.15 + max(cv.text_width(a.name, bold=True) for a in arrays)
    names = max(names, 0.15 + max(cv.text_width(shape_text(a), cv.SMALL) for a in arrays))
    column = (cv.INNER - names) / max(len(shown), 3)
    room = (cv.INNER - names) / len(shown) - 0.05
    most, every = max(columns for _, columns in shapes), sum(rows for rows, _ in shapes)
    cell = cv.snap(min((column - 0.14) / most, 5.5 / every, 0.12))
    top, most_lines = page.y, 1
    for order, phase in enumerate(shown):
        x = cv.MARGIN + names + order * column
        skipped = order and phase > shown[order - 1] + 1
        page.text(x, top, f"{'… ' if skipped else ''}phase {phase}", bold=True, size=cv.SMALL)
        doing = cv.broken(_doing(accesses[accesses["phase"] == phase]), room, cv.SMALL)
        for at, line in enumerate(doing):
            page.small(x, top + 0.16 + 0.15 * at, line)
        most_lines = max(most_lines, len(doing))
    page.y = top + 0.18 + 0.15 * most_lines
    for (number, array), (rows, columns) in zip(block.arrays.items(), shapes, strict=True):
        used = accesses["phase"][accesses["array"] == number]
        high = max(rows * cell, min(LEAST[0] * rows, 0.3))
        tall, broad = high / rows, max(cell, min(LEAST[1] / columns, 0.12))
        page.text(cv.MARGIN, page.y + 0.07, array.name, bold=True)
        page.small(cv.MARGIN, page.y + 0.24, shape_text(array))
        for order, phase in enumerate(shown):
            x = cv.MARGIN + names + order * column
            colors = np.tile(cv.rgb("white"), (rows * columns, 1))
            colors[: math.prod(array.shape)] = COLORS[block.states(number, phase)]
            page.cells(x, page.y, colors.reshape(rows, columns, 3), broad, tall, edges=True)
            edge, width = (cv.INK, 1.0) if phase in used else (cv.MID, 0.6)
            page.box(x, page.y, columns * broad, high, edge=edge, width=width, zorder=3)
        page.y += max(high, 0.34) + 0.16
    page.y += 0.06


def _doing(accesses: Records) -> str:
    """A phase in a word or two."""
    loads, shared = accesses["kind"] == LOAD, accesses["space"] == SHARED
    stores = np.any(~loads & ~shared)
    fills = np.any(loads & ~shared) and np.any(~loads & shared)
    uses, makes = np.any(loads & shared), np.any(~loads & shared) and not fills
    words = {
        "global → shared": fills,
        "reads global": np.any(loads & ~shared) and not fills and not stores,
        "reads, writes shared": uses and makes,
        "reads shared": uses and not makes,
        "writes shared": makes and not uses,
        "writes global": stores,
    }
    return ", ".join(word for word, does in words.items() if does)


def _rows(page: Canvas, block: Block, shown: list[int]) -> None:
    """Phases from top to bottom, each array as one strip of the elements that the block touches."""
    arrays = block.arrays
    spans = [_span(block, number) for number in arrays]
    lengths = np.array([end - first for first, end in spans])
    left, gap, tall = cv.MARGIN + 0.75, 0.2, 0.2
    room = cv.WIDTH - cv.MARGIN - left - gap * (len(arrays) - 1)
    shares = np.maximum(lengths / lengths.sum(), 0.55 / room)
    widths = room * shares / shares.sum()
    starts = left + np.cumsum(widths + gap) - widths - gap
    top = page.y
    for array, (first, end), x, wide in zip(arrays.values(), spans, starts, widths, strict=True):
        page.text(x, top, array.name, bold=True)
        if array.shape and wide > 1.2:
            after = cv.text_width(array.name, bold=True) + 0.08
            page.small(x + after, top, f"{first} … {end - 1}")
    page.y = top + 0.14
    for order, phase in enumerate(shown):
        if order and phase > shown[order - 1] + 1:
            page.text(cv.MARGIN, page.y + 0.05, "…", color=cv.GREY)
            page.y += 0.16
        page.small(cv.MARGIN, page.y + tall / 2, f"phase {phase}", color=cv.INK)
        for number, (first, end), x, wide in zip(arrays, spans, starts, widths, strict=True):
            colors = COLORS[block.states(number, phase)][None, first:end]
            page.cells(x, page.y, colors, min(wide / (end - first), 0.3), tall, edges=True)
        page.y += tall + 0.08
    page.y += 0.1


def _legend(page: Canvas, block: Block) -> None:
    accesses = block.accesses
    loads, shared = accesses["kind"] == LOAD, accesses["space"] == SHARED
    place = np.stack([accesses[f].astype("i8") for f in ("phase", "array", "index")])
    reads, writes = ({tuple(p) for p in place[:, kind].T} for kind in (loads, ~loads))
    occurs = {
        GLOBAL_READ: np.any(loads & ~shared),
        BEFORE: np.any(loads & ~shared),
        SHARED_READ: np.any(loads & shared),
        WRITE: np.any(~loads),
        FILLED: bool(block.filled.any()),
        BOTH: bool(reads & writes),
    }
    page.legend([STATES[state] for state, does in occurs.items() if does])


def _caption(block: Block) -> str:
    """What the first phase that loads brings, and how often what is shared is read."""
    accesses = block.accesses
    parts = []
    for space, verb in ((GLOBAL, "reads"), (SHARED, "reads")):
        loads = accesses[(accesses["kind"] == LOAD) & (accesses["space"] == space)]
        if not len(loads):
            continue
        phase = int(loads["phase"].min())
        loads = loads[loads["phase"] == phase]
        counts = [
            _reads(array, loads[loads["array"] == i])
            for i, array in block.arrays.items()
            if np.any(loads["array"] == i)
        ]
        where = "global" if space == GLOBAL else "shared"
        parts.append(
            f"In phase {phase} block {block.name} {verb}, from {where} memory, {listing(counts)}."
        )
    counts = [
        _elements(len(np.unique(mine["index"])), array)
        for i, array in block.arrays.items()
        if len(mine := accesses[block.filled & (accesses["array"] == i)])
    ]
    if counts:
        parts.append(f"Without reading anything for them it writes {listing(counts)}.")
    barriers = block.phases[-1]
    parts.append(f"It passes {many(barriers, 'barrier') if barriers else 'no barrier'}.")
    return " ".join(parts)


def _reads(array: Array, loads: np.ndarray) -> str:
    count = touches(loads, array)
    count = count[count > 0]
    often = times(int(count.max()))
    if count.min() < count.max():
        often = f"{count.min()} to {count.max()} times"
    return f"{_elements(len(count), array)} {often}{' each' * (len(count) > 1)}"


def _elements(count: int, array: Array) -> str:
    """So many of an array; of one that a kernel divides up as it likes, bytes."""
    return f"{many(count, 'element' if array.element > 1 else 'byte')} of {array.name}"
