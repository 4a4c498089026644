"""Files and folders that are there whole or not at all."""

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

UNFINISHED = ".unfinished"  # how the folders that things are made in end
ABANDONED = 3600.0  # seconds after which one of them belongs to a process that was killed


def read_source(path: Path) -> str:
    """A source file's text, in UTF-8 with or without a byte order mark, or else in Latin-1."""
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def read_bytes(path: Path, most: int) -> bytes:
    """What a stranger's program has left at a path: of a file of its own, no link to another's, and
    no more than so many bytes. Raises OSError."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            raise OSError(f"{path.name} is no file of at most {most:,} bytes")
        return file.read(most)


@contextmanager
def publish(path: Path) -> Iterator[Path]:
    """Where to make the file, link or folder `path`; it is renamed into its place at the end.

    So nobody sees half of it, and a process that is killed, or a block that raises, leaves what was
    there. Of two processes at once the later file or link stays, but the earlier folder, which
    somebody may be using. What else is made beside it is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(path.parent)
    work = Path(tempfile.mkdtemp(prefix=f".{path.name}-", suffix=UNFINISHED, dir=path.parent))
    made = work / path.name
    try:
        yield made
        try:
            made.replace(path)
        except OSError:
            if not (made.is_dir() and path.is_dir()):
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """No other process is in such a block of this path; one that dies there leaves it free."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_name(f".{path.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _remove_abandoned(folder: Path) -> None:
    for work in folder.glob(f".*{UNFINISHED}"):
        with suppress(FileNotFoundError):  # it has just been finished
            if time.time() - work.stat().st_mtime > ABANDONED:
                shutil.rmtree(work, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all; what is there keeps its permissions."""
    path = path.resolve()
    with publish(path) as draft:
        draft.write_text(text, encoding="utf-8")
        if path.exists():
            draft.chmod(path.stat().st_mode)
