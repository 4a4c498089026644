"""`workbook grade --example`: a class that instructors try the grader with gets what it must."""

import csv

import pytest
from support.box import needs_box
from typer.testing import CliRunner

from utils import cli
from utils.grading import example
from utils.ground import paths
from utils.ground.errors import WorkbookError


def table(path) -> dict[str, dict]:
    with open(path, newline="", encoding="utf-8") as file:
        return {row["student_id"]: row for row in csv.DictReader(file)}


@needs_box
def test_each_gets_what_the_example_says(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBOOK_BACKEND", "emulator")
    folder, store = tmp_path / "try", tmp_path / "store"
    done = CliRunner().invoke(cli.app, ["grade", "--example", str(folder)])
    assert done.exit_code == 0 and "expected" not in done.output
    store.mkdir()
    (store / "builds").symlink_to(paths.cache())  # where the emulator is built
    words = example.command(folder).split()[1:]
    done = CliRunner().invoke(
        cli.app, [*words, "--store", str(store), "--feedback", str(folder / "feedback")]
    )
    assert done.exit_code == 0, done.output
    expected, made = table(folder / "expected.csv"), table(folder / "grades.csv")
    got = {id: (row["score"], row["status"]) for id, row in made.items()}
    assert got == {id: (row["score"], row["status"]) for id, row in expected.items()}
    (own,) = (folder / "feedback").glob("Zo*")  # a name that is not NFC gets a digest, too
    said = (own / "feedback.md").read_text()
    assert "no exercise has this id" in said and "cannot be read" in said


def test_a_folder_that_is_there_is_left_alone(tmp_path):
    with pytest.raises(WorkbookError, match="name a new folder"):
        example.write(tmp_path)
