"""Grade one submission: the stateless step from a folder to points, which many machines can do.

The answers are put into notebooks made of the workbook's own cells: the first cell, and each answer
with its check. These run under nbval with our plugin, in a folder that holds nothing else. What a
student wrote is compiled and run in boxes; the verdict is the kernel's, which is ours.
"""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import nbformat

from utils import files, settings
from utils.course import catalog
from utils.course.exercise import Exercise
from utils.cuda import sandbox
from utils.emulator import build
from utils.errors import WorkbookError
from utils.grading import points, submission
from utils.grading.submission import Found, Submission
from utils.notebooks import documents
from utils.paths import environment, workspace

CELL = 180  # seconds: a check, or what is asked beside it; more than a compiler may take
START = 120  # seconds for everything that is no cell
STATUSES = ("passed", "failed", "timeout", "crashed", "compile error", "not attempted")


@dataclass(frozen=True)
class Terms:
    """How a class is graded: the same for all of it."""

    topics: tuple[str, ...]  # that count
    seed: str  # a secret: values and sizes are drawn from it
    store: str  # folder of verdicts and builds, shared by all who grade this class
    boxed: bool = True


def grade(folder: str | Path, terms: Terms) -> dict:
    """The grade of a student's folder: {"student", "latest", "notes", "points", "of", "exercises":
    [{"exercise", "number", "name", "of", "points", "status", "message", "place", "parts", ...}]}.

    Points are of the exercises of `terms.topics`. Nothing is written but to `terms.store`.
    Raises WorkbookError where the folder cannot be read or there is no box.
    """
    folder = Path(folder)
    if terms.boxed:
        sandbox.require()
    handed_in = submission.read(folder)
    exercises = [e for topic in terms.topics for e in catalog.topic(topic).values() if e.number]
    records = _judged(handed_in, exercises, terms)
    told = [_record(e, handed_in.answers.get(e.id), records.get(e.id)) for e in exercises]
    return {
        "student": folder.name,
        "latest": handed_in.latest,
        "notes": handed_in.notes,
        "points": round(sum(record["points"] for record in told), 2),
        "of": sum(record["of"] for record in told),
        "exercises": told,
    }


