"""An access outside of an array: where it lies beside the array, and which threads reach there."""

import numpy as np

from utils.diagrams.parts import array_edge, block_cells, excerpt
from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts.array_edge import elements_in
from utils.diagrams.parts.canvas import Canvas
from utils.diagrams.parts.conflicts import element_of
from utils.diagrams.parts.scene import Scene, coordinate_text, element
from utils.diagrams.parts.story import ALSO, FINE, HERE, Subject, opening
from utils.emulator.reports import VERBS, Report
from utils.ground.wording import many


def draw(scene: Scene, report: Report) -> tuple[Canvas, str, str, str]:
    """(page, title, caption, description)"""
    subject = Subject(scene, report)
    launch, array, party = subject.seen.launch, subject.array, subject.party
    thread, block = subject.thread(party), subject.block(party)
    name = array.name if array else report.array
    verb = VERBS[party.access]
    title = f"{scene.name}: {thread} of {block} {verb} outside of {name}"
    line = f" at line {report.line}" if report.line else ""
    does = f"{opening(scene)}{thread[0].upper()}{thread[1:]} of {block} {verb}"
    width = _elements(subject)
    what = f"{name}[{subject.reported:,}]{line}, and there is no such element."
    if array is not None and 0 <= subject.reported < elements_in(array):
        what = f"{width} elements from {name}[{subject.reported:,}] on{line}, more than there are."
    page = Canvas(title, f"{does} {what}")
    who, index, outside = _accesses(subject)
    if array is not None:
        array_edge.draw(page, subject, array, who, index, outside, width)
    mine, number = subject.numbers(party)
    kinds = _threads(who, outside, mine, launch.threads)
    if not outside.any():
        kinds[number] = 2
    page.text(cv.MARGIN, page.y, f"The threads of {block}{line}", bold=True)
    page.y += 0.25
    colors = np.array([cv.rgb(cv.PALE), FINE, ALSO])[kinds]
    colors[number] = cv.rgb(HERE)
    block_cells.draw(page, launch, colors, [""] * launch.threads, [number])
    page.legend(_legend(kinds, thread))
    page.y += 0.1
    excerpt.draw(page, scene, {report.line: f"{thread} {verb}"} if report.line else {})
    caption = _caption(subject, who, outside)
    alt = f"The end of {name} in memory, with the elements beyond it that threads touch in red, "
    alt += "and the threads of the block, those out of bounds in red."
    return page, title, caption, alt


def _elements(subject: Subject) -> int:
    """How many elements the access covers; a float4 covers four."""
    if subject.seen.at is None or subject.array is None:
        return 1
    size = int(subject.seen.launch.accesses["size"][subject.seen.at])
    return -(-size // subject.array.element)


def _accesses(subject: Subject) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the hazard's instruction did: (thread through the grid, element, outside or not)."""
    seen, array = subject.seen, subject.array
    if seen.at is None or seen.number is None or array is None:
        return np.zeros(0, "i8"), np.zeros(0, "i8"), np.zeros(0, bool)
    a = seen.launch.accesses
    mine = a[(a["pc"] == a["pc"][seen.at]) & np.isin(a["array"], (seen.number, -1))]
    who = mine["block"].astype("i8") * seen.launch.threads + mine["thread"]
    index = element_of(mine, array)
    last = index + (mine["size"] - 1) // array.element
    return who, index, (index < 0) | (last >= elements_in(array))


def _threads(who: np.ndarray, outside: np.ndarray, block: int, threads: int) -> np.ndarray:
    """For each thread of the block: 0 does nothing at that line, 1 stays inside, 2 does not."""
    kinds = np.zeros(threads, int)
    here = who // threads == block
    kinds[who[here] % threads] = 1
    kinds[who[here & outside] % threads] = 2
    return kinds


def _legend(kinds: np.ndarray, thread: str) -> list[cv.Swatch]:
    outside, fine, none = (int((kinds == kind).sum()) for kind in (2, 1, 0))
    entries: list[cv.Swatch] = [(HERE, f"{thread}, the first out of bounds")]
    if outside > 1:
        entries.append((ALSO, f"{many(outside - 1, 'more thread')} of the block outside"))
    if fine:
        entries.append((FINE, f"{fine:,} inside"))
    if none:
        entries.append((cv.PALE, f"{none:,} touch nothing here"))
    return entries


def _caption(subject: Subject, who: np.ndarray, outside: np.ndarray) -> str:
    report, array, launch = subject.report, subject.array, subject.seen.launch
    if array is None:
        return str(report.message)
    n, at = elements_in(array), subject.reported
    last = element(array, n - 1)
    text = f"{array.name} has {many(n, 'element')}, the last of them {last}. "
    if len(array.shape) == 2 and at >= 0:
        row, column = divmod(at, array.shape[1])
        text += f"Element {at:,} would be row {row}, column {column}. "
    if 0 <= at < n:
        text += f"The access begins at {element(array, at)} and reaches beyond the end. "
    elif at < 0:
        text += f"The access is {many(-at, 'element')} before the first. "
    else:
        text += f"The access is {many(at - n + 1, 'element')} after the last. "
    if outside.any():
        parties = np.unique(who[outside])
        blocks = np.unique(parties // launch.threads)
        reach = "threads of the grid reach" if len(parties) > 1 else "thread of the grid reaches"
        text += f"{len(parties):,} {reach} out of bounds at this line"
        if len(blocks) > 1:
            text += f", in {len(blocks):,} blocks."
        else:
            text += f", in block {coordinate_text(int(blocks[0]), launch.grid)}."
    return text
