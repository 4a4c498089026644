"""A folder to work in that is gone afterwards, also after a process that was killed."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX, LOCK = "grade-", "in_use"
YOUNG = 60.0  # seconds: a folder that has no lock yet may be about to get one


@contextmanager
def workdir() -> Iterator[Path]:
    """A new folder in /tmp, locked for as long as this process, or one that it has started, has it.

    Those that processes of this user have left there are removed.
    """
    sweep()
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
        with open(Path(folder, LOCK), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield Path(folder)


def sweep() -> None:
    """Remove the folders that nobody has any more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            status = folder.lstat()
            if status.st_uid == os.getuid() and not folder.is_symlink() and _left(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _left(folder: Path) -> bool:
    try:
        with open(folder / LOCK) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return time.time() - folder.stat().st_mtime > YOUNG
    except BlockingIOError:
        return False
    return True
