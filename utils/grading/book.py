"""The table of a class: a row a student, as nbgrader, Moodle and Canvas read it.

grades.csv begins with the columns that nbgrader exports. An instructor fills `manual` (points to
add) and `comment`; a later run keeps both, and adds them again.
"""

import csv
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from utils import files
from utils.course import catalog
from utils.errors import WorkbookError
from utils.grading import inert
from utils.grading.grade import UNREACHED

NBGRADER = ("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email")
NBGRADER += ("raw_score", "late_submission_penalty", "score", "max_score")
OWN = ("status", "manual", "comment", "timed")
PEOPLE = ("student_id", "last_name", "first_name", "email")


@dataclass(frozen=True)
class Rules:
    """What a table is made by."""

    assignment: str
    topics: tuple[str, ...]
    due: datetime | None = None
    late_per_day: float = 0.0  # percent of the raw score that each begun day costs


def roster(path: Path | None) -> dict[str, dict[str, str]]:
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
    path: Path, grades: Iterable[dict], rules: Rules, people: dict[str, dict[str, str]]
) -> list[dict[str, str]]:
    """Write the table, and beside it NAME.moodle.csv and NAME.canvas.csv. Returns the rows.

    Manual points and comments that stand in the table are kept. Raises WorkbookError where they
    cannot be read, and then nothing is written.
    """
    before = {row.get("student_id", ""): row for row in _rows(path)} if path.exists() else {}
    exercises = [e for topic in rules.topics for e in catalog.topic(topic).values() if e.number]
    columns = [f"{e.number} {e.name}" for e in exercises]
    highest = sum(e.points for e in exercises)
    rows = {}
    for grade in grades:
        row = _row(grade, rules) | {"student_id": _free(named(grade["student"]), rows)}
        for record in grade.get("exercises", ()):
            row[f"{record['number']} {record['name']}"] = _number(record["points"])
        rows[row["student_id"]] = row
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


def _free(name: str, taken: Iterable[str]) -> str:
    """The name, or one that differs: of two folders that look alike, neither hides the other."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name} ({number})"
    return found


def _row(grade: dict, rules: Rules) -> dict[str, str]:
    """What a grade says; a grader's own fault leaves the score open to the instructor."""
    row = {"raw_score": "0", "timestamp": ""}
    if "fault" in grade:
        return row | {"status": f"not graded: {grade['fault']}"}
    latest = grade["latest"]
    handed_in = datetime.fromtimestamp(latest, UTC).replace(microsecond=0)
    row |= {"timestamp": handed_in.isoformat() if latest else ""}
    row["raw_score"] = _number(grade["points"])
    late = (handed_in - rules.due).total_seconds() if rules.due and latest else 0
    days = int(-(-late // 86400)) if late > 0 else 0
    share = min(1.0, days * rules.late_per_day / 100)
    row["late_submission_penalty"] = _number(grade["points"] * share)
    statuses = {record["status"] for record in grade["exercises"]}
    told = "empty" if statuses == {"not attempted"} else "graded"
    row["timed"] = "no" if grade.get("timed") == "" else grade.get("timed") or ""
    if unreached := sum(record["status"] == UNREACHED for record in grade["exercises"]):
        told += f", {unreached} not reached in time"
    return row | {
        "status": f"{told}, {days} {'day' if days == 1 else 'days'} late" if days else told
    }


def _manual(text: str, id: str, path: Path) -> float:
    try:
        return float(text.replace(",", ".")) if text.strip() else 0.0
    except ValueError:
        raise WorkbookError(
            f"{path}: the manual points of {id!r} are {text!r}; write a number, or nothing"
        ) from None


def _moodle(rows: list[dict], rules: Rules) -> tuple[list[str], list[dict]]:
    """Moodle: Grades, Import, CSV file; map "ID number" or the address, and the grade."""
    columns = [
        "ID number",
        "First name",
        "Last name",
        "Email address",
        rules.assignment,
        "Feedback",
    ]
    named = ("student_id", "first_name", "last_name", "email", "score", "comment")
    return columns, [dict(zip(columns, map(row.get, named), strict=True)) for row in rows]


def _canvas(rows: list[dict], rules: Rules, highest: int) -> tuple[list[str], list[dict]]:
    """Canvas: Grades, Import; its second line says how many points there are."""
    columns = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", rules.assignment]
    possible = {"Student": "    Points Possible", rules.assignment: _number(highest)}
    told = [possible]
    for row in rows:
        name = ", ".join(filter(None, (row.get("last_name"), row.get("first_name"))))
        told.append(
            {
                "Student": name or row["student_id"],
                "SIS User ID": row["student_id"],
                "SIS Login ID": row.get("email") or row["student_id"],
                rules.assignment: row["score"],
            }
        )
    return columns, told


def _rows(path: Path) -> list[dict[str, str]]:
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


def _write(path: Path, columns: list[str], rows: list[dict]) -> None:
    with files.publish(path) as made, open(made, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows({name: inert.cell(row.get(name)) for name in columns} for row in rows)


def _number(value: float) -> str:
    return f"{round(value, 2):g}"
