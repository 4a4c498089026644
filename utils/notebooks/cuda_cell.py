"""A `%%cuda` cell's text: what Jupyter makes of it, for all who look for one.

Jupyter takes blank lines and indents before a magic away, and runs what stands below `%%time` as a
cell. Comments above it are taken away by us, see without_comments().
"""

import re
from textwrap import dedent

MAGIC = "%%cuda"
_ABOVE = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*")  # blank lines and comments
_AROUND = re.compile(r"%%(?:time|timeit|capture|prun)\b[^\n]*\n")  # they run a cell that is theirs
_CUDA = re.compile(rf"{MAGIC}(?:[ \t]+(?P<line>[^\n]*))?(?:\n(?P<text>.*))?", re.DOTALL)


def parts(source: str) -> tuple[str, str] | None:
    """What stands behind `%%cuda`, and the CUDA text below; None for any other cell."""
    rest = source.replace("\r\n", "\n")
    while True:
        rest = rest[_end_of_comments(rest) :]
        if rest[:1] in (" ", "\t"):
            rest = dedent(rest)
        if not (around := _AROUND.match(rest)):
            break
        rest = rest[around.end() :]
    match = _CUDA.fullmatch(rest)
    return ((match["line"] or "").strip(), match["text"] or "") if match else None


def without_comments(lines: list[str]) -> list[str]:
    """A cell's lines for IPython: of a `%%cuda` cell, without the comments above the magic, which
    it would take for Python's."""
    source = "".join(lines)
    if MAGIC not in source or parts(source) is None:
        return lines
    return source[_end_of_comments(source) :].splitlines(keepends=True)


def _end_of_comments(text: str) -> int:
    above = _ABOVE.match(text)
    return above.end() if above else 0
