"""`workbook grade`, but for the grading: what it writes, says, and ends with."""

import csv
import json
import os
import subprocess
import sys
import tempfile

import pytest
from typer.testing import CliRunner

from utils import cli
from utils.course import catalog
from utils.grading import grade as grading
from utils.grading import pool, workdir
from utils.grading.grades import Grade, Mark
from utils.grading.verdicts import Status
from utils.ground.errors import ToolError, WorkbookError
from utils.ground.paths import ROOT
from utils.process import sandbox
from utils.timing.speed import Speed

SPEEDS = {"ada": None, "bob": None, "gil": Speed("NVIDIA H200", 10.0)}


@pytest.fixture
def graded(monkeypatch, tmp_path):
    """A class of three whose grades are made up, and a call of `workbook grade` on it."""

    def grade(folder, terms, handed_in, again=()):
        if folder.name == "cursed":
            raise OSError("no space left")
        more = {"points": len(folder.name), "status": Status.PASSED}
        if folder.name == "bob":
            more |= {"picture": "<svg/>", "alt": "a picture"}
        if folder.name in SPEEDS:
            more |= {"parts": {"works": 3.0}, "speed": SPEEDS[folder.name]}
        mark = Mark.of_exercise(catalog.load("00_start_here/swish"), **more)
        when = {"latest": handed_in.latest, "clock": handed_in.clock}
        return Grade(folder.name, (mark,), **when)

    monkeypatch.setattr(grading, "grade", grade)
    monkeypatch.setattr(sandbox, "require", lambda: None)
    for name in ("ada", "bob"):
        (tmp_path / "class" / name).mkdir(parents=True)

    def call(*words):
        options = ["--notebook", "00", "--store", tmp_path / "store", *words]
        return CliRunner().invoke(cli.app, ["grade", *map(str, options)])

    return call


def test_a_class_becomes_a_table_and_a_file_for_each(graded, tmp_path):
    done = graded(tmp_path / "class", "-o", tmp_path / "g.csv", "--json-dir", tmp_path / "json")
    assert done.exit_code == 0 and "2 submissions; answers: 2 passed" in done.output
    with open(tmp_path / "g.csv", newline="") as file:
        rows = {row["student_id"]: row["score"] for row in csv.DictReader(file)}
    assert rows == {"ada": "3", "bob": "3"}
    bob = json.loads((tmp_path / "json" / "bob.json").read_text())
    assert bob["points"] == 3 and "picture" not in bob["exercises"][0]


def test_a_fault_of_ours_is_told_and_is_the_exit_status(graded, tmp_path):
    (tmp_path / "class" / "cursed").mkdir()
    done = graded(tmp_path / "class", "-o", tmp_path / "g.csv")
    assert done.exit_code == 2
    assert "not graded: cursed: OSError: no space left" in done.output
    assert (tmp_path / "g.csv").read_text().count("graded") == 3, "the others are in the table"


@pytest.mark.parametrize(("third", "mixed"), [("gil", True), ("ivy", False)])
def test_a_class_of_which_a_part_was_timed_is_not_mixed_silently(graded, tmp_path, third, mixed):
    (tmp_path / "class" / third).mkdir()
    done = graded(tmp_path / "class", "-o", tmp_path / "g.csv")
    warned = "not all were timed alike (not timed: 2; NVIDIA H200: 1)" in done.output
    assert done.exit_code == 0 and warned == mixed


def test_one_folder_is_graded_alone(graded, tmp_path):
    done = graded("--one", tmp_path / "class" / "ada", "--json", tmp_path / "ada.json")
    assert done.exit_code == 0
    assert json.loads((tmp_path / "ada.json").read_text())["student"] == "ada"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "say which"),
        (("x", "--one", "y", "--json", "z"), "say which"),
        (("--one", "y"), "--one needs --json"),
    ],
)
def test_a_call_that_says_too_little_or_too_much_is_refused(graded, words, message):
    done = graded(*words)
    assert done.exit_code == 2 and message in done.output


def test_where_there_is_no_box_nothing_is_graded_but_on_demand(graded, tmp_path, monkeypatch):
    def none():
        raise ToolError("there is no bubblewrap")

    monkeypatch.setattr(sandbox, "require", none)
    done = graded(tmp_path / "class", "-o", tmp_path / "g.csv")
    assert isinstance(done.exception, ToolError)
    assert "--trust-submissions" in str(done.exception)
    assert not (tmp_path / "g.csv").exists()
    done = graded(tmp_path / "class", "-o", tmp_path / "g.csv", "--trust-submissions")
    assert done.exit_code == 0


# --- before, and instead of, grading


def table(path) -> dict[str, dict]:
    with open(path, newline="", encoding="utf-8") as file:
        return {row["student_id"]: row for row in csv.DictReader(file)}


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("-o", "student_id;manual\nada;two\n", "manual points of 'ada' are 'two'"),
        ("--students", "name\nada\n", "no column student_id"),
        ("--students", "student_id,due\nada,soon\n", "the due time of 'ada'"),
        ("--times", "student_id,timestamp\nada,soon\n", "the timestamp of 'ada'"),
    ],
)
def test_what_cannot_be_read_is_told_before_anything_is_graded(
    graded, tmp_path, monkeypatch, option, text, words
):
    monkeypatch.setattr(grading, "grade", None)
    (tmp_path / "file.csv").write_text(text)
    done = graded(tmp_path / "class", option, tmp_path / "file.csv")
    assert isinstance(done.exception, WorkbookError) and words in str(done.exception)
    assert (tmp_path / "file.csv").read_text() == text


