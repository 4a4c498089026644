"""A class to try the grader with: sixteen submissions, and what each of them must get.

`workbook grade --example FOLDER` writes it. Each student hands in as a real one has: a clone, a
zip, copies with a browser's names, late by one of three clocks, with a wrong kernel, or a hostile
one. The roster and the list of times are as a German Excel saves them.
"""

import csv
import json
import os
import subprocess
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from utils.course import catalog
from utils.grading import tables
from utils.ground import files
from utils.ground.errors import ToolError, WorkbookError
from utils.notebooks import documents

TOPIC = "00_start_here"
DUE = datetime(2026, 11, 30, 22, 59, tzinfo=UTC)
LATE_PER_DAY = 10
ZOE = "Zo\N{LATIN SMALL LETTER E WITH DIAERESIS}"
EXPECTED = ("student_id", "score", "status", "why")
SWISH, STRIDE = "swish", "swish_grid_stride"
FORMULA = "x[i] / (1.0f + expf(-x[i]))"

Texts = dict[str, str]  # by exercise


@dataclass(frozen=True)
class Case:
    """A student, how the work is handed in, and what it must get."""

    name: str
    write: Callable[[Path, Texts], None]  # into the student's folder; the right texts
    score: float
    status: str
    why: str
    changes: dict[str, tuple[str, str]] = field(default_factory=dict)  # of the right texts


def write(folder: Path) -> Path:
    """Write `submissions/`, `roster.csv`, `times.csv` and `expected.csv` into a new folder; the
    path of the first. Raises WorkbookError for a folder that is there, ToolError without git."""
    if folder.exists():
        raise WorkbookError(f"{folder} is there already; name a new folder")
    submissions = folder / "submissions"
    exercises = [catalog.load(f"{TOPIC}/{name}") for name in (SWISH, STRIDE)]
    right = {exercise.name: catalog.solution_text(exercise) for exercise in exercises}
    for case in CASES:
        texts = dict(right)
        for name, (old, new) in case.changes.items():
            if old not in texts[name]:
                raise WorkbookError(f"the solution of {name} has no {old!r} any more")
            texts[name] = texts[name].replace(old, new)
        own = submissions / case.name
        own.mkdir(parents=True)
        case.write(own, texts)
        for path in (*own.rglob("*"), own):
            os.utime(path, times=(DUE.timestamp() - 3600,) * 2)
    people = [{"student_id": tables.normal(case.name)} for case in CASES] + [{"student_id": "lee"}]
    extended = {"student_id": "kim", "due": (DUE + timedelta(days=3)).isoformat()}
    people = [extended if row["student_id"] == "kim" else row for row in people]
    _excel(folder / "roster.csv", ("student_id", "due"), people)
    came = {"student_id": "max", "timestamp": "2026-12-04 00:58 +01:00"}
    _excel(folder / "times.csv", ("student_id", "timestamp"), [came])
    rows = [(tables.normal(c.name), tables.number(c.score), c.status, c.why) for c in CASES]
    rows.append(("lee", "0", "missing", "is in the roster, and has handed in nothing"))
    made = [dict(zip(EXPECTED, row, strict=True)) for row in rows]
    tables.write(folder / "expected.csv", EXPECTED, made)
    return submissions


def command(folder: Path) -> str:
    """How the example is graded."""
    return (
        f"workbook grade {folder}/submissions --notebook 00 --students {folder}/roster.csv "
        f"--due {DUE.astimezone():%Y-%m-%dT%H:%M:%S} --late-per-day {LATE_PER_DAY} "
        f"--times {folder}/times.csv "
        f"-o {folder}/grades.csv"
    )


def _excel(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> None:
    """A table as a German Excel saves it: with semicolons, in Windows' own code page."""
    with files.publish(path) as made, open(made, "w", newline="", encoding="cp1252") as file:
        writer = csv.DictWriter(file, columns, restval="", delimiter=";")
        writer.writeheader()
        writer.writerows(rows)


# --- ways to hand in


def _notebook(texts: Texts, above: str = "", ends: str = "\n") -> str:
    """The learner's notebook with these answers; starters where there are none."""
    made = documents.read(documents.notebook_of(TOPIC))
    for id, cell in documents.cuda_cells(made).items():
        if (text := texts.get(id.partition("/")[2])) is not None:
            cell.source = f"{above}{documents.MAGIC} {id}\n{text}".replace("\n", ends)
    return documents.to_text(made)


def _plain(own: Path, texts: Texts) -> None:
    files.write_text(own / f"{TOPIC}.ipynb", _notebook(texts))


def _half(own: Path, texts: Texts) -> None:
    _plain(own, {SWISH: texts[SWISH]})


def _clone(own: Path, texts: Texts) -> None:
    """As `git clone` makes it: the solutions are in it, and nothing is answered."""
    _checkout(own, texts, {})


def _checkout(own: Path, texts: Texts, answers: Texts) -> None:
    files.write_text(own / "notebooks" / f"{TOPIC}.ipynb", _notebook(answers))
    files.write_text(own / "solutions" / f"{TOPIC}.ipynb", _notebook(texts))
    for name, text in texts.items():
        files.write_text(own / "solutions" / TOPIC / f"{name}.cu", text)
        starter = catalog.starter_text(catalog.load(f"{TOPIC}/{name}"))
        files.write_text(own / "kernels" / TOPIC / f"{name}.cu", starter)
    files.write_text(own / "utils" / "__init__.py", "")


def _committed(own: Path, texts: Texts) -> None:
    """A clone in which the student has worked, and committed that half a day late."""
    _checkout(own, texts, {STRIDE: texts[STRIDE]})
    when = f"{DUE + timedelta(hours=12):%Y-%m-%dT%H:%M:%S}+00:00"
    me = {f"GIT_{who}_{what}": "lia@example.org" for who in ("AUTHOR", "COMMITTER")
          for what in ("NAME", "EMAIL")}  # fmt: skip
    dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "homework"]):
        try:
            subprocess.run(
                ["git", *words],
                cwd=own,
                env=os.environ | me | dates | alone,
                check=True,
                capture_output=True,
            )
        except (OSError, subprocess.CalledProcessError) as error:
            raise ToolError(f"the example needs git: {error}") from None


