"""Passes: told, kept, known again after a restart; and what a learner may ask for."""

import pytest
from IPython.core.interactiveshell import InteractiveShell
from support.command import workbook
from support.pairs import ID, SOLUTION, SPEC, write_notebook

import utils
from utils import magics
from utils.course import catalog, markup, progress
from utils.ground.errors import CheckFirst, WorkbookError
from utils.ground.paths import ROOT, workspace
from utils.judge.check import check
from utils.notebooks import documents, learner, sittings, sync
from utils.timing.bench import bench

ANSWER = markup.solved(SOLUTION)
MORE = """
    Exercise(name="thrice", title="y = 3 x", reference=lambda x: 3 * x, number="01.2", **COMMON),
)
"""
HINTS = "Hint 1 of 2: Add.", "Hint 2 of 2: Or multiply.\nThat was the last one", "Hint 1 of 2"


@pytest.fixture
def pairs(root, place, monkeypatch):
    """A workbook of one exercise, with nothing passed."""
    monkeypatch.setenv("WORKBOOK_BACKEND", "emulator")
    monkeypatch.delenv("WORKBOOK_SOLUTIONS", raising=False)
    monkeypatch.setattr(learner, "_shown", {})
    assert not sync.sync().problems
    place(results=ROOT / "results")  # what is known of GPUs, for bench
    return root


def test_a_pass_says_what_is_done_and_what_is_next_and_survives_a_restart(pairs, capsys):
    more = SPEC.rstrip().removesuffix(")") + MORE
    (pairs / "kernels/01_pairs/spec.py").write_text(more)
    kernel = magics.compile_cell(ID, ANSWER)
    with pytest.raises(CheckFirst):
        bench(kernel)
    check(kernel)
    text = capsys.readouterr().out
    assert text.startswith("✓ 01.1 twice passed (")
    assert "cases, no hazards) · 01: 1 of 2 · next: 01.2\n3 sizes up to n=70" in text

    again = magics.compile_cell(ID, ANSWER)  # as another process would
    assert again.trusted
    bench(again)
    assert not magics.compile_cell(ID, ANSWER.replace("2 *", "3 *")).trusted
    assert not magics.compile_cell(ID, ANSWER.replace("2 *", "2.f *")).trusted, "by the text alone"

    (pairs / "kernels/01_pairs/spec.py").write_text(SPEC + "# asks for more\n")
    assert not magics.compile_cell(ID, ANSWER).trusted, "another spec asks for another check"
    assert progress.done(catalog.load(ID)), "yet it was done"


def test_a_chapter_without_exercises_is_not_passed_over(monkeypatch):
    monkeypatch.setattr(progress, "done", lambda exercise: exercise.topic < "13")
    last = catalog.load("12_ship_it/gn_min_bias_backward")
    assert progress.standing(last) == "12: 9 of 9 · next: notebook 13, then 14.1"


