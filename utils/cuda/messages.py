"""A compiler's message, cut down to what concerns the learner's text."""

import re
from collections.abc import Iterable
from pathlib import Path

from utils.wording import many

MAX_LINES = 30

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PLACE = re.compile(r"(?P<file>[^\s:()][^:()]*)[:(]\d+")
# What goes through the emulator's headers and the linker, and says nothing about the cell.
_NOISE = re.compile(
    r"In file included from|.*In instantiation of .*<lambda|.*\bld: .*in function|collect2: |"
    r".*linker command failed"
)


def complaint(output: str, filename: str, folders: Iterable[Path]) -> str:
    """What the compiler said of `filename`, from ninja's output.

    Names of our own `folders` are removed, and notes about other files; at most MAX_LINES lines.
    """
    output = _ESCAPE.sub("", output)  # Jupyter sets CLICOLOR_FORCE, and ninja colours FAILED
    # ninja -v says "[1/2] command" for a step; then, where it fails, "FAILED: target", the command
    # again and what that printed.
    parts = re.split(r"^FAILED: .*\n.*\n", output, flags=re.MULTILINE)[1:]
    text = "\n".join(
        re.split(r"^(?:\[\d+/\d+\] |ninja: )", p, flags=re.MULTILINE)[0] for p in parts
    )
    for folder in folders:
        text = text.replace(f"{folder}/", "")
    text = re.sub(r"^\./", "", text, flags=re.MULTILINE)
    lines = list(_relevant(text.splitlines(), filename)) or (text or output).strip().splitlines()
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = [f"... ({many(len(lines) - MAX_LINES, 'more line')})"]
    return "\n".join(lines)


def _relevant(lines: list[str], filename: str) -> Iterable[str]:
    """Errors, and what else is about `filename`, with the lines that quote it."""
    keep, moved, callers = True, False, []
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
            elif "error" in line:
                yield from callers if elsewhere else []
                keep, callers = True, []
            else:
                keep = not elsewhere
        elif moved and re.match(r"\s+\|", line):
            continue  # points into the rewritten line, not the one above
        if re.match(r"\s+\d+ \|", line):
            moved = "<<<" in line or "__shared__" in line
        if keep and line.strip():
            yield line.rstrip()
