"""The processes in which kernels run, from this side: started, spoken to, watched and replaced.

`guest/kernel.py` is what runs in them.
"""

import fcntl
import json
import mmap
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

import torch
from torch import Tensor

from utils import settings
from utils.process import sandbox
from utils.process.guest import lockdown

TIMED_OUT = 124  # exit status with which the emulator stops at its time limit
GUEST = Path(__file__).with_name("guest")
_RUN = """import sys; sys.path.insert(0, {!r}); import guest.kernel
del sys.path[0]; guest.kernel.main()"""  # as a module, which is compiled but once; -I leaves it out
GRACE = 2.0  # seconds that a worker has beyond the time limit to stop by itself
MAX_OUTPUT = 1 << 20  # bytes of what a kernel printed that are shown
MAX_REPLY = 64 << 20  # bytes
MAX_THREADS = 512  # more than any emulator's, which are one a core
MEMORY = min(
    8 << 30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
)  # bytes, at most
LOOK = 0.05  # seconds between two looks at what it uses
# Of the environment, what a worker needs: to find libraries, and what a GPU's driver reads.
PASSED = ("LD_LIBRARY_PATH", "EMU_THREADS")
PASSED_TO_GPU = ("CUDA_", "NVIDIA_", "NV_", "HOME", "TMPDIR", "PATH")

# What a reply must have, beside its token.
_REPLY = {"error": int, "name": str, "text": str}
_REPLIES = {
    "load": {},
    "time": _REPLY,
    "run": {**_REPLY, "seconds": float, **dict.fromkeys(("live", "threads"), int)},
    "watch": {
        **_REPLY,
        **dict.fromkeys(("bases", "shared", "covered"), list),
        **dict.fromkeys(("accesses", "module_base"), int),
        "launches": str,
    },
}

_CALLS = "run", "watch"  # of a kernel

Action = Callable[[Callable[[], bool]], object]

_next: ContextVar[Action | None] = ContextVar("_next", default=None)
_asked: ContextVar[tuple["Worker", ...]] = ContextVar("_asked", default=())  # the last one last


@contextmanager
def meanwhile(action: Action) -> Iterator[None]:
    """Have this process do `action(answered)`, once, while a worker makes the first call in here;
    answered() is whether that call has ended. Other workers may be called in it.

    It may not be done: where a kernel could look on, or nothing is called.
    """
    before = _next.set(action)
    try:
        yield
    finally:
        _next.reset(before)


def _do_meanwhile(answered: Callable[[], bool]) -> None:
    if action := _next.get():
        _next.set(None)
        action(answered)


class Ended(Exception):
    """The worker is gone. `status` is as of subprocess; None where it was killed for being late.

    `why` is what it was killed for, where that is something else.
    """

    def __init__(self, status: int | None, printed: str, events: str, why: str = ""):
        super().__init__(status)
        self.status, self.printed, self.events, self.why = status, printed, events, why


