"""`%load_ext utils` and `%%cuda`, in an IPython shell."""

from types import SimpleNamespace

import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from support.pairs import ID, SOLUTION, STARTER

from utils.course import markup
from utils.course.answers import Answer
from utils.cuda.kernel import Kernel
from utils.ground.errors import ArgumentError, CompileError, DeclarationError, WorkbookError
from utils.notebooks import sync

SCRATCH = "void thrice(float* x, int n) { for (int i = 0; i < n; i++) x[i] *= 3; }\n"


@pytest.fixture
def shell(root, monkeypatch):
    monkeypatch.delenv("WORKBOOK_SOLUTIONS", raising=False)
    monkeypatch.setenv("WORKBOOK_BACKEND", "emulator")
    monkeypatch.setattr("utils.emulator.build.is_built", lambda: True)
    assert not sync.sync().problems
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "utils")
    yield shell
    InteractiveShell.clear_instance()


def cell(shell, line: str, text: str):
    """Run a %%cuda cell; the kernel bound under the name, and what failed."""
    result = shell.run_cell(f"%%cuda {line}\n{text}")
    return shell.user_ns.get(
        line.rpartition("/")[2]
    ), result.error_before_exec or result.error_in_exec


def test_a_cell_binds_its_launcher_and_says_the_same_every_time(shell, capsys):
    outputs = []
    for _ in range(2):
        kernel, error = cell(shell, ID, markup.solved(SOLUTION))
        assert error is None and kernel.exercise.id == ID
        outputs.append(capsys.readouterr().out)
    assert outputs == ["twice: compiled\n"] * 2


def test_a_first_cell_that_waits_for_the_emulator_says_so(shell, monkeypatch, capsys):
    monkeypatch.setattr("utils.emulator.build.is_built", lambda: False)
    monkeypatch.setattr("utils.magics.compile_cell", lambda *_: SimpleNamespace(trusted=False))
    cell(shell, ID, STARTER)
    assert capsys.readouterr().out.startswith("The emulator is built first, once")


def test_a_starter_is_known_as_untouched_and_an_answer_is_not(shell):
    assert cell(shell, ID, "// a note\n" + STARTER)[0].untouched
    assert not cell(shell, ID, markup.solved(SOLUTION))[0].untouched


def test_solutions_take_the_place_of_the_cells_text_and_say_so(shell, monkeypatch, capsys):
    monkeypatch.setenv("WORKBOOK_SOLUTIONS", "1")
    cell(shell, ID, markup.solved(SOLUTION))
    assert "not this cell" not in capsys.readouterr().out
    kernel, error = cell(shell, ID, STARTER)
    assert "the workbook's solution, not this cell" in capsys.readouterr().out
    assert error is None and not kernel.untouched
    assert kernel.source == markup.solved(SOLUTION)
    assert kernel.first_line == 2, "lines are counted as in the cell"


def test_a_kernel_of_ones_own_needs_no_exercise(shell):
    kernel, error = cell(shell, "thrice", SCRATCH)
    assert error is None and not isinstance(kernel, Answer)


def test_a_compile_error_names_the_cells_line_and_shows_no_code_of_ours(shell, capsys):
    _, error = cell(shell, "thrice", SCRATCH + "\nint oops")
    assert isinstance(error, CompileError) and "thrice.cu:4" in str(error)
    shown = capsys.readouterr().out
    assert "CompileError" in shown and "thrice.cu:4" in shown
    assert "Traceback" not in shown and "magics.py" not in shown


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        ("thrice([1.0], 1)", TypeError, "thrice: x is of type list"),
        ("thrice(torch.ones(3))", TypeError, "thrice is missing n"),
        ("thrice(torch.ones(3), 2**31)", ValueError, "thrice: n is 2147483648"),
        ("thrice([1.0], 1, 2)", TypeError, "thrice got 3 arguments, but takes 2"),
    ],
)
def test_an_argument_that_does_not_fit_is_told_in_one_line(shell, capsys, call, kind, message):
    assert cell(shell, "thrice", SCRATCH)[1] is None
    capsys.readouterr()
    error = shell.run_cell(f"import torch\n{call}").error_in_exec
    assert isinstance(error, kind) and isinstance(error, ArgumentError)
    (shown,) = capsys.readouterr().out.splitlines()
    assert message in shown


def test_a_cell_that_fails_leaves_no_kernel_from_before_but_one_that_says_so(shell, capsys):
    assert isinstance(cell(shell, "thrice", SCRATCH)[0], Kernel)
    assert repr(cell(shell, "thrice", "nonsense")[0]) == "<thrice did not compile>"
    shell.run_cell("from utils import bench, check, diagnose, draw")
    capsys.readouterr()
    uses = "thrice(1)", "thrice.source", *(f"{f}(thrice)" for f in ("check", "bench", "draw"))
    for use in (*uses, "diagnose(thrice)"):
        assert isinstance(shell.run_cell(use).error_in_exec, WorkbookError)
        (shown,) = capsys.readouterr().out.splitlines()
        assert "thrice did not compile; fix its cell and run it again" in shown
    assert isinstance(cell(shell, "thrice", SCRATCH)[0], Kernel)


def test_in_a_notebook_the_first_lines_name_the_fault(monkeypatch):
    monkeypatch.setenv("WORKBOOK_BACKEND", "emulator")
    wrong = "%%cuda thrice\n" + SCRATCH.replace("*= 3;", "*= 3")
    notebook = new_notebook(cells=[new_code_cell("%load_ext utils"), new_code_cell(wrong)])
    NotebookClient(notebook, allow_errors=True, kernel_name="python3").execute()
    (error,) = notebook.cells[1].outputs  # of a kernel that has CLICOLOR_FORCE=1
    lines = "\n".join(error.traceback).splitlines()
    assert "thrice.cu:2" in lines[0] and "error: expected ‘;’" in lines[0]
    assert "a statement ends with ';'" in lines[-1] and len(lines) <= 6


def test_an_interrupt_is_told_in_the_line_of_the_cell(shell, capsys):
    shell.run_cell("def stop():\n    raise KeyboardInterrupt")
    capsys.readouterr()
    shell.run_cell("for i in range(3):\n    print(i)\n    stop()  # here")
    first, shown = capsys.readouterr().out.splitlines()
    assert first == "0" and "KeyboardInterrupt" in shown and "raise KeyboardInterrupt" in shown


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        ("", WorkbookError, "the first line of a CUDA cell is"),
        ("two words", WorkbookError, "the first line of a CUDA cell is"),
        ("../x", WorkbookError, "the first line of a CUDA cell is"),
        ("01_pairs/none", WorkbookError, "has no exercise 'none'"),
        ("99_none/none", WorkbookError, "there is no topic '99_none'"),
        ("another", DeclarationError, "another"),
    ],
)
def test_a_line_that_names_nothing_is_an_error(shell, line, kind, message):
    error = cell(shell, line, SCRATCH)[1]
    assert isinstance(error, kind) and message in str(error)


def test_an_empty_cell_is_an_error_too(shell):
    assert shell.run_cell("%%cuda thrice\n").error_in_exec


def test_a_plot_says_in_words_what_it_shows(shell):
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    axes.plot([1, 2], label="the bar")
    axes.set(title="2 of 8 pass", xlabel="place", ylabel="value")
    _, metadata = shell.display_formatter.format(figure)
    words = "A plot. 2 of 8 pass; upwards: value; to the right: place; shown: the bar"
    assert metadata["image/png"]["alt"] == words
    assert shell.display_formatter.format(Figure())[1] == {}
