"""Words that several messages share, and how they are shown."""

import sys
import unicodedata


def many(count: int, thing: str) -> str:
    """ "1 warp", "1,024 warps", "2 launches"."""
    return f"{count:,} {thing}{'' if count == 1 else 'es' if thing.endswith('ch') else 's'}"


def one_line(text: str, most: int = 4000) -> str:
    """A stranger's text as a line that no terminal acts on: line ends become " / ", what else
    controls a terminal or is not shown is escaped, and so much of it that it ends."""
    lines = filter(None, (line.strip() for line in text[: 2 * most].splitlines()))
    shown = "".join(map(_shown, " / ".join(lines)))
    return shown if len(shown) <= most else shown[:most] + "…"


def _shown(character: str) -> str:
    hidden = unicodedata.category(character)[0] == "C" or unicodedata.category(character) in _LINES
    return character.encode("unicode_escape").decode() if hidden else character


_LINES = ("Zl", "Zp")  # separators of lines and paragraphs


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
