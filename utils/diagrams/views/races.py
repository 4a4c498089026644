"""A race: the element that two threads touch, and the order in which they happened to."""

import re

import numpy as np

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts import story
from utils.diagrams.parts.canvas import Canvas
from utils.diagrams.parts.conflicts import find, of_array, racing
from utils.diagrams.parts.scene import KINDS, Scene, linear
from utils.diagrams.parts.story import ALSO, FINE, HERE, VERBS, Subject
from utils.diagrams.parts.timeline import Event
from utils.emulator.reports import Report
from utils.watch.access_patterns import touches
from utils.watch.trace import LOAD, SHARED, STORE

VERDICT = "nothing orders these two"
NUMBERS = {name: number for number, name in KINDS.items()}


def draw(scene: Scene, report: Report) -> tuple[Canvas, str, str, str]:
    """(page, title, caption, description)"""
    subject = Subject(scene, report, find(scene, report))
    across = report.other_block != report.block
    who = [_party(subject, side) for side in ("other_", "")]
    title = f"{scene.name}: two threads race for {subject.name}"
    page = Canvas(title, story.opening(scene) + _sentence(subject, across))
    colors, legend, count = _colors(subject, across)
    rows = [_row(subject, side, across) for side in ("other_", "")]
    accesses = subject.accesses(None if across else who[0][0])
    if third := story.others(subject, accesses, who):
        rows.append(third)
    marks = (subject.seen.other, subject.seen.at)
    events = story.events_of(subject, accesses, who, marks, phases=not across)
    if not events:  # beyond what is recorded
        events = [
            Event(0, NUMBERS[report.other_access], report.other_line or 0, None, 1, True),
            Event(1, NUMBERS[report.access], report.line or 0, None, 1, True),
        ]
    story.tell(page, subject, colors, rows, events, VERDICT, legend, _notes(subject, across))
    alt = f"{subject.name} marked among the cells of its array. Beside it a time line with a row "
    alt += f"for each thread, where a red line joins two accesses: {VERDICT}."
    return page, title, _caption(subject, across, count), alt


def _party(subject: Subject, side: str) -> tuple[int, int]:
    """(block, thread), both counted through."""
    report, launch = subject.report, subject.seen.launch
    block, thread = getattr(report, f"{side}block"), getattr(report, f"{side}thread")
    return linear(block, launch.grid, "block"), linear(thread, launch.block, "thread")


def _row(subject: Subject, side: str, across: bool) -> tuple[str, str]:
    report = subject.report
    block, thread = getattr(report, f"{side}block"), getattr(report, f"{side}thread")
    if across:
        return subject.block(block), subject.thread(thread)
    return subject.thread(thread), f"warp {subject.warp(thread)}"


def _does(subject: Subject, side: str) -> str:
    """Such as "writes As[0][1] at line 14"."""
    report = subject.report
    line = getattr(report, f"{side}line")
    at = f" at line {line}" if line else ""
    return f"{VERBS[getattr(report, f'{side}access')]} {subject.name}{at}"


def _sentence(subject: Subject, across: bool) -> str:
    report = subject.report
    mine, theirs = subject.thread(report.thread), subject.thread(report.other_thread)
    if across:
        mine += f" of {subject.block(report.block)}"
        theirs += f" of {subject.block(report.other_block)}"
    text = f"{theirs} {_does(subject, 'other_')}; {mine} {_does(subject, '')}. "
    text = text[0].upper() + text[1:]
    if across:
        return text + "Blocks run in any order, or at the same time: either may come first."
    where = subject.block(report.block)
    return f"{text}Both are in {where}, and no barrier stands between: either may come first."


