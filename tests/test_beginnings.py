"""Day two: the first cell was not run. Each way ends in a result or in one sentence."""

import json
import subprocess
import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell
from support.pairs import ID, SOLUTION

from utils.course import markup
from utils.ground.paths import ROOT
from utils.notebooks import beginnings, lab, learner, sync

CUDA = f"%%cuda {ID}\n" + markup.solved(SOLUTION)
BROKEN = CUDA.replace(";", "", 1)


@pytest.fixture
def shell(root, monkeypatch):
    """A kernel of `workbook lab` on day two."""
    monkeypatch.delenv("WORKBOOK_SOLUTIONS", raising=False)
    monkeypatch.setenv("WORKBOOK_BACKEND", "emulator")
    monkeypatch.setattr("utils.emulator.build.is_built", lambda: True)
    assert not sync.sync().problems
    beginnings._code.cache_clear()
    learner._shown.clear()
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    beginnings.prepare(shell)
    yield shell
    InteractiveShell.clear_instance()
    beginnings._code.cache_clear()


FIRST = "%load_ext utils\nimport torch\nfrom utils import check, device\nn, x = 4, torch.ones(4)\n"


@pytest.fixture
def notebook(root):
    """A chapter whose cells bind what others use."""
    path = root / "notebooks" / "02_more.ipynb"
    cells = [FIRST, "def plot(rows):\n    return rows"]
    cells = [{"cell_type": "code", "source": source} for source in cells]
    path.write_text(json.dumps({"cells": cells}))


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        (CUDA, "twice: compiled"),
        ("# mine\n\n" + CUDA, "twice: compiled"),
        ("%%time\n" + CUDA, "twice: compiled"),
        (BROKEN, "hint(twice) shows a hint, reset(twice) the starter"),
        (
            "twice(1, 2)",
            "Run the cell that begins with '%%cuda 01_pairs/twice' first; hint('01.1')",
        ),
        ("check(twice)", "Run the cell that begins with '%%cuda 01_pairs/twice' first"),
        ("draw(twice)", "Run the cell that begins with '%%cuda 01_pairs/twice' first"),
        ("y = torch.ones(3)", "The notebook's first cell imports torch: run that first."),
        ("print(device)", "The notebook's first cell imports device: run that first."),
        ("print(x.sum())", "A cell further up makes x: run that first."),
        ("plot(3)", "A cell further up makes plot: run that first."),
        ("hint('01.1')", "Hint 1 of"),
        ("reset('01.1')", "twice is the starter again"),
        ("diagnose('twice')", "'twice' is no kernel: run its '%%cuda' cell"),
        ("trace(3)", "3 is no kernel: run its '%%cuda' cell"),
    ],
)
def test_a_beginning_in_the_middle_ends_in_one_sentence(shell, notebook, capsys, cell, says):
    shell.run_cell(cell)
    lines = capsys.readouterr().out.splitlines()
    assert says in "\n".join(lines[:3] if says in lines[0] else lines[-1:])


def test_a_name_of_the_readers_own_gets_no_advice(shell, notebook, capsys):
    shell.run_cell("nobodys + 1")
    assert capsys.readouterr().out.splitlines()[-1].endswith("name 'nobodys' is not defined")


def test_the_first_cell_may_come_later(shell, capsys):
    shell.run_cell(CUDA)
    capsys.readouterr()
    shell.run_cell("%load_ext utils\nfrom utils import check\ncheck")
    shell.run_cell(CUDA)
    said = capsys.readouterr().out
    assert "already loaded" not in said and said.count("twice: compiled") == 1


def test_hint_and_reset_work_where_a_cell_does_not_compile(shell, root, capsys):
    shell.run_cell(BROKEN)
    capsys.readouterr()
    shell.run_cell("hint(twice)")
    assert "Hint 1 of 2" in capsys.readouterr().out
    shell.run_cell("reset(twice)")
    said = capsys.readouterr().out
    assert "the starter again" in said and "kept in" in said
    (kept,) = (root / "build" / "kept").rglob("*.cu")
    assert kept.read_text().strip() == BROKEN.partition("\n")[2].strip()


def test_the_kernels_of_workbook_lab_are_prepared():
    """The kernel specification that JupyterLab finds first, and that what it runs is quick."""
    script = "import json\nfrom jupyter_client.kernelspec import KernelSpecManager as K\n"
    script += "print(json.dumps(K().get_kernel_spec('python3').argv))"
    done = subprocess.run(
        [sys.executable, "-c", script], env=lab.variables(), capture_output=True, text=True
    )
    (line,) = [word for word in json.loads(done.stdout) if "exec_lines" in word]
    code = "import sys\nget_ipython = lambda: None\nimport utils.notebooks.beginnings as b\n"
    code += f"b.prepare = lambda shell: print('prepared')\n{line.partition('=')[2]}\n"
    code += "print('torch' in sys.modules, 'nbformat' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["prepared", "False", "False"], done.stderr
