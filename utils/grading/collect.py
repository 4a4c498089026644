"""Who is in a class, from the folder in which an instructor has collected it.

A folder or a zip for each student, or the files of all students in one folder, as Canvas hands them
over.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from utils.grading import handed_files, inert, tables
from utils.ground.errors import WorkbookError

_MOODLE = re.compile(r"(?P<who>.+)_\d+_assignsubmission_(?:file|onlinetext)_?", re.I)
LOOKED = 500  # files, to see whether a folder holds answers


@dataclass(frozen=True)
class Student:
    """One who has handed in, and where that is."""

    name: str
    places: tuple[Path, ...]  # a folder, a zip, or files
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, place: Path) -> "Student":
        """Whose folder or zip it is."""
        return cls(place.stem if place.suffix == ".zip" else place.name, (place,))


def students(folder: Path, assignment: str = "") -> tuple[list[Student], list[str]]:
    """The students of a class by name, and what in its folder is nobody's. Of students who have a
    folder of the assignment's name, as nbgrader makes it, only that counts.

    Raises WorkbookError where there is no student, and for what is one student's folder.
    """
    try:
        paths = sorted(p for p in folder.iterdir() if not p.name.startswith("."))
    except OSError as error:
        raise WorkbookError(f"{folder} cannot be read: {error.strerror}") from None
    folders = [p for p in paths if p.is_dir() and not p.is_symlink()]
    loose = [p for p in paths if p.is_file() and not p.is_symlink()]
    flat = {p: match for p in loose if (match := handed_files.CANVAS.fullmatch(p.name))}
    zips = [p for p in loose if p.suffix == ".zip" and p not in flat]
    single = [p for p in loose if p.suffix in (".ipynb", ".cu") and p not in flat]
    clone = {p.name for p in folders} >= {"kernels", "notebooks", "utils"}
    if clone or (single and not flat and not zips and not any(map(_has_answers, folders))):
        raise WorkbookError(
            f"{folder} looks like one student's work, not like a class: name the folder above it, "
            f"or `--one {folder} --json FILE`"
        )
    made = [*map(Student.of, [*folders, *zips]), *_canvas(flat)]
    if assignment:
        made = [_of_assignment(student, assignment) for student in made]
    if not made:
        raise WorkbookError(
            f"{folder} has no folders; each student's work goes into one of its own"
        )
    # Of a folder and a zip that are called alike, both are the student's.
    by_name: dict[str, list[Student]] = defaultdict(list)
    for student in made:
        by_name[student.name].append(student)
    merged = [
        Student(
            name,
            tuple(place for each in several for place in each.places),
            tuple(note for each in several for note in each.notes),
        )
        for name, several in sorted(by_name.items())
    ]
    taken = {*folders, *zips, *flat}
    return merged, [inert.line(p.name) for p in paths if p not in taken]


def _of_assignment(student: Student, assignment: str) -> Student:
    inner = tuple(place / assignment for place in student.places)
    ours = tuple(place for place in inner if place.is_dir() and not place.is_symlink())
    return replace(student, places=ours or student.places)


def _has_answers(folder: Path) -> bool:
    below = itertools.islice(folder.rglob("*"), LOOKED)
    return any(path.suffix in handed_files.READ for path in below)


def _canvas(flat: Mapping[Path, re.Match[str]]) -> list[Student]:
    """Of files that Canvas has named, those of each student."""
    owned: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for path, match in flat.items():
        owned[match["who"], match["id"]].append(path)
    made = []
    for (who, id), paths in owned.items():
        alike = sum(other == who for other, _ in owned)
        late = any(flat[path]["late"] for path in paths)
        notes = ("Canvas calls it late",) if late else ()
        made.append(Student(who if alike == 1 else f"{who}_{id}", tuple(paths), notes))
    return made


def ids(names: Iterable[str], people: Mapping[str, tables.Row]) -> dict[str, str]:
    """The student_id of each name of a folder, none twice: as it stands in the roster, or that of
    the one person of this full name, or else the name itself."""
    by_name = defaultdict(list)
    for id, person in people.items():
        first, last = person.get("first_name", ""), person.get("last_name", "")
        for full in {_letters(first + last), _letters(last + first)} - {""}:
            by_name[full].append(id)
    made: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(names, key=lambda name: (shown_name(name) not in people, name)):
        shown = shown_name(name)
        if shown not in people:
            moodle = _MOODLE.fullmatch(shown)
            who = moodle["who"] if moodle else shown
            known = by_name.get(_letters(who), [])
            free = {*known, *([who] if who in people else [])} - taken
            shown = free.pop() if len(free) == 1 else shown
        made[name] = _free(shown, taken)
        taken.add(made[name])
    return made


def shown_name(student: str) -> str:
    """A student's name, which is that of a folder, as it can stand in a table."""
    text = student.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return inert.line(tables.normal(text))


def _letters(name: str) -> str:
    return "".join(c for c in tables.normal(name).casefold() if c.isalnum())


def _free(name: str, taken: set[str]) -> str:
    """The name, or one that differs: of two folders that look alike, neither hides the other."""
    numbers = (f" ({number})" * (number > 1) for number in itertools.count(1))
    return next(candidate for n in numbers if (candidate := name + n) not in taken)


def nobodys(names: list[str]) -> str:
    """In words, what in the folder of a class is no student's."""
    shown = ", ".join(names[: handed_files.NAMED])
    more = len(names) - handed_files.NAMED
    shown += f" and {more} more" * (more > 0)
    return f"not read, for it is in no student's folder: {shown}"
