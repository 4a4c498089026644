"""A file of `solutions/models/`: a page that says what is where, Python, then C++ and CUDA."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from utils.ground.paths import workspace


def parts() -> Path:
    """Where what files share is."""
    return workspace().kernels / "models/new"


def part(name: str) -> str:
    """One of them, as it follows on others."""
    return "\n" + (parts() / name).read_text()


def whole(
    head: str, contents: Mapping[str, str], python: Iterable[str], sources: Mapping[str, str]
) -> str:
    """A file's text. `contents`: see `_rows`. `python`: the parts in front of the sources, of which
    the last is what builds them and stands behind."""
    *before, build = python
    made = [f'{name} = r"""\n{text.strip()}\n"""\n' for name, text in sources.items()]
    body = "\n".join([*before, *made, build])
    first = head.count("\n") + len(contents) + 5  # the number of the body's first line
    page = "\n".join(_rows(contents, body.splitlines(), first))
    return f'{head}\nWhat is where:\n\n{page}\n"""\n{body}'


def _rows(contents: Mapping[str, str], lines: list[str], first: int) -> list[str]:
    """For each thing that a reader may look for its line. `contents`: a regular expression of that
    line, with the name as its group, and what is there."""
    rows = []
    for pattern, words in contents.items():
        ((number, name),) = (
            (number, match[1])
            for number, line in enumerate(lines, first)
            if (match := re.match(pattern, line))
        )
        rows.append((number, name, words))
    width = max(len(name) for _, name, _ in rows)
    return [f"    line {number:4}  {name:{width}}  {words}" for number, name, words in sorted(rows)]
