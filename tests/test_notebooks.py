"""Notebook files and `workbook sync`, on a workbook of one topic with two kernels."""

import json
import re

import nbformat
import pytest
from support import pairs
from support.pairs import COPY, ID, SOLUTION, SPEC, STARTER, write_notebook
from typer.testing import CliRunner

from utils.course import catalog, markup, selection
from utils.ground import files
from utils.ground.errors import WorkbookError
from utils.notebooks import documents, sync

LEARNER = f"%%cuda {ID}\nmy own work"


@pytest.fixture
def notebook(root):
    """The path of the notebook, in step."""
    assert not sync.sync().problems
    return root / "notebooks/01_pairs.ipynb"


def cells(path):
    return nbformat.read(path, as_version=4).cells


def edit(path, number: int, source: str):
    """Change a cell the way JupyterLab does: its text only."""
    raw = json.loads(path.read_text())
    raw["cells"][number]["source"] = source.splitlines(keepends=True)
    path.write_text(json.dumps(raw))


def test_sync_writes_the_starter_from_the_solution(root, notebook):
    assert (root / "kernels/01_pairs/twice.cu").read_text() == STARTER


def test_sync_fills_the_cells_and_the_folds(notebook):
    _, copy, twice, hints, solution, _ = cells(notebook)
    assert copy.source == "%%cuda 01_pairs/copy\n" + COPY.rstrip()
    assert twice.source == f"%%cuda {ID}\n" + STARTER.rstrip()
    assert hints.source.count("<details><summary>Hint") == 2 and "Or multiply." in hints.source
    assert "```cuda\n// x, y" in solution.source and "y[i] = 2 * x[i];" in solution.source
    assert "BEGIN SOLUTION" not in solution.source


def test_a_second_sync_finds_nothing(notebook):
    before = notebook.read_bytes()
    assert sync.sync() == sync.Synced()
    assert notebook.read_bytes() == before


def test_sync_clears_outputs_and_counts(notebook):
    last = cells(notebook)[-1]
    assert last.outputs == [] and last.execution_count is None


def test_check_writes_nothing_and_lists_what_differs(root):
    before = pairs.files(root)
    report = sync.sync(check=True)
    changed = ["kernels/01_pairs/twice.cu", "notebooks/01_pairs.ipynb", "results/README.md"]
    assert report.changed == changed
    assert pairs.files(root) == before


def test_a_changed_source_reaches_a_cell_that_sync_wrote(root, notebook):
    (root / "kernels/01_pairs/copy.cu").write_text("// better\n" + COPY)
    assert sync.sync().changed == ["notebooks/01_pairs.ipynb"]
    assert "// better" in cells(notebook)[1].source


def test_a_learners_cell_is_never_overwritten(root, notebook):
    edit(notebook, 2, LEARNER)
    (root / "solutions/01_pairs/twice.cu").write_text("// new\n" + SOLUTION)
    (root / "kernels/01_pairs/copy.cu").write_text("// better\n" + COPY)
    for _ in range(2):
        report = sync.sync()
        assert report.learners == [f"01_pairs.ipynb: cell of '{ID}'"]
        assert cells(notebook)[2].source == LEARNER
    assert "// better" in cells(notebook)[1].source, "the other cells go on being kept in step"


def test_a_text_of_unknown_origin_is_left_alone(root):
    path = root / "notebooks/01_pairs.ipynb"
    edit(path, 2, LEARNER)  # no sync has been there yet, so there is no hash either
    assert sync.sync().learners
    assert cells(path)[2].source == LEARNER


def test_a_fold_with_a_readers_notes_is_left_alone(notebook):
    edit(notebook, 3, "my notes")
    assert sync.sync().learners == [f"01_pairs.ipynb: hints of '{ID}'"]
    assert cells(notebook)[3].source == "my notes"