def _listed(own: Path, texts: Texts) -> None:
    """In time by a file that the student could write, late by the list of times."""
    _stamped(-1)(own, texts)


def _moved(own: Path, texts: Texts) -> None:
    """One answer in a notebook of another name, the other in a file, both far down."""
    far = own / "Abgabe" / "week 1" / "final"
    files.write_text(far / "Kopie von 00 (2).ipynb", _notebook({SWISH: texts[SWISH]}))
    files.write_text(far.parent / "Swish_Grid_Stride-1.cu", texts[STRIDE])


def _hostile(own: Path, texts: Texts) -> None:
    """Python that nobody runs, beside a kernel that starts a program."""
    _plain(own, texts)
    outside = own.parent.parent / "touched"
    files.write_text(own / "conftest.py", f"open({str(outside)!r}, 'w')\n")
    files.write_text(own / "utils" / "__init__.py", f"open({str(outside)!r}, 'w')\n")


def _zip(own: Path, texts: Texts) -> None:
    with zipfile.ZipFile(own / "homework.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"my homework/{TOPIC} (final).ipynb", _notebook(texts))
        archive.writestr("__MACOSX/._x.ipynb", "")


def _windows(own: Path, texts: Texts) -> None:
    """Sources from a browser's downloads, with an editor of Windows."""
    for name, text in texts.items():
        data = b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
        (own / f"{name} (1).cu").write_bytes(data)


def _above(own: Path, texts: Texts) -> None:
    """Something stands above the magic, as Jupyter allows, and lines end as on Windows."""
    above = "\n# my answer\n%%time\n"
    files.write_text(own / f"{TOPIC}.ipynb", _notebook(texts, above, ends="\r\n"))


def _stamped(days: float) -> Callable[[Path, Texts], None]:
    def write(own: Path, texts: Texts) -> None:
        _plain(own / "hw1", texts)
        when = DUE + timedelta(days=days)
        files.write_text(own / "hw1" / "timestamp.txt", f"{when:%Y-%m-%d %H:%M:%S.%f} UTC\n")

    return write


def _lost(own: Path, texts: Texts) -> None:
    """One answer under an id that is none, and a notebook that is cut off."""
    files.write_text(own / f"{TOPIC}.ipynb", _notebook(texts)[:-2000])
    cell: dict[str, object] = {
        "cell_type": "code",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }
    lost = cell | {"source": f"%%cuda 00_start/{STRIDE}\n{texts[STRIDE]}"}
    kept = cell | {"source": f"%%cuda {TOPIC}/{SWISH}\n{texts[SWISH]}"}
    made = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [kept, lost]}
    files.write_text(own / "Untitled.ipynb", json.dumps(made))


_PUBLISHED = "graded, 2 as published"
CASES = (
    Case("ada", _plain, 10, _PUBLISHED, "both answers are right"),
    Case("bob", _half, 5, "graded, 1 as published", "one answer is right, one the starter"),
    Case("cyd", _clone, 0, "empty", "an untouched clone: its solutions/ answer nothing"),
    Case("dan", _zip, 10, _PUBLISHED, "a zip is read"),
    Case(
        "eve", _windows, 10, "graded, 1 as published",
        "CRLF, a byte order mark, a browser's names, and a text in quotes that begins with R",
        {SWISH: ("int threads = 256;", 'int threads = 256;\n    printf("Row by row\\n");')},
    ),
    Case("fay", _above, 10, _PUBLISHED, "a blank line, a comment and %%time above the magic; CRLF"),
    Case(
        "gus", _plain, 5, "graded, 1 as published",
        "swish copies its input: nothing for a kernel that is wrong everywhere",
        {SWISH: (FORMULA, "x[i]")},
    ),
    Case(
        "hal", _plain, 5, "graded, 1 as published", "swish does not compile",
        {SWISH: ("int threads = 256;", "int threads = 256")},
    ),
    Case(
        "ivy", _plain, 5.5, "graded, 1 as published",
        "swish has no guard: it reads and writes outside of its arrays",
        {SWISH: ("if (i < n)", "if (true)")},
    ),
    Case("jon", _stamped(1.5), 8, f"{_PUBLISHED}, 2 days late by timestamp.txt",
         "two begun days late, each 10 %"),
    Case("kim", _stamped(2.5), 10, _PUBLISHED, "as late, with an extension of 3 days"),
    Case("lia", _committed, 4.5, "graded, 1 as published, 1 day late by last commit",
         "a clone with one answer in it, committed half a day late"),
    Case("max", _listed, 6, f"{_PUBLISHED}, 4 days late by the list of times",
         "the list of times says four begun days, whatever timestamp.txt says"),
    Case("ned", _moved, 10, _PUBLISHED, "renamed and moved: an answer is found by its first line"),
    Case(
        "oli", _hostile, 5, "graded, 1 as published",
        "swish would start a program, and conftest.py would: nothing of it is run",
        {SWISH: ("int threads = 256;", 'int threads = 256;\n    system("touch touched");')},
    ),
    Case(
        unicodedata.normalize("NFD", ZOE), _lost, 5, "graded, 1 as published",
        "one answer counts; the other has an id that is none, and the feedback says so",
    ),
)  # fmt: skip
