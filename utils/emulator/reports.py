"""What the emulator's runtime reports, in words that a beginner can act on."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from utils.emulator.advice import WORDS
from utils.emulator.symbols import Code, SourceLine, chains
from utils.wording import many

Position = tuple[int, int, int]


@dataclass(frozen=True)
class Report:
    """One event of a run. Parts that nobody knows are None.

    `other_…` is the second party of a race, or of a barrier that not all threads reach.
    """

    kind: str  # a key of advice.WORDS
    message: str
    kernel: str | None = None
    block: Position | None = None
    thread: Position | None = None
    file: str | None = None
    line: int | None = None
    caller: SourceLine | None = None  # who called the header's function that the line is in
    address: str | None = None  # "0x1f30 in program", where there is no line
    space: str | None = None  # "shared" or "global"
    array: str | None = None
    index: int | None = None  # of the element, from the start of the array
    last: int | None = None  # of a wide access: its last element
    length: int = 0  # of the array, in elements; 0 where nobody knows
    access: str | None = None  # "load", "store" or "atomic"
    other_block: Position | None = None
    other_thread: Position | None = None
    other_file: str | None = None
    other_line: int | None = None
    other_access: str | None = None
    equal: bool = False  # of a race: both store the same value
    remark: bool = False  # it is no hazard, as far as can be seen
    count: int = 1
    waits: tuple[tuple[int, int, str], ...] = ()  # (threads, line, function), thread by thread

    @property
    def place(self) -> str:
        """`file:line`, or the address."""
        if self.file:
            return f"{self.file}:{self.line}" if self.line else self.file
        return f"at address {self.address}" if self.address else ""

    def __str__(self) -> str:
        title, advice = WORDS.get(self._word, (self.kind.replace("-", " "), ""))
        title = f"remark: {title}" if self.remark else title
        head = f"{self.place}: {title}" if self.file else title
        head += f" in kernel '{self.kernel}'" if self.kernel else ""
        head += f" {self.place}" if self.place and not self.file else ""
        head += f", {self.count} times" if self.count > 1 else ""
        who = f"block {self.block}, thread {self.thread}: " if self.block and self.thread else ""
        called = f"called at {self.caller[0]}:{self.caller[1]}" if self.caller else ""
        story = who + (self.message or self._story())
        return "\n  ".join(filter(None, (head, called, story, advice)))

    @property
    def _word(self) -> str:
        """The kind, or a special case of it that has advice of its own."""
        if self.kind == "out-of-bounds" and self.space == "shared":
            return "out of a shared array"
        if self.kind == "uninitialized" and self.space == "global":
            return "uninitialized global"
        if self.kind == "divergent-barrier" and self.other_thread and not self.other_line:
            return "barrier left out"
        if self.kind != "race":
            return self.kind
        if self.equal:
            return "race of equals"
        if self.space == "global" and "atomic" in (self.access, self.other_access):
            return "race with atomics"
        stores = self.access == self.other_access == "store"
        if self.other_block is not None and self.other_block != self.block:
            return "race of owners" if stores else "race of blocks"
        if stores:
            return "race of writers"
        same = (self.file, self.line) == (self.other_file, self.other_line)
        return "race in a line" if same and self.line else "race"

    def _story(self) -> str:
        """What happened, from the parts: "writes As[33]; thread (4, 0, 0) reads it at line 12"."""
        if self.kind == "invalid-mask" and self.other_thread:
            return f"the mask names thread {self.other_thread}, which has left the kernel"
        if self._word == "barrier left out":
            return f"waits here; thread {self.other_thread} has come to the kernel's end without it"
        story = f"{_VERBS[self.access]} {self._elements()}" if self.access else "waits here"
        if self.other_thread:
            story += f"; thread {self.other_thread}"
            story += f" of block {self.other_block}" if self.other_block != self.block else ""
            story += f" {_VERBS[self.other_access]} it" if self.other_access else ""
            where = f" of {self.other_file}" if self.other_file != self.file else ""
            story += f" at line {self.other_line}{where}" if self.other_line else ""
            story += ", with the same value" if self.equal else ""
        return story

    def _elements(self) -> str:
        """Such as "y[0]", and where it is out of bounds "y[0] to y[3]; y has 1 element"."""
        array = self.array or "memory"
        text = f"{array}[{self.index}]"
        if self.kind != "out-of-bounds":
            return text
        if self.last is not None and self.last != self.index:
            text += f" to {array}[{self.last}]"
        return f"{text}; {array} has {many(self.length, 'element')}" if self.length else text


_VERBS = {"load": "reads", "store": "writes", "atomic": "updates"}


def read(text: str) -> list[Report]:
    """The hazards in what the runtime wrote; a line that broke off is passed over."""
    return [report for report in _read(text) if not report.remark]


def remarks(text: str) -> list[Report]:
    """What looks wrong in what the runtime wrote, and has had no consequences."""
    return [report for report in _read(text) if report.remark]


def _read(text: str) -> list[Report]:
    events: list[dict] = []
    numbered: dict[int, dict] = {}  # hazards of the launch that is being told of
    waits: tuple = ()  # of the hazard that is told of next
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if not isinstance(event, dict):
            continue
        if event.get("event") == "waits":
            waits = tuple((w["threads"], w["line"], w["for"]) for w in event["waits"])
        elif "kind" in event:
            events.append({**event, "waits": waits})
            waits = ()
            if event.get("event") == "hazard":
                numbered[event.get("number")] = events[-1]
        elif event.get("event") == "hazard-count":
            numbered[event["number"]]["count"] = event["count"]
        elif event.get("event") == "hazard-certain":
            hazard = numbered[event["number"]]
            hazard["remark"] = False
            hazard["message"] += f"; {event['consequence']}"
    events = [event for event in events if event.get("count") != 0]  # withdrawn
    names = [(f"{side}module", f"{side}offset") for side in ("", "other_")]
    known = chains([(e[m], e[o]) for e in events for m, o in names if m in e])
    return [_report(event, known) for event in events]


def _report(event: dict, known: Mapping[Code, list[SourceLine]]) -> Report:
    parts = {"message": "", "address": event.get("pc")}
    parts |= {name: event[name] for name in Report.__dataclass_fields__ if name in event}
    for name in ("block", "thread", "other_block", "other_thread"):
        if name in parts:
            parts[name] = tuple(parts[name])
    for name in ("equal", "remark"):
        parts[name] = bool(parts.get(name))
    for prefix in ("", "other_"):
        module, offset = event.get(f"{prefix}module"), event.get(f"{prefix}offset")
        if module is None:
            continue
        chain = known[module, offset]
        if f"{prefix}file" not in parts:
            if chain:
                parts[f"{prefix}file"], parts[f"{prefix}line"] = chain[0]
            elif not prefix:
                parts["address"] = f"{offset} in {module.rpartition('/')[2]}"
        if not prefix:
            own = f"/{parts.get('file', '')}"  # a header's, or the whole path of it
            parts["caller"] = next((p for p in chain if not f"/{p[0]}".endswith(own)), None)
    return Report(**parts)
