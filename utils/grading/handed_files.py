"""The files that a student has handed in: in a folder, in zips, or by themselves.

Nothing is unpacked, no link is followed, and what a clone of the workbook brings along is left out.
What is not read is noted.
"""

import io
import os
import re
import stat
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath

from utils.course import catalog
from utils.grading import inert

NOTEBOOK, SOURCE = 16 << 20, 1 << 20  # bytes of a file, at most
ALL = 64 << 20  # bytes of all files, and of a zip
FILES, DEEP = 500, 6  # files and folders that are looked at; folders below each other
MEMBERS = 5000  # of a zip
NAMED = 5  # of these in a note
UNREADABLE = (OSError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error)
READ = (".ipynb", ".cu", ".zip")
# lovelaceada_LATE_4711_815_swish-1.cu: the numbers are the user's and the submission's.
CANVAS = re.compile(r"(?P<who>[^_]+)_(?:(?P<late>late)_)?(?P<id>\d+)_\d+_(?P<file>.+)", re.I)
_MOST = {".ipynb": NOTEBOOK, ".cu": SOURCE, ".zip": ALL}
# What has no use in a learner's work: it would change how that is graded, were it run.
_PLANTED = re.compile(r".*\.(py|pth|ini|cfg|toml|so)")
_IGNORED = re.compile(r"timestamp\.txt|Thumbs\.db|desktop\.ini|\..*")
# A folder with these is a clone of the workbook; of such a one these are not the student's.
_CLONE = {"kernels", "notebooks", "utils"}
_OURS = {"benchmarks", "build", "kernels", "results", "solutions", "tests", "utils"}
_PUBLISHED = ("kernels", "solutions")


@dataclass(frozen=True)
class HandedFile:
    """A file that may hold answers."""

    path: PurePosixPath  # below the student's folder; of a zip's member, below the zip's name
    written: float  # when, in seconds since 1970; of a zip's member as the zip says
    size: int  # bytes
    read: Callable[[], bytes]  # at most so many as its kind may have. Raises one of UNREADABLE

    @property
    def shown(self) -> str:
        """What to call it."""
        return inert.line(str(self.path))


@dataclass
class _Seen:
    """What a look at the files shows, beside those that may hold answers."""

    notes: list[str]
    latest: float = 0.0
    looked: int = 0

    @property
    def full(self) -> bool:
        """Whether enough was looked at."""
        return self.looked > FILES


def gather(places: Iterable[Path]) -> tuple[list[HandedFile], list[str], float]:
    """The notebooks, then the sources, in the order in which they count: notebooks of a chapter's
    name before others, newer ones before older ones. What to note, and when the newest file was
    written.

    A place is a folder, a zip or a file. Raises OSError for one that cannot be read.
    """
    seen = _Seen([])
    files = _without_ours([file for place in places for file in _in_place(place, seen)], seen)
    _note_unread(files, seen)
    ours = catalog.notebooks()

    def order(file: HandedFile) -> tuple[bool, bool, float, str]:
        suffix, stem = file.path.suffix, file.path.stem
        return suffix != ".ipynb", stem not in ours, -file.written, file.shown

    kept, total = [], 0
    for file in sorted((f for f in files if f.path.suffix in (".ipynb", ".cu")), key=order):
        most = _MOST[file.path.suffix]
        if file.size > most:
            note = f"{file.shown} has {file.size:,} bytes, more than {most:,}: left out"
            seen.notes.append(note)
            continue
        total += file.size
        if total > ALL:
            seen.notes.append(f"{file.shown} and what follows is beyond {ALL:,} bytes: left out")
            break
        kept.append(file)
    return kept, seen.notes, seen.latest


def _in_place(place: Path, seen: _Seen) -> Iterator[HandedFile]:
    if place.is_dir():
        yield from _in_folder(place, seen)
    else:
        match = CANVAS.fullmatch(place.name)
        name = match["file"] if match else place.name  # as its author knows it
        yield from _file(place, PurePosixPath(name), seen)


def _in_folder(folder: Path, seen: _Seen) -> Iterator[HandedFile]:
    os.listdir(folder)  # raises, which os.walk does not
    for here, folders, names in os.walk(folder):
        below = PurePosixPath(Path(here).relative_to(folder))
        deep = len(below.parts) >= DEEP
        clone = set(folders) >= _CLONE
        folders[:] = [] if deep else sorted(f for f in folders if not f.startswith("."))
        if clone:
            _note_clone(below, seen)
            folders[:] = [f for f in folders if f not in _OURS]
            names = [name for name in names if Path(name).suffix in READ]
        for name in sorted(names)[: FILES - seen.looked]:
            yield from _file(Path(here, name), below / name, seen)
        seen.looked += 1 + len(names)
        if seen.full:
            seen.notes.append(f"only the first {FILES} files and folders were looked at")
            break


