"""The table of a class: a row a student, as nbgrader, Moodle and Canvas read it.

grades.csv begins with the columns that nbgrader exports. An instructor fills `manual` (points to
add) and `comment`; a later run keeps both, and adds them again. What cannot be read is told before
anything is graded, and never written over.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from utils.course import catalog
from utils.grading import collect, tables
from utils.grading.grades import Grade, Graded
from utils.grading.lateness import Deadline
from utils.grading.tables import Row, number
from utils.grading.verdicts import Status
from utils.ground.wording import many

NBGRADER = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score"),
)
OWN = ("status", "manual", "comment", "timed")
PEOPLE = ("student_id", "last_name", "first_name", "email")


@dataclass(frozen=True)
class Rules:
    """What a table is made by."""

    assignment: str
    topics: tuple[str, ...]
    due: datetime | None = None
    late_per_day: float = 0.0  # percent of the raw score that each begun day costs
    grace: timedelta = timedelta()  # after `due`, that costs nothing

    def deadline(self, person: Mapping[str, str], path: Path) -> Deadline:
        """Until when a student's work is in time: the class's, or one's own by the roster."""
        return Deadline(self.due, self.grace).of(person, path)


def roster(path: Path | None) -> dict[str, Row]:
    """Who is in the class, from a CSV file with the columns of PEOPLE, by student_id. It may have
    `due` and `grace` (hours) as well, of students with an extension.

    Raises WorkbookError for a file without student_id, and for a time or a number that is none.
    """
    people = tables.read(path) if path else {}
    for person in people.values():
        Deadline().of(person, path or Path())
    return people


def before(path: Path) -> dict[str, Row]:
    """The table as it stands, by student_id, nothing if there is none.

    Raises WorkbookError where it cannot be read, or a student's manual points are no number.
    """
    rows = tables.read(path) if path.exists() else {}
    for row in rows.values():
        _manual(row, path)
    return rows


def write(
    path: Path, grades: Iterable[Graded], rules: Rules, people: Mapping[str, Row]
) -> list[Row]:
    """Write the table, and beside it NAME.moodle.csv and NAME.canvas.csv. Returns the rows.

    Manual points, comments and columns of the instructor's own that stand in the table are kept,
    and the table as it was, too, beside it. Raises WorkbookError where it cannot be read, and then
    nothing is written.
    """
    earlier = before(path)
    exercises = [e for topic in rules.topics for e in catalog.topic(topic).values() if e.number]
    columns = [f"{e.number} {e.name}" for e in exercises]
    highest = sum(e.points for e in exercises)
    by_name = {grade.student: grade for grade in grades}
    ids = collect.ids(by_name, people)
    rows = {
        ids[name]: row(grade, ids[name], rules, people, earlier, path)
        for name, grade in by_name.items()
    }
    for id in {*people, *earlier} - set(rows):  # nothing was handed in, this time
        missing = {"raw_score": "0", "status": "missing", "timestamp": ""}
        rows[id] = _completed(missing, id, rules, people, earlier, path)
    for made in rows.values():
        made["max_score"] = number(highest)
    known = {*NBGRADER, *OWN, *(f"{e.number} {e.name}" for e in catalog.exercises())}
    theirs = [name for name in next(iter(earlier.values()), {}) if name not in known]
    ordered = [rows[id] for id in sorted(rows)]
    tables.back_up(path)
    tables.write(path, [*NBGRADER, *OWN, *columns, *theirs], ordered)
    tables.write(path.with_suffix(".moodle.csv"), *_moodle(ordered, rules))
    tables.write(path.with_suffix(".canvas.csv"), *_canvas(ordered, rules, highest))
    return ordered


