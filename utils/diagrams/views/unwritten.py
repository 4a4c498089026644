"""A read of an element that nobody has written: what was written by then, and what was not."""

import numpy as np

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts import story
from utils.diagrams.parts.canvas import Canvas
from utils.diagrams.parts.conflicts import of_array, read_unwritten
from utils.diagrams.parts.scene import Scene, coordinate_text
from utils.diagrams.parts.story import ALSO, FINE, HERE, Subject
from utils.diagrams.parts.timeline import Event
from utils.emulator.reports import VERBS, Report
from utils.watch.access_patterns import touches
from utils.watch.trace import KINDS, LOAD, SHARED


def draw(scene: Scene, report: Report) -> tuple[Canvas, str, str, str]:
    """(page, title, caption, description)"""
    subject = Subject(scene, report)
    launch, name, party = subject.seen.launch, subject.name, subject.party
    thread, block, verb = subject.thread(party), subject.block(party), VERBS[party.access]
    title = f"{scene.name}: {thread} reads {name}, which nobody has written"
    line = f" at line {report.line}" if report.line else ""
    page = Canvas(
        title,
        f"{story.opening(scene)}{thread[0].upper()}{thread[1:]} of {block} {verb} {name}{line}. "
        "What it finds there is left over from something else: any value at all.",
    )
    who = [subject.numbers(party)]
    writer = _writer(subject) if report.access == "load" else None
    rows = [_row(subject, *who[0])]
    if writer is not None and writer not in who:
        who.append(writer)
        rows.append(_row(subject, *writer))
    accesses = subject.accesses()
    if more := story.others(subject, accesses, who):
        rows.append(more)
    phases = len(np.unique(launch.accesses["block"][accesses])) == 1
    events = story.events_of(subject, accesses, who, (subject.seen.at,), phases)
    events = events or [Event(0, KINDS.index(party.access), report.line or 0, None, 1, True)]
    verdict = "nobody has written it yet" if writer else "nobody ever writes it"
    if report.access == "atomic":
        verdict = "nobody has set it before"
    colors, legend, caption = _colors(subject)
    notes = {report.line: f"{rows[0][0]} {verb}"} if report.line else {}
    if writer:
        later = launch.accesses[_first_write(subject)]
        notes.setdefault(int(later["line"]), f"{rows[-1 if more is None else 1][0]} writes, later")
        caption += f" It is written later, at line {later['line']}."
    elif report.access == "atomic":
        caption += " An atomic update builds on the value that is there: set it first."
    elif subject.seen.at is not None:
        caption += " Nobody writes it afterwards, either."
    story.tell(page, subject, colors, rows, events, verdict, legend, notes)
    alt = f"{name} marked among the cells of its array, those already written in another colour. "
    alt += f"Beside it a time line of the accesses to it: {verdict}."
    return page, title, caption.strip(), alt


def _row(subject: Subject, block: int, thread: int) -> tuple[str, str]:
    launch = subject.seen.launch
    name = f"thread {coordinate_text(thread, launch.block)}"
    return name, f"block {coordinate_text(block, launch.grid)}"


def _first_write(subject: Subject) -> int | None:
    """The number of the first write to the element after the read."""
    accesses = subject.seen.launch.accesses
    writes = [i for i in subject.accesses() if accesses["kind"][i] != LOAD and i > subject.seen.at]
    return int(writes[0]) if writes else None


def _writer(subject: Subject) -> tuple[int, int] | None:
    """(block, thread) of whoever writes it later."""
    i = _first_write(subject)
    accesses = subject.seen.launch.accesses
    return None if i is None else (int(accesses["block"][i]), int(accesses["thread"][i]))


def _colors(subject: Subject) -> tuple[np.ndarray | None, list[cv.Swatch], str]:
    """Colours of the array's elements, what they mean, and what there is to say of them."""
    array, seen, scene = subject.array, subject.seen, subject.scene
    if array is None:
        return None, [], ""
    shared = array.space == SHARED
    block = subject.numbers(subject.party)[0] if shared else None
    mine = of_array(seen, block)
    limit = len(seen.launch.accesses) if seen.at is None else seen.at
    before = seen.launch.accesses[:limit]
    before = before[before["array"] == seen.number]
    if shared:
        before = before[before["block"] == block]
    else:  # earlier launches wrote to it, too
        for launch in scene.trace.launches[: scene.trace.launches.index(seen.launch)]:
            earlier = launch.accesses[launch.accesses["array"] == seen.number]
            before, mine = np.r_[earlier, before], np.r_[earlier, mine]
    written = touches(before[before["kind"] != LOAD], array).reshape(-1) > 0
    unread = read_unwritten(mine, array)
    colors = np.tile(cv.rgb(cv.PALE), (len(written), 1))
    colors[written], colors[unread], colors[subject.index] = FINE, ALSO, cv.rgb(HERE)
    n, done = len(written), int((written & ~unread).sum())
    unread[subject.index] = False
    more = int(unread.sum())
    none = n - done - more - 1
    legend: list[cv.Swatch] = [(HERE, "read here, unwritten")]
    they = "it is" if more == 1 else "they are"
    legend += [(ALSO, f"{more:,} more read before {they} written")] if more else []
    legend += [(FINE, f"{done:,} written by then")] if done else []
    legend += [(cv.PALE, f"{none:,} not written by then")] if none > 0 else []
    by_then = int(written.sum())
    many = f"{by_then:,}" if by_then else "none"
    text = f"When the thread reads {subject.name}, {many} of the {n:,} elements of {array.name} "
    text += f"{'is' if by_then < 2 else 'are'} written"
    text += ", and this one is not." if by_then else "."
    return colors, legend, text if n > 1 else ""
