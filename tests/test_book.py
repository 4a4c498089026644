"""The table of a class: columns, people, late work, what an instructor writes into it."""

import csv
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from utils.course import catalog
from utils.grading import book
from utils.grading.book import Rules
from utils.grading.grades import Grade, Mark, Ungraded
from utils.grading.verdicts import Status
from utils.ground.errors import WorkbookError
from utils.timing.speed import Speed

TOPICS = ("00_start_here",)
# Of `nbgrader export`, in its order.
NBGRADER = ["assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"]
NBGRADER += ["raw_score", "late_submission_penalty", "score", "max_score"]
DUE = datetime(2026, 11, 20, 12, tzinfo=UTC)


def made(student: str, *points: float, after: timedelta | None = None, **more) -> Grade:
    """A grade of 00's two exercises, handed in so long after DUE."""
    exercises = [e for e in catalog.topic(TOPICS[0]).values() if e.number]
    marks = tuple(
        Mark.of_exercise(e, points=p, status=Status.PASSED if p else Status.FAILED, **more)
        for e, p in zip(exercises, points, strict=True)
    )
    return Grade(student, marks, (DUE + (after or timedelta())).timestamp())


def read(path) -> list[dict]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_the_columns_begin_as_nbgraders_and_end_with_the_exercises(tmp_path):
    path = tmp_path / "grades.csv"
    book.write(path, [made("bob", 5, 2.5), made("ada", 5, 5)], Rules("hw1", TOPICS), {})
    header = path.read_text().splitlines()[0].split(",")
    assert header[:11] == NBGRADER
    assert header[-2:] == ["00.1 swish", "00.2 swish_grid_stride"]
    ada, bob = read(path)
    assert (ada["student_id"], ada["score"], ada["max_score"]) == ("ada", "10", "10")
    assert (bob["raw_score"], bob["00.2 swish_grid_stride"]) == ("7.5", "2.5")


def test_the_table_says_on_which_gpu_answers_were_timed(tmp_path):
    path = tmp_path / "grades.csv"
    parts = {"works": 5.0}
    ways = {"ada": {"parts": parts, "speed": Speed("NVIDIA H200", 10.0)}, "bob": {"parts": parts}}
    grades = [made(name, 5, 5, **ways.get(name, {})) for name in ("ada", "bob", "cyd")]
    book.write(path, grades, Rules("hw1", TOPICS), {"dan": {}})
    assert [row["timed"] for row in read(path)] == ["NVIDIA H200", "no", "", ""]


def test_manual_points_and_comments_survive_a_second_run(tmp_path):
    path = tmp_path / "grades.csv"
    rules = Rules("hw1", TOPICS)
    book.write(path, [made("ada", 5, 0)], rules, {})
    (row,) = rows = read(path)
    row |= {"manual": "-1.5", "comment": "=talked, twice"}
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, row)
        writer.writeheader()
        writer.writerows(rows)
    book.write(path, [made("ada", 5, 2)], rules, {})
    book.write(path, [made("ada", 5, 2)], rules, {})
    (row,) = read(path)
    assert (row["manual"], row["raw_score"], row["score"]) == ("-1.5", "7", "5.5")
    assert row["comment"] == "'=talked, twice", "no table takes it for a formula"


def test_manual_points_that_are_no_number_lose_nothing(tmp_path):
    path = tmp_path / "grades.csv"
    path.write_text("student_id,manual\nada,two\n")
    with pytest.raises(WorkbookError, match="manual points of 'ada' are 'two'"):
        book.write(path, [made("ada", 5, 5)], Rules("hw1", TOPICS), {})
    assert path.read_text() == "student_id,manual\nada,two\n"


@pytest.mark.parametrize(
    ("after", "penalty", "status"),
    [
        (timedelta(seconds=-1), "0", "graded"),
        (timedelta(seconds=1), "1", "graded, 1 day late"),
        (timedelta(days=1, seconds=1), "2", "graded, 2 days late"),
        (timedelta(days=30), "10", "graded, 30 days late"),
    ],
)
def test_each_begun_day_late_costs_its_share(tmp_path, after, penalty, status):
    path = tmp_path / "grades.csv"
    rules = Rules("hw1", TOPICS, DUE, 10.0)
    book.write(path, [made("ada", 5, 5, after=after)], rules, {})
    (row,) = read(path)
    assert (row["late_submission_penalty"], row["status"]) == (penalty, status)
    assert float(row["score"]) == 10 - float(penalty)


def test_who_hands_in_nothing_is_in_the_table(tmp_path):
    people = tmp_path / "people.csv"
    people.write_text("student_id,last_name,first_name,email\nada,Lovelace,Ada,a@b.c\nbob,B,Bob,\n")
    path = tmp_path / "grades.csv"
    book.write(path, [made("ada", 5, 5)], Rules("hw1", TOPICS), book.roster(people))
    ada, bob = read(path)
    assert (ada["last_name"], ada["email"]) == ("Lovelace", "a@b.c")
    assert (bob["status"], bob["score"], bob["first_name"]) == ("missing", "0", "Bob")


def test_a_roster_without_ids_is_told(tmp_path):
    (tmp_path / "people.csv").write_text("name\nada\n")
    with pytest.raises(WorkbookError, match="no column student_id; it has name"):
        book.roster(tmp_path / "people.csv")


def test_names_can_do_nothing_to_a_table(tmp_path):
    path = tmp_path / "grades.csv"
    names = ["=HYPERLINK(1)", "a\nb", "a\x1bb", "-1+1", "\udcff", "\udcfe", "'quoted"]
    grades = [made(name, 5, 5) for name in names]
    book.write(path, grades, Rules("hw1", TOPICS), {})
    rows = read(path)
    assert len(rows) == len(names), "two that look alike are two"
    assert {row["student_id"][0] for row in rows} <= {"'", "a", "\N{REPLACEMENT CHARACTER}"}
    book.write(path, grades, Rules("hw1", TOPICS), {})
    assert read(path) == rows, "each is found again"


def test_a_grade_that_failed_for_our_fault_says_so(tmp_path):
    path = tmp_path / "grades.csv"
    book.write(path, [Ungraded("ada", "no disk")], Rules("hw1", TOPICS), {})
    assert read(path)[0]["status"] == "not graded: no disk"


def test_moodle_and_canvas_get_the_columns_that_they_import(tmp_path):
    path, people = tmp_path / "grades.csv", {"ada": {"last_name": "L", "first_name": "Ada"}}
    book.write(path, [made("ada", 5, 2)], Rules("hw1", TOPICS), people)
    (moodle,) = read(tmp_path / "grades.moodle.csv")
    assert (moodle["ID number"], moodle["First name"], moodle["hw1"]) == ("ada", "Ada", "7")
    possible, canvas = read(tmp_path / "grades.canvas.csv")
    assert possible == {
        **dict.fromkeys(possible, ""),
        "Student": "    Points Possible",
        "hw1": "10",
    }
    assert (canvas["Student"], canvas["SIS User ID"], canvas["hw1"]) == ("L, Ada", "ada", "7")


def test_what_was_not_reached_is_no_silent_zero(tmp_path):
    grade = made("ada", 5, 0)
    late = replace(grade.exercises[1], status=Status.NOT_REACHED)
    grade = replace(grade, exercises=(grade.exercises[0], late))
    (row,) = book.write(tmp_path / "grades.csv", [grade], Rules("hw1", TOPICS), {})
    assert row["status"] == "graded, 1 not reached in time"
