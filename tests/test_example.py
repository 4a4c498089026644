"""`workbook grade --example`: a class that instructors try the grader with gets what it must."""

import csv

import pytest
from support.box import needs_box
from support.command import workbook

from utils.grading import example
from utils.ground import paths
from utils.ground.errors import WorkbookError


def table(path) -> dict[str, dict]:
    with open(path, newline="", encoding="utf-8") as file:
        return {row["student_id"]: row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The folder of the example, graded, and the words that grade it again."""
    folder = tmp_path_factory.mktemp("example")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBOOK_BACKEND", "emulator")
        assert workbook("grade", "--example", f"{folder}/try")[0] == 0
        (folder / "store").mkdir()
        (folder / "store" / "builds").symlink_to(paths.cache())  # where the emulator is built
        words = example.command(folder / "try").split()[1:]
        words += ["--store", f"{folder}/store", "--feedback", f"{folder}/feedback"]
        code, output = workbook(*words)
        assert code == 0, output
        yield folder, words


def scores(folder, name: str) -> dict[str, tuple[str, str]]:
    return {id: (row["score"], row["status"]) for id, row in table(folder / "try" / name).items()}


@needs_box
def test_each_of_sixteen_gets_what_the_example_says(graded):
    folder, _ = graded
    assert len(example.CASES) == 16
    assert scores(folder, "grades.csv") == scores(folder, "expected.csv")


@needs_box
def test_what_was_lost_is_named_and_what_is_hostile_is_not_run(graded):
    folder, _ = graded
    (own,) = (folder / "feedback").glob("Zo*")  # a name that is not NFC gets a digest, too
    said = (own / "feedback.md").read_text()
    assert "no exercise has this id" in said and "cannot be read" in said
    said = (folder / "feedback/oli/feedback.md").read_text()
    assert "system" in said and "conftest.py" in said and "not run" in said
    assert not [*folder.rglob("touched")]


@needs_box
def test_a_table_that_excel_has_saved_loses_nothing(graded):
    """With semicolons and its own code page; columns of the instructor's own among it."""
    folder, words = graded
    path = folder / "try/grades.csv"
    before = table(path)
    changed = {id: dict(row, group="blue") for id, row in before.items()}
    changed["ada"] |= {"manual": "-1,5", "comment": "Grüße; see me"}
    changed["Zo\u00eb"] |= {"manual": "2", "comment": "found it"}
    example._excel(path, list(changed["ada"]), changed.values())
    code, output = workbook(*words, "--resume")
    assert code == 0, output
    after = table(path)
    assert (after["ada"]["score"], after["Zo\u00eb"]["score"]) == ("8.5", "7")
    ours = {"score", "manual"}
    for id, row in changed.items():
        kept = {name: text for name, text in after[id].items() if name not in ours}
        assert kept == {name: text for name, text in row.items() if name not in ours}
    assert (
        "Your instructor's comment: Grüße; see me"
        in (folder / "feedback/ada/feedback.md").read_text()
    )


def test_a_folder_that_is_there_is_left_alone(tmp_path):
    with pytest.raises(WorkbookError, match="name a new folder"):
        example.write(tmp_path)