def _file(path: Path, name: PurePosixPath, seen: _Seen) -> Iterator[HandedFile]:
    """A file as it stands, or what is in it."""
    hidden, read = path.name.startswith("."), path.suffix in READ
    status = path.lstat()
    most = _MOST.get(path.suffix, 0)
    file = HandedFile(name, status.st_mtime, status.st_size, lambda: _bytes(path, most))
    if not read:
        yield file
    elif hidden:  # an editor's, or a Mac's
        return
    elif not stat.S_ISREG(status.st_mode):
        seen.notes.append(f"{file.shown} is no file, but a link or a device: left out")
    else:
        seen.latest = max(seen.latest, status.st_mtime)
        if path.suffix != ".zip":
            yield file
            return
        try:
            yield from _in_zip(file, seen)
        except UNREADABLE as error:
            seen.notes.append(f"{file.shown} cannot be read: {_why(error)}")


def _in_zip(file: HandedFile, seen: _Seen) -> Iterator[HandedFile]:
    if file.size > ALL:
        raise ValueError(f"it has {file.size:,} bytes, more than {ALL:,}")
    data = file.read()
    if data.count(b"PK\1\2") > MEMBERS:
        raise ValueError(f"it has more than {MEMBERS:,} members")
    archive = zipfile.ZipFile(io.BytesIO(data))
    members = [m for m in archive.infolist() if not m.is_dir() and not _unsafe(m.filename)]
    children = _children(member.filename for member in members)
    clones = {path for path, names in children.items() if names >= _CLONE}
    for path in sorted(clones):
        _note_clone(file.path / path, seen)
    for member in members:
        path = PurePosixPath(member.filename)
        if any(_of_clone(path, clone) for clone in clones):
            continue
        seen.looked += 1
        if seen.full:
            seen.notes.append(f"only the first {FILES} files and folders were looked at")
            break
        most = _MOST.get(path.suffix, 0)
        yield HandedFile(
            file.path / path,
            _written(member),
            member.file_size,
            lambda member=member, most=most: _member(archive, member, most),  # type: ignore[misc]
        )


def _of_clone(path: PurePosixPath, clone: PurePosixPath) -> bool:
    """Whether a file is the clone's own, as it came."""
    if not path.is_relative_to(clone):
        return False
    first, *below = path.relative_to(clone).parts
    return first in _OURS if below else path.suffix not in READ


def _unsafe(name: str) -> bool:
    """Whether a member's name is none of a file below the zip, or one of a Mac's own."""
    parts = PurePosixPath(name).parts
    hidden = any(part.startswith(".") for part in parts) or "__MACOSX" in parts
    return hidden or not parts or name.startswith("/") or len(parts) > DEEP + 1


def _written(member: zipfile.ZipInfo) -> float:
    try:
        return datetime(*member.date_time).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> bytes:
    with archive.open(member) as file:
        return file.read(most + 1)[:most]


def _bytes(path: Path, most: int) -> bytes:
    """Not through a link, should one have come to stand there meanwhile."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        return file.read(most + 1)[:most]


def _why(error: BaseException) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


# --- what is not the student's, and what is not read


def _children(paths: Iterable[str | PurePosixPath]) -> dict[PurePosixPath, set[str]]:
    """What is in each folder, by name."""
    names: dict[PurePosixPath, set[str]] = defaultdict(set)
    for path in map(PurePosixPath, paths):
        for part in (path, *path.parents):
            if part.name:
                names[part.parent].add(part.name)
    return names


def _without_ours(files: list[HandedFile], seen: _Seen) -> list[HandedFile]:
    """Without folders of published texts, which are there also where no whole clone is."""
    ours = set(catalog.notebooks())
    published = {
        folder
        for folder, names in _children(file.path for file in files).items()
        if folder.name in _PUBLISHED and any(PurePosixPath(name).stem in ours for name in names)
    }
    for folder in sorted(published):
        shown = inert.line(str(folder))
        seen.notes.append(f"{shown}/ holds texts of the workbook's own: none of them counts")
    return [file for file in files if published.isdisjoint(file.path.parents)]


def _note_clone(folder: PurePosixPath, seen: _Seen) -> None:
    where = f" in {inert.line(str(folder))}" if str(folder) != "." else ""
    seen.notes.append(
        f"a whole clone of the workbook{where}: its solutions/, kernels/ and other folders of ours "
        "do not count, its notebooks/ do"
    )


def _note_unread(files: list[HandedFile], seen: _Seen) -> None:
    planted = [f for f in files if _PLANTED.fullmatch(f.path.name)]
    others = [f for f in files if f.path.suffix not in (".ipynb", ".cu") and f not in planted]
    unread = [f for f in others if not _IGNORED.fullmatch(f.path.name)]
    for what, why in (
        (planted, "not needed, and not run"),
        (unread, "not read; answers stand in .ipynb and .cu files, which may be in a .zip"),
    ):
        names = ", ".join(file.shown for file in what[:NAMED])
        more = f" and {len(what) - NAMED} more" if len(what) > NAMED else ""
        if what:
            seen.notes.append(f"{names}{more}: {why}")
