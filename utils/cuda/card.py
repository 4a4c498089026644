"""Who may keep the GPU busy now: one process that times alone, or any number that do not.

Notebooks run beside each other. What is timed has the GPU to itself; inputs and references of its
size, which take seconds of it, wait. Calls of a check are small and short and do not wait: one that
falls into a timing spoils one call of many, of which the median counts.
The rule holds among all processes of this user on this machine.
"""

import contextlib
import fcntl
import functools
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

ALONE, TOGETHER = fcntl.LOCK_EX, fcntl.LOCK_SH

_changing = threading.Lock()  # what follows
_held: list[int] = []  # what this process holds, whichever of its threads asked
_release = contextlib.ExitStack()


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Waits until nobody uses the GPU; others wait meanwhile. May be nested."""
    with _hold(ALONE):
        yield


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Waits while somebody times; may be nested, also in `alone`."""
    with _hold(TOGETHER):
        yield


@contextlib.contextmanager
def _hold(kind: int) -> Iterator[None]:
    with _changing:
        if kind == ALONE and _held[:1] == [TOGETHER]:
            raise RuntimeError(
                "who shares the GPU cannot ask for all of it: two would wait for ever"
            )
        if not _held:
            _release.enter_context(_locked(kind))
        _held.append(kind)
    try:
        yield
    finally:
        with _changing:
            _held.pop()
            if not _held:
                _release.close()


@contextlib.contextmanager
def _locked(kind: int) -> Iterator[None]:
    with open(_path("card"), "a") as card:
        with open(_path("turn"), "a") as turn:  # first come, first served: no flow of checks
            fcntl.flock(turn, fcntl.LOCK_EX)  # keeps one that wants to time waiting
            fcntl.flock(card, kind)
        yield  # closing a file unlocks it, and so does the end of its process


@functools.cache
def _path(what: str) -> Path:
    """In a folder that all checkouts of this user share."""
    folder = Path(tempfile.gettempdir()) / f"workbook-gpu-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    return folder / what
