"""What the emulator's diagnosis has found in the launches of a judged file."""

import itertools
import json
from collections.abc import Iterator

from utils.emulator import reports
from utils.emulator.reports import Report
from utils.process.box import Session
from utils.process.guest.framing import Header

EVENTS = 200  # events that are read


def reports_of(session: Session, header: Header) -> list[Report]:
    """The hazards, with lines of the file's CUDA text; a race of equal values is none."""
    text = header.get("hazards")
    events = "\n".join(_placed(text, session)) if isinstance(text, str) else ""
    lines = session.source.splitlines()

    def line(file: str, number: int) -> str:
        known = file == "cuda_sources" and 0 < number <= len(lines)
        return lines[number - 1] if known else ""

    try:
        return [report for report in reports.read(events, line) if not report.equal]
    except (KeyError, TypeError, ValueError, AttributeError):
        return []  # no event of the runtime's


def _placed(text: str, session: Session) -> Iterator[str]:
    """Events that name the libraries as they are on this side."""
    names = {f"build {number}": str(path) for number, path in enumerate(session.built)}
    for event in itertools.islice(reports.events_of(text), EVENTS):
        for name in ("module", "other_module"):
            if name in event:
                event[name] = names.get(event[name], "")
        yield json.dumps(event)