def test_a_notebook_with_work_in_it_keeps_its_outputs(notebook):
    raw = json.loads(notebook.read_text())
    raw["cells"][2]["source"] = LEARNER
    raw["cells"][5]["outputs"] = [nbformat.v4.new_output("stream", text="1\n")]
    notebook.write_text(json.dumps(raw))
    sync.sync()
    assert cells(notebook)[5].outputs[0].text == "1\n"


def test_an_edited_starter_file_is_kept_before_it_is_written_anew(root, notebook):
    (root / "kernels/01_pairs/twice.cu").write_text("my own work")
    sync.sync()
    (kept,) = (root / "build/kept").glob("*-twice.cu")
    assert kept.read_text() == "my own work"


def test_reset_restores_the_starter_and_keeps_the_text(notebook):
    edit(notebook, 2, LEARNER)
    kept = sync.reset(catalog.load(ID))
    assert kept.read_text() == "my own work" and kept.name.endswith("-twice.cu")
    assert cells(notebook)[2].source == f"%%cuda {ID}\n" + STARTER.rstrip()
    assert sync.reset(catalog.load(ID)) is None
    assert sync.sync() == sync.Synced()


def test_two_resets_in_a_second_keep_both_texts(root, notebook):
    for text in ("first", "second"):
        edit(notebook, 2, f"%%cuda {ID}\n{text}")
        sync.reset(catalog.load(ID))
    assert {path.read_text() for path in (root / "build/kept").iterdir()} == {"first", "second"}


def test_reset_touches_no_other_cell(notebook):
    edit(notebook, 2, LEARNER)
    edit(notebook, 5, "my_python = 1")
    sync.reset(catalog.load(ID))
    assert cells(notebook)[5].source == "my_python = 1"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"nbformat": 3}', '{"nbformat": 4, "cells": 1}'])
def test_a_corrupt_notebook_is_a_clear_error_and_stays(notebook, text):
    notebook.write_text(text)
    with pytest.raises(WorkbookError, match="01_pairs.ipynb"):
        sync.sync()
    assert notebook.read_text() == text


def test_an_interrupted_write_leaves_the_old_file(notebook, monkeypatch):
    before = notebook.read_text()
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError):
        files.write_text(notebook, "half")
    assert notebook.read_text() == before
    assert [path.name for path in notebook.parent.iterdir()] == ["01_pairs.ipynb"]


@pytest.mark.parametrize(
    ("number", "source", "problem"),
    [
        (2, "%%cuda 01_pairs/thrice", "has no exercise 'thrice'"),
        (2, "print()", f"01_pairs.ipynb has no cell of '{ID}'"),
        (5, f"%%cuda {ID}", "stands there twice"),
    ],
)
def test_sync_says_what_does_not_match_the_spec(notebook, number, source, problem):
    edit(notebook, number, source)
    assert any(problem in text for text in sync.sync(check=True).problems)


def test_a_kernel_in_no_spec_and_a_missing_solution_are_reported(root):
    (root / "kernels/01_pairs/extra.cu").write_text("")
    (root / "kernels/01_pairs/astray.md").write_text("")
    (root / "solutions/01_pairs/twice.cu").unlink()
    problems = "\n".join(sync.sync().problems)
    assert "kernels/01_pairs/extra.cu is in no spec" in problems
    assert "kernels/01_pairs/astray.md is in no spec" in problems
    assert "twice.cu does not exist" in problems


def test_the_canonical_form_is_what_jupyterlab_writes(notebook):
    text = notebook.read_text()
    assert nbformat.writes(nbformat.reads(text, as_version=4)) + "\n" == text
    raw = json.loads(text)
    assert (raw["nbformat"], raw["nbformat_minor"]) == (4, 5)
    assert raw["metadata"] == documents.METADATA


def test_ids_are_given_once_and_the_same_every_time(notebook):
    raw = json.loads(notebook.read_text())
    for cell in raw["cells"]:
        cell["id"] = "same"
    notebook.write_text(json.dumps(raw))
    first = [cell.id for cell in documents.read(notebook).cells]
    assert len(set(first)) == len(first)
    assert [cell.id for cell in documents.read(notebook).cells] == first