def test_what_passed_in_the_first_notebook_of_12_is_shipped_in_the_second(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBOOK_BACKEND", "emulator")
    monkeypatch.setenv("WORKBOOK_PASSED", str(tmp_path))
    monkeypatch.delenv("WORKBOOK_SOLUTIONS", raising=False)
    cells = documents.read(workspace().notebooks / "12_ship_it_2_operators.ipynb").cells
    (source,) = (cell.source for cell in cells if "def passed(id):" in cell.source)
    names = {}
    exec(source[: source.index("def pair")], names)

    exercise = catalog.load("12_ship_it/gn_leaky_relu_double_backward")
    solution = catalog.solution_text(exercise)
    assert names["passed"](exercise.id).source == solution, "nothing has passed"
    own = magics.compile_cell(exercise.id, f"{solution}// mine\n")
    progress.keep(own)
    shipped = names["passed"](exercise.id)
    assert shipped.source == own.source and shipped.trusted
    (note,) = tmp_path.rglob("*.cu")
    note.rename(note.with_name("of-another-spec.cu"))
    assert names["passed"](exercise.id).source == solution, "that pass was of another spec"


def test_a_solution_that_passes_is_no_progress(pairs, monkeypatch, capsys):
    monkeypatch.setenv("WORKBOOK_SOLUTIONS", "1")
    check(magics.compile_cell(ID, ANSWER))
    assert workbook("check", "01.1", "--solutions")[0] == 0
    assert not progress.done(catalog.load(ID))
    assert "next" not in capsys.readouterr().out


def test_a_forged_note_deceives_no_check(pairs):
    wrong = magics.compile_cell(ID, ANSWER.replace("2 *", "3 *"))
    progress.keep(wrong)
    write_notebook(pairs, f"%%cuda {ID}\n{wrong.source}")
    code, output = workbook("check", "01.1")
    assert code == 1 and "wrong values" in output


def test_status_and_next_follow_the_learner(pairs):
    code, output = workbook("status")
    assert code == 0 and "Pairs" in output and "0 of 1" in output
    assert "not attempted" in workbook("status", "01")[1]
    assert "next: 01.1 twice, y = 2 x" in workbook("next")[1]
    write_notebook(pairs, f"%%cuda {ID}\n// mine\n{SOLUTION}")
    assert "begun" in workbook("status", "01")[1]
    assert workbook("check", "01.1")[0] == 0
    assert "✓" in workbook("status")[1] and "1 of 1" in workbook("status")[1]
    assert "passed" in workbook("status", "01")[1]
    assert "All exercises are done" in workbook("next")[1]
    write_notebook(pairs, f"%%cuda {ID}\nnonsense")
    assert "passed, and changed since" in workbook("status", "01")[1]


def test_next_says_how_long_the_sitting_is(pairs):
    assert "minutes" not in workbook("next")[1], "nothing is said of it"
    path = pairs / "notebooks/01_pairs.ipynb"
    notebook = documents.read(path)
    notebook.cells[0].source += "\n\n**Time.** About 40 minutes."
    path.write_text(documents.to_text(notebook))
    assert workbook("next")[1].endswith("in notebooks/01_pairs.ipynb: about 40 minutes\n")
    notebook.cells[0].source += f" Then about 35.\n\n{sittings.REST}"
    path.write_text(documents.to_text(notebook))
    assert workbook("next")[1].endswith(": sitting 2 of 2, about 35 minutes\n")


def test_hints_come_one_after_another(pairs, capsys):
    kernel = magics.compile_cell(ID, ANSWER)
    for words in (
        "Hint 1 of 2: Add.",
        "Hint 2 of 2: Or multiply.\nThat was the last one",
        "Hint 1",
    ):
        utils.hint(kernel)
        assert words in capsys.readouterr().out
    utils.hint("twice")
    assert "Hint 2" in capsys.readouterr().out
    with pytest.raises(WorkbookError, match="has no hints"):
        utils.hint("copy")
    with pytest.raises(WorkbookError, match="say which"):
        utils.hint(3)


def test_reset_keeps_what_was_run_and_what_was_saved(pairs, capsys):
    write_notebook(pairs, f"%%cuda {ID}\nwhat was saved")
    utils.reset(magics.compile_cell(ID, ANSWER))
    kept = {path.read_text() for path in (pairs / "build/kept").iterdir()}
    assert kept == {ANSWER, "what was saved\n"}
    assert "build/kept/" in capsys.readouterr().out


def test_reset_of_a_starter_keeps_nothing(pairs, capsys):
    utils.reset("01.1")
    assert not (pairs / "build/kept").exists()
    assert "twice is the starter" in capsys.readouterr().out


def test_a_notebook_has_both_at_hand_but_not_in_place_of_a_readers_own(pairs):
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    try:
        shell.user_ns["hint"] = "mine"
        shell.run_line_magic("load_ext", "utils")
        assert shell.user_ns["hint"] == "mine"
        with pytest.raises(WorkbookError, match="no_such_kernel"):
            shell.user_ns["reset"]("no_such_kernel")
    finally:
        InteractiveShell.clear_instance()