class Worker:
    """A worker process and what it shares with this one: an arena, a file that it prints to and a
    pipe in which the emulator reports. What was reported cannot be taken back."""

    def __init__(self, backend: str, folders: Iterable[Path]) -> None:
        self.libraries: set[str] = set()  # loaded into it
        self.folders = sorted({folder.resolve() for folder in folders})  # where they are
        self.arena, self.printed = _memory_file(), _memory_file()
        with suppress(OSError, AttributeError):  # a shorter arena would end who reads it
            fcntl.fcntl(self.arena, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        self.size = 0  # of the arena
        self.stragglers = 0  # threads that a call has left behind
        self._below: list[int] = []  # processes that it had started when it was ended
        self._killed_for = ""
        self.in_force: list[str] = []  # of what keeps it from doing harm, once it has answered
        fcntl.fcntl(self.printed, fcntl.F_SETFL, os.O_APPEND)  # so that it can be emptied meanwhile
        theirs_in, self.commands = os.pipe()
        self.replies, theirs_out = os.pipe()
        self.reports, reported = os.pipe()
        os.set_blocking(self.reports, False)
        self.events = bytearray()
        self.hands, taking = socket.socketpair()
        passed = (theirs_in, theirs_out, self.arena, taking.fileno())
        words = [sys.executable, "-I", "-S", "-c", _RUN.format(str(GUEST.parent)), backend]
        words += map(str, (*passed, *self.folders))
        passed_on = environment(backend) | {"EMU_REPORT_FD": str(reported)}
        self.boxed = settings.boxed()
        if self.boxed:
            words = sandbox.command(
                words,
                readable=[GUEST, *sandbox.python_folders(), *self.folders],
                environment=passed_on,
                other_user=True,
                gpu=backend == "cuda",
            )
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=self.printed,
            stderr=self.printed,
            pass_fds=(*passed, reported),
            cwd="/",
            env=passed_on,
            start_new_session=True,  # an interrupt is for the notebook, which then ends the worker
        )
        for file in (theirs_in, theirs_out, reported):
            os.close(file)
        taking.close()

    def hand(self, file: int) -> None:
        """Give it an open file, for the next command that takes one. Raises nothing where it has
        ended: the command will."""
        with suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self.hands, [b"."], [file])

    def reaches(self, folders: Iterable[Path]) -> bool:
        """Whether it can read what is in these folders, and in a box nothing else."""
        if self.boxed:
            return set(folders) == set(self.folders)
        return all(any(f.is_relative_to(known) for known in self.folders) for f in folders)

    def memory(self, size: int) -> Tensor:
        """The arena, `size` bytes of it. An earlier tensor of another size must not be used."""
        if size > self.size:
            os.ftruncate(self.arena, size)
            self.size = size
        return torch.frombuffer(mmap.mmap(self.arena, size), dtype=torch.uint8)

    def release(self) -> None:
        """Give the arena's memory back to the system."""
        with mmap.mmap(self.arena, self.size) as arena:
            arena.madvise(mmap.MADV_REMOVE)

    def ask(self, within: float, **command) -> dict:
        """The reply to a command. Raises Ended where none comes `within` as many seconds, or none
        that is one."""
        deadline, reply = time.monotonic() + within, bytearray()
        token = command["token"] = secrets.token_hex(16)
        poll = select.poll()
        for pipe in (self.replies, self.reports):
            poll.register(pipe, select.POLLIN)
        outer = _asked.get()
        within_them = _asked.set((*outer, self))
        try:
            os.write(self.commands, json.dumps(command).encode() + b"\n")
            if command["do"] in _CALLS and self._locked_in():
                _do_meanwhile(self._answered)
            while not reply.endswith(b"\n"):
                left = deadline - time.monotonic()
                ready = [pipe for pipe, _ in poll.poll(1000 * max(0.0, min(left, LOOK)))]
                if self.reports in ready and not self._listen():
                    poll.unregister(self.reports)
                if self.replies in ready:
                    piece = os.read(self.replies, 65536)
                    if not piece:
                        raise BrokenPipeError
                    reply += piece
                elif left <= 0:
                    raise self._end(None)
                for worker in outer:
                    worker.bound()
                if not reply.endswith(b"\n") and (why := self._excess(len(reply))):
                    raise self._end(None, why)
            if self._killed_for:
                raise self._end(None, self._killed_for)
        except BrokenPipeError:
            status = self.status(GRACE)
            why = "closed the pipe that its reply is expected from" if status is None else ""
            raise Ended(status, *self.said(), self._killed_for or why) from None
        finally:
            _asked.reset(within_them)
        return self._understood(bytes(reply), token, _REPLIES[command["do"]])

    def bound(self) -> None:
        """End it if it does too much of something, while another one is waited for."""
        if not self._killed_for and (why := self._excess(0)):
            self._killed_for = why
            self._kill()

    def _answered(self) -> bool:
        poll = select.poll()
        poll.register(self.replies, select.POLLIN)
        return bool(poll.poll(0))

    def _locked_in(self) -> bool:
        """Whether nothing in it can look into this process."""
        landlock = any(name.startswith("landlock") for name in self.in_force)
        return self.boxed or (landlock and "seccomp" in self.in_force)

    def _understood(self, reply: bytes, token: str, parts: dict[str, type]) -> dict:
        """The reply, where it is one to the command with that token. Raises Ended."""
        try:
            told = json.loads(reply)
            if told["token"] != token:
                raise ValueError
            for name, kind in {**parts, "stragglers": int, "in_force": list}.items():
                if not isinstance(told[name], kind):
                    raise ValueError
        except (ValueError, TypeError, KeyError, RecursionError):
            raise self._end(None, "answered in the place of the process that runs it") from None
        self.stragglers, self.in_force = told["stragglers"], told["in_force"]
        return told

    def _excess(self, reply: int) -> str:
        """What the process does too much of; nothing, mostly."""
        inside = lockdown.descendants(self.process.pid) if self.boxed else []
        used = [lockdown.usage(pid) for pid in (self.process.pid, *inside)]
        memory, threads = (sum(figures) for figures in zip(*used, strict=True))
        if memory > MEMORY:
            return f"used more than {MEMORY / 1e9:.3g} GB of memory"
        if threads > MAX_THREADS:
            return f"started more than {MAX_THREADS} threads"
        return "wrote without end to where the reply is expected" if reply > MAX_REPLY else ""

    def _listen(self) -> bool:
        """Take what was reported; False where nobody can report any more."""
        with suppress(BlockingIOError):
            while piece := os.read(self.reports, 65536):
                if len(self.events) < MAX_OUTPUT:
                    self.events += piece
            return False
        return True

    def _end(self, status: int | None, why: str = "") -> Ended:
        self._kill()
        return Ended(status, *self.said(), why)

    def status(self, within: float) -> int | None:
        """With which the process ended; None where it had to be killed after `within` seconds."""
        try:
            status = self.process.wait(within)
        except subprocess.TimeoutExpired:
            self._kill()
            return None
        killed = self.boxed and status > 128  # as bubblewrap tells what a signal has ended
        return 128 - status if killed else status

    def said(self) -> tuple[str, str]:
        """What was printed and what was reported since the last time."""
        self._listen()
        printed = os.pread(self.printed, MAX_OUTPUT, 0)
        os.ftruncate(self.printed, 0)
        events, self.events = bytes(self.events[:MAX_OUTPUT]), bytearray()
        return _text(printed), _text(events)

    def settle(self) -> bool:
        """After a call: end the processes that it has started, where nothing kept it from that.
        Whether the worker is fit for another call."""
        self._end_descendants()
        return not self.stragglers

    def _end_descendants(self) -> None:
        if self.boxed:  # they are in it, and end with it
            return
        if "seccomp" not in self.in_force and self.process.poll() is None:
            for pid in lockdown.descendants(self.process.pid):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)

    def _kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGSTOP)  # so that it starts no more of them
            self._below = lockdown.descendants(self.process.pid)
            self._end_descendants()
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End the process and give back what was shared with it."""
        self._kill()
        for file in (self.commands, self.replies, self.arena, self.printed, self.reports):
            os.close(file)
        self.hands.close()

    def wait_until_gone(self, within: float = 10.0) -> None:
        """After `stop`: until those have ended, too, that it had started. The kernel of Linux ends
        them, in a box, as soon as it can."""
        deadline = time.monotonic() + within
        while any(map(lockdown.runs, self._below)) and time.monotonic() < deadline:
            time.sleep(0.001)


def _text(said: bytes) -> str:
    cut = "\n... (the rest is cut)\n" if len(said) >= MAX_OUTPUT else ""
    return said.decode(errors="replace") + cut


def environment(backend: str) -> dict[str, str]:
    """What of this process's environment a worker is given."""
    passed = (*PASSED, *PASSED_TO_GPU) if backend == "cuda" else PASSED
    return {name: value for name, value in os.environ.items() if name.startswith(passed)}


def _memory_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("workbook", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    file, path = tempfile.mkstemp()
    os.unlink(path)
    return file
