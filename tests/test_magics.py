"""`%load_ext utils` and `%%cuda`, in an IPython shell."""

from types import SimpleNamespace

import pytest
from IPython.core.interactiveshell import InteractiveShell
from support.pairs import ID, SOLUTION, STARTER

from utils.course import markup
from utils.course.answers import Answer
from utils.errors import ArgumentError, CompileError, DeclarationError, WorkbookError
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
    ],
)
def test_an_argument_that_does_not_fit_is_told_in_one_line(shell, capsys, call, kind, message):
    assert cell(shell, "thrice", SCRATCH)[1] is None
    capsys.readouterr()
    error = shell.run_cell(f"import torch\n{call}").error_in_exec
    assert isinstance(error, kind) and isinstance(error, ArgumentError)
    (shown,) = capsys.readouterr().out.splitlines()
    assert message in shown


def test_a_cell_that_fails_leaves_no_kernel_from_before(shell):
    assert cell(shell, "thrice", SCRATCH)[0]
    assert cell(shell, "thrice", "nonsense")[0] is None


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
