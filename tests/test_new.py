"""`workbook new`: an exercise's files from nothing, all of them or none."""

import subprocess
import sys

import pytest
from support import pairs
from support.command import workbook

from utils.course import catalog, mutants
from utils.course.answers import compile_answer
from utils.ground.errors import CheckFailed, WorkbookError
from utils.judge import review
from utils.judge.check import check
from utils.notebooks import documents, new, sync

WORDS = "01.2", "thrice", 'y = 3 "x" – not {2}'
FRESH = (
    "solutions/01_pairs/thrice.cu",
    "kernels/01_pairs/thrice.cu",
    "kernels/01_pairs/thrice.md",
    "tests/mutants/01_pairs/thrice.diff",
)
SPEC, NOTEBOOK = "kernels/01_pairs/spec.py", "notebooks/01_pairs.ipynb"


def files(root) -> dict[str, str]:
    mine = pairs.files(root).items()
    return {path: data.decode() for path, data in mine if not path.startswith("build/")}


def test_all_files_are_made_and_in_step(root):
    sync.sync()
    before = files(root)
    made = [path.relative_to(root).as_posix() for path in new.make(*WORDS)]
    after = files(root)
    assert set(after) - set(before) == set(FRESH)
    assert set(made) == {*FRESH, SPEC, NOTEBOOK}
    assert {path for path in before if before[path] != after[path]} == {SPEC, NOTEBOOK}
    assert list(catalog.topic("01_pairs")) == ["copy", "twice", "thrice"]
    exercise = catalog.load("01_pairs/thrice")
    assert (exercise.number, exercise.title) == ("01.2", WORDS[2])
    report = sync.sync(check=True)
    assert not report.changed and not report.problems and not report.learners
    assert mutants.mutants(exercise) == []


def test_the_cells_stand_at_the_end_of_the_notebook(root):
    new.make(*WORDS)
    cells = documents.read(root / NOTEBOOK).cells
    head, cuda, hints, solution, checked = cells[-5:]
    assert head.source.startswith('### Exercise 01.2: `thrice`\n\ny = 3 "x" – not {2}.')
    assert cuda.source.startswith("%%cuda 01_pairs/thrice\n") and "your code here" in cuda.source
    assert "Hint 1" in hints.source and "Solution" in solution.source
    assert checked.source == "check(thrice)"
    assert cells[0].source == "# Pairs", "what was there stays"


def test_of_two_notebooks_the_later_one_gets_it(root):
    _, later = pairs.split(root)
    new.make(*WORDS)
    assert "check(thrice)" in later.read_text()
    assert documents.path_of(catalog.load("01_pairs/thrice")) == later
    assert not sync.sync(check=True).problems


def test_a_new_exercise_passes_nothing_and_says_what_it_lacks(root):
    new.make(*WORDS)
    exercise = catalog.load("01_pairs/thrice")
    lacks = " ".join(review.missing(exercise))
    for word in ("points", "effort", "hint 1", "mutants: 0", "solution: nothing stands between"):
        assert word in lacks
    assert "comment" not in lacks and "at." not in lacks
    for text in (catalog.starter_text(exercise), catalog.solution_text(exercise)):
        with pytest.raises(CheckFailed) as failure:
            check(compile_answer(exercise, text, backend="emulator"))
        assert failure.value.reason == "not attempted"


def test_the_mutant_of_the_new_file_is_one_once_its_comments_are_lines(root):
    new.make(*WORDS)
    exercise = catalog.load("01_pairs/thrice")
    solution = catalog.solution_path(exercise)
    line = "    if (i < n) out[i] = x[i];\n    // END"
    solution.write_text(solution.read_text().replace("    // END", line))
    path = mutants.path_of(exercise)
    head, _, example = path.read_text().partition("#\n")
    path.write_text(head + "".join(line[2:] for line in example.splitlines(keepends=True)))
    (mutant,) = mutants.mutants(exercise)
    assert (mutant.name, mutant.reason) == ("no_guard", "out of bounds")
    assert "    out[i] = x[i];" in mutant.text and mutant.fault


def test_the_command_says_what_it_wrote_and_what_comes_next(root, monkeypatch):
    monkeypatch.chdir(root)
    code, output = workbook("new", "01.2", "thrice", "--title", "y = 3 x")
    assert code == 0
    assert all(f"written: {path}\n" in output for path in (*FRESH, SPEC, NOTEBOOK))
    assert "workbook author 01.2" in output


@pytest.mark.parametrize(
    ("number", "name", "title", "words"),
    [
        ("01.1", "thrice", "t", "01.1 is 'twice' already"),
        ("01.2", "copy", "t", "has a kernel 'copy' already"),
        ("02.1", "thrice", "t", "there is no '02'"),
        ("1.2", "thrice", "t", "'1.2' is no number of an exercise"),
        ("01.2", "Thrice", "t", "'Thrice' is no name of a launcher"),
        ("01.2", "../x", "t", "is no name of a launcher"),
        ("01.2", "x" * 33, "t", "is no name of a launcher"),
        ("01.2", "thrice", " ", "a title is one line"),
        ("01.2", "thrice", "t" * 76, "a title is one line"),
        ("01.2", "thrice", "a\nb", "a title is one line"),
        ("01.2", "while", "t", "no word of C"),
    ],
)
def test_what_cannot_be_made_leaves_everything_as_it_was(root, number, name, title, words):
    before = files(root)
    with pytest.raises(WorkbookError, match=words):
        new.make(number, name, title)
    assert files(root) == before


@pytest.mark.parametrize("taken", FRESH)
def test_no_file_is_overwritten(root, taken):
    (root / taken).parent.mkdir(parents=True, exist_ok=True)
    (root / taken).write_text("mine")
    before = files(root)
    with pytest.raises(WorkbookError, match=f"{taken} is there already"):
        new.make(*WORDS)
    assert files(root) == before


@pytest.mark.parametrize("where", ["utils.notebooks.sync.sync", "utils.course.catalog.load"])
def test_where_it_fails_midway_everything_is_put_back(root, monkeypatch, where):
    before = files(root)

    def fail(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(where, fail)
    with pytest.raises(KeyboardInterrupt):
        new.make(*WORDS)
    assert files(root) == before


def test_a_notebook_that_is_missing_is_named(root):
    (root / NOTEBOOK).unlink()
    before = files(root)
    with pytest.raises(WorkbookError, match="there is no notebook"):
        new.make(*WORDS)
    assert files(root) == before


def test_what_is_written_is_formatted(root):
    new.make(*WORDS)
    text = (root / SPEC).read_text()
    entry = text[text.index('    Exercise(\n        number="01.2"') :]
    command = [sys.executable, "-m", "ruff", "format", "--line-length=100", "-"]
    done = subprocess.run(command, input=f"X = (\n{entry}", capture_output=True, text=True)
    assert done.stdout == f"X = (\n{entry}", done.stderr
