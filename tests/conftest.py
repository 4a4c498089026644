"""Fixtures that several test files share."""

import sys

import pytest


@pytest.fixture
def root(tmp_path, monkeypatch):
    """The folder of a small workbook (see pairs.py) that utils takes for the real one."""
    # Imported here, so that tests of kernels run where Jupyter's packages are missing.
    import pairs

    from utils import exercises, exporting, notebooks, paths, running, selection, syncing

    names = ("kernels", "solutions", "notebooks", "build")
    places = {"ROOT": tmp_path, **{name.upper(): tmp_path / name for name in names}}
    for module in (exercises, exporting, notebooks, paths, running, selection, syncing):
        for name, path in places.items():
            if hasattr(module, name):
                monkeypatch.setattr(module, name, path)
    monkeypatch.setattr(syncing, "README", tmp_path / "README.md")
    monkeypatch.setitem(sys.modules, "utils.results", None)  # as if nothing had been measured
    exercises.topic.cache_clear()
    pairs.write(tmp_path)
    yield tmp_path
    exercises.topic.cache_clear()
