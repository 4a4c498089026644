"""The processes in which kernels run, from this side: started, spoken to, watched and replaced.

`worker_main.py` is what runs in them.
"""

import fcntl
import json
import mmap
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from utils import settings

TIMED_OUT = 124  # exit status with which the emulator stops at its time limit
WORKER = Path(__file__).with_name("worker_main.py")
GRACE = 2.0  # seconds that a worker has beyond the time limit to stop by itself
MAX_LIBRARIES = 200  # loaded into one worker; none is ever unloaded
MAX_OUTPUT = 1 << 20  # bytes of what a kernel printed that are shown

T = TypeVar("T")


class Ended(Exception):
    """The worker is gone. `status` is as of subprocess; None where it was killed for being late."""

    def __init__(self, status: int | None, printed: str, events: str):
        super().__init__(status)
        self.status, self.printed, self.events = status, printed, events


class Worker:
    """A worker process and what it shares with this one: an arena and two files it writes to."""

    def __init__(self) -> None:
        self.libraries: set[str] = set()  # loaded into it
        self.arena, self.printed, self.reported = (_memory_file() for _ in range(3))
        for file in (self.printed, self.reported):
            fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)  # so that it can be emptied meanwhile
        theirs_in, self.commands = os.pipe()
        self.replies, theirs_out = os.pipe()
        passed = (theirs_in, theirs_out, self.arena)
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", WORKER, *map(str, passed)],
            stdin=subprocess.DEVNULL,
            stdout=self.printed,
            stderr=self.printed,
            pass_fds=(*passed, self.reported),
            env={**os.environ, "EMU_REPORT_FD": str(self.reported)},
            start_new_session=True,  # an interrupt is for the notebook, which then ends the worker
        )
        os.close(theirs_in)
        os.close(theirs_out)

    def memory(self, size: int) -> Tensor:
        """The arena, `size` bytes of it. An earlier tensor of another size must not be used."""
        os.ftruncate(self.arena, size)
        return torch.frombuffer(mmap.mmap(self.arena, size), dtype=torch.uint8)

    def ask(self, within: float, **command) -> dict:
        """The reply to a command. Raises Ended where none comes `within` as many seconds."""
        deadline, reply = time.monotonic() + within, b""
        poll = select.poll()
        poll.register(self.replies, select.POLLIN)
        try:
            os.write(self.commands, json.dumps(command).encode() + b"\n")
            while not reply.endswith(b"\n"):
                left = max(0.0, deadline - time.monotonic())
                if not poll.poll(1000 * left):
                    raise Ended(self.status(0.0), *self.said())
                piece = os.read(self.replies, 65536)
                if not piece:
                    raise BrokenPipeError
                reply += piece
        except BrokenPipeError:
            raise Ended(self.status(GRACE), *self.said()) from None
        return json.loads(reply)

    def status(self, within: float) -> int | None:
        """With which the process ended; None where it had to be killed after `within` seconds."""
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None

    def said(self) -> tuple[str, str]:
        """What was printed and what was reported since the last time."""
        texts = []
        for file in (self.printed, self.reported):
            texts.append(os.pread(file, MAX_OUTPUT, 0).decode(errors="replace"))
            if len(texts[-1]) >= MAX_OUTPUT:
                texts[-1] += "\n... (the rest is cut)\n"
            os.ftruncate(file, 0)
        return texts[0], texts[1]

    def stop(self) -> None:
        """End the process and give back what was shared with it."""
        self.process.kill()
        self.process.wait()
        for file in (self.commands, self.replies, self.arena, self.printed, self.reported):
            os.close(file)


def _memory_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("workbook")
    file, path = tempfile.mkstemp()
    os.unlink(path)
    return file


_workers: dict[str, Worker] = {}  # by backend
_lock = threading.RLock()  # a worker does one thing at a time


def prestart(backend: str | None = None) -> None:
    """Start the worker now, in the background, so that the first call need not wait for it."""
    backend = backend or settings.backend()
    with _lock:
        if backend not in _workers:
            _workers[backend] = Worker()


def discard(backend: str) -> None:
    """End the worker, if there is one."""
    with _lock:
        if worker := _workers.pop(backend, None):
            worker.stop()


def restart(backend: str) -> None:
    """End the worker and start a fresh one."""
    discard(backend)
    prestart(backend)


def _forget() -> None:
    """In a forked process: the workers are the parent's, and the lock may be held there."""
    global _lock
    _lock = threading.RLock()
    _workers.clear()


os.register_at_fork(after_in_child=_forget)


def safely(backend: str, library: str, action: Callable[[Worker], T]) -> T:
    """`action(worker)`, which calls `library`. A worker not to be trusted after it is replaced.

    Raises Ended, and what the action raises.
    """
    with _lock:
        while True:
            worker = _usable(backend)
            suspect = bool(worker.libraries - {library})
            try:
                return action(worker)
            except Ended as end:
                restart(backend)
                if not suspect or end.status in (None, TIMED_OUT):
                    raise
                # another kernel may have damaged that worker: ask a fresh one
            except BaseException:  # after a fault, or an interrupt, nothing in it is certain
                restart(backend)
                raise


def _usable(backend: str) -> Worker:
    prestart(backend)
    worker = _workers[backend]
    if len(worker.libraries) >= MAX_LIBRARIES or worker.process.poll() is not None:
        restart(backend)
    return _workers[backend]