def row(
    grade: Graded,
    id: str,
    rules: Rules,
    people: Mapping[str, Row],
    earlier: Mapping[str, Row],
    path: Path,
) -> Row:
    """A student's row, but for max_score: what a grade says, and what people have written. A
    grader's own fault leaves the score open to the instructor.

    `people` and `earlier` are the roster and the table at `path` as it was.
    """
    if not isinstance(grade, Grade):
        open_ = {"raw_score": "", "timestamp": "", "status": f"not graded: {grade.fault}"}
        return _completed(open_, id, rules, people, earlier, path)
    days = rules.deadline(people.get(id, {}), path).days_late(grade.latest)
    share = min(1.0, days * rules.late_per_day / 100)
    handed_in = datetime.fromtimestamp(grade.latest, UTC).replace(microsecond=0)
    made = {
        "raw_score": number(grade.points),
        "timestamp": handed_in.isoformat() if grade.latest else "",
        "late_submission_penalty": number(grade.points * share),
        "timed": "no" if grade.timed == "" else grade.timed or "",
        "status": _status(grade, days),
        **{f"{mark.number} {mark.name}": number(mark.points) for mark in grade.exercises},
    }
    return _completed(made, id, rules, people, earlier, path)


def _completed(
    made: Row,
    id: str,
    rules: Rules,
    people: Mapping[str, Row],
    earlier: Mapping[str, Row],
    path: Path,
) -> Row:
    """With who it is, what an instructor has written, and the score."""
    person, written = people.get(id, {}), earlier.get(id, {})
    kept = {name: text for name, text in written.items() if name not in (*NBGRADER, *OWN)}
    names = {name: person.get(name) or written.get(name, "") for name in PEOPLE[1:]}
    by_hand = {"manual": "", "comment": written.get("comment", "")}
    if written.get("manual", "").strip():
        by_hand["manual"] = f"{_manual(written, path):g}"  # no comma: it is a number everywhere
    made = kept | made | names | by_hand | {"student_id": id, "assignment": rules.assignment}
    due = rules.deadline(person, path).due
    made["duedate"] = due.isoformat() if due else ""
    penalty = made.setdefault("late_submission_penalty", "0")
    made["score"] = ""
    if made["raw_score"]:
        total = float(made["raw_score"]) - float(penalty) + _manual(written, path)
        made["score"] = number(max(0.0, total))
    return made


def is_open(row: Mapping[str, str]) -> bool:
    """Whether a student's score is not known yet: no gradebook is to hold a 0 for it."""
    return not row["score"] or "not reached" in row.get("status", "")


def _status(grade: Grade, days: int) -> str:
    """In words, for a grade of work that came so many days late."""
    statuses = [mark.status for mark in grade.exercises]
    words = ["empty" if set(statuses) == {Status.NOT_ATTEMPTED} else "graded"]
    if late := statuses.count(Status.NOT_REACHED):
        words.append(f"{late} not reached in time")
    if published := sum(mark.published for mark in grade.exercises):
        words.append(f"{published} as published")
    if days:
        words.append(f"{many(days, 'day')} late" + f" by {grade.clock}" * bool(grade.clock))
    return ", ".join(words)


def _manual(row: Mapping[str, str], path: Path) -> float:
    what = f"the manual points of {row.get('student_id', '')!r}"
    return tables.as_number(row.get("manual", ""), what, path)


def _moodle(rows: list[Row], rules: Rules) -> tuple[list[str], list[Row]]:
    """Moodle: Grades, Import, CSV file; map "ID number" or the address, and the grade."""
    columns = [
        "ID number",
        "First name",
        "Last name",
        "Email address",
        rules.assignment,
        "Feedback",
    ]
    ours = ("student_id", "first_name", "last_name", "email", "score", "comment")
    table = [{c: row.get(o, "") for c, o in zip(columns, ours, strict=True)} for row in rows]
    for row, exported in zip(rows, table, strict=True):
        exported[rules.assignment] *= not is_open(row)
    return columns, table


def _canvas(rows: list[Row], rules: Rules, highest: int) -> tuple[list[str], list[Row]]:
    """Canvas: Grades, Import; its second line says how many points there are."""
    columns = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", rules.assignment]
    possible = {"Student": "    Points Possible", rules.assignment: number(highest)}
    table = [possible]
    for row in rows:
        name = ", ".join(filter(None, (row.get("last_name"), row.get("first_name"))))
        table.append(
            {
                "Student": name or row["student_id"],
                "SIS User ID": row["student_id"],
                "SIS Login ID": row.get("email") or row["student_id"],
                rules.assignment: "" if is_open(row) else row["score"],
            }
        )
    return columns, table
