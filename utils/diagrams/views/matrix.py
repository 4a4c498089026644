"""The view "matrix": who reads what of the matrices, one thread and the whole grid."""

import math

import numpy as np
from matplotlib import colormaps

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts.canvas import Canvas
from utils.diagrams.parts.places import Place, lay_out
from utils.diagrams.parts.scene import Scene, coordinate_text, linear, listing, shape_text, times
from utils.ground.errors import WorkbookError
from utils.ground.wording import many
from utils.watch.access_patterns import reads_per_element, touches
from utils.watch.trace import GLOBAL, LOAD, Launch, Records

LARGEST = 512  # rows or columns that can be drawn
READ, WRITE = cv.BLUE, cv.RED


def draw(scene: Scene) -> tuple[Canvas, str, str, str]:
    """(page, title, caption, description)"""
    scene.require_all()
    out = scene.number(scene.array or _output(scene))
    launch = scene.launch_that(out)
    accesses = launch.accesses
    numbers = [
        i
        for i, array in enumerate(scene.arrays)
        if array.space == GLOBAL and array.shape and (i == out or np.any(accesses["array"] == i))
    ]
    for i in numbers:
        if max(scene.arrays[i].shape) > LARGEST:
            raise scene.too_large(f"{scene.arrays[i].name} is {shape_text(scene.arrays[i])}")
    places = [
        Place(i, scene.arrays[i], reads_per_element(accesses, i, scene.arrays[i])) for i in numbers
    ]
    places = lay_out(places, next(p for p in places if p.number == out))
    thread, name = _thread(scene, launch, out)
    who = accesses["block"].astype("i8") * launch.threads + accesses["thread"]
    title = f"{scene.name}: who reads what"
    page = Canvas(title, scene.size_text)
    top, one = page.y, accesses[who == thread]
    page.text(cv.MARGIN, top, f"One thread, {name}", bold=True)
    page.text(cv.WIDTH / 2 + 0.15, top, "The whole grid: reads of each element", bold=True)
    page.y = top + 0.4
    for place in places:
        _own(page, place, one[one["array"] == place.number])
    end = max(p.y + p.rows for p in places) * places[0].cell
    counts = {p.number: p.counts for p in places}
    most = max([1, *(int(c.max()) for c in counts.values())])
    for place in places:
        _heat(page, place, most)
    page.y += end + 0.3
    _key(page, most)
    caption = _caption(scene, one, out, counts)
    alt = (
        "Left, the matrices with the elements that one thread reads in blue and writes in red. "
        "Right, the same matrices coloured by how often the whole grid reads each element."
    )
    return page, title, caption, alt


def _output(scene: Scene) -> str:
    names = [n for n in scene.outputs if len(scene.arrays[scene.number(n)].shape) == 2]
    if not (names or scene.outputs):
        raise WorkbookError(f"{scene.name} has no output to draw")
    return (names or scene.outputs)[0]