def test_the_readme_gets_the_table_of_results(root, notebook, monkeypatch):
    monkeypatch.setattr("utils.notebooks.readme.readme_table", lambda: "| a table |\n")
    assert sync.sync().changed == ["README.md"]
    text = (root / "README.md").read_text()
    assert text == "<!-- results -->\n| a table |\n<!-- /results -->\n"


@pytest.fixture
def executed(root, notebook):
    """The path of the notebook's executed copy, in step."""
    run = nbformat.read(notebook, as_version=4)
    documents.solve(run)
    for cell in run.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [nbformat.v4.new_output("stream", text="1")], 1
    path = root / "solutions/01_pairs.ipynb"
    path.write_text(documents.to_text(documents.canonical(run, outputs=True)))
    assert sync.sync() == sync.Synced()
    return path


@pytest.mark.parametrize(
    ("after", "solved"), [(["diagnose(twice)", "check(twice)"], [3]), (["diagnose(twice)"], [])]
)
def test_a_kernel_to_be_diagnosed_is_given_first_and_solved_before_its_check(root, after, solved):
    (root / "kernels/01_pairs/spec.py").write_text(SPEC.replace("number=", "faulty=True, number="))
    (root / "kernels/01_pairs/twice.cu").write_text(STARTER)
    path = write_notebook(root, "print(1)", f"%%cuda {ID}\nmy own work", *after)
    run = documents.read(path)
    documents.solve(run)
    sources = [cell.source for cell in run.cells]
    assert sources[1] == f"%%cuda {ID}\n" + STARTER.rstrip()
    assert [n for n, source in enumerate(sources) if "2 * x[i]" in source] == solved
    assert [source for source in sources if "%%cuda" not in source] == ["print(1)", *after]
    assert nbformat.validate(run) is None


def test_new_prose_reaches_the_executed_copy_and_outputs_stay(notebook, executed):
    edit(notebook, 0, "# Better pairs")
    assert sync.sync().changed == ["notebooks/01_pairs.ipynb", "solutions/01_pairs.ipynb"]
    assert cells(executed)[0].source == "# Better pairs"
    assert all(cell.outputs for cell in cells(executed) if cell.cell_type == "code")


@pytest.mark.parametrize("change", ["a plain cell", "a solution"])
def test_a_copy_that_ran_other_code_is_a_mistake(root, notebook, executed, change):
    before = executed.read_text()
    if change == "a plain cell":
        edit(notebook, -1, "print(2)")
    else:
        (root / "solutions/01_pairs/twice.cu").write_text(SOLUTION.replace("2 * x", "x[i] + x"))
    (problem,) = sync.sync().problems
    assert "solutions/01_pairs.ipynb is of an older cell" in problem
    assert "workbook run 01 --solutions --save" in problem
    assert executed.read_text() == before


def head(root, text: str) -> sync.Synced:
    """Put another text for the solution's first line, a comment."""
    path = root / "solutions/01_pairs/twice.cu"
    path.write_text(SOLUTION.replace("// x, y: (n)", text))
    return sync.sync()


@pytest.mark.parametrize("text", ["// y = 2 * x", "/* y = 2 * x */ // of n floats", ""])
def test_a_new_comment_reaches_the_executed_copy_and_outputs_stay(root, executed, text):
    report = head(root, text)
    assert "solutions/01_pairs.ipynb" in report.changed and not report.problems
    assert cells(executed)[2].source.startswith(f"%%cuda {ID}\n{text}\n__global__")
    assert all(cell.outputs for cell in cells(executed) if cell.cell_type == "code")


@pytest.mark.parametrize(
    "text",
    [
        "// x, y: (n)\n// y = 2 * x",  # every line of code moves
        "// x, y: (n) \\",  # the next line is a comment, too
        "/* x, y: (n)",
        "// fault: missing guard, line 4",
        "constexpr int unused = 2;  // x, y: (n)",
    ],
)
def test_a_comment_that_changes_more_than_itself_is_a_mistake(root, executed, text):
    before = executed.read_text()
    (problem,) = head(root, text).problems
    assert "solutions/01_pairs.ipynb is of an older cell" in problem
    assert executed.read_text() == before


