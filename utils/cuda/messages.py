"""A compiler's message, cut down to what concerns the learner's text."""

import re
from collections.abc import Iterable
from pathlib import Path

from utils.cuda.plain_words import sentence
from utils.emulator.messages import GRAPHS
from utils.ground.wording import many

MAX_LINES = 30
ERRORS = 2  # that are shown; more tend to follow from these

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PLACE = re.compile(r"(?P<file>[^\s:()][^:()]*)[:(]\d+")
_GRAPHS = re.compile(rf"(\S+?:\d+):(?:\d+:)? error: [‘'](?P<name>{GRAPHS})[’'] .*(?:declared|type)")
_LAUNCH = re.compile(r"no matching function for call to [‘']emu::Config::Config\(.*?\)[’']")
_SHARED = re.compile(r"(\S+:\d+):\d+: note: in expansion of macro [‘']EMU_SHARED")
# What goes through the emulator's headers and the linker, and says nothing about the cell.
_NOISE = re.compile(
    r"In file included from|.*In instantiation of |.*\bld: .*in function|collect2: |"
    r"[^\s:]+: (?:In [\w ]*(?:function|constructor)|At global scope)|.*linker command failed"
)


def complaint(output: str, filename: str, folders: Iterable[Path], source: str = "") -> str:
    """What a compiler said of `filename`, alone or to ninja, and what its first error means.

    Names of our own `folders` are removed, and notes about other files; the first few errors are
    kept, at most MAX_LINES lines. `source` has lines as messages count them.
    """
    output = _ESCAPE.sub("", output)  # Jupyter sets CLICOLOR_FORCE, and ninja colours FAILED
    # ninja -v says "[1/2] command" for a step; then, where it fails, "FAILED: target", the command
    # again and what that printed.
    parts = re.split(r"^FAILED: .*\n.*\n", output, flags=re.MULTILINE)[1:] or [output]
    text = "\n".join(
        re.split(r"^(?:\[\d+/\d+\] |ninja: )", p, flags=re.MULTILINE)[0] for p in parts
    )
    for folder in folders:
        text = text.replace(f"{folder}/", "")
    text = re.sub(r"^\./", "", text, flags=re.MULTILINE)
    lines = list(_relevant(text.splitlines(), filename)) or (text or output).strip().splitlines()
    lines = [re.sub(r"\bemu_[tk]_(?=\w)", "", line) for line in lines]
    if graphs := next(filter(None, map(_GRAPHS.match, lines)), None):
        return _graphs(graphs, lines)
    lines = [_placed(line, follows) for line, follows in zip(lines, [*lines[1:], ""], strict=True)]
    hint = sentence(lines, source) if source else ""
    lines = [_LAUNCH.sub("a launch of another form", line) for line in _plain_shared(lines)]
    starts = [
        i for i, line in enumerate(lines) if re.match(rf"{re.escape(filename)}[:(].*error", line)
    ]
    if rest := starts[ERRORS:]:
        lines[rest[0] :] = [f"... ({many(len(rest), 'more error')}: fix the first one first)"]
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = [f"... ({many(len(lines) - MAX_LINES, 'more line')})"]
    if hint:  # behind the first error
        lines.insert(starts[1] if len(starts) > 1 else len(lines), f"hint: {hint}")
    return "\n".join(lines)


def _graphs(error: re.Match[str], lines: list[str]) -> str:
    """In place of an error for each name of CUDA graphs that is used, of which the emulator has
    none: one for all, with the line that it is about."""
    said = (
        f"{error[1]}: error: the emulator has no CUDA graphs, and {error['name']} is of these; "
        "launch the kernels one by one, as often as the graph would: a graph saves time, and "
        "computes the same"
    )
    quoted = lines[lines.index(error.string) + 1 :][:1]
    return "\n".join([said, *(line for line in quoted if line[:1].isspace())])


def _plain_shared(lines: list[str]) -> list[str]:
    """The lines, but for what the emulator's headers meet in a __shared__ array whose size is no
    constant: of that where it stands."""
    if not any("variably modified" in line for line in lines):
        return lines
    for line, quoted in zip(lines, [*lines[1:], ""], strict=True):
        if place := _SHARED.match(line):
            return [f"{place[1]}: error: the size of this __shared__ array is no constant", quoted]
    return lines


def _placed(line: str, follows: str) -> str:
    """A line without the column where that is one of the rewritten text, and without flags."""
    if "<<<" in follows:
        line = re.sub(r"^(\S+:\d+):\d+: ", r"\1: ", line)
    return line.removesuffix(" [-fpermissive]")


def _relevant(lines: list[str], filename: str) -> Iterable[str]:
    """Errors, and what else is about `filename`, with the lines that quote it."""
    keep, moved, warned, callers = True, False, False, []
    for line in lines:
        if not line[:1].isspace():
            moved = False
            place = _PLACE.match(line)
            elsewhere = place is not None and place["file"] != filename
            if "required from" in line or "required by" in line:  # by whom a template was asked for
                callers += [] if elsewhere else [line]
                keep = False
            elif _NOISE.match(line):
                keep = False
            elif ": warning: " in line or (warned and ": note: " in line):
                keep, warned = False, True
            elif "error" in line:
                yield from callers if elsewhere else []
                keep, warned, callers = True, False, []
            else:
                keep = not elsewhere
        elif moved and re.match(r"\s+\|", line):
            continue  # points into the rewritten line, not the one above
        if re.match(r"\s+\d+ \|", line):
            moved = "<<<" in line or "__shared__" in line
        if keep and line.strip():
            yield line.rstrip()
