"""`workbook grade`: a class from its folders to the table, and what students get back."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from utils.course import catalog
from utils.grading import (
    book,
    collect,
    feedback,
    grade,
    lateness,
    pool,
    similarity,
    statistics,
    tables,
)
from utils.grading.collect import Student
from utils.grading.grades import Grade, Graded, Ungraded
from utils.grading.lateness import Clock
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
    clock: Clock = Clock.AUTO  # by what it is known when a submission came
    assignment: str = ""  # its name, and of the folders in nbgrader's; "" for that of `folder`
    again: tuple[str, ...] = ()  # students, and numbers of exercises, that are graded anew

    @property
    def keeps(self) -> bool:
        """Whether what was graded before is kept."""
        return self.resume or bool(self.again)

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
        return pool.terms(
            self.topics,
            self.store,
            self.keeps or alone,
            boxed=self.boxed,
            budget=self.budget,
            clock=self.clock,
        )


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
    grace: float = 0.0  # hours
    times: Path | None = None
    statistics: Path | None = None
    alike: float = similarity.THRESHOLD  # percent, from which on answers are reported

    def rules(self, plan: Plan) -> book.Rules:
        """What the table is made by."""
        name = plan.assignment or plan.folder.resolve().name
        due = self.due.astimezone() if self.due else None
        grace = timedelta(hours=self.grace)
        return book.Rules(name, plan.topics, due, self.late_per_day, grace)


def grade_one(plan: Plan, folder: Path, out: Path) -> int:
    """Grade a student's folder into a JSON file; the exit status: 2 for a fault of ours."""
    terms = plan.terms(alone=True)
    made = pool.one(pool.Job(Student.of(folder), terms, plan.resume))
    files.write_text(out, _json(made))
    return 2 if isinstance(made, Ungraded) else 0


def grade_all(plan: Plan, wanted: Wanted, console: Console) -> int:
    """Grade every student and write what is wanted; the exit status: 2 for a fault of ours.

    Raises WorkbookError, before anything is graded, for a table, a roster or times that cannot be
    read, and for a folder that is no class's.
    """
    people = book.roster(wanted.students)
    times = lateness.listed(wanted.times)
    earlier = book.before(wanted.table)
    rules = wanted.rules(plan)
    students, nobodys = collect.students(plan.folder, plan.assignment)
    ids = collect.ids((student.name for student in students), people)
    again = _again(plan, ids)
    terms = plan.terms()
    kept: list[Graded] = []
    answers: dict[str, Mapping[str, str]] = {}
    grades = pool.graded(
        students, terms, jobs=plan.jobs, cluster=plan.cluster, resume=plan.keeps, again=again
    )
    with _progress(len(students)) as advance:
        for made in grades:
            id = ids[made.student]
            if isinstance(made, Grade) and id in times:
                made = replace(made, latest=times[id].timestamp(), clock=lateness.LISTED)
            if wanted.json_dir:
                name = f"{feedback.safe_name(made.student)}.json"
                files.write_text(wanted.json_dir / name, _json(made))
            if isinstance(made, Grade):
                if wanted.feedback:
                    row = book.row(made, id, rules, people, earlier, wanted.table)
                    feedback.write(made, wanted.feedback, row)
                if wanted.similar:
                    answers[made.student] = made.answers
                made = made.without_pictures()  # which of a large class fill the memory
            kept.append(made)
            advance(made.student)
    rows = book.write(wanted.table, kept, rules, people)
    if wanted.similar:
        pairs = similarity.report(answers, wanted.alike)
        similarity.write(pairs, wanted.similar, answers, wanted.alike)
    if wanted.statistics:
        statistics.write([made for made in kept if isinstance(made, Grade)], wanted.statistics)
    if nobodys:
        console.print(collect.nobodys(nobodys), markup=False, soft_wrap=True)
    return _tell(console, kept, rows, wanted)


def _again(plan: Plan, ids: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The ids of the exercises of each student, by name, that are judged anew.

    Raises WorkbookError for a word that is neither a student nor an exercise."""
    counted = [e for topic in plan.topics for e in catalog.topic(topic).values() if e.number]
    every, chosen, who = tuple(e.id for e in counted), set[str](), set[str]()
    for word in plan.again:
        exercises = {e.id for e in counted if word in (e.number, e.name, e.id)}
        students = {name for name, id in ids.items() if tables.normal(word) in (id, name)}
        if not exercises | students:
            raise WorkbookError(
                f"--again {word}: no student is called so, and no exercise that counts; name a "
                "student_id, or a number such as 04.6"
            )
        chosen |= exercises
        who |= students
    if not chosen:
        return dict.fromkeys(who, every)
    of_all = () if who else tuple(chosen)  # both: these exercises of these students
    return dict.fromkeys(ids, of_all) | dict.fromkeys(who, tuple(chosen))


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
            bar.update(task, advance=1, description=collect.shown_name(student)[:40])

        yield advance


def _tell(console: Console, made: list[Graded], rows: list[tables.Row], wanted: Wanted) -> int:
    grades = [grade for grade in made if isinstance(grade, Grade)]
    faults = [grade for grade in made if isinstance(grade, Ungraded)]
    counted = Counter(mark.status for grade in grades for mark in grade.exercises)
    statuses = ", ".join(f"{number} {status}" for status, number in counted.most_common())
    console.print(
        f"{many(len(made), 'submission')}; answers: {statuses}", markup=False, soft_wrap=True
    )
    if missing := [row["student_id"] for row in rows if row.get("status") == "missing"]:
        console.print(f"nothing from: {', '.join(missing)}", markup=False, soft_wrap=True)
    ways = Counter(grade.timed for grade in grades if grade.timed is not None)
    if len(ways) > 1:  # part of the class could earn points for speed, and part could not
        counts = "; ".join(f"{way or 'not timed'}: {number}" for way, number in ways.items())
        console.print(
            f"not all were timed alike ({counts}): see the column 'timed'",
            markup=False,
            soft_wrap=True,
        )
    clocks = Counter(grade.clock or "newest file" for grade in grades)
    if len(clocks) > 1 and (wanted.due or any(row["duedate"] for row in rows)):
        counts = "; ".join(f"{clock}: {number}" for clock, number in clocks.items())
        console.print(
            f"times are not all by the same clock ({counts})", markup=False, soft_wrap=True
        )
    scores = [float(row["score"]) for row in rows if row["score"] and row["status"] != "missing"]
    if rows:
        console.print(
            statistics.summary(scores, float(rows[0]["max_score"])), markup=False, soft_wrap=True
        )
    if open_ := [row["student_id"] for row in rows if book.is_open(row)]:
        console.print(
            f"without a score in the tables for Moodle and Canvas: {', '.join(open_)}",
            markup=False,
            soft_wrap=True,
        )
    for fault in faults:
        console.print(
            f"not graded: {collect.shown_name(fault.student)}: {fault.fault}", markup=False
        )
    written = (wanted.table, wanted.json_dir, wanted.feedback, wanted.similar, wanted.statistics)
    console.print(
        f"written: {', '.join(str(path) for path in written if path)}", markup=False, soft_wrap=True
    )
    return 2 if faults else 0
