"""Tables of comma-separated values, as people and their spreadsheets leave them.

Any separator, any encoding: a German or a French Excel writes `;` and its own code page. What
is not quite clear is an error, never a loss.
"""

import csv
import io
import shutil
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from utils.grading import inert
from utils.ground import files
from utils.ground.errors import WorkbookError

SEPARATORS = ",;\t|"
KEY = "student_id"

Row = dict[str, str]  # of a table, by column


def read(path: Path) -> dict[str, Row]:
    """The rows of a table by student_id, in one form of Unicode (NFC), with what `inert.cell` has
    put before a cell taken away again.

    Raises WorkbookError for a table without student_id, two rows of one student, a row of nobody
    that says something, and a row that is longer than the header.
    """
    try:
        text = _text(path.read_bytes())
    except OSError as error:
        raise WorkbookError(f"{path} cannot be read: {error.strerror}") from None
    if text[:4].lower() == "sep=":  # a line of Excel's own
        text = text.partition("\n")[2]
    separator = _separator(text.partition("\n")[0])
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        lines = [(reader.line_num, line) for line in reader if any(cell.strip() for cell in line)]
    except csv.Error as error:
        raise WorkbookError(f"{path} cannot be read: {error} in line {reader.line_num}") from None
    rows: dict[str, Row] = {}
    if not lines:
        return rows
    header = [name.strip() for name in lines[0][1]]
    if KEY not in header:
        raise WorkbookError(f"{path} has no column {KEY}; it has {', '.join(header)}")
    if twice := [name for name, times in Counter(header).items() if name and times > 1]:
        raise WorkbookError(f"{path} has two columns {twice[0]}")
    for number, line in lines[1:]:
        if any(cell.strip() for cell in line[len(header) :]):
            long = f"has {len(line)} cells, and the header {len(header)}"
            raise WorkbookError(f"{path}: line {number} {long}")
        cells = [cell.removeprefix("'") for cell in line] + [""] * (len(header) - len(line))
        row = {name: cell for name, cell in zip(header, cells, strict=False) if name}
        id = row[KEY] = normal(row[KEY])
        if not id:
            raise WorkbookError(f"{path}: line {number} has no {KEY}")
        if id in rows:
            raise WorkbookError(f"{path}: line {number} is a second one of {id!r}")
        rows[id] = row
    return rows


def normal(name: str) -> str:
    """A name in the one form of Unicode: an ü from a Mac is two characters, another's is one."""
    return unicodedata.normalize("NFC", name)


def _text(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")


def _separator(header: str) -> str:
    """The one that gives a column KEY, or else the most columns."""

    def columns(separator: str) -> tuple[bool, int]:
        names = next(csv.reader([header], delimiter=separator), [])
        return KEY in (name.strip() for name in names), len(names)

    return max(SEPARATORS, key=columns)


def write(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> None:
    """Write a table, with commas and in UTF-8, whole or not at all."""
    with files.publish(path) as made, open(made, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows({name: inert.cell(row.get(name)) for name in columns} for row in rows)


def back_up(path: Path) -> Path | None:
    """Keep a table as it stands, under its own name and the time at which it was written. Where."""
    if not path.exists():
        return None
    written = datetime.fromtimestamp(path.stat().st_mtime)
    kept = path.parent / f"{path.stem}.backups" / f"{written:%Y-%m-%d_%H%M%S}{path.suffix}"
    if not kept.exists():
        with files.publish(kept) as made:
            shutil.copy2(path, made)
    return kept


def number(value: float) -> str:
    """With at most two decimals."""
    return f"{round(value, 2):g}"


def as_number(text: str, what: str, path: Path) -> float:
    """What was written into a cell, with a comma or a point; 0 for nothing. Raises WorkbookError,
    which names the cell as `what`."""
    try:
        value = float(text.strip().replace("\N{MINUS SIGN}", "-").replace(",", ".") or 0)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise WorkbookError(f"{path}: {what} are {text!r}; write a number, or nothing")
    return value
