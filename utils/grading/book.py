"""The table of a class: a row a student, as nbgrader, Moodle and Canvas read it.

grades.csv begins with the columns that nbgrader exports. An instructor fills `manual` (points to
add) and `comment`; a later run keeps both, and adds them again.
"""

import csv
import os
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from utils.course import catalog
from utils.grading import inert
from utils.grading.grades import Grade, Graded
from utils.grading.verdicts import Status
from utils.ground import files
from utils.ground.errors import WorkbookError
from utils.ground.wording import many

NBGRADER = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score"),
)
OWN = ("status", "manual", "comment", "timed")
PEOPLE = ("student_id", "last_name", "first_name", "email")

Row = dict[str, str]  # of a table, by column


@dataclass(frozen=True)
class Rules:
    """What a table is made by."""

    assignment: str
    topics: tuple[str, ...]
    due: datetime | None = None
    late_per_day: float = 0.0  # percent of the raw score that each begun day costs


def roster(path: Path | None) -> dict[str, Row]:
    """Who is in the class, from a CSV file with the columns of PEOPLE, by student_id.

    Raises WorkbookError for a file without student_id.
    """
    if path is None:
        return {}
    rows = _rows(path)
    if rows and "student_id" not in rows[0]:
        raise WorkbookError(f"{path} has no column student_id; it has {', '.join(rows[0])}")
    return {row["student_id"]: row for row in rows}


def write(
    path: Path, grades: Iterable[Graded], rules: Rules, people: Mapping[str, Row]
) -> list[Row]:
    """Write the table, and beside it NAME.moodle.csv and NAME.canvas.csv. Returns the rows.

    Manual points and comments that stand in the table are kept. Raises WorkbookError where they
    cannot be read, and then nothing is written.
    """
    before = {row.get("student_id", ""): row for row in _rows(path)} if path.exists() else {}
    exercises = [e for topic in rules.topics for e in catalog.topic(topic).values() if e.number]
    columns = [f"{e.number} {e.name}" for e in exercises]
    highest = sum(e.points for e in exercises)
    rows: dict[str, Row] = {}
    for grade in grades:
        id = _free(named(grade.student), rows)
        rows[id] = _row(grade, rules) | {"student_id": id}
    for id in {*people, *before} - set(rows):  # nothing was handed in, this time
        rows[id] = {"student_id": id, "raw_score": "0", "status": "missing", "timestamp": ""}
    for id, row in rows.items():
        known = {name: before.get(id, {}).get(name, "") for name in (*PEOPLE, "manual", "comment")}
        row |= {name: people.get(id, {}).get(name) or known[name] for name in PEOPLE[1:]}
        row |= {"manual": known["manual"], "comment": known["comment"]}
        row |= {"assignment": rules.assignment, "max_score": _number(highest)}
        row["duedate"] = rules.due.isoformat() if rules.due else ""
        row["late_submission_penalty"] = penalty = row.get("late_submission_penalty", "0")
        total = float(row["raw_score"]) - float(penalty) + _manual(row["manual"], id, path)
        row["score"] = _number(max(0.0, total))
    ordered = [rows[id] for id in sorted(rows)]
    _write(path, [*NBGRADER, *OWN, *columns], ordered)
    _write(path.with_suffix(".moodle.csv"), *_moodle(ordered, rules))
    _write(path.with_suffix(".canvas.csv"), *_canvas(ordered, rules, highest))
    return ordered


def named(student: str) -> str:
    """A student's name, which is that of a folder, as it can stand in a table."""
    return inert.line(os.fsencode(student).decode("utf-8", "replace"))


def _free(name: str, taken: Container[str]) -> str:
    """The name, or one that differs: of two folders that look alike, neither hides the other."""
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name} ({number})"
    return candidate


def _row(grade: Graded, rules: Rules) -> Row:
    """What a grade says; a grader's own fault leaves the score open to the instructor."""
    if not isinstance(grade, Grade):
        return {"raw_score": "0", "timestamp": "", "status": f"not graded: {grade.fault}"}
    handed_in = datetime.fromtimestamp(grade.latest, UTC).replace(microsecond=0)
    late = (handed_in - rules.due).total_seconds() if rules.due and grade.latest else 0
    days = int(-(-late // 86400)) if late > 0 else 0
    share = min(1.0, days * rules.late_per_day / 100)
    return {
        "raw_score": _number(grade.points),
        "timestamp": handed_in.isoformat() if grade.latest else "",
        "late_submission_penalty": _number(grade.points * share),
        "timed": "no" if grade.timed == "" else grade.timed or "",
        "status": _status(grade, days),
        **{f"{mark.number} {mark.name}": _number(mark.points) for mark in grade.exercises},
    }


def _status(grade: Grade, days: int) -> str:
    """In words, for a grade of work that came so many days late."""
    statuses = [mark.status for mark in grade.exercises]
    words = ["empty" if set(statuses) == {Status.NOT_ATTEMPTED} else "graded"]
    if late := statuses.count(Status.NOT_REACHED):
        words.append(f"{late} not reached in time")
    if published := sum(mark.published for mark in grade.exercises):
        words.append(f"{published} as published")
    if days:
        words.append(f"{many(days, 'day')} late")
    return ", ".join(words)


def _manual(text: str, id: str, path: Path) -> float:
    try:
        return float(text.replace(",", ".")) if text.strip() else 0.0
    except ValueError:
        raise WorkbookError(
            f"{path}: the manual points of {id!r} are {text!r}; write a number, or nothing"
        ) from None


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
    return columns, [
        {c: row.get(o, "") for c, o in zip(columns, ours, strict=True)} for row in rows
    ]


def _canvas(rows: list[Row], rules: Rules, highest: int) -> tuple[list[str], list[Row]]:
    """Canvas: Grades, Import; its second line says how many points there are."""
    columns = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", rules.assignment]
    possible = {"Student": "    Points Possible", rules.assignment: _number(highest)}
    table = [possible]
    for row in rows:
        name = ", ".join(filter(None, (row.get("last_name"), row.get("first_name"))))
        table.append(
            {
                "Student": name or row["student_id"],
                "SIS User ID": row["student_id"],
                "SIS Login ID": row.get("email") or row["student_id"],
                rules.assignment: row["score"],
            }
        )
    return columns, table


def _rows(path: Path) -> list[Row]:
    """The rows of a table, with what `inert.cell` has put before a cell taken away again."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise WorkbookError(f"{path} cannot be read: {error}") from None
    return [
        {name: (value or "").removeprefix("'") for name, value in row.items() if name}
        for row in rows
    ]


def _write(path: Path, columns: list[str], rows: list[Row]) -> None:
    with files.publish(path) as made, open(made, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows({name: inert.cell(row.get(name)) for name in columns} for row in rows)


def _number(value: float) -> str:
    return f"{round(value, 2):g}"
