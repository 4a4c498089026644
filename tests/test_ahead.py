"""What cells need is built before they run, by cores that are free."""

import time

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from utils.course import catalog
from utils.ground.paths import cache
from utils.notebooks import ahead, run

ID = "00_start_here/swish"


@pytest.fixture
def notebook(tmp_path):
    """One whose cell holds a text that nobody has built."""
    text = catalog.solution_text(catalog.load(ID)) + f"constexpr long edit = {time.time_ns()};"
    return write(tmp_path, "%load_ext utils", f"%%cuda {ID}\n{text}")


def write(folder, *cells: str):
    path = folder / "00_some.ipynb"
    nbformat.write(new_notebook(cells=list(map(new_code_cell, cells))), path)
    return path


def libraries() -> set[str]:
    return {path.parent.name for path in cache().glob("swish-*/swish.so")}


def building(monkeypatch, path, cores=2, beside=1):
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    return ahead.building([path], solutions=False, backend="emulator", beside=beside)


def test_a_cell_finds_both_of_its_builds(notebook, monkeypatch):
    before = libraries()
    with building(monkeypatch, notebook):
        made = libraries()
        assert len(made - before) == 2
        done = run.execute(notebook, backend="emulator")
    assert not done.errors and libraries() == made


def test_beside_other_notebooks_none_waits_for_builds(notebook, monkeypatch):
    before, end = libraries(), time.monotonic() + 60
    with building(monkeypatch, notebook, cores=3, beside=2):
        assert libraries() == before
        while len(libraries() - before) < 2 and time.monotonic() < end:
            time.sleep(0.05)
    assert len(libraries() - before) == 2


def test_where_no_core_is_free_nothing_is_built(notebook, monkeypatch):
    before = libraries()
    with building(monkeypatch, notebook, cores=1):
        pass
    assert libraries() == before


def test_what_cannot_be_built_is_left_to_its_cell(tmp_path, monkeypatch):
    cells = "1 + 1", "%%cuda 00_start_here/nobody\nint x;", f"%%cuda {ID}\nint x", "%%cuda k\nint"
    before = libraries()
    with building(monkeypatch, write(tmp_path, *cells)):
        pass
    assert libraries() == before


def test_first_cells_come_before_second_ones_of_notebooks_that_run_together(tmp_path):
    names = "swish", "swish_grid_stride"
    paths = []
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        paths.append(write(folder, *(f"%%cuda 00_start_here/{n}\n{number}" for n in names)))
    order = [(e.name, text.strip()) for e, text in ahead._cells(paths, False, beside=2)]
    first, second = names
    assert order == [
        *((first, "0"), (first, "1"), (second, "0"), (second, "1")),
        *((first, "2"), (second, "2")),
    ]
