"""Who may use the GPU now: one process that times, alone, or any number that do not.

Contexts take turns on a GPU, so work of another process makes everything that is timed meanwhile
longer, often twice as long, and a median does not help (H200, 2026-11-25). So whatever launches
work takes `together`, for as short as it can, and whoever times takes `alone`. The rule holds
among all processes of this user on this machine.

In a notebook each cell shares the card while it runs (`cell`), since its own tensors may be there.
That hold gives way: to `alone`, in `apart`, while the workbook compiles, diagnoses or draws, and
after CELL seconds: a cell may train for hours, or wait for a process that wants to time.
"""

import contextlib
import fcntl
import functools
import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

ALONE, TOGETHER, APART, RELEASED = fcntl.LOCK_EX, fcntl.LOCK_SH, 0, -1
CELL = 4.0  # seconds that a cell keeps others from timing, at most

_changing = threading.Lock()  # what follows
_requests: list[list[int]] = []  # by this process: what for, and by which thread; the first first
_in_cell = False
_bound: threading.Timer | None = None  # of the cell
_lock = 0  # that this process has: ALONE, TOGETHER or neither
_release = contextlib.ExitStack()


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Waits until nobody uses the GPU; others wait meanwhile. May be nested."""
    with _hold(ALONE):
        yield


@contextlib.contextmanager
def together(backend: str = "cuda") -> Iterator[None]:
    """Waits while somebody times; may be nested, also in `alone`. The emulator needs no card."""
    with _hold(TOGETHER) if backend == "cuda" else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """The cell that runs does not use the GPU in here, but for what takes it."""
    with _hold(APART):
        yield


@contextlib.contextmanager
def released() -> Iterator[None]:
    """Give the card to whoever waits for it, and take it again afterwards as before. Code in here
    uses no GPU, except inside of `alone` or `together`. What other threads hold stays."""
    with _hold(RELEASED):
        yield


@contextlib.contextmanager
def in_turn(what: str) -> Iterator[None]:
    """One process at a time for the same `what`, for work of which the next one finds a result.

    Taken before the card: who has that alone does not wait here for somebody who waits for it.
    """
    if _lock == ALONE:
        yield
        return
    with open(_path(hashlib.sha256(what.encode()).hexdigest()[:16]), "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def cell(runs: bool) -> None:
    """Called before a notebook's cell runs, and after it."""
    global _in_cell, _bound
    with _changing:
        if _bound:
            _bound.cancel()
            _bound = None
        _in_cell = runs
        _change(_needed(_requests))
        if runs:
            _bound = threading.Timer(CELL, cell, (False,))
            _bound.daemon = True
            _bound.start()


@contextlib.contextmanager
def _hold(kind: int) -> Iterator[None]:
    request = [kind, threading.get_ident()]  # told from others: threads end theirs in any order
    with _changing:
        if kind == ALONE and _needed(_requests) == TOGETHER and _requests:
            raise RuntimeError(
                "who shares the GPU cannot ask for all of it: two would wait forever"
            )
        _change(_needed([*_requests, request]))
        _requests.append(request)
    try:
        yield
    finally:
        with _changing:
            _requests[:] = [r for r in _requests if r is not request]  # none in a fork
            _change(_needed(_requests))


def _needed(requests: list[list[int]]) -> int:
    """The lock that all of these together need, but for those before a release by their thread;
    without any request, a cell's."""
    if not requests:
        return TOGETHER if _in_cell else 0
    needed, released = 0, set[int]()
    for kind, thread in reversed(requests):
        if kind == RELEASED:
            released.add(thread)
        elif thread not in released:
            needed = max(needed, kind)
    return needed


def _change(lock: int) -> None:
    """Give back the lock that this process has for another one; waits for that."""
    global _lock
    if lock == _lock:
        return
    if _lock:
        _settle()
        _release.close()
        _lock = 0
    if lock:
        _release.enter_context(_locked(lock))
        _lock = lock


def _settle() -> None:
    """Until the GPU has done what this process asked of it."""
    torch = sys.modules.get("torch")
    if torch and torch.cuda.is_initialized():
        with contextlib.suppress(RuntimeError):  # after a fault there is nothing to wait for
            torch.cuda.synchronize()


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


def _forget() -> None:
    """In a forked process: what its parent holds must not be held for as long as it lives."""
    global _changing, _in_cell, _bound, _lock
    _changing, _in_cell, _bound, _lock = threading.Lock(), False, None, 0
    _requests.clear()
    _release.close()  # its copy of the file; the parent's stays locked


os.register_at_fork(after_in_child=_forget)
