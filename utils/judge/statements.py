"""What a learner says is wrong with a broken kernel, and where: `// fault: missing guard, line 9`.

Each exercise of the debugging chapter has such a line in its text. The right one stands in the
solution file, with every line that is honestly right: `// fault: missing barrier, line 14 or 15`.
Lines are those of the cell as it was given, of which `%%cuda` is the first.
"""

import difflib
import re
from dataclasses import dataclass

from utils.course import catalog
from utils.course.exercise import Exercise
from utils.ground.errors import CheckFailed, Reason

# What can be named, and what it means: more than there are exercises. The notebook has it as a
# table.
FAULTS = {
    "missing guard": "a thread reads or writes beyond an array, or beyond a row of it",
    "missing barrier": "a thread reads before another one has written, or writes too early",
    "barrier inside a branch": "only part of the block takes the branch that contains the barrier",
    "barrier too many": "the block waits although nobody needs it",
    "shared memory never written": "an element is read that no thread has filled",
    "shuffle by part of a warp": "the mask names lanes that do not take part",
    "result in the wrong lane": "a lane stores what only another one has",
    "tail dropped": "some elements never get into the result",
    "elements counted twice": "some elements get into the result more than once",
    "wrong start value": "a maximum that begins at 0, a sum that does not",
    "output added to": "the result contains what the output held before the call",
    "one thread does the work": "right, but the others wait",
    "uncoalesced access": "right, but neighbouring threads access places far apart in memory",
    "bank conflicts": "right, but lanes want different floats of a bank",
    "wrong clamp range": "a clamp's limits are not those of the function",
    "wrong identity": "a formula was replaced by one that is not equal to it",
    "overflow": "a value on the way is larger than a float can be",
    "cancellation": "two close values are subtracted, and hardly a digit is left",
    "wrong precedence": "brackets are missing, or in the wrong place",
    "index per group": "a value of each channel is looked up by the number of a group",
    "statistics over the batch": "a mean or variance is taken over several rows at once",
    "scale and shift left out": "weight and bias are not used",
    "eps in the wrong place": "eps is added to something other than the variance",
    "divided by n - 1": "the sample variance, where that of all values is wanted",
}
FORM = "// fault: NAME, line N"
FORM_SAYS = f"it should read '{FORM}': NAME from the table, N counted with %%cuda as line 1"

_LINE = re.compile(r"^[ \t]*//[ \t]*fault:(.*)$", re.MULTILINE)
_CLAIM = re.compile(r"(?P<name>.+?),?\s+lines?\s+(?P<lines>\d+(?:(?:\s*,\s*|\s+or\s+)\d+)*)")


@dataclass(frozen=True)
class Statement:
    """A fault by its name in FAULTS, and the lines that it is said to be in."""

    name: str
    lines: frozenset[int]


def required(exercise: Exercise) -> Statement | None:
    """The right statement; None for an exercise that asks for none."""
    path = catalog.solution_path(exercise)
    if not (exercise.faulty and path.is_file()):
        return None
    text = catalog.solution_text(exercise)
    return _read(text) if _LINE.search(text) else None


HALVES = {
    (True, False): "the name is right, the line is not",
    (False, True): "the line is right, the name is not",
    (False, False): "neither the name nor the line is right",
}


def named(exercise: Exercise, text: str) -> bool:
    """Whether a text names its fault, where that is asked for."""
    return required(exercise) is not None and _objection(exercise, text) is None


def judge(exercise: Exercise, text: str) -> None:
    """Pass a text whose statement is right, or whose exercise asks for none.

    Raises CheckFailed, without giving the answer away.
    """
    if problem := _objection(exercise, text):
        reason, words, advice = problem
        raise CheckFailed(reason, f"{exercise.name}: {words}\n{advice}")


def right(exercise: Exercise, text: str) -> bool:
    """Whether a text says rightly what is wrong with the kernel, or need not say it."""
    return _objection(exercise, text) is None


def beside(failure: CheckFailed, exercise: Exercise, text: str) -> CheckFailed:
    """The failure of a kernel that is still wrong, with a line on its statement."""
    if required(exercise) is None:
        return failure
    problem = _objection(exercise, text)
    message = str(failure).removeprefix(f"{failure.reason}: ")
    said = f"your statement: {problem[1] if problem else 'right'}"
    return CheckFailed(failure.reason, f"{message}\n{said}")


def _objection(exercise: Exercise, text: str) -> tuple[Reason, str, str] | None:
    """What is wrong with a statement: the reason, what it is, what to do. None where it is right,
    or where none is asked for."""
    right = required(exercise)
    if right is None:
        return None
    try:
        fault = _read(text)
    except ValueError as error:
        return Reason.FAULT_NOT_NAMED, str(error), FORM_SAYS
    name, lines = fault.name == right.name, fault.lines <= right.lines
    if name and lines:
        return None
    advice = (
        "count the lines of the cell as it was given, with %%cuda as line 1; the line that a "
        "report begins with need not be the faulty one"
    )
    if lines:
        advice = "which other fault of the table explains what goes wrong?"
    return Reason.WRONG_DIAGNOSIS, HALVES[name, lines], advice


def _read(text: str) -> Statement:
    """The one statement of a text. Raises ValueError saying what is wrong with it."""
    lines = [match.strip() for match in _LINE.findall(text)]
    if len(lines) != 1:
        many = f"{len(lines)} lines begin" if lines else "no line begins"
        raise ValueError(f"{many} with '// fault:'; say once what is wrong with the kernel")
    claim = " ".join(lines[0].split()).rstrip(".")
    if claim in ("", "?"):
        raise ValueError("'// fault: ?' is for you: say what is wrong, and in which line")
    match = _CLAIM.fullmatch(claim)
    if not match:
        raise ValueError(f"'{claim}' does not say in which line: its number comes last")
    name = match["name"].lower()
    if name not in FAULTS:
        like = difflib.get_close_matches(name, FAULTS, 1)
        meant = f"; did you mean '{like[0]}'?" if like else ""
        raise ValueError(f"'{name}' is not a name from the table of faults{meant}")
    return Statement(name, frozenset(map(int, re.findall(r"\d+", match["lines"]))))
