"""Grade one submission: the stateless step from a folder to points, which many machines can do.

The answers are put into a notebook made of the workbook's own cells: the first ones, each answer
with its check. It runs under nbval with our plugin, in a folder that holds nothing else. What a
student wrote is compiled and run in boxes; the verdict is the kernel's, which is ours.
"""

import atexit
import hashlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nbformat

from utils.course import catalog
from utils.course.exercise import Exercise
from utils.emulator import build, hazards
from utils.grading import inert, points, submission
from utils.grading.collect import Student
from utils.grading.grades import Assessment, Grade, Mark
from utils.grading.lateness import Clock
from utils.grading.records import Record
from utils.grading.submission import Submission, SubmittedText
from utils.grading.verdicts import Status
from utils.grading.workdir import workdir
from utils.ground import files, settings
from utils.ground.errors import Reason, ToolError, WorkbookError
from utils.ground.paths import environment, workspace
from utils.notebooks import documents
from utils.process import forkserver, sandbox

CELL = 180  # seconds: a check, or what is asked beside it; more than a compiler may take
START = 120  # seconds for everything that is no cell
ROUNDS = 4  # of sizes that are drawn, where a learner's check draws them once
BUDGET = 1800.0  # seconds for all of a submission; a whole right one takes a few minutes
STATUSES = (  # that a grade can have
    *(Status.PASSED, Status.FAILED, Status.TIMEOUT, Status.CRASHED, Status.COMPILE_ERROR),
    *(Status.NOT_ATTEMPTED, Status.NOT_REACHED),
)
# The part that is not earned where the check has met this, at other sizes or with other values
# than those that credit tries: else a report would contradict its points.
UNCLEAN = {hazard.reason for hazard in hazards.HAZARDS.values()} - {Reason.LAUNCH_ERROR}
WRONG = Reason.WRONG_VALUES, Reason.NAN, Reason.NOT_WRITTEN, Reason.STALE_OUTPUT
MET = dict.fromkeys(UNCLEAN, "clean") | dict.fromkeys(WRONG, "all") | {Reason.GATE: "gates"}

Answer = tuple[Exercise, str]  # and its text


@dataclass(frozen=True)
class Terms:
    """How a class is graded: the same for all of it."""

    topics: tuple[str, ...]  # that count
    seed: str  # a secret: values and sizes are drawn from it
    store: str  # folder of verdicts and builds, shared by all who grade this class
    boxed: bool = True
    budget: float = BUDGET  # seconds for a submission: no answer is begun after that
    clock: Clock = Clock.AUTO  # by what it is known when a submission came


def grade(
    student: Student | str | Path,
    terms: Terms,
    handed_in: Submission | None = None,
    again: Container[str] = (),
) -> Grade:
    """The grade of a student, or of a student's folder, on the exercises of `terms.topics`.

    Nothing is written but to `terms.store`. `handed_in` is what was handed in, where that
    was read before. Of exercises whose id is in `again` a verdict that is kept does not count.
    Raises WorkbookError where the folder cannot be read or there is no box, ToolError where the
    tools are at fault.
    """
    student = student if isinstance(student, Student) else Student.of(Path(student))
    if terms.boxed:
        sandbox.require()
    handed_in = handed_in or submission.read(*student.places)
    answers = handed_in.answers
    exercises = [e for topic in terms.topics for e in catalog.topic(topic).values() if e.number]
    records = _judged(handed_in, exercises, terms, again)
    return Grade(
        student.name,
        tuple(_mark(e, answers.get(e.id), records.get(e.id)) for e in exercises),
        handed_in.latest,
        tuple(handed_in.notes),
        {e.id: answers[e.id].text for e in exercises if e.id in answers},
        clock=handed_in.clock,
    )


def digest(handed_in: Submission, terms: Terms) -> str:
    """Of all that a grade hangs on: two calls of `grade` with the same one give the same grade."""
    answers = {id: answer.text for id, answer in handed_in.answers.items()}
    parts = [answers, handed_in.notes, terms.topics, terms.seed, terms.budget]
    parts.append(_course(terms.topics))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _course(topics: Iterable[str]) -> str:
    """Of the specs, and of all of our code."""
    hasher = hashlib.sha256(f"{settings.backend()} {build.digest()}".encode())
    specs = [workspace().kernels / topic / "spec.py" for topic in topics]
    code = sorted(Path(__file__).parents[1].rglob("*.py"))
    for path in (*specs, *code):
        hasher.update(path.read_bytes())
    return hasher.hexdigest()