def test_a_comment_behind_code_is_shown_in_pictures_and_must_be_run(root, executed):
    path = root / "solutions/01_pairs/twice.cu"
    path.write_text(SOLUTION.replace("2 * x[i];", "2 * x[i];  // doubled"))
    assert "is of an older cell" in sync.sync().problems[0]


def test_an_empty_comment_that_breaks_a_line_reaches_no_notebook(root, notebook, executed):
    """clang-format breaks a line there; a reader would look for what it says."""
    before = cells(executed)[2].source
    path = root / "solutions/01_pairs/twice.cu"
    path.write_text(SOLUTION.replace("2 * x[i];", "2 * x[i];  //"))
    assert not sync.sync().problems
    assert cells(executed)[2].source == before
    assert [cell for cell in cells(notebook) if re.search(r"\S *//$", cell.source, re.M)] == []


def test_breaks_are_taken_out_and_nothing_else():
    text = "int a[] = {1, 2,  //\n    3, 4};  // four\n//\n/// x\nint b;//\n"
    assert markup.without_breaks(text) == (
        "int a[] = {1, 2,\n    3, 4};  // four\n//\n/// x\nint b;\n"
    )


def test_a_learners_copy_of_the_notebook_says_nothing_of_the_executed_one(notebook, executed):
    edit(notebook, 2, LEARNER)
    edit(notebook, -1, "print(2)")
    assert not sync.sync().problems


def test_exit_codes_of_sync(root, notebook):
    from utils.cli import app

    call = CliRunner().invoke
    assert call(app, ["sync", "--check"]).exit_code == 0
    edit(notebook, 2, LEARNER)
    done = call(app, ["sync", "--check"])
    assert done.exit_code == 1 and "left alone" in done.output


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("01", ["copy", "twice"]),
        ("1/twice", ["twice"]),
        ("01.1", ["twice"]),
        ("01_pairs/copy", ["copy"]),
    ],
)
def test_what_a_word_on_the_command_line_means(root, word, names):
    assert [exercise.name for exercise in selection.kernels(word)] == names


@pytest.mark.parametrize("word", ["02", "twice", "01/none", "01.9", ""])
def test_a_word_that_means_nothing_is_an_error(root, word):
    with pytest.raises(WorkbookError):
        selection.kernels(word)


@pytest.fixture
def two_notebooks(root):
    """The paths of a topic's notebooks: `twice` stands in the second."""
    return pairs.split(root)


@pytest.mark.parametrize(
    ("word", "which"), [("01", [0, 1]), ("01_pairs", [0]), ("01_pairs_more.ipynb", [1])]
)
def test_a_number_means_both_notebooks_of_a_topic_and_a_name_its_own(two_notebooks, word, which):
    assert selection.notebooks([word]) == [two_notebooks[n] for n in which]


def test_an_exercise_is_looked_for_in_its_own_notebook_alone(root, two_notebooks):
    assert sync.sync().problems == []
    assert documents.path_of(catalog.load(ID)) == two_notebooks[1]
    edit(two_notebooks[1], 0, LEARNER)
    assert documents.answer(catalog.load(ID)).strip() == "my own work"
    two_notebooks[1].unlink()
    assert "'01_pairs_more' has a spec and no notebook" in sync.sync().problems


def test_what_is_published_of_a_topic_is_known_by_its_name(two_notebooks):
    assert catalog.notebooks() == ["01_pairs", "01_pairs_more"]
    names = ("01_pairs", "01_pairs_more", "01_pairs_mine", "01_pairsome", "02_other")
    assert [[e.name for e in catalog.in_notebook(name)] for name in names] == [
        ["copy"], ["twice"], [], [], []
    ]  # fmt: skip


def test_the_workbook_itself_is_in_step():
    report = sync.sync(check=True)
    assert (report.changed, report.learners, report.problems) == ([], [], [])
