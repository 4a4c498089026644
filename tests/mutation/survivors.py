"""The mutants that `check` lets pass, each with the reason why: `survivors.txt`.

    == equivalent
    # The last block has threads to spare: one more finds i >= n, and leaves.
    00_start_here/swish: operand: int blocks = (n + threads - 1)[-/ threads-];

Mutants of one reason stand below it. They are `equivalent`; or wrong, and `out of reach` of sizes
that a check can have, or rejected only `by chance`, by the checks that happen to draw what shows
them; or a `gap` of the check, which ought to reject them. There are no line numbers, so that a
solution may change elsewhere.
"""

from dataclasses import dataclass
from pathlib import Path

PATH = Path(__file__).with_name("survivors.txt")
KINDS = ("equivalent", "out of reach", "by chance", "gap")


@dataclass(frozen=True)
class Survivor:
    """Why a mutant survives."""

    kind: str  # one of KINDS
    reason: str
    line: int  # of the file


def read(text: str) -> dict[str, Survivor]:
    """Survivors by the names of their mutants. Raises ValueError with the line that is wrong."""
    by_name: dict[str, Survivor] = {}
    kind, reason, open_ = "", "", False  # open_: the next line of a reason belongs to the last
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("== "):
            kind, reason, open_ = line.removeprefix("== "), "", True
            if kind not in KINDS:
                raise ValueError(f"line {number}: '{kind}' is none of {', '.join(KINDS)}")
        elif line.startswith("#"):
            reason = f"{reason} {line[1:].strip()}".strip() if open_ else line[1:].strip()
            open_ = True
        elif line:
            if not (kind and reason):
                raise ValueError(f"line {number}: no kind and reason stand above it")
            if line in by_name:
                raise ValueError(f"line {number}: it stands in line {by_name[line].line}, too")
            by_name[line], open_ = Survivor(kind, reason, number), False
    return by_name


def known() -> dict[str, Survivor]:
    """Those of the file."""
    return read(PATH.read_text())
