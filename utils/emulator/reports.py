"""What the emulator's runtime reports, in words that a beginner can act on."""

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from utils.emulator.hazards import HAZARDS, Hazard
from utils.emulator.symbols import Code, Frames, SourceLine, chains
from utils.emulator.traffic import Event, Position
from utils.ground.paths import workspace
from utils.ground.wording import many

Wait = tuple[int, int, str]  # threads, line, function


@dataclass(frozen=True)
class Report:
    """One event of a run. Parts that nobody knows are None.

    `other_…` is the second party of a race, or of a barrier that not all threads reach.
    """

    kind: str  # with the variant, a key of hazards.HAZARDS
    message: str
    variant: str = ""
    kernel: str | None = None
    block: Position | None = None
    thread: Position | None = None
    file: str | None = None
    line: int | None = None
    within: tuple[SourceLine, ...] = ()  # a header's functions, called there, where it happened
    callers: tuple[SourceLine, ...] = ()  # who called the function that the line is in
    address: str | None = None  # "0x1f30 in program", where there is no line
    space: str | None = None  # "shared" or "global"
    array: str | None = None
    index: int | None = None  # of the element, from the start of the array
    last: int | None = None  # of a wide access: its last element
    length: int = 0  # of the array, in elements; 0 where nobody knows
    shape: tuple[int, ...] = ()  # of a tensor; () where nobody knows
    extents: tuple[int, ...] = ()  # of a shared array, as it was declared
    access: str | None = None  # "load", "store" or "atomic"
    other_block: Position | None = None
    other_thread: Position | None = None
    other_file: str | None = None
    other_line: int | None = None
    other_access: str | None = None
    other_kernel: str | None = None  # of another stream: or the function that copies there
    remark: bool = False  # it is no hazard, as far as can be seen
    outside_too: bool = False  # the same line is told to leave the array: see causes_first
    before: str = ""  # what has led to it: the end of the sentence that says what happened
    count: int = 1
    waits: tuple[Wait, ...] = ()  # thread by thread
    quotes: tuple[tuple[str, str], ...] = ()  # places, such as line numbers, and the text there

    @property
    def place(self) -> str:
        """`file:line`, or the address."""
        if self.file:
            return f"{_own(self.file)}:{self.line}" if self.line else _own(self.file)
        return f"at address {self.address}" if self.address else ""

    def __str__(self) -> str:
        return "\n  ".join([*self._lines(), self._advice]).rstrip()

    @property
    def _advice(self) -> str:
        """One sentence or two on what to do; "" where there is nothing to say."""
        return self.row.advice.format(*self.shape)

    def _lines(self) -> list[str]:
        """What happened, and where: a line each."""
        title = f"remark: {self.row.words}" if self.remark else self.row.words
        head = f"{self.place}: {title}" if self.file else title
        # What a launch calls may be an expression, or a function's parameter.
        named = self.kernel and "(" not in self.kernel and self.kernel != "kernel"
        head += f" in kernel '{self.kernel}'" if named else ""
        head += f" {self.place}" if self.place and not self.file else ""
        head += f", {self.count} times" if self.count > 1 else ""
        who = f"block {self.block}, thread {self.thread}: " if self.block and self.thread else ""
        story = who + (self.message or self._story()) + self.before
        quoted = [f"{place:>4} | {text}" for place, text in self.quotes]
        return [line for line in (head, *quoted, *self._calls(), story) if line]

    def _calls(self) -> Iterator[str]:
        """The way from the kernel to where it happened."""
        if self.within and (len(self.within) > 1 or len(self.quotes) < 2):
            yield f"by way of {', '.join(f'{_short(f)}:{n}' for f, n in reversed(self.within))}"
        if self.callers:
            yield f"called at {', '.join(f'{_short(f)}:{n}' for f, n in self.callers)}"

    @property
    def row(self) -> Hazard:
        """What is told of its kind and variant."""
        for refined, holds in REFINED.get(self._key, ()):
            if holds(self):
                return HAZARDS[refined]
        return HAZARDS.get(self._key) or Hazard(self.kind.replace("-", " "), "")

    @property
    def _key(self) -> str:
        return f"{self.kind}/{self.variant}" if self.variant else self.kind

    @property
    def equal(self) -> bool:
        """Whether it is a race of stores of the same value, benign as far as can be seen."""
        return (self.kind, self.variant) == ("race", "same-value")

    @property
    def _adds(self) -> bool:
        """Whether an element is changed in several steps, not only read: `out[i] += 1`."""
        text = self.quotes[0][1] if self.quotes else ""
        name = re.escape(self.array or "")
        changed = re.search(rf"\b{name}\b\s*(\[.*\])?\s*([-+*/|&^]=|\+\+|--)", text)
        return bool(changed)

    @property
    def _in_one_line(self) -> bool:
        return bool(self.line) and (self.file, self.line) == (self.other_file, self.other_line)

    def _story(self) -> str:
        """What happened, from the parts: "writes As[33]; thread (4, 0, 0) reads it at line 12"."""
        if self.variant == "exited-lane":
            gone = "which comes to the kernel's end without this call"
            return f"the mask names thread {self.other_thread}, {gone}"
        if self.variant == "left-out":
            return f"waits here; thread {self.other_thread} has come to the kernel's end without it"
        story = f"{VERBS[self.access]} {self._elements()}" if self.access else "waits here"
        if self.other_kernel and self.other_access:
            story += f"; {self.other_kernel} {VERBS[self.other_access]} it"
            story += f" at line {self.other_line}" if self.other_line else ""
            story += ", and nothing says which comes first"
        elif self.other_thread:
            story += f"; thread {self.other_thread}"
            story += f" of block {self.other_block}" if self.other_block != self.block else ""
            story += f" {VERBS[self.other_access]} it" if self.other_access else ""
            where = f" of {_own(self.other_file or '')}" if self.other_file != self.file else ""
            story += f" at line {self.other_line}{where}" if self.other_line else ""
            story += ", with the same value" if self.equal else ""
        return story

    def _element(self, index: int | None) -> str:
        """As C++ would have it, also one beyond the end: tile[3][0]."""
        places: list[int | None] = []
        for extent in reversed(self.extents[1:]):
            if index is not None:
                index, place = divmod(index, extent)
                places.insert(0, place)
        return (self.array or "memory") + "".join(f"[{place}]" for place in (index, *places))

    def _elements(self) -> str:
        """Such as "y[0]", and where it is out of bounds "y[0] to y[3]; y has 1 element"."""
        text = self._element(self.index)
        if self.kind != "out-of-bounds":
            return text
        if self.last is not None and self.last != self.index:
            text += f" to {self._element(self.last)}"
        sides = self.shape or self.extents
        shape = f", {' x '.join(map(str, sides))}" if len(sides) > 1 else ""
        has = f"{many(self.length, 'element')}{shape}"
        return f"{text}; {self.array or 'memory'} has {has}" if self.length else text


