"""The threads of a block as cells, a row for each warp."""

from collections.abc import Sequence

import numpy as np

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts.canvas import Canvas
from utils.diagrams.parts.scene import coordinate_text
from utils.watch.access_patterns import WARP
from utils.watch.trace import Launch

CELL = 0.2  # inches


def draw(
    page: Canvas,
    launch: Launch,
    colors: np.ndarray,
    texts: Sequence[str],
    marked: Sequence[int] = (),
) -> None:
    """Moves y on. `colors` (threads, 3) and `texts`, for each thread; `marked` ones are framed."""
    threads = launch.threads
    rows = -(-threads // WARP)
    tall = CELL if rows <= 16 else 0.15
    names = [f"warp {row}" for row in range(rows)]
    left = cv.MARGIN + 0.1 + max(cv.text_width(name, cv.SMALL) for name in names)
    right, top = left + min(WARP, threads) * CELL + 0.08, page.y + 0.08
    shown = np.ones((rows * WARP, 3))
    shown[:threads] = colors
    page.cells(left, top, shown.reshape(rows, WARP, 3), CELL, tall, edges=True)
    for lane in range(0, min(WARP, threads), 4):
        page.small(left + (lane + 0.5) * CELL, top - 0.1, str(lane), ha="center")
    page.small(right, top - 0.1, "lane")
    for row, name in enumerate(names):
        y = top + (row + 0.5) * tall
        page.small(cv.MARGIN, y, name)
        first, last = row * WARP, min(row * WARP + WARP, threads) - 1
        span = coordinate_text(first, launch.block)
        span += f" … {coordinate_text(last, launch.block)}" if last > first else ""
        page.small(right, y, f"{'thread' + 's' * (last > first)} {span}")
    for thread in range(threads):
        x, y = left + thread % WARP * CELL, top + thread // WARP * tall
        if texts[thread]:
            ink = cv.ink_on(colors[thread])
            page.small(x + CELL / 2, y + tall / 2, texts[thread], ha="center", color=ink)
    for thread in marked:
        x, y = left + thread % WARP * CELL, top + thread // WARP * tall
        page.box(x, y, CELL, tall, edge=cv.INK, width=2, zorder=5)
    page.y = top + rows * tall + 0.2
