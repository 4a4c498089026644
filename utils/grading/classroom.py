"""`workbook grade`: a class from its folders to the table, and what students get back."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from utils.grading import book, feedback, grade, pool, similarity
from utils.grading.grades import Grade, Graded, Ungraded
from utils.ground import files
from utils.ground.errors import WorkbookError
from utils.ground.wording import many
from utils.process import sandbox


@dataclass(frozen=True)
class Plan:
    """What is graded, and how."""

    folder: Path
    topics: tuple[str, ...]
    store: Path
    resume: bool = False
    boxed: bool = True
    jobs: int = 1
    cluster: str = ""
    budget: float = grade.BUDGET  # seconds for a submission

    def terms(self, alone: bool = False) -> grade.Terms:
        """`alone`: of one of many that share the store, which is left as it is.

        Raises ToolError where there is no box and nobody said that there need be none."""
        if self.boxed:
            try:
                sandbox.require()
            except WorkbookError as error:
                raise type(error)(
                    f"{error}. If you trust every line that was handed in as you do your own, "
                    "--trust-submissions grades without"
                ) from None
        keep = self.resume or alone
        return pool.terms(self.topics, self.store, keep, boxed=self.boxed, budget=self.budget)


@dataclass(frozen=True)
class Wanted:
    """What is written: the table, and what else is asked for."""

    table: Path
    json_dir: Path | None = None
    feedback: Path | None = None
    similar: Path | None = None
    students: Path | None = None
    due: datetime | None = None
    late_per_day: float = 0.0


def grade_one(plan: Plan, folder: Path, out: Path) -> int:
    """Grade a student's folder into a JSON file; the exit status: 2 for a fault of ours."""
    terms = plan.terms(alone=True)
    made = pool.one((folder, terms, plan.resume))
    files.write_text(out, _json(made))
    return 2 if isinstance(made, Ungraded) else 0


def grade_all(plan: Plan, wanted: Wanted, console: Console) -> int:
    """Grade every folder and write what is wanted; the exit status: 2 for a fault of ours."""
    people = book.roster(wanted.students)
    due = wanted.due.astimezone() if wanted.due else None
    rules = book.Rules(plan.folder.resolve().name, plan.topics, due, wanted.late_per_day)
    folders = grade.students(plan.folder)
    terms = plan.terms()
    kept: list[Graded] = []
    answers: dict[str, Mapping[str, str]] = {}
    with _progress(len(folders)) as advance:
        for made in pool.graded(
            folders, terms, jobs=plan.jobs, cluster=plan.cluster, resume=plan.resume
        ):
            if wanted.json_dir:
                name = f"{feedback.safe_name(made.student)}.json"
                files.write_text(wanted.json_dir / name, _json(made))
            if isinstance(made, Grade):
                if wanted.feedback:
                    feedback.write(made, wanted.feedback)
                if wanted.similar:
                    answers[made.student] = made.answers
                made = made.without_pictures()  # which of a large class fill the memory
            kept.append(made)
            advance(made.student)
    rows = book.write(wanted.table, kept, rules, people)
    if wanted.similar:
        similarity.write(similarity.report(answers), wanted.similar)
    return _tell(console, kept, rows, wanted)


def _json(made: Graded) -> str:
    """A grade as a file: pictures are the feedback's, and the answers the student's."""
    data = (made.without_pictures() if isinstance(made, Grade) else made).to_json()
    data.pop("answers", None)
    return json.dumps(data, indent=1) + "\n"


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)

        def advance(student: str) -> None:
            bar.update(task, advance=1, description=book.named(student)[:40])

        yield advance


def _tell(console: Console, made: list[Graded], rows: list[book.Row], wanted: Wanted) -> int:
    grades = [grade for grade in made if isinstance(grade, Grade)]
    faults = [grade for grade in made if isinstance(grade, Ungraded)]
    counted = Counter(mark.status for grade in grades for mark in grade.exercises)
    statuses = ", ".join(f"{number} {status}" for status, number in counted.most_common())
    console.print(f"{many(len(made), 'submission')}; answers: {statuses}", markup=False)
    if missing := [row["student_id"] for row in rows if row.get("status") == "missing"]:
        console.print(f"nothing from: {', '.join(missing)}", markup=False)
    ways = Counter(grade.timed for grade in grades if grade.timed is not None)
    if len(ways) > 1:  # part of the class could earn points for speed, and part could not
        counts = "; ".join(f"{way or 'not timed'}: {number}" for way, number in ways.items())
        console.print(f"not all were timed alike ({counts}): see the column 'timed'", markup=False)
    for fault in faults:
        console.print(f"not graded: {book.named(fault.student)}: {fault.fault}", markup=False)
    written = (wanted.table, wanted.json_dir, wanted.feedback, wanted.similar)
    console.print(f"written: {', '.join(str(path) for path in written if path)}", markup=False)
    return 2 if faults else 0
