"""Reports of hazards written by hand, and their pictures."""

from utils.diagrams.draw import render
from utils.diagrams.parts.scene import Scene
from utils.diagrams.picture import Picture
from utils.emulator.reports import Report
from utils.watch.trace import Trace

ORIGIN = (0, 0, 0)
GLOBAL_OUT = {"space": "global", "array": "out"}


def report(kind="race", **parts) -> Report:
    """Of thread 0, which reads s[0] in shared memory at line 1, if `parts` say nothing else."""
    place = {"block": ORIGIN, "thread": ORIGIN, "line": 1, "array": "s", "index": 0}
    place |= {"kernel": "kernel", "space": "shared", "access": "load"}
    return Report(kind, "", **{**place, **parts})


def race(first: tuple, second: tuple, index: int, **more) -> Report:
    """Of threads (x, access, line); the second one ran later and is the one that is reported."""
    (x, access, line), (other, other_access, other_line) = second, first
    parts = {"thread": (x, 0, 0), "access": access, "line": line, "index": index}
    parts |= {"other_thread": (other, 0, 0), "other_access": other_access}
    parts |= {"other_block": ORIGIN, "other_line": other_line}
    return report(**{**parts, **more})


def picture(trace: Trace, *hazards: Report, number=1, source="") -> Picture:
    return render(Scene("kernel", trace, source, hazards=hazards, hazard=number), "hazards")
