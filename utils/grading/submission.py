"""What a student has handed in: CUDA texts by exercise, found in notebooks and .cu files.

Nothing of a submission is executed here, and no link is followed. Of a notebook only the text of
the cells that begin with `%%cuda NN_topic/name` is taken. What cannot be read is noted, and
the rest counts.
"""

import ast
import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from utils.course import catalog
from utils.course.exercise import Exercise
from utils.grading import handed_files, inert, lateness
from utils.grading.handed_files import NAMED, UNREADABLE, HandedFile
from utils.grading.lateness import Clock
from utils.ground.errors import WorkbookError
from utils.ground.paths import workspace
from utils.ground.wording import many
from utils.notebooks import cuda_cell

ANSWER = 256 << 10  # characters
_MEDDLING = re.compile(
    r"ast_transformers|NBVAL_\w+|nbval-[\w-]+|raises-exception|register_(?:line_|cell_)+magic"
    r"|utils\.(?:judge|grading|watch|cuda)\b|builtins|os\._exit"
)
# What browsers and file managers make of the name of a second copy.
_COPY = re.compile(r"(?:[ _-]*(?:\(\d+\)|copy(?: \d+)?)|-\d+)+$", re.IGNORECASE)

CodeCell = tuple[int, str, str]  # its number, its source, JSON of its metadata


@dataclass(frozen=True)
class SubmittedText:
    """The text of an answer, and where it stood."""

    text: str
    place: str  # "02_shared_memory_tiling.ipynb, cell 7"


@dataclass
class Submission:
    """The answers of a student by exercise id, and what to tell of how they were found."""

    answers: dict[str, SubmittedText] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    latest: float = 0.0  # when it was handed in, in seconds since 1970
    clock: str = ""  # what says so; nothing: the newest file


def read(*places: Path, clock: Clock = Clock.AUTO) -> Submission:
    """What is in a student's folder, zip or files. Of an exercise that stands in several places,
    the first of these counts that is no starter: in notebooks with a name of the workbook's, then
    in others, from the newest on, each from its last cell on; then .cu files.

    Raises WorkbookError where the folder cannot be read at all.
    """
    known = {exercise.id: exercise for exercise in catalog.exercises() if exercise.number}
    try:
        files, notes, newest = handed_files.gather(places)
        latest, said, more = lateness.moment(places, newest, clock)
    except OSError as error:
        raise WorkbookError(f"{error.filename} cannot be read: {error.strerror}") from None
    submission = Submission({}, [*notes, *more], latest, said)
    candidates: dict[str, list[SubmittedText]] = {}
    for file in files:
        try:
            if file.path.suffix == ".ipynb":
                cells = _cells(file)
                answers = list(_answers(cells, file.shown, known))
                submission.notes += _meddling(cells, file.shown) + _lost(cells, file.shown)
            else:
                answers = list(_source(file, known))
                if not answers:
                    note = f"{file.shown}: no exercise has this name, so it does not count"
                    submission.notes.append(note)
        except (*UNREADABLE, RecursionError, KeyError, TypeError, AttributeError) as error:
            why = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            submission.notes.append(f"{file.shown} cannot be read: {why}")
            continue
        for id, answer in answers:
            if answer.text.strip():
                candidates.setdefault(id, []).append(answer)
    for id in known:
        if id in candidates:
            submission.answers[id] = _chosen(known[id], candidates[id], submission)
    return submission


def _chosen(
    exercise: Exercise, candidates: list[SubmittedText], submission: Submission
) -> SubmittedText:
    tried = [answer for answer in candidates if not catalog.is_starter(exercise, answer.text)]
    texts = {answer.text for answer in tried}
    if len(texts) > 1:
        places = many(len(tried), "place")
        submission.notes.append(
            f"{exercise.number} {exercise.name} stands in {places}; counted: {tried[0].place}"
        )
    return (tried or candidates)[0]


