"""Fixtures that several test files share."""

import pytest


def pytest_sessionstart(session):
    """Build the emulator and its precompiled headers first: they halve each of 1,400 builds."""
    if not hasattr(session.config, "workerinput") and not session.config.option.collectonly:
        from utils import warming

        for thread in warming.start():
            thread.join()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """A file's tests share a worker, and what its fixtures built; those of the chapters' kernels
    and notebooks, which take longer than all the others, share nothing and are spread."""
    from xdist.scheduler import LoadFileScheduling

    spread = "test_kernels.py", "test_nbval.py"

    class SpreadChapters(LoadFileScheduling):
        def _split_scope(self, nodeid):
            alone = any(file in nodeid for file in spread)
            return nodeid if alone else super()._split_scope(nodeid)

    return SpreadChapters(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture
def root(tmp_path, monkeypatch):
    """The folder of a small workbook (see pairs.py) that utils takes for the real one."""
    # Imported here, so that tests of kernels run where Jupyter's packages are missing.
    import pairs

    from utils import exercises, exporting, notebooks, paths, results, running, selection, syncing

    names = ("kernels", "solutions", "notebooks", "results", "build")
    places = {"ROOT": tmp_path, **{name.upper(): tmp_path / name for name in names}}
    places["MUTANTS"] = tmp_path / "tests" / "mutants"
    modules = (exercises, exporting, notebooks, paths, results, running, selection, syncing)
    for module in modules:
        for name, path in places.items():
            if hasattr(module, name):
                monkeypatch.setattr(module, name, path)
    monkeypatch.setattr(syncing, "README", tmp_path / "README.md")
    monkeypatch.setattr("utils.warming.start", lambda: [])  # its cache is empty: that would be slow
    exercises.topic.cache_clear()
    pairs.write(tmp_path)
    yield tmp_path
    exercises.topic.cache_clear()
