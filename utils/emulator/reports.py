"""What the emulator's runtime reports, in words that a beginner can act on."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from utils.emulator import include_dir
from utils.emulator.advice import WORDS
from utils.wording import many

Position = tuple[int, int, int]
Code = tuple[str, str]  # a module, and an offset in it such as "0x1f30"
Place = tuple[str, int]  # file and line


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
    caller: Place | None = None  # who called the header's function that the line is in
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
        if self.kind == "divergent-barrier" and self.other_thread and not self.other_line:
            return "barrier left out"
        if self.kind != "race":
            return self.kind
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
    """The reports in what the runtime wrote; a line that broke off is passed over."""
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
    events = [event for event in events if event.get("count") != 0]  # withdrawn
    names = [(f"{side}module", f"{side}offset") for side in ("", "other_")]
    known = _chains([(e[m], e[o]) for e in events for m, o in names if m in e])
    return [_report(event, known) for event in events]


def _report(event: dict, known: Mapping[Code, list[Place]]) -> Report:
    parts = {"message": "", "address": event.get("pc")}
    parts |= {name: event[name] for name in Report.__dataclass_fields__ if name in event}
    for name in ("block", "thread", "other_block", "other_thread"):
        if name in parts:
            parts[name] = tuple(parts[name])
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


def locate(module: str, offset: str) -> Place | None:
    """The source line of an offset such as "0x1f30" in a library or program with debug info.

    Where it was inlined, the line of the caller's own source. None without binutils' addr2line.
    """
    return places([(module, offset)])[module, offset]


def places(codes: Iterable[Code]) -> dict[Code, Place | None]:
    """The source line of each of many offsets; see `locate`."""
    return {code: chain[0] if chain else None for code, chain in _chains(codes).items()}


def _chains(codes: Iterable[Code]) -> dict[Code, list[Place]]:
    """For each offset its line and those of who called it inlined, without the emulator's own."""
    known: dict[Code, list[Place]] = {}
    for module, group in groupby(sorted(set(codes)), key=lambda code: code[0]):
        offsets = [offset for _, offset in group]
        frames = _frames(module, [int(offset, 16) for offset in offsets])
        known |= {(module, o): _own(f) for o, f in zip(offsets, frames, strict=True)}
    return known


def _own(frames: list[Place]) -> list[Place]:
    own = [f for f in frames if not f[0].startswith(("/usr/", str(include_dir())))]
    return [(file.removeprefix("./"), line) for file, line in own or frames]


def resolve_lines(module: str | Path, offsets: Sequence[int], filename: str) -> list[int]:
    """For each offset in a library, the line of `filename` that it comes from; 0 if of none."""
    return [
        next((line for file, line in frames if f"/{file}".endswith(f"/{filename}")), 0)
        for frames in _frames(str(module), offsets)
    ]


def _frames(module: str, offsets: Sequence[int]) -> list[list[tuple[str, int]]]:
    """For each offset its source lines, that of the innermost inlined function first."""
    tool = shutil.which("addr2line")
    if tool is None or not offsets:
        return [[] for _ in offsets]
    command = [tool, "-a", "-i", "-e", module]
    addresses = "\n".join(map(hex, offsets))
    done = subprocess.run(command, input=addresses, capture_output=True, text=True, timeout=60)
    # "0x0000000000001f30", then "file:line" or "??:?" for each function.
    parts = re.split(r"^0x[0-9a-f]+$", done.stdout, flags=re.MULTILINE)[1:]
    found = [re.findall(r"^(.*[^?\n]):(\d+)", part, re.MULTILINE) for part in parts]
    found += [[]] * (len(offsets) - len(found))
    return [[(file, int(line)) for file, line in frames] for frames in found]
