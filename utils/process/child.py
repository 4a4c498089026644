"""A process apart, from this side: asked, handed open files, bounded.

The rule for whatever runs there: a stranger's code may own its process and say all that the process
can say. So a reply is a hint. It has to come in time, in bounded bytes, with the token of what was
asked; it may fail whoever runs there, and never pass them. What is judged are bytes, compared here.
"""

import os
import secrets
import select
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

from utils.process import proc
from utils.process.guest import framing
from utils.process.guest.framing import PIECE, Message

GUEST = Path(__file__).with_name("guest")
GRACE = 2.0  # seconds that a process has beyond a time limit to stop by itself
PATIENCE = 4  # time limits, at most, for one that would run and is given no core
NEARLY = 0.9  # of a limit: who had so much of a core's time had it all
HINTS = 1 << 16  # bytes of blobs with an answer of which none are expected
MEMORY = min(
    8 << 30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
)  # bytes, at most
LOOK = 0.05  # seconds between two looks at what it uses
ASLEEP = 0.1  # seconds after which one that was not seen to run sleeps
BREAK = 0.2  # seconds, at most, that count of those between two looks
_SOON = 0.005  # seconds between two looks at one that is late
# Of the environment, what it needs: to find libraries, and what a GPU's driver reads.
PASSED = ("LD_LIBRARY_PATH", "EMU_THREADS")
PASSED_TO_GPU = ("CUDA_", "NVIDIA_", "NV_", "HOME", "TMPDIR", "PATH")


class Gone(Exception):
    """The process has ended, or was ended here.

    `status` is as of subprocess; None where it was killed: for `why`, or else for being late.
    `printed` and `events` are what it printed and reported before that.
    """

    def __init__(self, status: int | None, why: str = "", printed: str = "", events: str = ""):
        super().__init__(status)
        self.status, self.why, self.printed, self.events = status, why, printed, events

    @property
    def late(self) -> bool:
        """Whether that was for being late."""
        return self.status is None and not self.why

    def __str__(self) -> str:
        if self.why or self.status is None:
            return self.why or "did not answer in time"
        if self.status < 0:
            return f"was killed by signal {-self.status}"
        return f"ended by itself, with exit status {self.status}"


class Limit:
    """Seconds within which processes are to answer, of a core's time.

    A busy machine is not their fault: at the end they go on while they would run and have had less,
    PATIENCE times as long at most. Who sleeps is late. Nor is a virtual machine that stands still:
    of a time in which nobody looked here, BREAK counts.
    """

    def __init__(self, within: float, pids: Callable[[], list[int]]):
        self._within, self._pids = within, pids
        self._spent, self._looked = 0.0, time.monotonic()
        self._had = proc.core_time(pids())
        self._wanted = within  # when they were last seen to run, or to wait for a core

    def left(self) -> float:
        """Seconds; fewer than 0 where it has passed."""
        now = time.monotonic()
        self._spent += min(now - self._looked, BREAK)
        self._looked = now
        return self._within - self._spent

    def over(self) -> bool:
        """Whether it has passed, and they had their chance."""
        if self.left() > 0:
            return False
        if proc.want_cores(self._pids()):
            self._wanted = self._spent
        asleep = self._spent - self._wanted > ASLEEP
        had = proc.core_time(self._pids()) - self._had > NEARLY * self._within
        return asleep or had or self._spent > PATIENCE * self._within


