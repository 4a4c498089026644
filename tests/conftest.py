"""Fixtures that several test files share."""

import gc
import os
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, settings

from utils.ground import paths
from utils.ground.paths import Workspace

# How long an example takes says how busy the machine is, and nothing of the code.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


def pytest_addoption(parser):
    parser.addoption("--renew", action="store_true", help="draw the pictures of tests/golden anew")


def pytest_sessionstart(session):
    """Build the emulator and its precompiled headers first: they halve each of 1,400 builds."""
    if not hasattr(session.config, "workerinput") and not session.config.option.collectonly:
        from utils.cuda import warmup

        for thread in warmup.start():
            thread.join()


def pytest_collection_finish(session):
    """What is imported by now stays: who looks for garbage need not go through it every time, which
    was an eighth of what the tests' own processes did."""
    gc.collect()
    gc.freeze()


# Tests that share a worker with no others, and take ten seconds or more.
LONG = "test_kernels.py::test_nvcc_", "test_redraw.py"
# What the notebooks under nbval tell of every exercise as well.
TOLD_TWICE = "test_a_solution_passes", "test_a_starter_compiles_and_counts_as_not_attempted"


def pytest_collection_modifyitems(config, items):
    """Whole notebooks first among what is spread, then what else takes long: the last ones to end
    should be short. Where notebooks run, what they check too is checked once."""
    items.sort(key=lambda item: ("test_nbval.py" not in item.nodeid, not takes_long(item)))
    if not items or "test_nbval.py" not in items[0].nodeid:
        return
    again = [
        item
        for item in items
        if getattr(item, "originalname", "") in TOLD_TWICE
        and is_checked(item.callspec.params["exercise"])
    ]
    config.hook.pytest_deselected(items=again)
    items[:] = [item for item in items if item not in set(again)]


def takes_long(item) -> bool:
    """Whether it is one of those."""
    return any(long in item.nodeid for long in LONG)


def is_checked(exercise) -> bool:
    """Whether a cell of a notebook checks it; test_nbval.py sees to those that learners write."""
    notebook = paths.workspace().notebooks / f"{exercise.topic}.ipynb"
    return bool(exercise.number) or f"check({exercise.name})" in notebook.read_text()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Two more than there are cores: tests wait for compilers, kernels and time limits."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """A file's tests share a worker, and what its fixtures built; those of the chapters' kernels,
    which take longer than all the others, share nothing and are spread. Of the two runs of all
    notebooks each is one test function's."""
    from xdist.scheduler import LoadFileScheduling

    spread = "test_kernels.py", "test_attacks.py"

    class SpreadChapters(LoadFileScheduling):
        def _split_scope(self, nodeid):
            if "test_nbval.py" in nodeid:
                return nodeid.partition("[")[0]
            alone = any(file in nodeid for file in spread)
            return nodeid if alone else super()._split_scope(nodeid)

    return SpreadChapters(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture
def place(monkeypatch):
    """Moves folders of the workbook elsewhere: place(results=tmp_path)."""

    def place(**folders):
        monkeypatch.setattr(paths, "_workspace", replace(paths.workspace(), **folders))

    return place


@pytest.fixture
def no_figures(tmp_path, place):
    """A folder of results in which nothing was measured; what is known of GPUs is in it."""
    for name in ("ceilings.json", "calibration/model.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((paths.workspace().results / name).read_text())
    place(results=tmp_path)
    return tmp_path


@pytest.fixture
def root(tmp_path, monkeypatch):
    """The folder of a small workbook (see support/pairs.py) that utils takes for the real one."""
    # Imported here, so that tests of kernels run where Jupyter's packages are missing.
    from support import pairs

    monkeypatch.setattr(paths, "_workspace", Workspace.of(tmp_path))
    # Its cache is empty, so that warming it up would be slow.
    monkeypatch.setattr("utils.cuda.warmup.start", lambda: [])
    pairs.write(tmp_path)
    return tmp_path