def _cells(file: HandedFile) -> list[CodeCell]:
    """A notebook's code cells. Raises what malformed ones lead to."""
    raw = json.loads(_decoded(file.read()))
    if not isinstance(raw["cells"], list):
        raise ValueError("its cells are no list")
    cells = []
    for number, cell in enumerate(raw["cells"]):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", "")
        if isinstance(source, list):
            source = "".join(line for line in source if isinstance(line, str))
        if isinstance(source, str):
            cells.append((number, source, json.dumps(cell.get("metadata"))))
    return cells


def _answers(
    cells: list[CodeCell], name: str, known: Mapping[str, Exercise]
) -> Iterator[tuple[str, SubmittedText]]:
    """The answers in a notebook, the last first."""
    for number, source, _ in reversed(cells):
        parts = cuda_cell.parts(_cleaned(source)) if cuda_cell.MAGIC in source else None
        if parts and parts[0] in known:
            yield parts[0], SubmittedText(parts[1], f"{name}, cell {number}")


def _lost(cells: list[CodeCell], name: str) -> list[str]:
    """A note on each cell that looks like an answer and is none."""
    exercises = catalog.exercises()
    ids, names = {e.id for e in exercises}, {e.name for e in exercises}
    notes = []
    for number, source, _ in cells:
        parts = cuda_cell.parts(source)
        first = inert.line(next((line for line in source.splitlines() if line.strip()), ""))[:80]
        if parts and parts[0] not in ids and ("/" in parts[0] or parts[0] in names):
            why = f"begins with '{first}', and no exercise has this id"
        elif parts is None and _is_cuda(source):
            why = f"holds a kernel, but begins with '{first}' and not with '%%cuda NN_topic/name'"
        else:
            continue
        notes.append(f"{name}, cell {number} {why}: it does not count")
    return [
        *notes[:NAMED],
        *[f"{name}: {len(notes) - NAMED} more such cells"] * (len(notes) > NAMED),
    ]


def _is_cuda(source: str) -> bool:
    """Whether a cell holds a kernel, and not as a text of Python's."""
    if not re.search(r"^[ \t]*__global__\b", source, re.MULTILINE):
        return False
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return False


def _meddling(cells: list[CodeCell], name: str) -> list[str]:
    """A note on what would change the grading, were it run; our own cells' lines are not meant."""
    places = []
    for number, source, metadata in cells:
        lines = [line for line in source.splitlines() if line.strip() not in _own_lines()]
        if match := _MEDDLING.search("\n".join([*lines, metadata])):
            places.append(f"cell {number} ({match[0]})")
    more = f" and {len(places) - NAMED} more" if len(places) > NAMED else ""
    return [f"{name}: {', '.join(places[:NAMED])}{more}: it has no effect here"] if places else []


@functools.cache
def _own_lines() -> frozenset[str]:
    """Lines of the workbook's notebooks that would draw a note."""
    lines: set[str] = set()
    for path in workspace().notebooks.glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = cell["source"] if cell["cell_type"] == "code" else ""
            whole = source if isinstance(source, str) else "".join(source)
            lines |= {line.strip() for line in whole.splitlines() if _MEDDLING.search(line)}
    return frozenset(lines)


def _source(file: HandedFile, known: Mapping[str, Exercise]) -> Iterator[tuple[str, SubmittedText]]:
    """The answer in a file NAME.cu, however the copy is called."""
    stem = file.path.stem
    wanted = {stem.casefold(), _COPY.sub("", stem).casefold()}
    named = [id for id in known if id.rpartition("/")[2].casefold() in wanted]
    named = [id for id in named if id.partition("/")[0] == file.path.parent.name] or named
    if len(named) == 1:
        yield named[0], SubmittedText(_cleaned(_decoded(file.read())), file.shown)


def _decoded(data: bytes) -> str:
    """A text, in what encoding ever an editor of Windows has left it."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def _cleaned(text: str) -> str:
    """A text that can be written as UTF-8, with the line ends of Linux."""
    if len(text) > ANSWER:
        raise ValueError(f"an answer has {len(text):,} characters, more than {ANSWER:,}")
    text = text.encode("utf-8", "replace").decode()
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "?")
