"""`workbook grade`, but for the grading: what it writes, says, and ends with."""

import csv
import json

import pytest
from typer.testing import CliRunner

from utils import cli
from utils.course import catalog
from utils.grading import grade as grading
from utils.grading.grades import Grade, Mark
from utils.grading.verdicts import Status
from utils.ground.errors import ToolError
from utils.process import sandbox
from utils.timing.speed import Speed

SPEEDS = {"ada": None, "bob": None, "gil": Speed("NVIDIA H200", 10.0)}


@pytest.fixture
def graded(monkeypatch, tmp_path):
    """A class of three whose grades are made up, and a call of `workbook grade` on it."""

    def grade(folder, terms, handed_in):
        if folder.name == "cursed":
            raise OSError("no space left")
        more = {"points": len(folder.name), "status": Status.PASSED}
        if folder.name == "bob":
            more |= {"picture": "<svg/>", "alt": "a picture"}
        if folder.name in SPEEDS:
            more |= {"parts": {"works": 3.0}, "speed": SPEEDS[folder.name]}
        mark = Mark.of_exercise(catalog.load("00_start_here/swish"), **more)
        return Grade(folder.name, (mark,))

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
