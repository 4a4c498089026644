"""Threads that do not meet: where each thread of the block waits."""

from collections import Counter

import numpy as np

from utils.diagrams.parts import block_cells, excerpt
from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts.canvas import Canvas
from utils.diagrams.parts.scene import Scene, coordinate_text, linear, listing
from utils.diagrams.parts.story import opening
from utils.emulator.reports import Report
from utils.ground.wording import many

COLORS = [cv.tint(color, 0.75) for color in (cv.BLUE, cv.ORANGE, cv.GREEN, cv.PURPLE)]
LEFT = cv.rgb(cv.PALE)  # has left the kernel


def draw(scene: Scene, report: Report) -> tuple[Canvas, str, str, str]:
    """(page, title, caption, description)"""
    launches = [x for x in scene.trace.launches if x.kernel == (report.kernel or "")[:63]]
    launch = launches[-1] if report.kind == "deadlock" else launches[0]
    assert report.block  # of a hazard with `waits`
    each = [(line, at) for threads, line, at in report.waits for _ in range(threads)]
    counts = Counter(each)
    places = sorted(place for place in counts if place[0])
    letters = {place: "ABCD"[min(i, 3)] for i, place in enumerate(places)}
    color = {place: COLORS[min(i, 3)] for i, place in enumerate(places)}
    block = coordinate_text(linear(report.block, launch.grid, "block"), launch.grid)
    never = report.kind == "deadlock"
    title = f"{scene.name}: the threads of block {block} wait "
    title += "for each other forever" if never else "at different barriers"
    page = Canvas(
        title,
        f"{opening(scene)}A cell is a thread, its colour and letter the line where it waits.",
    )
    colors = np.array([color.get(place, LEFT) for place in each])
    block_cells.draw(page, launch, colors, [letters.get(p, "") for p in each])
    legend = [(color[p], f"{letters[p]}: {_threads(counts[p])} at line {p[0]}") for p in places]
    if gone := counts[0, ""]:
        legend.append((LEFT, f"{_threads(gone, 'has', 'have')} left the kernel"))
    page.legend(legend)
    page.y += 0.1
    notes: dict[int, str] = {}
    for place in places:
        note = f"{letters[place]}: {_threads(counts[place])}"
        notes[place[0]] = f"{notes[place[0]]}; {note}" if place[0] in notes else note
    excerpt.draw(page, scene, notes)
    parts = [f"{counts[p]:,} wait{'s' * (counts[p] == 1)} at line {p[0]}" for p in places]
    text = f"Of the {many(launch.threads, 'thread')} of block {block}, {listing(parts)}"
    text += f"; {gone:,} {'has' if gone == 1 else 'have'} left the kernel. " if gone else ". "
    text += _advice(places, never)
    alt = "The threads of the block as cells, a row for each warp, coloured by where they wait."
    return page, title, text, alt


def _threads(count: int, one: str = "waits", more: str = "wait") -> str:
    return f"{many(count, 'thread')} {one if count == 1 else more}"


def _advice(places: list[tuple[int, str]], never: bool) -> str:
    warp = [str(line) for line, at in places if at != "__syncthreads"]
    if never and warp:
        return (
            f"The warp function at line {listing(warp)} waits for every lane that its mask names, "
            "and some of those lanes wait elsewhere: nobody can go on."
        )
    if never:
        return "None of them can go on."
    return (
        "__syncthreads() is a meeting of the whole block at one place. What a GPU makes of two "
        "meetings at once is not defined: it may hang, or go on with half of the work undone."
    )