# Variants that only the kernel's text, a tensor's shape or the number of times shows, not the
# runtime: the row there would be -> the rows there may be, and when; the first that fits counts.
REFINED: dict[str, tuple[tuple[str, Callable[[Report], bool]], ...]] = {
    "crash": (("crash/division", lambda it: "division by zero" in it.message),),
    "out-of-bounds": (
        ("out-of-bounds/matrix", lambda it: len(it.shape) == 2 and min(it.shape) > 1),
    ),
    "uninitialized/global": (
        ("uninitialized/outside-too", lambda it: it.outside_too),
        ("uninitialized/updated", lambda it: it.access == "atomic"),
        ("uninitialized/added-to", lambda it: it._adds),
    ),
    "race": (("race/one-line", lambda it: it._in_one_line),),
    "race/same-value": (
        ("race/same-value-often", lambda it: it.space == "global" and it.count > 1),
    ),
}
VERBS = {"load": "reads", "store": "writes", "atomic": "updates"}


def cause(report: Report) -> tuple[object, ...]:
    """What two reports share that are of one cause, such as those of a kernel's two launches, or
    of a race that each of its two sides came upon."""
    here, there = (report.file, report.line), (report.other_file, report.other_line)
    places = (
        tuple(sorted((here, there), key=str)) if any(here) else (report.address, report.message)
    )
    return report.row, report.remark, report.array, *places