class Child(ABC):
    """A process apart. It does one thing at a time."""

    forged = "answered out of turn"  # what is said of it where an answer is none

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self._killed_for = ""
        self._next_look = 0.0

    def ask(
        self,
        within: float,
        do: str,
        blobs: Sequence[bytes] = (),
        most: int = HINTS,
        file: int | None = None,
        **command: Any,
    ) -> Message:
        """The answer to a command, and its blobs, at most so many bytes of them.

        `file` is an open file that is handed over with the command. Raises Gone where no answer
        comes `within` as many seconds, or none that is one.
        """
        limit, token = Limit(within, self._pids), secrets.token_hex(16)
        header = {"do": do, "token": token, "file": file is not None, **command}
        within_them = _waited_for.set((*_waited_for.get(), self))
        try:
            self._send(limit, header, blobs, file)
            self._sent(do)
            if (message := framing.receive(partial(self._read, limit), most)) is None:
                raise BrokenPipeError
            if message[0].pop("token", None) != token:
                raise framing.Garbled
        except framing.Garbled:
            raise self._end(None, self.forged) from None
        except (BrokenPipeError, ConnectionResetError):
            status = self.status(GRACE)
            why = "closed the channel that its reply is expected from" if status is None else ""
            raise self._gone(status, self._killed_for or why) from None
        finally:
            _waited_for.reset(within_them)
        if self._killed_for:
            raise self._end(None, self._killed_for)
        self._understand(do, message[0])
        return message

    def _send(
        self, limit: Limit, header: framing.Header, blobs: Sequence[bytes], file: int | None
    ) -> None:
        self.channel.settimeout(max(1.0, limit.left()))
        try:
            framing.send(self.channel.sendall, header, blobs)
            if file is not None:
                socket.send_fds(self.channel, [b"."], [file])
        except TimeoutError:
            raise self._end(None) from None

    def _sent(self, do: str) -> None:
        """Called once it has the command."""
        return

    def _understand(self, do: str, reply: framing.Header) -> None:
        """Look at what came. Raises Gone where that is no reply to such a command."""
        return

    def _read(self, limit: Limit, size: int) -> bytes:
        got = bytearray()
        while len(got) < size:
            left = limit.left()
            ready = self._ready(min(left, LOOK) if left > 0 else _SOON)
            # Also where it says one byte after the other.
            if left <= (-GRACE if ready else 0.0) and limit.over():
                raise self._end(None)
            self._look()
            if not ready:
                continue
            if not (piece := self.channel.recv(min(size - len(got), PIECE))):
                break
            got += piece
        return bytes(got)

    def _ready(self, within: float) -> bool:
        """Whether it says something, or nothing any more."""
        return bool(readable([self.channel.fileno()], within))

    def _bound(self) -> None:
        """End it if it does too much of something, while another one is waited for."""
        if not self._killed_for and (why := self._excess()):
            self._killed_for = why
            self._kill()

    def _look(self) -> None:
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + LOOK
        for child in _waited_for.get()[:-1]:
            child._bound()
        if why := self._excess():
            raise self._end(None, why)

    def _end(self, status: int | None, why: str = "") -> Gone:
        self._kill()
        return self._gone(status, why)

    def _gone(self, status: int | None, why: str) -> Gone:
        return Gone(status, why, *self.said())

    def said(self) -> tuple[str, str]:
        """What was printed and what was reported since the last time."""
        return "", ""

    @abstractmethod
    def status(self, within: float) -> int | None:
        """With which it has ended; None where it has not after `within` seconds."""

    @abstractmethod
    def _pids(self) -> list[int]:
        """The processes that work on what it was asked."""

    @abstractmethod
    def _excess(self) -> str:
        """What it does too much of; nothing, mostly."""

    @abstractmethod
    def _kill(self) -> None:
        """End it, and what it has started."""


_waited_for: ContextVar[tuple[Child, ...]] = ContextVar("_waited_for", default=())  # last in, last


def readable(files: Iterable[int], within: float) -> list[int]:
    """Those of open files in which there is something to read, or an end, after so many seconds at
    most."""
    poll = select.poll()
    for file in files:
        poll.register(file, select.POLLIN)
    return [file for file, _ in poll.poll(1000 * within)]


def environment(backend: str) -> dict[str, str]:
    """What of this process's environment a process apart is given."""
    passed = (*PASSED, *PASSED_TO_GPU) if backend == "cuda" else PASSED
    return {name: value for name, value in os.environ.items() if name.startswith(passed)}
