"""Wrong kernels, which a check must reject: differences from an exercise's solution.

`tests/mutants/NN_topic/NAME.diff` holds those of one exercise:

    == no_guard: out of bounds
    # the last block writes beyond the array
    -    if (i < n) out[i] = x[i];
    +    out[i] = x[i];

    == swapped: wrong values
         int i = blockIdx.x * blockDim.x + threadIdx.x;
    -    int row = i / cols;
    +    int row = i % cols;
    ...
    -    int col = i % cols;
    +    int col = i / cols;

A mutant is its name, the reason that it must be rejected for, what is wrong with it where its name
does not say so, and hunks. The lines of a hunk that begin with a space or a minus stand exactly
once in the solution, without its markers; those that begin with a space or a plus take their place.
`...` parts two hunks. There are no line numbers, so that a solution may change elsewhere.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from utils.course import catalog
from utils.course.exercise import Exercise
from utils.ground.errors import Reason, WorkbookError
from utils.ground.paths import workspace

_Lines = list[tuple[int, str]]  # numbered from 1

_HEAD = re.compile(r"== (\w+): (.+)")
_REASONS = [reason for reason in Reason if reason is not Reason.NOT_ATTEMPTED]


@dataclass(frozen=True)
class Mutant:
    """A wrong kernel as a whole."""

    name: str
    reason: str  # a Reason; of another corpus than this one, whatever its reader allows
    fault: str  # what is wrong, in words; "" where the name says it
    text: str  # CUDA C++
    place: str  # where its difference stands: "tests/mutants/00_start_here/swish.diff, line 7"


def path_of(exercise: Exercise) -> Path:
    """The file of an exercise's mutants, which need not exist."""
    return workspace().mutants / exercise.topic / f"{exercise.name}.diff"


def exercise_of(path: Path) -> Exercise:
    """The exercise whose mutants a file holds. Raises WorkbookError where there is none."""
    try:
        return catalog.load(f"{path.parent.name}/{path.stem}")
    except WorkbookError as error:
        raise WorkbookError(f"{_shown(path)} is of no exercise: {error}") from None


def mutants(exercise: Exercise) -> list[Mutant]:
    """The mutants of an exercise, in the order of its file; none where there is no file.

    Raises WorkbookError as read() does.
    """
    path = path_of(exercise)
    return read(path, exercise) if path.is_file() else []


def read(path: Path, exercise: Exercise, reasons: Collection[str] = _REASONS) -> list[Mutant]:
    """The differences from an exercise's solution that a file holds, in its order.

    Raises WorkbookError with file, line, mutant and what to do where one is not well-formed or does
    not fit the solution.
    """
    by_name: dict[str, Mutant] = {}
    solution = catalog.solution_text(exercise).splitlines()
    for (line, head), *body in _sections(path):
        place = _place(path, line)
        try:
            name, reason = _named(head, reasons)
            if name in by_name:
                raise WorkbookError(f"there is another '{name}', at {by_name[name].place}")
            text = _applied(body, solution)
        except WorkbookError as error:
            raise WorkbookError(f"{place}: {head.removeprefix('== ')}: {error}") from None
        fault = " ".join(text[1:].strip() for _, text in body if text.startswith("#"))
        by_name[name] = Mutant(name, reason, fault, text, place)
    return list(by_name.values())


def _sections(path: Path) -> list[_Lines]:
    """The lines of each mutant in a file, its head first."""
    sections: list[_Lines] = [[]]
    for number, text in enumerate(path.read_text().splitlines(), 1):
        if text.startswith("=="):
            sections.append([])
        elif text and not text.startswith("#") and len(sections) == 1:
            raise WorkbookError(f"{_place(path, number)}: no '== name: reason' stands above this")
        sections[-1].append((number, text))
    return sections[1:]


def _named(head: str, reasons: Collection[str]) -> tuple[str, str]:
    """Name and reason of a mutant."""
    match = _HEAD.fullmatch(head)
    if not match:
        raise WorkbookError("a mutant begins with '== name: reason'")
    if match[2] not in reasons:
        raise WorkbookError(f"no check gives this reason; it may be {', '.join(reasons)}")
    return match[1], next((reason for reason in reasons if reason == match[2]), match[2])


def _applied(body: _Lines, solution: list[str]) -> str:
    """The text that a mutant's hunks make of the solution's lines."""
    lines, end = [], 0  # the mutant's so far, and how many of the solution's they stand for
    for hunk in _hunks(body):
        old = [text[1:] for _, text in hunk if text[0] in " -"]
        new = [text[1:] for _, text in hunk if text[0] in " +"]
        try:
            start = _only_place(old, solution)
            if old == new:
                raise WorkbookError("it changes nothing")
            if start < end:
                raise WorkbookError("it begins above the end of the last one; swap or join them")
        except WorkbookError as error:
            raise WorkbookError(f"the hunk at line {hunk[0][0]}: {error}") from None
        lines += [*solution[end:start], *new]
        end = start + len(old)
    return "\n".join([*lines, *solution[end:]]) + "\n"


def _hunks(body: _Lines) -> list[_Lines]:
    """The lines of each hunk of a mutant."""
    hunks: list[_Lines] = [[]]
    for number, text in body:
        if text == "...":
            hunks.append([])
        elif text.startswith((" ", "-", "+")):
            hunks[-1].append((number, text))
        elif text and not text.startswith("#"):
            raise WorkbookError(f"line {number} should begin with ' ', '-', '+' or '#': {text}")
    if not any(hunks):
        raise WorkbookError("nothing is changed; say what is in lines with '-' and '+'")
    return [hunk for hunk in hunks if hunk]


def _only_place(old: list[str], solution: list[str]) -> int:
    """The number of the solution's line, from 0, where these lines begin."""
    if not old:
        raise WorkbookError("it says nothing of where it goes; add a line of the solution's")
    if unknown := [line for line in old if line not in solution]:
        raise WorkbookError(
            f"the solution has no line '{unknown[0]}'; copy it from there, without a marker"
        )
    starts = range(len(solution) - len(old) + 1)
    places = [start for start in starts if solution[start : start + len(old)] == old]
    if not places:
        raise WorkbookError("its lines do not follow each other in the solution; part it by '...'")
    if len(places) > 1:
        raise WorkbookError(
            f"its lines stand {len(places)} times in the solution; add one, with a space in front, "
            "from above or below them"
        )
    return places[0]


def _place(path: Path, line: int) -> str:
    return f"{_shown(path)}, line {line}"


def _shown(path: Path) -> Path:
    root = workspace().root
    return path.relative_to(root) if path.is_relative_to(root) else path