def _thread(scene: Scene, launch: Launch, out: int) -> tuple[int, str]:
    """A thread counted through the grid, and what to call it: as asked for, or a middle one."""
    if scene.thread is not None:
        x, y, z = (g * b for g, b in zip(launch.grid, launch.block, strict=True))
        place = linear(scene.thread, (x, y, z), "thread")
        at = (place % x, place // x % y, place // (x * y))
        outer, inner = zip(*map(divmod, at, launch.block), strict=True)
        block = linear(outer, launch.grid, "block")
        thread = linear(inner, launch.block, "thread")
    else:
        mine = launch.accesses
        mine = mine[(mine["array"] == out) & (mine["kind"] != LOAD)]
        if len(mine) == 0:
            mine = launch.accesses
        goal = 0.4 * math.prod(scene.arrays[out].shape)
        goal += 0.4 * scene.arrays[out].shape[-1]
        lead = mine[np.argmin(np.abs(mine["index"] - goal))]
        block, thread = int(lead["block"]), int(lead["thread"])
    name = coordinate_text(thread, launch.block)
    return (
        block * launch.threads + thread,
        f"threadIdx {name} of block {coordinate_text(block, launch.grid)}",
    )


def _grid(page: Canvas, place: Place, left: float, colors: np.ndarray, detail: str) -> None:
    x, y, cell = left + place.x * place.cell, page.y + place.y * place.cell, place.cell
    wide, tall = place.columns * cell, place.rows * cell
    page.cells(x, y, colors.reshape(place.rows, place.columns, 3), cell, edges=True)
    page.box(x, y, wide, tall, edge=cv.GREY, width=0.7, zorder=3)
    page.text(x, y - 0.11, place.array.name, bold=True)
    after = cv.text_width(place.array.name, bold=True) + 0.08
    page.small(x + after, y - 0.11, detail)


def _own(page: Canvas, place: Place, accesses: Records) -> None:
    """What one thread reads, from light to dark in the order in which it does, and writes."""
    n = math.prod(place.array.shape)
    colors = np.tile(cv.rgb(cv.PALE), (n, 1))
    reads = accesses[accesses["kind"] == LOAD]
    for order, one in enumerate(reads):
        first, count = int(one["index"]), max(1, int(one["size"]) // place.array.element)
        colors[first : first + count] = cv.tint(READ, 0.45 + 0.55 * order / max(1, len(reads) - 1))
    writes = touches(accesses[accesses["kind"] != LOAD], place.array).reshape(-1)
    colors[writes > 0] = cv.rgb(WRITE)
    _grid(page, place, cv.MARGIN, colors, shape_text(place.array))
    touched = np.flatnonzero(np.any(colors != cv.rgb(cv.PALE), axis=1))
    mark = 0.05  # inches, where an element is too small to be seen
    for i in touched if place.cell < mark and len(touched) <= 2 * LARGEST else ():
        row, column = divmod(int(i), place.columns)
        x = cv.MARGIN + (place.x + column + 0.5) * place.cell - mark / 2
        y = page.y + (place.y + row + 0.5) * place.cell - mark / 2
        page.box(x, y, mark, mark, fill=colors[i], zorder=4)


def _heat(page: Canvas, place: Place, most: int) -> None:
    left, counts = cv.WIDTH / 2 + 0.15, place.counts.reshape(-1)
    shade = colormaps["viridis"](np.sqrt(counts / most))[:, :3]
    colors = np.where(counts[:, None] > 0, shade, cv.rgb(cv.PALE))
    _grid(page, place, left, colors, place.detail)


def _key(page: Canvas, most: int) -> None:
    """What the colours of both panels mean."""
    y = page.y
    first = cv.tint(READ, 0.45)
    page.legend([(first, "reads first"), (READ, "reads last"), (WRITE, "writes")])
    left, wide = cv.WIDTH / 2 + 0.15, 1.5
    bar = colormaps["viridis"](np.sqrt(np.linspace(0, 1, 64)))[None, :, :3]
    page.small(left, y, "1 read", color=cv.INK)
    start = left + cv.text_width("1 read", cv.SMALL) + 0.06
    page.cells(start, y - 0.06, bar, wide / 64, 0.12)
    page.small(start + wide + 0.06, y, many(most, "read"), color=cv.INK)
    page.box(start + wide + 0.85, y - 0.065, 0.13, 0.13, fill=cv.PALE, edge=cv.LINE, width=0.6)
    page.small(start + wide + 1.04, y, "never", color=cv.INK)


def _caption(scene: Scene, one: np.ndarray, out: int, counts: dict[int, np.ndarray]) -> str:
    arrays = scene.arrays
    loads = one[one["kind"] == LOAD]
    own = [
        f"{times(int((loads['array'] == i).sum()))} from {arrays[i].name}"
        for i in counts
        if np.any(loads["array"] == i)
    ]
    stores = int(((one["array"] == out) & (one["kind"] != LOAD)).sum())
    text = f"This thread reads {listing(own) or 'nothing'}; it writes "
    text += f"{many(stores, 'element')} of {arrays[out].name}."
    for i, count in counts.items():
        if not count.any():
            continue
        total, size, same = int(count.sum()), count.size, count.min() == count.max()
        each = f"{times(int(count.max()))} each" if same else f"{total / size:.1f} each on average"
        text += (
            f" The grid reads the {many(size, 'element')} of {arrays[i].name} "
            f"{many(total, 'time')}, {each}."
        )
    return text