def digest(folder: str | Path, terms: Terms) -> str:
    """Of all that a grade hangs on: two calls of `grade` with the same one give the same grade."""
    handed_in = submission.read(Path(folder))
    answers = {id: found.text for id, found in handed_in.answers.items()}
    parts = [answers, terms.topics, terms.seed, _course(terms.topics)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _course(topics: Iterable[str]) -> str:
    """Of the specs, and of all of our code."""
    hasher = hashlib.sha256(f"{settings.backend()} {build.digest()}".encode())
    specs = [workspace().kernels / topic / "spec.py" for topic in topics]
    code = sorted(Path(__file__).parents[1].rglob("*.py"))
    for path in (*specs, *code):
        hasher.update(path.read_bytes())
    return hasher.hexdigest()


def _record(exercise: Exercise, found: Found | None, judged: dict | None) -> dict:
    record = {
        "exercise": exercise.id,
        "number": exercise.number,
        "name": exercise.name,
        "of": exercise.points,
        "points": 0.0,
        "status": "not attempted",
        "message": "" if found else "it is in none of the files",
        "place": found.place if found else "",
        "parts": {},
    }
    if judged is None:
        return record
    record |= {name: judged[name] for name in ("status", "message")}
    assessed = judged.get("assessed") or {}
    record |= {name: assessed[name] for name in ("diagnosis", "picture", "alt") if name in assessed}
    if credit := assessed.get("credit"):
        record["parts"] = {p: round(v, 2) for p, v in points.earned(exercise, credit).items()}
        record["points"] = round(sum(record["parts"].values()), 2)
        if record["status"] == "passed" and credit["unknown"]:
            record |= {"status": "failed", "message": credit["unknown"]}
    return record


# --- judging what was not judged before


def _judged(handed_in: Submission, exercises: list[Exercise], terms: Terms) -> dict[str, dict]:
    """The plugin's record of each answer that is not the starter, by exercise id."""
    found, missing = {}, []
    course = _course(terms.topics)
    for exercise in exercises:
        answer = handed_in.answers.get(exercise.id)
        if answer is None or catalog.is_starter(exercise, answer.text):
            continue
        path = _kept(exercise, answer.text, terms, course)
        if path.is_file():
            found[exercise.id] = json.loads(path.read_text(encoding="utf-8"))
        else:
            missing.append((exercise, answer.text, path))
    if missing:
        new = _run([(e, text) for e, text, _ in missing], terms)
        for exercise, _, path in missing:
            record = new.get(exercise.id) or _LOST
            found[exercise.id] = record
            if record is not _LOST:
                files.write_text(path, json.dumps(record))
    return found


_LOST = {"status": "crashed", "message": "the notebook ended before this exercise was judged"}


def _kept(exercise: Exercise, text: str, terms: Terms, course: str) -> Path:
    """Where the verdict on a text is kept: identical ones are judged once."""
    parts = json.dumps([exercise.id, text, terms.seed, course])
    name = hashlib.sha256(parts.encode()).hexdigest()[:32]
    return Path(terms.store) / "verdicts" / f"{name}.json"


def _run(answers: list[tuple[Exercise, str]], terms: Terms) -> dict[str, dict]:
    """Run all answers. Those that a lost kernel has taken with it are run again, each by itself."""
    records = _nbval(answers, terms)
    lost = [pair for pair in answers if records.get(pair[0].id, {}).get("status") in _NOT_JUDGED]
    if len(answers) > 1:
        for pair in lost:
            records |= _nbval([pair], terms)
    return records


_NOT_JUDGED = None, "not run"


def _nbval(answers: list[tuple[Exercise, str]], terms: Terms) -> dict[str, dict]:
    """The plugin's records by exercise id; those are missing that it did not come to."""
    with tempfile.TemporaryDirectory(prefix="grade-") as folder:
        for topic in dict.fromkeys(exercise.topic for exercise, _ in answers):
            chosen = [pair for pair in answers if pair[0].topic == topic]
            text = documents.to_text(notebook(topic, chosen))
            Path(folder, f"{topic}.ipynb").write_text(text, encoding="utf-8")
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "pytest", "--nbval-lax", "-p", "nbval.plugin"]
        command += ["-p", "utils.grading.nbval_plugin", "-p", "no:cacheprovider", "--noconftest"]
        command += [f"--rootdir={folder}", "-c", os.devnull, "-q", "--tb=no"]
        command += ["--workbook-assess", f"--workbook-json={report}"]
        command += [f"--workbook-cell-limit={CELL}", folder]
        _call(command, folder, START + 3 * CELL * len(answers), terms)
        try:
            told = json.loads(report.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
    records = [record for each in told["notebooks"] for record in each["exercises"]]
    wanted = {exercise.id for exercise, _ in answers}
    return {record["exercise"]: record for record in records if record["exercise"] in wanted}


def _call(command: list[str], folder: str, seconds: float, terms: Terms) -> None:
    given = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "WORKBOOK_BOX": "1" if terms.boxed else "",
        "WORKBOOK_CACHE": str(Path(terms.store, "builds").resolve()),  # a box has no links to it
        "WORKBOOK_LOG": "",
        "WORKBOOK_SEED": terms.seed,
        "WORKBOOK_SOLUTIONS": "",
        "OMP_NUM_THREADS": "1",  # submissions are graded beside each other
    }
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment(**given),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        pass
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def notebook(topic: str, answers: list[tuple[Exercise, str]]) -> nbformat.NotebookNode:
    """The workbook's own notebook of a topic with these answers in it: its first cell, and of each
    exercise the answer and the check.

    Raises WorkbookError where the notebook has no cell for one of them.
    """
    pristine = documents.read(documents.notebook_of(topic))
    cells = [cell for cell in pristine.cells if cell.cell_type == "code"]
    chosen, known = cells[:1], documents.cuda_cells(pristine)
    for exercise, text in answers:
        if exercise.id not in known:
            raise WorkbookError(f"notebook {topic} has no cell for {exercise.id}")
        cell = known[exercise.id]
        check = nbformat.v4.new_code_cell(f"check({exercise.name})", id=f"{cell.id}-check")
        cell.source = f"{documents.MAGIC} {exercise.id}\n{text}"
        chosen += [cell, check]
    pristine.cells = chosen
    return documents.canonical(pristine)


def students(folder: Path, only: Collection[str] = ()) -> list[Path]:
    """The folders of a class, one a student, by name. Raises WorkbookError where there is none."""
    try:
        found = sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
    except OSError as error:
        raise WorkbookError(f"{folder} cannot be read: {error.strerror}") from None
    found = [path for path in found if not path.name.startswith(".")]
    if not found:
        raise WorkbookError(
            f"{folder} has no folders; each student's work goes into one of its own"
        )
    return [path for path in found if not only or path.name in only]