@pytest.mark.parametrize(
    "words",
    [
        ("--late-per-day", "-5"),
        ("--late-per-day", "101"),
        ("--grace", "-1"),
        ("--clock", "sundial"),
        ("--jobs", "-1"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused(graded, tmp_path, words):
    assert graded(tmp_path / "class", *words).exit_code == 2
    assert not (tmp_path / "store").exists()


def test_a_corrected_time_counts_on_resume(graded, tmp_path):
    due = ("--due", "2026-11-20T12:00", "--late-per-day", "10", "-o", tmp_path / "g.csv")
    stamp = tmp_path / "class" / "ada" / "timestamp.txt"
    for day, late in (("22", True), ("19", False)):
        stamp.write_text(f"2026-11-{day} 12:00:00 UTC\n")
        graded(tmp_path / "class", *due, "--resume")
        assert ("late by timestamp.txt" in table(tmp_path / "g.csv")["ada"]["status"]) == late
    (tmp_path / "t.csv").write_text("student_id,timestamp\nada,2026-12-01T12:00\n")
    done = graded(tmp_path / "class", *due, "--resume", "--times", tmp_path / "t.csv")
    assert "11 days late by the list of times" in table(tmp_path / "g.csv")["ada"]["status"]
    assert "times are not all by the same clock" in done.output


def test_feedback_has_the_final_score_and_how_it_came_about(graded, tmp_path):
    (tmp_path / "g.csv").write_text("student_id;manual;comment\nada;0,5;*good* idea\n")
    (tmp_path / "class" / "ada" / "timestamp.txt").write_text("2026-11-22 12:00:00 UTC\n")
    due = ("--due", "2026-11-20T12:00", "--late-per-day", "10", "-o", tmp_path / "g.csv")
    graded(tmp_path / "class", *due, "--feedback", tmp_path / "feedback")
    text = (tmp_path / "feedback" / "ada" / "feedback.md").read_text()
    score = table(tmp_path / "g.csv")["ada"]["score"]
    assert f"**{score} of 5 points.**" in text and "- your answers: 3 of 5" in text
    assert "by `timestamp.txt`" in text and "days late: -0." in text
    assert "changed it by +0.5" in text and r"comment: \*good\* idea" in text


def test_one_student_or_one_exercise_is_graded_anew(graded, tmp_path, monkeypatch):
    graded(tmp_path / "class", "-o", tmp_path / "g.csv")
    seen, grade = {}, grading.grade

    def spied(student, terms, handed_in, again=()):
        seen[student.name] = again
        return grade(student, terms, handed_in, again)

    monkeypatch.setattr(grading, "grade", spied)
    for words, expected in (
        (["ada"], {"ada": 2}),
        (["00.1"], {"ada": 1, "bob": 1}),
        (["bob", "swish"], {"bob": 1}),
    ):
        seen.clear()
        again = [part for word in words for part in ("--again", word)]
        assert graded(tmp_path / "class", "-o", tmp_path / "g.csv", *again).exit_code == 0
        assert {name: len(ids) for name, ids in seen.items()} == expected
        assert set(table(tmp_path / "g.csv")) == {"ada", "bob"}
    done = graded(tmp_path / "class", "--again", "04.6")
    assert "no student is called so" in str(done.exception)


def test_statistics_of_the_class(graded, tmp_path):
    (tmp_path / "class" / "dorothea").mkdir()
    done = graded(tmp_path / "class", "-o", tmp_path / "g.csv", "--statistics", tmp_path / "s.csv")
    assert "mean 4.67, median 3" in done.output and "highest 8" in done.output
    with open(tmp_path / "s.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["exercise"], row["tried"], row["passed"]) == ("00.1 swish", "3", "3")


def test_a_cluster_that_does_not_answer_is_told(graded, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(pool, "REACHED", 0.3)
    done = graded(tmp_path / "class", "--cluster", "tcp://127.0.0.1:9")
    assert isinstance(done.exception, ToolError)
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in str(done.exception)


def test_an_assignment_has_its_name(graded, tmp_path):
    graded(tmp_path / "class", "-o", tmp_path / "g.csv", "--assignment", "homework 3")
    assert table(tmp_path / "g.csv")["ada"]["assignment"] == "homework 3"


def test_a_killed_graders_folder_is_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    script = "import os, signal\nfrom utils.grading.workdir import workdir\nwith workdir():\n"
    script += "    os.kill(os.getpid(), signal.SIGKILL)\n"
    env = os.environ | {"TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], env=env, cwd=ROOT)
    (left,) = tmp_path.glob("grade-*")
    with workdir.workdir() as mine:
        workdir.sweep()
        assert mine.is_dir() and not left.exists()
    assert not mine.exists()
