"""The notebooks under nbval: solutions pass, starters fail at their checks and nowhere else."""

import ast
import contextlib
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from utils.course import catalog, selection
from utils.grading import grade
from utils.ground import settings
from utils.ground.paths import ROOT, environment
from utils.notebooks import documents
from utils.process import forkserver

SECONDS = 300  # for a cell
# Without a GPU nvcc is asked for registers alone, which no cell compares with anything.
QUICK = {"NVCC_APPEND_FLAGS": "-Xcicc -O0 -Xptxas -O0"}
# What cells call to show something; it leaves nothing behind that a cell of another kernel reads.
SHOWING = {"check", "bench", "draw", "diagnose", "trace"}


# Imports take longer than a small notebook: all kernels are forks of a process that has done them.
# Kernels of their own run in test_nbval_plugin.py and in the browser.
MODULES = [*grade.MODULES, "matplotlib.pyplot", "matplotlib_inline.backend_inline"]


class Run:
    """All notebooks under nbval, in one process."""

    def __init__(self, folder: Path, solutions: bool, skip: dict[str, set[int]]):
        report, points, said = folder / "report.xml", folder / "points.json", folder / "said.txt"
        command = ["pytest", "-q", "--nbval-lax", "-p", "no:cacheprovider"]
        command += ["-p", "utils.grading.nbval_plugin"]  # it loads nbval, and nothing else is
        command += [f"--workbook-cell-limit={SECONDS}", f"--workbook-json={points}"]
        command += [f"--junitxml={report}"]
        for notebook in selection.notebooks():
            path = notebook.relative_to(ROOT)
            command += [f"--deselect={path}::Cell {n}" for n in skip.get(notebook.stem, ())]
            command.append(str(path))
        env = environment(
            WORKBOOK_SOLUTIONS="1" if solutions else "",
            PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
            OMP_NUM_THREADS="1",  # the cores have other tests, and threads that wait spin
            **(QUICK if settings.backend() == "emulator" else {}),
        )
        with contextlib.closing(forkserver.ForkServer(MODULES, OMP_NUM_THREADS="1")) as server:
            server.run(command, env=env, cwd=str(ROOT), log=str(said)).wait()
        assert points.exists(), said.read_text()
        # Of each notebook, what became of each code cell: "" or why not.
        self.cells: dict[str, dict[int, str]] = {}
        for case in ElementTree.parse(report).iter("testcase"):
            properties = {p.get("name"): p.get("value") for p in case.iter("property")}
            trouble = [child for child in case if child.tag in ("failure", "error", "skipped")]
            text = "".join(f"{child.get('message')}\n{child.text}" for child in trouble)
            notebook = case.get("classname").split(".")[-2]
            self.cells.setdefault(notebook, {})[int(properties.get("cell", -1))] = text
        listed = json.loads(points.read_text())["notebooks"]
        self.points = {Path(notebook["notebook"]).stem: notebook for notebook in listed}


def code_cells(notebook: Path) -> dict[int, str]:
    """The source of every code cell, by its number."""
    cells = [cell for cell in documents.read(notebook).cells if cell.cell_type == "code"]
    return {n: cell.source for n, cell in enumerate(cells)}


def exercises(notebook: Path) -> list[str]:
    """The names of what a learner writes in it."""
    known = catalog.in_notebook(notebook.stem)
    return [exercise.name for exercise in known if exercise.number is not None]


def check_cells(notebook: Path) -> set[int]:
    """The cells that check an exercise, of which the spec says what there are."""
    cells, checks = code_cells(notebook), set()
    for call in (f"check({name})" for name in exercises(notebook)):
        homes = [cell for cell, source in cells.items() if call in source]
        assert len(homes) == 1, f"{notebook.stem} calls {call} in {len(homes)} cells"
        checks.add(homes[0])
    return checks


def shipped(notebook: Path) -> set[str]:
    """Names in calls of `operator`."""
    calls = re.findall(r"\boperator\(([^()]*)\)", "\n".join(code_cells(notebook).values()))
    return set(re.findall(r"\w+", " ".join(calls)))


def the_same_with_solutions(notebook: Path) -> set[int]:
    """Cells that only show something of worked kernels, and so show the same in both runs.

    An operator takes checked kernels only: the checks of these must run. pytest deselects by how a
    name begins: cell 4 stays, where 41 must run.
    """
    learners, solved = {e.name for e in catalog.exercises() if e.number is not None}, set()
    learners |= shipped(notebook)
    for number, source in code_cells(notebook).items():
        try:
            tree = ast.parse(source)
        except SyntaxError:  # a magic
            continue
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        calls = [getattr(getattr(line, "value", None), "func", None) for line in tree.body]
        if learners & {name.id for name in names}:
            learners |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
        elif calls and all(isinstance(c, ast.Name) and c.id in SHOWING for c in calls):
            solved.add(number)
    others = {str(number) for number in code_cells(notebook)} - {str(number) for number in solved}
    return {n for n in solved if not any(other.startswith(str(n)) for other in others)}


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    return Run(tmp_path_factory.mktemp("solved"), solutions=True, skip={})


@pytest.fixture(scope="module")
def starters(tmp_path_factory):
    skip = {path.stem: the_same_with_solutions(path) for path in selection.notebooks()}
    return Run(tmp_path_factory.mktemp("starters"), solutions=False, skip=skip)


each = pytest.mark.parametrize("notebook", selection.notebooks(), ids=lambda path: path.stem)


@each
def test_with_solutions_every_cell_passes(notebook, solved):
    cells = solved.cells[notebook.stem]
    assert {cell: text for cell, text in cells.items() if text} == {}
    assert set(cells) == set(code_cells(notebook)), "every cell ran"
    points = solved.points[notebook.stem]
    assert points["points"] == points["of"]
    assert bool(points["of"]) == bool(exercises(notebook))  # a judge grades the capstone


@each
def test_starters_fail_at_their_checks_as_not_attempted_and_nowhere_else(notebook, starters):
    cells = starters.cells[notebook.stem]
    failed = {cell: text for cell, text in cells.items() if text}
    assert set(failed) == check_cells(notebook)
    assert [cell for cell, text in failed.items() if "not attempted" not in text] == []
    seen = the_same_with_solutions(notebook)
    assert set(cells) == set(code_cells(notebook)) - seen, "every other cell ran"
    statuses = [exercise["status"] for exercise in starters.points[notebook.stem]["exercises"]]
    assert statuses == ["not attempted"] * len(exercises(notebook))
