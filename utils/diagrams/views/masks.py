"""A warp function whose mask names a lane that does not come: who calls, and who is gone."""

import numpy as np

from utils.diagrams.parts import block_cells, excerpt
from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts.canvas import Canvas
from utils.diagrams.parts.scene import Scene, coordinate_text, linear
from utils.diagrams.parts.story import opening
from utils.emulator.reports import Report
from utils.ground.wording import many
from utils.watch.access_patterns import WARP

CALLS, MISSING = cv.tint(cv.BLUE, 0.75), cv.rgb(cv.RED)
ABSENT, OTHERS = cv.tint(cv.RED, 0.5), cv.rgb(cv.PALE)


def draw(scene: Scene, report: Report) -> tuple[Canvas, str, str, str]:
    """(page, title, caption, description)"""
    launch = next(x for x in scene.trace.launches if x.kernel == (report.kernel or "")[:63])
    assert report.block and report.thread and report.other_thread  # of a hazard with `waits`
    missing = linear(report.other_thread, launch.block, "thread")
    warp = missing // WARP
    lanes = range(warp * WARP, min(warp * WARP + WARP, launch.threads))
    each = [(line, at) for threads, line, at in report.waits for _ in range(threads)]
    here = each[linear(report.thread, launch.block, "thread")]
    calls = [thread for thread in lanes if each[thread] == here]
    absent = [thread for thread in lanes if thread not in calls and thread != missing]
    colors = np.full((launch.threads, 3), OTHERS)
    colors[calls], colors[absent], colors[missing] = CALLS, ABSENT, MISSING
    texts = ["A" if thread in calls else "" for thread in range(launch.threads)]
    block = coordinate_text(linear(report.block, launch.grid, "block"), launch.grid)
    lane, line = f"lane {missing % WARP}", report.line
    title = f"{scene.name}: {lane} is named by the mask, and does not come"
    page = Canvas(
        title,
        f"{opening(scene)}A cell is a thread of block {block}. Warp {warp} is at the warp function "
        f"in line {line}.",
    )
    block_cells.draw(page, launch, colors, texts, [missing])
    makes = "makes" if len(calls) == 1 else "make"
    callers = many(len(calls), "lane")
    legend = [(CALLS, f"A: {callers} {makes} the call"), (MISSING, f"{lane}, named, is gone")]
    if absent:
        do = "does" if len(absent) == 1 else "do"
        legend.append((ABSENT, f"{len(absent)} more {do} not make it"))
    if len(lanes) < launch.threads:
        legend.append((OTHERS, "other warps"))
    page.legend(legend)
    page.y += 0.1
    excerpt.draw(page, scene, {line: f"A: {callers}"} if line else {})
    text = (
        f"Of the {many(len(lanes), 'lane')} of warp {warp}, {len(calls)} {makes} the call at line "
        f"{line}. Its mask names {lane} as well, which has left the kernel. A warp function is "
        "a meeting of all lanes that its mask names: to give a value, a lane must be there. What a "
        "GPU makes of it is not defined: it may wait forever, or go on with any value."
    )
    alt = "The threads of the block as cells, a row for each warp: who calls, and who does not."
    return page, title, text, alt
