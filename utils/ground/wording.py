"""Words that several messages share, and how they are shown."""

import sys


def many(count: int, thing: str) -> str:
    """ "1 warp", "1,024 warps"."""
    return f"{count:,} {thing}{'s' * (count != 1)}"


def in_notebook() -> bool:
    """Whether what is displayed is displayed in a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


def show(thing: object) -> None:
    """In a notebook as it displays itself, elsewhere as text."""
    if not in_notebook():
        print(thing)
        return
    from IPython.display import display

    display(thing)