def causes_first(hazards: Sequence[Report]) -> list[Report]:
    """The same, but where one line reads what nobody has written in global memory, and leaves that
    array, too, its way out comes first: the same index may be why."""

    def place(report: Report) -> tuple[object, ...]:
        return report.file, report.line, report.array

    unwritten: dict[tuple[object, ...], int] = {}
    for n, hazard in enumerate(hazards):
        if hazard._key == "uninitialized/global" and hazard.line:
            unwritten.setdefault(place(hazard), n)
    outside = {place(h) for h in hazards if h.kind == "out-of-bounds" and place(h) in unwritten}

    def rank(at: int) -> tuple[int, bool]:
        hazard = hazards[at]
        left = hazard.kind == "out-of-bounds" and place(hazard) in outside
        return min(at, unwritten[place(hazard)]) if left else at, not left

    ordered = [hazards[at] for at in sorted(range(len(hazards)), key=rank)]
    return [
        replace(h, outside_too=h.kind == "uninitialized" and place(h) in outside) for h in ordered
    ]


def messages(hazards: Iterable[Report]) -> list[str]:
    """Each in words. What to do is said once where it is the same for several in a row."""
    texts, before = [], ""
    for hazard in hazards:
        lines = hazard._lines()
        if (advice := hazard._advice) and advice != before:
            lines.append(advice)
        texts.append("\n  ".join(lines))
        before = advice
    return texts


def _short(file: str) -> str:
    """A header of the workbook's by its name alone."""
    return os.path.basename(file) if os.path.isabs(file) else file


def _own(file: str) -> str:
    """The workbook's headers by their names alone; a file of the reader's as it was given."""
    ours = Path(file).is_relative_to(workspace().include)
    return os.path.basename(file) if ours else file


Texts = Callable[[str, int], str]  # the text of a line of a file; "" where it is not known


def from_files(file: str, line: int) -> str:
    """A line of a file that there is."""
    if not (path := Path(file)).is_file():
        return ""
    lines = path.read_text(errors="replace").splitlines()
    return lines[line - 1] if 0 < line <= len(lines) else ""


def read(text: str, texts: Texts = from_files) -> list[Report]:
    """The hazards in what the runtime wrote; a line that broke off is passed over."""
    return [report for report in _read(text, texts) if not report.remark]


def remarks(text: str, texts: Texts = from_files) -> list[Report]:
    """What looks wrong in what the runtime wrote, and has had no consequences."""
    return [report for report in _read(text, texts) if report.remark]


_LONGEST = {"block": (1024, 1024, 64), "grid": (2**31 - 1, 65_535, 65_535)}
THREADS = 1024  # of a block, at most


def refused(text: str) -> str:
    """Which launch CUDA would have refused, and why, from what the runtime wrote; "" for none."""
    return next((_refused(e) for e in events_of(text) if e.get("event") == "refused"), "")


def events_of(text: str) -> Iterator[Event]:
    """What the runtime wrote, line by line; one that broke off is passed over."""
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def _refused(event: Event) -> str:
    why = []
    for what, most in _LONGEST.items():
        for axis, size, limit in zip("xyz", event[what], most, strict=True):
            if size == 0:
                down = " (is a division rounded down?)" if what == "grid" else ""
                why.append(f"the {what} is 0 along {axis}{down}")
            elif size > limit:
                why.append(f"the {what} is {size:,} along {axis}, where {limit:,} is the most")
    threads = math.prod(event["block"])
    if threads > THREADS and not why:
        why.append(f"a block has {threads:,} threads, where {THREADS:,} is the most")
    if event["shared"] > event["shared_limit"]:
        why.append(
            f"a block asks for {event['shared']:,} bytes of dynamic shared memory, where "
            f"{event['shared_limit']:,} is the most"
        )
    grid, block = (f"dim3({', '.join(map(str, event[what]))})" for what in ("grid", "block"))
    return f"{event['kernel']}<<<{grid}, {block}>>>: {'; '.join(why)}"


