"""pytest's plugin around nbval: exercises by name, points for what passed, kernels that may die.

`pytest --nbval-lax notebooks/` finds it where the workbook is installed; `-p
utils.grading.nbval_plugin` loads it, and nbval with it, where pytest loads no plugins by itself.
Without --nbval or --nbval-lax it does nothing, and imports nothing.
"""

import math
import os

import pytest

NBVAL = "nbval.plugin"


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """The options of a run of notebooks."""
    _load_nbval(pluginmanager)
    group = parser.getgroup("workbook", "notebooks with exercises, under --nbval or --nbval-lax")
    group.addoption(
        "--workbook-cell-limit",
        type=float,
        metavar="SECONDS",
        help="how long a cell may take, and an exercise's assessment (120); the first %%%%cuda "
        "cell of a notebook may take 180 s more, for it may build the emulator",
    )
    group.addoption(
        "--workbook-budget",
        type=float,
        default=math.inf,
        metavar="SECONDS",
        help="for the whole run: no cell begins after that",
    )
    group.addoption(
        "--workbook-json", metavar="FILE", help="write the points of each exercise to FILE"
    )
    group.addoption(
        "--workbook-assess",
        action="store_true",
        help="ask utils.grading.assess in the notebook's kernel after the check of each exercise",
    )


def _load_nbval(pluginmanager: pytest.PytestPluginManager) -> None:
    """Load nbval where nothing else does, under the name that it would have: none loads twice."""
    alone = os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    loaded = any(getattr(plugin, "__name__", "") == NBVAL for plugin in pluginmanager.get_plugins())
    if loaded or pluginmanager.is_blocked("nbval"):
        return
    import nbval.plugin

    pluginmanager.register(nbval.plugin, NBVAL if alone else "nbval")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to keep the score, if notebooks are to be run."""
    if config.getoption("nbval", False) or config.getoption("nbval_lax", False):
        from utils.grading.score import ScorePlugin

        config.pluginmanager.register(ScorePlugin(config), "workbook-score")