def _mark(exercise: Exercise, answer: SubmittedText | None, record: Record | None) -> Mark:
    if answer is None:
        return Mark.of_exercise(exercise, message="it is in none of the files")
    if record is None:
        return Mark.of_exercise(exercise, place=answer.place)
    published = catalog.is_solution(exercise, answer.text)
    assessed = Assessment.from_json(record.assessed or {})
    seen = {name: getattr(assessed, name) for name in ("diagnosis", "picture", "alt", "speed")}
    made = Mark.of_exercise(
        exercise,
        status=record.status,
        message=record.message,
        place=answer.place,
        published=published,
        **seen,
    )
    if (credit := assessed.credit) is None:
        return made
    if (reason := Reason.begins(record.message)) in MET:
        missed: dict[str, Any] = {MET[reason]: False}
        credit = replace(credit, **missed)
    worth = points.earned(exercise, credit, assessed.speed.tenths if assessed.speed else None)
    parts = {part: round(value, 2) for part, value in worth.items()}
    earned = round(sum(parts.values()), 2)
    made = replace(made, parts=parts, points=earned, like_starter=credit.like_starter)
    if made.status is Status.PASSED and credit.unknown:
        return replace(made, status=Status.FAILED, message=credit.unknown)
    return made


# --- judging what was not judged before


def _judged(
    handed_in: Submission, exercises: list[Exercise], terms: Terms, again: Container[str]
) -> dict[str, Record]:
    """The plugin's record of each answer that is not the starter, by exercise id."""
    records, missing = {}, []
    course = _course(terms.topics)
    for exercise in exercises:
        answer = handed_in.answers.get(exercise.id)
        if answer is None or catalog.is_starter(exercise, answer.text):
            continue
        path = _kept(exercise, answer.text, terms, course)
        if path.is_file() and exercise.id not in again:
            records[exercise.id] = Record.from_json(json.loads(path.read_text(encoding="utf-8")))
        else:
            missing.append((exercise, answer.text, path))
    if missing:
        new = _run([(e, text) for e, text, _ in missing], terms)
        for exercise, _, path in missing:
            record = records[exercise.id] = new[exercise.id]
            if record.status is not Status.NOT_REACHED:
                files.write_text(path, json.dumps(record.to_json()))
    return records


def _kept(exercise: Exercise, text: str, terms: Terms, course: str) -> Path:
    """Where the verdict on a text is kept: identical ones are judged once."""
    parts = json.dumps([exercise.id, text, terms.seed, course])
    name = hashlib.sha256(parts.encode()).hexdigest()[:32]
    return Path(terms.store) / "verdicts" / f"{name}.json"


def _run(answers: list[Answer], terms: Terms) -> dict[str, Record]:
    """The plugin's records by exercise id. Answers that a lost kernel has taken with it are run
    again, without the one that lost it. Raises ToolError where the tools are at fault."""
    records: dict[str, Record] = {}
    end = time.monotonic() + terms.budget
    while left := [pair for pair in answers if pair[0].id not in records]:
        if (seconds := end - time.monotonic()) <= 0:
            late = f"not judged: the {terms.budget:g} s for this submission were over"
            late += "; ask your instructor"
            return records | _all(left, Status.NOT_REACHED, late)
        graded = _nbval(left, terms, seconds)
        judged = {id: r for id, r in graded.items() if r.status is not Status.NOT_RUN}
        for id, record in judged.items():
            if record.fault is not None:  # nobody loses points for that
                raise ToolError(f"{id}: {record.fault}")
        if judged or time.monotonic() < end:
            lost = "the notebook ended before this exercise was judged"
            records |= judged or _all(left[:1], Status.CRASHED, lost)
    return records


def _all(answers: list[Answer], status: Status, message: str) -> dict[str, Record]:
    return {e.id: Record.of_exercise(e, status, message) for e, _ in answers}


