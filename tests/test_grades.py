"""What instructors have on disk stays readable, and is written as it was: tests/graded holds the
files that an earlier version made for a class of four, of whom one could not be graded."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from utils.grading import classroom, pool
from utils.grading.grades import Grade, Ungraded
from utils.grading.records import Record

STORED = Path(__file__).with_name("graded")


def stored(folder: str) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted((STORED / folder).glob("*.json"))]


@pytest.mark.parametrize("data", stored("store/grades"), ids=lambda data: data["student"])
def test_a_kept_grade_is_read_and_written_again_as_it_was(data):
    grade = Grade.from_json(data)
    assert grade.answers == data["answers"] and grade.timed == data["timed"]
    assert json.dumps(grade.to_json()) == json.dumps(data), "the order of the keys, too"


@pytest.mark.parametrize("data", stored("store/verdicts"), ids=lambda data: data["status"])
def test_a_kept_verdict_is_read_and_written_again_as_it_was(data):
    record = Record.from_json(data)
    assert json.dumps(record.to_json()) == json.dumps(data)
    assert Record.from_properties(dict(record.properties())) == record


def test_a_class_becomes_the_files_that_it_became(tmp_path, monkeypatch):
    made = [Grade.from_json(data) for data in stored("store/grades")]
    made.append(Ungraded("eve", "OSError: no space left on device"))
    for grade in made:
        (tmp_path / "class" / grade.student).mkdir(parents=True)
    monkeypatch.setattr(pool, "graded", lambda *args, **how: made)
    plan = classroom.Plan(tmp_path / "class", ("00_start_here",), tmp_path / "store", boxed=False)
    out = tmp_path / "out"
    wanted = classroom.Wanted(
        out / "grades.csv",
        out / "json",
        students=STORED / "roster.csv",
        due=datetime(2026, 11, 25, tzinfo=UTC),
        late_per_day=10.0,
    )
    assert classroom.grade_all(plan, wanted, Console(file=open(os.devnull, "w"))) == 2
    files = {path.relative_to(out) for path in out.rglob("*") if path.is_file()}
    assert len(files) == 3 + 4
    for path in files:
        assert (out / path).read_bytes() == (STORED / path).read_bytes(), path
