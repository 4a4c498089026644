"""The workbook's Python. In a notebook: `%load_ext utils`, then `from utils import check, bench`.

`device`, "cuda" or "cpu", is where the tensors that kernels get must be.

The names are looked up on first use, so that importing this package costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_HOMES = {
    "check": "utils.judge.check",
    "bench": "utils.timing.bench",
    "draw": "utils.diagrams.draw",
    "diagnose": "utils.diagrams.explain",
    "trace": "utils.diagrams.trace",
    # Bound by %load_ext: nobody has to import them.
    "profile": "utils.timing.profile",
    "hint": "utils.notebooks.learner",
    "reset": "utils.notebooks.learner",
}
__all__ = [*_HOMES, "device"]


def __getattr__(name: str) -> Any:
    if name == "device":
        return importlib.import_module("utils.ground.settings").device()
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'utils' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def load_ipython_extension(ipython: "InteractiveShell") -> None:
    """What `%load_ext utils` calls: registers `%%cuda`."""
    from utils import magics

    magics.load(ipython)