def _colors(subject: Subject, across: bool) -> tuple[np.ndarray | None, list, int]:
    """Colours of the array's elements, what they mean, and how many elements race."""
    array, seen = subject.array, subject.seen
    if array is None:
        return None, [], 1
    block = None if across and array.space != SHARED else _party(subject, "")[0]
    accesses = of_array(seen, block)
    touched = touches(accesses, array).reshape(-1) > 0
    source = subject.scene.source
    warps = re.search(r"__syncwarp|\bsync\s*\(", source) is not None
    if across and "__threadfence" in source:
        found = np.zeros(len(touched), bool)  # which blocks a fence orders is not in the trace
    else:
        found = racing(accesses, array, seen.launch.threads, across, warps)
    found[subject.index] = True
    colors = np.tile(cv.rgb(cv.PALE), (len(touched), 1))
    colors[touched], colors[found], colors[subject.index] = FINE, ALSO, cv.rgb(HERE)
    more, fine = int(found.sum()) - 1, int((touched & ~found).sum())
    none = len(touched) - more - fine - 1
    legend = [(HERE, "this race")]
    legend += [(ALSO, f"{more:,} more element{'s' * (more > 1)} with a race")] if more else []
    legend += [(FINE, f"{fine:,} touched without a race")] if fine else []
    legend += [(cv.PALE, f"{none:,} not touched")] if none else []
    return colors, legend, more + 1


def _notes(subject: Subject, across: bool) -> dict[int, str]:
    """What each of the two lines does, and who."""
    report, notes = subject.report, {}
    for side in ("other_", ""):
        line, verb = getattr(report, f"{side}line"), VERBS[getattr(report, f"{side}access")]
        who = _row(subject, side, across)[0]
        if line in notes:
            same = verb == notes[line].rpartition(" ")[2]
            notes[line] = f"both {verb[:-1]}" if same else f"{notes[line]}, {who} {verb}"
        elif line:
            notes[line] = f"{who} {verb}"
    return notes


def _caption(subject: Subject, across: bool, count: int) -> str:
    report = subject.report
    text = ""
    if subject.array is not None:
        n = int(np.prod(subject.array.shape, dtype=int))
        unless = "in two blocks" if across else "without a barrier between"
        are = "is" if count == 1 else "are"
        text = f"{count:,} of the {n:,} elements of {subject.array.name} {are} touched"
        text = text if n > 1 else f"{subject.name} is touched"
        text += f" by two threads {unless}, at least one of them writing. "
    text += f"{_outcome(subject)} "
    if report.count > 1:
        same = report.line == report.other_line
        lines = "The line raced with itself" if same else "The two lines raced"
        text += f"{lines} {report.count:,} times in this run. "
    warps = {subject.warp(report.thread), subject.warp(report.other_thread)}
    if not across and len(warps) == 1:
        text += f"That both threads are in warp {warps.pop()} orders nothing: its lanes need not "
        text += "run in step. "
    if subject.seen.at is None:
        text += "The race lies beyond the accesses that were recorded: draw a smaller size. "
    return text.strip()


def _outcome(subject: Subject) -> str:
    """What may come of it."""
    report, name = subject.report, subject.name
    first, second = report.other_access, report.access
    if report.line == report.other_line and {first, second} == {"load", "store"}:
        kinds = subject.seen.launch.accesses[subject.accesses()]
        parties = [
            {int(k) for k in kinds["kind"][(kinds["block"] == b) & (kinds["thread"] == t)]}
            for b, t in (_party(subject, side) for side in ("other_", ""))
        ]
        if all({LOAD, STORE} <= kinds for kinds in parties):
            return (
                f"Each of the two reads {name}, changes the value and writes it back. Where both "
                "read before either writes, one of the two changes is lost."
            )
    if first == second == "store":
        return f"The later write stays in {name}, and nobody knows which one that is."
    if "load" not in (first, second):
        return f"The plain write to {name} may come between others' updates, which are then lost."
    if first == "load":
        return (
            f"In this run the read came first and saw the old value of {name}; on a GPU it may "
            "come second and see the new one."
        )
    return (
        f"In this run the write came first and the read saw the new value of {name}; on a GPU the "
        "read may come first and see the old one. If the new one is meant, a barrier belongs "
        "between the write and the read; if the old one, between the read and the write."
    )
