"""A race: the element that two threads touch, and the order in which they happened to."""

import re

import numpy as np

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts import stepping, story, timeline
from utils.diagrams.parts.canvas import Canvas
from utils.diagrams.parts.conflicts import Party, of_array, racing
from utils.diagrams.parts.phases import as_matrix
from utils.diagrams.parts.scene import Scene, shape_text, times
from utils.diagrams.parts.story import ALSO, FINE, HERE, Subject
from utils.diagrams.parts.timeline import Event
from utils.emulator.reports import VERBS, Report
from utils.ground.wording import many
from utils.watch.access_patterns import touches
from utils.watch.trace import KINDS, LOAD, SHARED, STORE

VERDICT = "nothing orders these two"


def draw(scene: Scene, report: Report) -> tuple[Canvas, str, str, str]:
    """(page, title, caption, description)"""
    subject = Subject(scene, report)
    across = report.other_block != report.block
    title = f"{scene.name}: two threads race for {subject.name}"
    page = Canvas(title, story.opening(scene) + _sentence(subject, across))
    colors, legend, count = _colors(subject, across)
    rows, events = _run(subject, across)
    story.tell(page, subject, colors, rows, events, VERDICT, legend, _notes(subject, across))
    alt = f"{subject.name} marked among the cells of its array. Beside it a time line with a row "
    alt += f"for each thread, where a red line joins two accesses: {VERDICT}."
    return page, title, _caption(subject, across, count), alt


def steps(scene: Scene, report: Report) -> dict[str, object] | None:
    """The accesses to the element for a page that shows one after the other, and at the end why
    their order is nothing to rely on."""
    subject = Subject(scene, report)
    rows, events = _run(subject, report.other_block != report.block)
    shown, array = timeline.some(events), subject.array
    colors: list[cv.Swatch] = [
        (cv.PALE, "no access so far"),
        (cv.LINE, "accesses left out", "…"),
    ]
    states = {kind: number for number, kind in enumerate(timeline.LETTERS, len(colors))}
    colors += [
        (timeline.COLORS[kind], f"{story.WORDS[kind]} {subject.name}", letter)
        for kind, letter in timeline.LETTERS.items()
    ]
    panels = [stepping.Panel(name, detail, 1, len(shown)) for name, detail in rows]
    lines = [np.zeros(len(shown), int) for _ in rows]
    if array is not None:
        panels.insert(0, stepping.Panel(array.name, shape_text(array), *as_matrix(array)))
        lines.insert(0, np.zeros(int(np.prod(array.shape)), int))
    selected: list[stepping.Step] = []
    phase: int | None = None
    for place, event in enumerate(shown):
        ran = []
        if isinstance(event, int):
            lines[-1][place] = 1
            said = f"{event:,} more access{'es' * (event > 1)}, left out here."
        else:
            at = event.row if array is None else event.row + 1
            lines[at][place] = states[event.kind]
            if array is not None:
                lines[0][subject.index] = states[event.kind]
            said, ran = _phrase(subject, rows[event.row][0], event, phase), [event.line]
            phase = event.phase
        selected.append(stepping.Step(f"access {place + 1}", said, [x.copy() for x in lines], ran))
    both = sorted({event.line for event in events if event.mark})
    said = f"Nothing orders the two accesses of this race. {_outcome(subject)}"
    selected.append(stepping.Step("what may come of it", said, lines, both))
    return stepping.data(scene, "Step", colors, panels, selected)


def _phrase(subject: Subject, who: str, event: Event, before: int | None) -> str:
    """One access in words, and the barrier before it where there was one."""
    verb = VERBS[KINDS[event.kind]]
    if re.match(r"(?!1 )\d", who):  # 30 other threads
        verb = verb[:-1]
    barrier = before is not None and event.phase != before
    text = "After a barrier, " if barrier else ""
    text += f"{who} {verb} {subject.name}"
    text += f" {times(event.count)}" if event.count > 1 else ""
    text += f" at line {event.line}" if event.line else ""
    return f"{text[0].upper()}{text[1:]}."


def _run(subject: Subject, across: bool) -> tuple[list[tuple[str, str]], list[Event]]:
    """The rows of the time line and the accesses of the run, as timeline.draw() takes them."""
    who = [subject.numbers(party) for party in subject.racers]
    rows = [_row(subject, party, across) for party in subject.racers]
    accesses = subject.accesses(None if across else who[0][0])
    if third := story.others(subject, accesses, who):
        rows.append(third)
    marks = (subject.seen.other, subject.seen.at)
    events = story.events_of(subject, accesses, who, marks, phases=not across)
    if not events:  # beyond what is recorded
        events = [
            Event(row, KINDS.index(party.access), party.line or 0, None, 1, True)
            for row, party in enumerate(subject.racers)
        ]
    return rows, events


def _row(subject: Subject, party: Party, across: bool) -> tuple[str, str]:
    if across:
        return subject.block(party), subject.thread(party)
    return subject.thread(party), f"warp {subject.warp(party)}"


def _does(subject: Subject, party: Party, across: bool) -> str:
    """Such as "thread 3 writes As[0][1] at line 14"."""
    where = f" of {subject.block(party)}" if across else ""
    line = f" at line {party.line}" if party.line else ""
    return f"{subject.thread(party)}{where} {VERBS[party.access]} {subject.name}{line}"


def _sentence(subject: Subject, across: bool) -> str:
    text = "; ".join(_does(subject, party, across) for party in subject.racers)
    text = f"{text[0].upper()}{text[1:]}. "
    if across:
        return text + "Blocks run in any order, or at the same time: either may come first."
    where = subject.block(subject.party)
    return f"{text}Both are in {where}, and no barrier stands between: either may come first."


def _colors(subject: Subject, across: bool) -> tuple[np.ndarray | None, list[cv.Swatch], int]:
    """Colours of the array's elements, what they mean, and how many elements race."""
    array, seen = subject.array, subject.seen
    if array is None:
        return None, [], 1
    block = None if across and array.space != SHARED else subject.numbers(subject.party)[0]
    accesses = of_array(seen, block)
    touched = touches(accesses, array).reshape(-1) > 0
    source = subject.scene.source
    warps = re.search(r"__syncwarp|\bsync\s*\(", source) is not None
    if across and "__threadfence" in source:
        mask = np.zeros(len(touched), bool)  # which blocks a fence orders is not in the trace
    else:
        mask = racing(accesses, array, seen.launch.threads, across, warps)
    mask[subject.index] = True
    colors = np.tile(cv.rgb(cv.PALE), (len(touched), 1))
    colors[touched], colors[mask], colors[subject.index] = FINE, ALSO, cv.rgb(HERE)
    more, fine = int(mask.sum()) - 1, int((touched & ~mask).sum())
    none = len(touched) - more - fine - 1
    legend: list[cv.Swatch] = [(HERE, "this race")]
    legend += [(ALSO, f"{many(more, 'more element')} with a race")] if more else []
    legend += [(FINE, f"{fine:,} touched without a race")] if fine else []
    legend += [(cv.PALE, f"{none:,} not touched")] if none else []
    return colors, legend, more + 1


def _notes(subject: Subject, across: bool) -> dict[int, str]:
    """What each of the two lines does, and who."""
    notes: dict[int, str] = {}
    for party in subject.racers:
        line, verb, who = party.line, VERBS[party.access], _row(subject, party, across)[0]
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
    warps = {subject.warp(party) for party in subject.racers}
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
            for b, t in map(subject.numbers, subject.racers)
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
