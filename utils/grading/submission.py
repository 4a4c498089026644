"""What a student has handed in: CUDA texts by exercise, found in notebooks and .cu files.

Nothing of a submission is executed here, and no link is followed. Of a notebook only the text of
the cells that begin with `%%cuda NN_topic/name` is taken. What cannot be read is noted, and
the rest counts.
"""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from utils.course import catalog
from utils.course.exercise import Exercise
from utils.grading import inert
from utils.ground.errors import WorkbookError
from utils.ground.wording import many

NOTEBOOK, SOURCE = 16 << 20, 1 << 20  # bytes of a file, at most
ANSWER = 256 << 10  # characters
ALL = 64 << 20  # bytes of all files
FILES, DEEP = 500, 6  # files and folders that are looked at; folders below each other
_MAGIC = re.compile(r"%%cuda[ \t]+(\S+)[ \t]*")
# What has no use in a learner's work: it would change how that is graded, were it run.
_PLANTED = re.compile(r".*\.(py|pth|ini|cfg|toml|so)")
_MEDDLING = re.compile(
    r"ast_transformers|NBVAL_\w+|nbval-[\w-]+|raises-exception|register_(?:line_|cell_)+magic"
    r"|utils\.(?:judge|grading|watch|cuda)\b|builtins|os\._exit"
)
NAMED = 5  # of these in a note

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
    latest: float = 0.0  # when the newest file was written, in seconds since 1970


def read(folder: Path) -> Submission:
    """What is in a student's folder. Of an exercise that stands in several places, the first of
    these counts that is no starter: the notebook of its own name, others from the newest on, each
    from its last cell on, then .cu files.

    Raises WorkbookError where the folder cannot be read at all.
    """
    submission = Submission()
    known = {exercise.id: exercise for exercise in catalog.exercises() if exercise.number}
    candidates: dict[str, list[SubmittedText]] = {}
    for path, name in _files(folder, submission):
        try:
            if path.suffix == ".ipynb":
                cells = _cells(path)
                answers = list(_answers(cells, name, known))
                submission.notes += _meddling(cells, name)
            else:
                answers = list(_source(path, name, known))
        except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
            why = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            submission.notes.append(f"{name} cannot be read: {why}")
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


def _files(folder: Path, submission: Submission) -> Iterator[tuple[Path, str]]:
    """Notebooks, then sources, in the order in which they count, with what to call them."""
    paths, planted, looked = [], [], 0
    try:
        os.listdir(folder)
    except OSError as error:
        raise WorkbookError(f"{folder} cannot be read: {error.strerror}") from None
    for here, folders, names in os.walk(folder):
        depth = len(Path(here).relative_to(folder).parts)
        folders[:] = sorted(f for f in folders if not f.startswith(".")) if depth < DEEP else []
        first = [Path(here, name) for name in sorted(names)[: FILES - looked]]
        planted += [path for path in first if _PLANTED.fullmatch(path.name)]
        first = [path for path in first if not path.name.startswith(".")]
        paths += [path for path in first if path.suffix in (".ipynb", ".cu")]
        looked += 1 + len(names)
        if looked > FILES:
            submission.notes.append(f"only the first {FILES} files and folders were looked at")
            break
    if planted:
        names = [inert.line(str(path.relative_to(folder))) for path in planted[:NAMED]]
        more = f" and {len(planted) - NAMED} more" if len(planted) > NAMED else ""
        submission.notes.append(f"{', '.join(names)}{more}: not needed, and not run")
    topics, regular = catalog.topics(), []
    for path in paths:
        status = path.lstat()
        shown = inert.line(str(path.relative_to(folder)))
        if not stat.S_ISREG(status.st_mode):
            submission.notes.append(f"{shown} is no file, but a link or a device: left out")
            continue
        most = NOTEBOOK if path.suffix == ".ipynb" else SOURCE
        if status.st_size > most:
            submission.notes.append(
                f"{shown} has {status.st_size:,} bytes, more than {most:,}: left out"
            )
            continue
        submission.latest = max(submission.latest, status.st_mtime)
        order = path.suffix != ".ipynb", path.stem not in topics, -status.st_mtime, shown
        regular.append((order, path, shown, status.st_size))
    read = 0
    for _, path, shown, size in sorted(regular):
        read += size
        if read > ALL:
            submission.notes.append(f"{shown} and what follows is beyond {ALL:,} bytes: left out")
            break
        yield path, shown


def _cells(path: Path) -> list[CodeCell]:
    """A notebook's code cells. Raises what malformed ones lead to."""
    raw = json.loads(_read(path, NOTEBOOK))
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
        first, _, text = source.partition("\n")
        magic = _MAGIC.fullmatch(first.rstrip("\r"))
        if magic and magic[1] in known:
            yield magic[1], SubmittedText(_cleaned(text), f"{name}, cell {number}")


def _meddling(cells: list[CodeCell], name: str) -> list[str]:
    """A note on what would change the grading, were it run."""
    matches = [(n, _MEDDLING.search(f"{source}\n{metadata}")) for n, source, metadata in cells]
    places = [f"cell {number} ({match[0]})" for number, match in matches if match]
    more = f" and {len(places) - NAMED} more" if len(places) > NAMED else ""
    return [f"{name}: {', '.join(places[:NAMED])}{more}: it has no effect here"] if places else []


def _source(
    path: Path, name: str, known: Mapping[str, Exercise]
) -> Iterator[tuple[str, SubmittedText]]:
    """The answer in a file NAME.cu or NN_topic/NAME.cu."""
    named = [id for id in known if id.rpartition("/")[2] == path.stem]
    named = [id for id in named if id.partition("/")[0] == path.parent.name] or named
    if len(named) == 1:
        yield named[0], SubmittedText(_cleaned(_read(path, SOURCE)), name)


def _read(path: Path, most: int) -> str:
    """A file's text. Not through a link, should one have come to stand there meanwhile."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        return file.read(most + 1)[:most].decode("utf-8-sig", errors="replace")


def _cleaned(text: str) -> str:
    """A text that can be written as UTF-8, with the line ends of Linux."""
    if len(text) > ANSWER:
        raise ValueError(f"an answer has {len(text):,} characters, more than {ANSWER:,}")
    text = text.encode("utf-8", "replace").decode()
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "?")
