"""What an exercise lacks that a learner and a grader need, as far as its files tell it."""

import re
from collections.abc import Iterator

from utils.course import catalog, markup, mutants
from utils.course.exercise import Exercise
from utils.course.markup import BEGIN, END
from utils.ground.errors import WorkbookError
from utils.watch.access_patterns import WARP

HINTS = 2, 3  # at least, at most
MUTANTS = 8
LINES, LAUNCHER = 40, 10  # of a function, and of the launcher, at most


def missing(exercise: Exercise) -> list[str]:
    """One line for each thing that is missing; none of an exercise that is complete."""
    lacking = [*_spec(exercise)]
    try:
        if exercise.number:
            lacking += [*_learner(exercise), *_starter(exercise)]
        lacking += _text(catalog.solution_text(exercise))
    except OSError as error:
        lacking.append(f"{error.filename} does not exist")
    return lacking


def _spec(exercise: Exercise) -> Iterator[str]:
    free = [name for name in exercise.at.check[0] if name not in exercise.at.choices]
    values = [{sizes[name] for name in free} for sizes in exercise.at.check]
    if {1} not in values:
        yield "at.check: no size is 1 in every direction"
    if not any(n > 1 and n % WARP for value in values for n in value):
        yield "at.check: all sizes are multiples of a warp"
    if not exercise.at.drawn:
        yield "at.drawn: every size is known"
    for name in ("draw", "bench", *["gates"] * bool(exercise.gates)):
        if not getattr(exercise.at, name):
            yield f"at.{name}: no size is given"


def _learner(exercise: Exercise) -> Iterator[str]:
    if not (exercise.number or "").startswith(f"{exercise.topic[:2]}."):
        yield f"number: '{exercise.number}' is of another chapter"
    for name in ("points", "effort"):
        if not getattr(exercise, name):
            yield f"{name}: nothing is said"
    if exercise.library not in exercise.peers:
        yield "library: it is none of the peers"
    hints = catalog.hints(exercise)
    if not HINTS[0] <= len(hints) <= HINTS[1]:
        yield f"hints: {len(hints)}, not {HINTS[0]} to {HINTS[1]}"
    for number, hint in enumerate(hints, 1):
        if not hint:
            yield f"hint {number}: nothing is said"
    try:
        count = len(mutants.mutants(exercise))
    except WorkbookError as error:
        yield str(error)
    else:
        if count < MUTANTS:
            yield f"mutants: {count} of at least {MUTANTS}"


def _starter(exercise: Exercise) -> Iterator[str]:
    text = catalog.solution_path(exercise).read_text()
    if not text.count(BEGIN) == text.count(END) >= 1:
        yield f"solution: no part stands between {BEGIN} and {END}"
    elif markup.is_untouched(markup.solved(text), markup.starter(text)):
        yield f"solution: nothing stands between {BEGIN} and {END}"
    if catalog.starter_text(exercise) != markup.starter(text):
        yield "starter: it is not the solution's; run `workbook sync`"


def _text(text: str) -> Iterator[str]:
    if not re.search(r"^// .*\[i\]|^// .*: \(.*\)", text, re.MULTILINE):
        yield "solution: no comment on shapes, such as '// x, out: (n)'"
    if not re.search(r"^// One (single )?(thread|warp) owns", text, re.MULTILINE):
        yield "solution: no comment that begins with '// One thread owns'"
    for barrier in re.findall(r"__syncthreads\(\);.*", text):
        if "//" not in barrier:
            yield "solution: a barrier does not say what it protects"
    functions = re.findall(r"^\S[^\n]*\([^;]*?\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    lengths = [len(body.splitlines()) for body in functions]
    if max(lengths, default=0) > LINES:
        yield f"solution: a function has over {LINES} lines"
    if not lengths or lengths[-1] > LAUNCHER:
        yield f"solution: the launcher, last, has over {LAUNCHER} lines"