def _nbval(answers: list[Answer], terms: Terms, budget: float) -> dict[str, Record]:
    """The plugin's records by exercise id. Raises WorkbookError where there is none at all."""
    with workdir() as work:
        folder = str(work)
        text = documents.to_text(notebook(answers))
        Path(folder, "answers.ipynb").write_text(text, encoding="utf-8")
        report, said = Path(folder, "report.json"), Path(folder, "said.txt")
        command = ["--nbval-lax", "-p", "nbval.plugin"]
        command += ["-p", "utils.grading.nbval_plugin", "-p", "no:cacheprovider", "--noconftest"]
        command += [f"--rootdir={folder}", "-c", os.devnull, "-q", "--tb=no"]
        command += ["--workbook-assess", f"--workbook-json={report}"]
        command += [f"--workbook-cell-limit={CELL}", f"--workbook-budget={budget}", folder]
        seconds = START + min(3 * CELL * len(answers), budget + 4 * CELL)
        for _ in range(2):
            _call(command, folder, seconds, terms, str(said))
            if said.exists():  # else it has not begun: its fork server had just ended
                break
        try:
            summary = json.loads(report.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            printed = said.read_text(errors="replace") if said.exists() else "it did not begin"
            last = inert.line(printed.strip()[-300:])
            raise WorkbookError(f"nbval ended without a report: {last}") from None
    records = [record for each in summary["notebooks"] for record in each["exercises"]]
    wanted = {exercise.id for exercise, _ in answers}
    return {r["exercise"]: Record.from_json(r) for r in records if r["exercise"] in wanted}


# What pytest and a notebook's kernel import.
MODULES = "torch pytest nbval.plugin ipykernel.kernelapp ipykernel.ipkernel".split()
MODULES += "utils.grading.score utils.grading.cells utils.grading.assess".split()
MODULES += "utils.magics utils.timing.bench utils.diagrams.draw".split()  # a first cell's
_server: forkserver.ForkServer | None = None
_beginning = threading.Lock()
_running: set[forkserver.Fork] = set()
_stopped = threading.Event()


def _forks() -> forkserver.ForkServer:
    """One for all that this process grades."""
    global _server
    with _beginning:
        if _server is None or not _server.alive:
            _server = forkserver.ForkServer(MODULES, OMP_NUM_THREADS="1", WORKBOOK_LOG="")
            atexit.register(_server.close)
        return _server


def stop() -> None:
    """End what is being judged: whoever waits for it gets an error, until `begin`."""
    _stopped.set()
    for process in list(_running):
        process.kill()
    if _server:
        _server.kill()


def begin() -> None:
    """Judge again, after a `stop`."""
    _stopped.clear()


def _call(arguments: list[str], folder: str, seconds: float, terms: Terms, log: str) -> None:
    settings = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "WORKBOOK_BOX": "1" if terms.boxed else "",
        "WORKBOOK_CACHE": str(Path(terms.store, "builds").resolve()),  # a box has no links to it
        "WORKBOOK_LOG": "",
        "WORKBOOK_SEED": terms.seed,
        "WORKBOOK_ROUNDS": str(ROUNDS),
        "WORKBOOK_SOLUTIONS": "",
        "OMP_NUM_THREADS": "1",  # submissions are graded beside each other
    }
    if _stopped.is_set():
        raise WorkbookError("the run was interrupted")
    process = _forks().run(["pytest", *arguments], env=environment(**settings), cwd=folder, log=log)
    _running.add(process)
    try:
        if not _stopped.is_set():  # it may have come while the fork server started
            process.wait(seconds)
    except subprocess.TimeoutExpired:
        pass
    finally:
        process.kill()
        _running.discard(process)


def notebook(answers: list[Answer]) -> nbformat.NotebookNode:
    """A notebook of the workbook's own cells with these answers in them: of each of ours the first
    cell, of each exercise the answer's and a check. One kernel runs them all: to start one takes
    as long as to judge three answers.

    Raises WorkbookError where the workbook has no cell for one of them.
    """
    chosen = []
    for name in dict.fromkeys(exercise.notebook for exercise, _ in answers):
        pristine = documents.read(documents.notebook_of(name))
        known = documents.cuda_cells(pristine)
        chosen += [cell for cell in pristine.cells if cell.cell_type == "code"][:1]
        for exercise, text in answers:
            if exercise.notebook != name:
                continue
            if exercise.id not in known:
                raise WorkbookError(f"notebook {name} has no cell for {exercise.id}")
            cell = known[exercise.id]
            cell.source = f"{documents.MAGIC} {exercise.id}\n{text}"
            check = nbformat.v4.new_code_cell(f"check({exercise.name})", id=f"{cell.id}-check")
            chosen += [cell, check]
    for number, cell in enumerate(chosen):  # topics may have cells of one id
        cell["id"] = f"cell-{number}"
    return documents.canonical(nbformat.v4.new_notebook(cells=chosen))
