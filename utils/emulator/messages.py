"""What g++ says of a rewritten text, cut down to what its author can use."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from utils.emulator.build import include_dir

# Columns and carets would point into the rewritten line; `readable` shows the author's own.
FLAGS = ["-fno-show-column", "-fno-diagnostics-show-caret", "-fdiagnostics-color=never"]

_PLACE = re.compile(r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? +(?P<rest>.*)")
_INCLUDED = re.compile(r"(?:In file included )?from |.*: In (?:instantiation|substitution) of ")
_REQUIRED = re.compile(r"(?:recursively )?required (?:from|by)|\[ skipping")


def readable(message: str) -> str:
    """A compiler's message without the way through templates that are not the author's.

    An error is followed by the author's lines that led there, and each of the author's lines by
    its text, where the file can be read.
    """
    return "\n".join(_readable(message.splitlines()))


def _readable(lines: Iterable[str]) -> Iterator[str]:
    trail: list[tuple[str, str]] = []
    shown: set[tuple[str, str]] = set()
    for line in lines:
        match = _PLACE.match(line)
        if _INCLUDED.match(line.strip()) or (not match and "required from" in line):
            continue
        if not match:
            yield line
            continue
        file, number, rest = match.groups()
        if _REQUIRED.match(rest):
            trail.append((file, number))
            continue
        if "error:" in rest:
            shown = set()
        if (file, number) in shown and "in expansion of macro" in rest:
            continue
        yield from _lines(file, number, rest)
        shown.add((file, number))
        for place in trail if "error:" in rest else []:
            if place not in shown and _is_own(place[0]):
                yield from _lines(*place, "note: by way of this line")
                shown.add(place)
        trail = []


def _is_own(file: str) -> bool:
    return not file.startswith(("/usr/", str(include_dir()), "<"))


def _lines(file: str, number: str, rest: str) -> Iterator[str]:
    """What is said of a line, and the author's line itself."""
    yield f"{file.removeprefix(f'{include_dir()}/')}:{number}: {rest}"
    if _is_own(file) and Path(file).is_file():
        lines = Path(file).read_text(errors="replace").splitlines()
        yield from (f"    {line.strip()}" for line in lines[int(number) - 1 : int(number)])
