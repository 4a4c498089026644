"""When work came, by which clock, and what that costs."""

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from utils.course import catalog
from utils.grading import book, lateness, submission
from utils.grading.book import Rules
from utils.grading.grades import Grade, Mark
from utils.grading.lateness import Clock, when
from utils.ground.errors import WorkbookError

DUE = datetime(2026, 11, 20, 12, tzinfo=UTC)
RULES = Rules("hw1", ("00_start_here",), DUE, 10.0)
SWISH = catalog.load("00_start_here/swish")
FILES = 1_795_000_000.0


@pytest.fixture
def folder(tmp_path):
    """A student's, whose only file was written at FILES."""
    mine = tmp_path / "ada"
    mine.mkdir()
    (mine / "swish.cu").write_text("void swish() {}\n")
    os.utime(mine / "swish.cu", (FILES, FILES))
    return mine


def commit(folder: Path, at: int, packed: bool = False) -> None:
    stamp = f"{at} +0000"
    who = {f"GIT_{r}_{k}": "ada@b.c" for r in ("AUTHOR", "COMMITTER") for k in ("NAME", "EMAIL")}
    who |= {"GIT_COMMITTER_DATE": stamp, "GIT_AUTHOR_DATE": "1000000000 +0000", "HOME": str(folder)}
    for words in (["init", "-q"], ["add", "swish.cu"], ["commit", "-qm", "done"]):
        subprocess.run(["git", *words], cwd=folder, env=os.environ | who, check=True)
    if packed:
        subprocess.run(["git", "gc", "-q"], cwd=folder, env=os.environ | who, check=True)
        assert not list(folder.glob(".git/refs/heads/*"))


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-20 12:00:00.000000 UTC",
        "2026-11-20T12:00Z",
        "2026-11-20 13:00:00 Europe/Berlin",
        "2026-11-20T13:00:00+01:00",
        "2026-11-20 13:00+0100",
    ],
)
def test_a_time_is_read_as_nbgrader_and_iso_write_it(text):
    assert when(text, "it") == DUE


@pytest.mark.parametrize("text", ["", "20.11.2026", "2026-13-01", "2026-11-20 12:00 Nowhere/X"])
def test_a_time_that_is_none_is_told(text):
    with pytest.raises(WorkbookError, match="the time of ada is"):
        when(text, "the time of ada")


@pytest.mark.parametrize("below", ["", "hw1"])
def test_nbgraders_timestamp_counts_before_the_files(folder, below):
    (folder / below).mkdir(exist_ok=True)
    (folder / below / "timestamp.txt").write_text("2026-11-20 12:00:00.000000 UTC\n")
    read = submission.read(folder)
    assert (read.latest, read.clock) == (DUE.timestamp(), "timestamp.txt")
    assert submission.read(folder, clock=Clock.FILES).latest == FILES


@pytest.mark.parametrize("packed", [False, True])
def test_a_commit_counts_before_the_files(folder, packed):
    commit(folder, 1_790_000_000, packed)
    read = submission.read(folder)
    assert (read.latest, read.clock) == (1_790_000_000, "last commit")


def test_nothing_of_a_strangers_repository_is_run(folder, tmp_path):
    commit(folder, 1_790_000_000)
    run = f"touch {tmp_path}/owned"
    with open(folder / ".git" / "config", "a") as config:
        config.write(f"[core]\n fsmonitor = {run}\n pager = {run}\n[log]\n showSignature = true\n")
        config.write(f"[gpg]\n program = {run}\n[alias]\n cat-file = !{run}\n")
    assert submission.read(folder).clock == "last commit"
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    ("head", "words"),
    [("ref: refs/../../x\n", ""), ("0" * 40, ""), ("-x\n", ""), ("", "")],
)
def test_a_broken_repository_leaves_the_files(folder, head, words):
    (folder / ".git" / "objects").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text(head)
    assert submission.read(folder).latest == FILES


def test_a_clock_that_is_not_there_is_noted(folder):
    (folder / "timestamp.txt").write_text("yesterday\n")
    said = "\n".join(submission.read(folder, clock=Clock.TIMESTAMP).notes)
    assert "timestamp.txt is 'yesterday'" in said and "the time is that of the newest file" in said


# --- what it costs


def row(tmp_path, after: timedelta, person: str = "", rules: Rules = RULES) -> dict:
    (tmp_path / "people.csv").write_text(f"student_id,due,grace\nada,{person or ','}\n")
    marks = (Mark.of_exercise(SWISH, points=5.0),)
    grade = Grade("ada", marks, (DUE + after).timestamp(), clock="last commit")
    people = book.roster(tmp_path / "people.csv")
    return book.write(tmp_path / "g.csv", [grade], rules, people)[0]


HOURS = timedelta(hours=1)


@pytest.mark.parametrize(
    ("after", "person", "grace", "penalty"),
    [
        (2 * HOURS, "", 0, "0.5"),
        (2 * HOURS, "", 2, "0"),
        (3 * HOURS, "", 2, "0.5"),
        (2 * HOURS, ",48", 0, "0"),
        (50 * HOURS, ",48", 0, "0.5"),
        (50 * HOURS, "2026-11-22T14:00Z,", 0, "0"),
        (51 * HOURS, "2026-11-22T14:00Z,", 0, "0.5"),
    ],
)
def test_an_extension_and_grace_cost_nothing(tmp_path, after, person, grace, penalty):
    rules = Rules("hw1", ("00_start_here",), DUE, 10.0, timedelta(hours=grace))
    made = row(tmp_path, after, person, rules)
    assert made["late_submission_penalty"] == penalty
    assert ("late by last commit" in made["status"]) == (penalty != "0")


@pytest.mark.parametrize("person", ["tomorrow,", ",much"])
def test_an_extension_that_cannot_be_read_is_told(tmp_path, person):
    with pytest.raises(WorkbookError, match="of 'ada' "):
        row(tmp_path, HOURS, person)


def test_a_list_of_times_is_read_and_its_faults_are_told(tmp_path):
    path = tmp_path / "times.csv"
    path.write_text("student_id;timestamp\nada;2026-11-20T12:00Z\nbob;\n")
    assert lateness.listed(path) == {"ada": DUE}
    path.write_text("student_id;timestamp\nada;noon\n")
    with pytest.raises(WorkbookError, match="the timestamp of 'ada' is 'noon'"):
        lateness.listed(path)
