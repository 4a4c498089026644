"""The workbook's Python. In a notebook: `%load_ext utils`, then `from utils import check, bench`.

The names are looked up on first use, so that importing this package costs nothing.
"""

import importlib

_HOMES = {
    "check": "utils.checking",
    "bench": "utils.timing",
    "draw": "utils.diagrams",
    "diagnose": "utils.explaining",
}
__all__ = list(_HOMES)


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'utils' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])


def load_ipython_extension(ipython) -> None:
    """What `%load_ext utils` calls: registers `%%cuda`."""
    from utils import magics

    magics.load(ipython)
