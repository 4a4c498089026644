"""The notebooks under nbval: solutions pass, starters fail at their checks and nowhere else."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from utils.course import catalog, selection
from utils.notebooks import documents
from utils.paths import ROOT, environment

SECONDS = 300  # for a cell


def nbval(notebook: Path, report: Path, solutions: bool) -> dict[str, str]:
    """Run a notebook. What became of each code cell: {"Cell 3": "" or why not}."""
    command = [sys.executable, "-m", "pytest", "-q", "--nbval-lax", "-p", "no:cacheprovider"]
    command += ["-p", "nbval.plugin"]  # and no other: to load them all takes two seconds
    options = [f"--nbval-cell-timeout={SECONDS}", f"--junitxml={report}"]
    done = subprocess.run(
        [*command, *options, str(notebook.relative_to(ROOT))],
        cwd=ROOT,
        env=environment(
            WORKBOOK_SOLUTIONS="1" if solutions else "", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"
        ),
        capture_output=True,
        text=True,
    )
    assert report.exists(), done.stdout + done.stderr
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        trouble = [child for child in case if child.tag in ("failure", "error", "skipped")]
        text = "".join(f"{child.get('message')}\n{child.text}" for child in trouble)
        found[case.get("name")] = text
    return found


def code_cells(notebook: Path) -> dict[str, str]:
    """The source of every code cell, under the names that `nbval` gives them."""
    cells = [cell for cell in documents.read(notebook).cells if cell.cell_type == "code"]
    return {f"Cell {n}": cell.source for n, cell in enumerate(cells)}


def check_cells(notebook: Path) -> set[str]:
    """The cells that check an exercise, of which the spec says what there are."""
    topic = catalog.topic(notebook.stem) if notebook.stem in catalog.topics() else {}
    cells, found = code_cells(notebook), set()
    for call in (f"check({e.name})" for e in topic.values() if e.number is not None):
        homes = [cell for cell, source in cells.items() if call in source]
        assert len(homes) == 1, f"{notebook.stem} calls {call} in {len(homes)} cells"
        found.add(homes[0])
    return found


each = pytest.mark.parametrize("notebook", selection.notebooks(), ids=lambda path: path.stem)


@each
def test_with_solutions_every_cell_passes(notebook, tmp_path):
    found = nbval(notebook, tmp_path / "report.xml", solutions=True)
    assert {cell: text for cell, text in found.items() if text} == {}
    assert set(found) == set(code_cells(notebook)), "every cell ran"


@each
def test_starters_fail_at_their_checks_as_not_attempted_and_nowhere_else(notebook, tmp_path):
    found = nbval(notebook, tmp_path / "report.xml", solutions=False)
    failed = {cell: text for cell, text in found.items() if text}
    assert set(failed) == check_cells(notebook)
    assert [cell for cell, text in failed.items() if "not attempted" not in text] == []
    assert set(found) == set(code_cells(notebook)), "every cell ran"
