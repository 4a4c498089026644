"""The notebooks under nbval: solutions pass, starters fail at their checks and nowhere else."""

import subprocess
import sys
from xml.etree import ElementTree

from utils import exercises, notebooks, selection
from utils.paths import ROOT
from utils.running import environment

SECONDS = 300  # for a cell


def nbval(report, solutions: bool) -> dict[str, str]:
    """Run all notebooks. What became of each code cell: {"01_topic Cell 3": "" or why not}."""
    command = [sys.executable, "-m", "pytest", "-q", "--nbval-lax", "-p", "no:cacheprovider"]
    options = [f"--nbval-cell-timeout={SECONDS}", f"--junitxml={report}"]
    paths = [str(path.relative_to(ROOT)) for path in selection.notebooks()]
    done = subprocess.run(
        [*command, *options, *paths],
        cwd=ROOT,
        env=environment(WORKBOOK_SOLUTIONS="1" if solutions else ""),
        capture_output=True,
        text=True,
    )
    assert report.exists(), done.stdout + done.stderr
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        topic = case.get("classname").removesuffix(".ipynb").rpartition(".")[2]
        trouble = [child for child in case if child.tag in ("failure", "error", "skipped")]
        text = "".join(f"{child.get('message')}\n{child.text}" for child in trouble)
        found[f"{topic} {case.get('name')}"] = text
    return found


def code_cells() -> dict[str, str]:
    """The source of every code cell, under the names that `nbval` gives them."""
    found = {}
    for path in selection.notebooks():
        cells = [cell for cell in notebooks.read(path).cells if cell.cell_type == "code"]
        found |= {f"{path.stem} Cell {n}": cell.source for n, cell in enumerate(cells)}
    return found


def check_cells() -> set[str]:
    """The cells that check an exercise, of which the spec says what there are."""
    wanted = {}
    for path in selection.notebooks():
        if path.stem in exercises.topics():
            names = [e.name for e in exercises.topic(path.stem).values() if e.number is not None]
            wanted |= {f"{path.stem} {name}": f"check({name})" for name in names}
    cells, found = code_cells(), set()
    for key, call in wanted.items():
        topic = key.partition(" ")[0]
        homes = [
            cell for cell, source in cells.items() if cell.startswith(topic) and call in source
        ]
        assert len(homes) == 1, f"{topic} calls {call} in {len(homes)} cells"
        found.add(homes[0])
    return found


def test_with_solutions_every_cell_passes(tmp_path):
    found = nbval(tmp_path / "report.xml", solutions=True)
    assert {cell: text for cell, text in found.items() if text} == {}
    assert set(found) == set(code_cells()), "every cell ran"


def test_starters_fail_at_their_checks_as_not_attempted_and_nowhere_else(tmp_path):
    found = nbval(tmp_path / "report.xml", solutions=False)
    failed = {cell: text for cell, text in found.items() if text}
    assert set(failed) == check_cells()
    assert [cell for cell, text in failed.items() if "not attempted" not in text] == []
    assert set(found) == set(code_cells()), "every cell ran"
