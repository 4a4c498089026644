"""Strangers' text made inert: in Markdown, in file names, in what a spreadsheet opens."""

import hashlib
import re
import unicodedata

LONGEST = 20_000  # characters of one text
_KEPT = 40  # characters of a file name
_FORMULA = ("=", "+", "-", "@", "'")  # the last, since a reader takes one away again
_MESSAGE = 4000  # characters of one
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def visible(text: str, lines: bool = True, most: int = LONGEST) -> str:
    """A text in which nothing acts unseen: control characters, escape sequences and what turns the
    direction of writing stand as ⟨U+202E⟩. `lines`: it may have several, and tabs.

    Of a longer text the first `most` characters stay.
    """
    text = text.replace("\r\n", "\n") if lines else text
    shown = "".join(c if _harmless(c, lines) else f"⟨U+{ord(c):04X}⟩" for c in text[:most])
    return shown + f" … ({len(text):,} characters)" * (len(text) > most)


def _harmless(c: str, lines: bool) -> bool:
    return (c in "\n\t" and lines) or c == " " or unicodedata.category(c)[0] not in "CZ"


def line(text: str) -> str:
    """The same in one line."""
    return visible(text, lines=False)


def plain(text: str) -> str:
    """A message without the colours that it may have in a terminal, and not endless."""
    return visible(_ESCAPES.sub("", text).strip(), most=_MESSAGE)


def code(text: str) -> str:
    """Markdown of a line of code: nothing in it is markup."""
    text = line(text) or " "
    ticks = _longer(text, least=1)
    return f"{ticks} {text} {ticks}" if "`" in text else f"{ticks}{text}{ticks}"


def block(text: str) -> str:
    """Markdown of a block of code: nothing in it is markup, or ends it."""
    text = visible(text).strip("\n")
    ticks = _longer(text, least=3)
    return f"{ticks}text\n{text}\n{ticks}"


def escaped(text: str) -> str:
    """Markdown of text within a line: each mark that could mean something has a backslash."""
    text = " ".join(visible(text).split())
    return re.sub(r"([\\`*_{}\[\]<>()#!|&~$])", r"\\\1", text)


def _longer(text: str, least: int) -> str:
    """More backticks than stand together anywhere in a text."""
    return "`" * max([least, *(len(run) + 1 for run in re.findall("`+", text))])


def cell(text: str | None) -> str:
    """What a table of comma-separated values may hold: no formula for who opens it, in one line."""
    text = line(text or "")
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def file_name(name: str) -> str:
    """A name for a file or a folder, in one place, of its own for each `name`.

    Letters of any script stay. What had to change, or looks as if it had, ends in a digest.
    """
    made = (
        "".join(c if c.isalnum() or c in "._-" else "_" for c in name).lstrip(".-")[:_KEPT] or "_"
    )
    if made == name and not re.search(r"-[0-9a-f]{16}$", name):
        return name
    return f"{made}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