def _read(text: str, texts: Texts) -> list[Report]:
    events: list[Event] = []
    numbered: dict[int, Event] = {}  # hazards of the launch that is being told of
    waits: tuple[Wait, ...] = ()  # of the hazard that is told of next
    for event in events_of(text):
        if event.get("event") == "waits":
            waits = tuple((w["threads"], w["line"], w["for"]) for w in event["waits"])
        elif "kind" in event:
            events.append({**event, "waits": waits})
            waits = ()
            if event.get("event") == "hazard":
                numbered[event.get("number", 0)] = events[-1]
        elif event.get("event") == "hazard-count":
            numbered[event["number"]]["count"] = event["count"]
        elif event.get("event") == "hazard-certain":
            hazard = numbered[event["number"]]
            hazard["remark"] = False
            hazard["message"] += f"; {event['consequence']}"
    events = [event for event in events if event.get("count") != 0]  # withdrawn
    names = [(f"{side}module", f"{side}offset") for side in ("", "other_")]
    known = chains([(e[m], e[o]) for e in events for m, o in names if m in e])
    return [_report(event, known, texts) for event in events]


def _report(event: Event, known: Mapping[Code, list[SourceLine]], texts: Texts) -> Report:
    parts: Event = {"message": "", "address": event.get("pc")}
    parts |= {name: event[name] for name in Report.__dataclass_fields__ if name in event}
    for name in ("block", "thread", "other_block", "other_thread", "extents"):
        if name in parts:
            parts[name] = tuple(parts[name])
    parts["remark"] = bool(parts.get("remark"))
    quotes = {}
    for prefix in ("", "other_"):
        module, offset = event.get(f"{prefix}module", ""), event.get(f"{prefix}offset", "")
        chain = known.get((module, offset), [])
        if source := event.get(f"{prefix}file"):
            chain = _from_there(chain, (source, event[f"{prefix}line"]))
        if not chain:
            if module and not prefix:
                parts["address"] = f"{offset} in {module.rpartition('/')[2]}"
            continue
        within, (file, line), callers = _parted(chain, texts)
        parts[f"{prefix}file"], parts[f"{prefix}line"] = file, line
        if not prefix:
            parts["within"], parts["callers"] = within, callers
        for where, number in [(file, line), *within[:1]] if not prefix else [(file, line)]:
            if number and (quoted := texts(where, number).strip()):
                name = str(number) if where == parts.get("file") else f"{_short(where)}:{number}"
                quotes[name] = quoted
    parts["quotes"] = tuple(quotes.items())
    return Report(**parts)


def _from_there(chain: list[SourceLine], place: SourceLine) -> list[SourceLine]:
    """The frames of a chain from a place on that the runtime has given."""
    for i, (file, line) in enumerate(chain):
        if f"/{file}".endswith(f"/{place[0]}") and line == place[1]:
            return chain[i:]
    return [place]  # the chain is that of another place, such as the runtime's own


def _parted(chain: list[SourceLine], texts: Texts) -> tuple[Frames, SourceLine, Frames]:
    """(frames in headers, the first in the file of the kernel, those that called it)."""
    chain = list(dict.fromkeys(chain))
    while len(chain) > 1 and _launches(*chain[-1], texts):
        chain = chain[:-1]
    own = next(i for i, frame in enumerate(chain) if frame[0] == chain[-1][0])
    return tuple(chain[:own]), chain[own], tuple(chain[own + 1 :])


def _launches(file: str, line: int, texts: Texts) -> bool:
    """Whether a line is (the end of) a launch, in which a kernel's body may be inlined, or the
    kernel's own head, which stands for it."""
    lines = [texts(file, number) for number in range(max(line - 2, 1), (line or 1) + 1)]
    if "__global__" in lines[-1]:
        return True
    return not lines[-1] or "<<<" in " ".join(lines).rpartition(";")[2] or "<<<" in lines[-1]
