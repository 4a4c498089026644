"""The processes in which kernels run, from this side. `guest/kernel.py` is what runs in them."""

import fcntl
import mmap
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

import torch
from torch import Tensor

from utils.ground import settings
from utils.process import child, memory, proc, sandbox
from utils.process.child import Child, Gone
from utils.process.guest.framing import Header

TIMED_OUT = 124  # exit status with which the emulator stops at its time limit
MAX_OUTPUT = 1 << 20  # bytes of what a kernel printed that are shown
MAX_EVENTS = 64 << 20  # bytes of what the emulator reports of a call: 100,000 launches
PIPE = 1 << 20  # bytes that it may report before it has to wait for this process
ENDING = 10.0  # seconds that processes may take to be gone
MAX_THREADS = 512  # more than any emulator's, which are one a core
# As a module, which is compiled but once. -I leaves its folder out.
_RUN = """import sys; sys.path.insert(0, {!r}); import guest.kernel
del sys.path[0]; guest.kernel.main()"""

# What a reply must have.
_REPLY = {"error": int, "name": str, "text": str}
_REPLIES: dict[str, dict[str, type]] = {
    "load": {},
    "time": _REPLY,
    "run": {**_REPLY, "seconds": float, "live": int, "launches": str, "detour": bool},
    "watch": {
        **_REPLY,
        **dict.fromkeys(("bases", "shared", "covered"), list),
        **dict.fromkeys(("accesses", "module_base", "scattered"), int),
    },
}
_CALLS = "run", "watch"  # of a kernel

Action = Callable[[Callable[[], bool]], object]

_next: ContextVar[Action | None] = ContextVar("_next", default=None)


@contextmanager
def meanwhile(action: Action) -> Iterator[None]:
    """Have this process do `action(answered)` while a worker makes a call in here, beside each that
    it makes; answered() is whether that call has ended. Other workers may be called in it.

    It may not be done: where a kernel could look on, or nothing is called.
    """
    before = _next.set(action)
    try:
        yield
    finally:
        _next.reset(before)


def _do_meanwhile(answered: Callable[[], bool]) -> None:
    if action := _next.get():
        within = _next.set(None)
        try:
            action(answered)
        finally:
            _next.reset(within)


class Worker(Child):
    """A worker process and what it shares with this one: an arena, a file that it prints to and a
    pipe in which the emulator reports. What was reported cannot be taken back."""

    forged = "answered in the place of the process that runs it"

    def __init__(self, backend: str, folders: Iterable[Path]) -> None:
        self.libraries: set[str] = set()  # loaded into it
        self.folders = sorted({folder.resolve() for folder in folders})  # where they are
        self.arena = memory.file("workbook")
        self.printed = os.memfd_create("printed", os.MFD_CLOEXEC)  # it is emptied now and then
        self.size = 0  # of the arena
        self.stragglers = 0  # threads that a call has left behind
        self.spent = False  # a launch has failed, and with it what CUDA calls the context
        self._below: list[int] = []  # processes that it had started when it was ended
        self.in_force: list[str] = []  # of what keeps it from doing harm, once it has answered
        fcntl.fcntl(self.printed, fcntl.F_SETFL, os.O_APPEND)  # so that it can be emptied meanwhile
        self.reports, reported = os.pipe()
        os.set_blocking(self.reports, False)
        with suppress(OSError):  # more than a system allows: who reports waits while it is full
            fcntl.fcntl(self.reports, fcntl.F_SETPIPE_SZ, PIPE)
        self._listening = True
        self.events = bytearray()
        ours, theirs = socket.socketpair()
        super().__init__(ours)
        passed = theirs.fileno(), self.arena, reported
        words = [sys.executable, "-I", "-S", "-c", _RUN.format(str(child.GUEST.parent)), backend]
        words += map(str, (*passed, *self.folders))
        passed_on = child.environment(backend) | {"EMU_REPORT_FD": str(reported)}
        self.boxed = settings.boxed()
        if self.boxed:
            words = sandbox.command(
                words,
                readable=[child.GUEST, *sandbox.python_folders(), *self.folders],
                environment=passed_on,
                other_user=True,
                gpu=backend == "cuda",
            )
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=self.printed,
            stderr=self.printed,
            pass_fds=passed,
            cwd="/",
            env=passed_on,
            start_new_session=True,  # an interrupt is for the notebook, which then ends the worker
        )
        os.close(reported)
        theirs.close()

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

    def _sent(self, do: str) -> None:
        if do in _CALLS and self._locked_in():
            _do_meanwhile(self._answered)

    def _answered(self) -> bool:
        return self._ready(0.0)

    def _bound(self) -> None:
        if self._listening:
            self._listening = self._listen()
        super()._bound()

    def _ready(self, within: float) -> bool:
        listening = [self.reports] if self._listening else []
        ready = child.readable([self.channel.fileno(), *listening], within)
        if self.reports in ready:
            self._listening = self._listen()
        return self.channel.fileno() in ready

    def _locked_in(self) -> bool:
        """Whether nothing in it can look into this process."""
        landlock = any(name.startswith("landlock") for name in self.in_force)
        return self.boxed or (landlock and "seccomp" in self.in_force)

    def _understand(self, do: str, reply: Header) -> None:
        for name, kind in {**_REPLIES[do], "stragglers": int, "in_force": list}.items():
            if not isinstance(reply.get(name), kind):
                raise self._end(None, self.forged)
        self.stragglers, self.in_force = reply["stragglers"], reply["in_force"]
        self._listen()
        if why := self._events_excess():
            raise self._end(None, why)

    def _pids(self) -> list[int]:
        inside = proc.descendants(self.process.pid) if self.boxed else []
        return [self.process.pid, *inside]

    def _excess(self) -> str:
        if why := self._events_excess():
            return why
        used = [proc.usage(pid) for pid in self._pids()]
        memory, threads = (sum(figures) for figures in zip(*used, strict=True))
        if memory > child.MEMORY:
            return f"used more than {child.MEMORY / 1e9:.3g} GB of memory"
        return f"started more than {MAX_THREADS} threads" if threads > MAX_THREADS else ""

    def _events_excess(self) -> str:
        if len(self.events) <= MAX_EVENTS:
            return ""
        return f"made more launches than {MAX_EVENTS >> 20} MB of reports tell of"

    def _listen(self) -> bool:
        """Take what was reported; False where nobody can report any more."""
        with suppress(BlockingIOError):
            while piece := os.read(self.reports, 65536):
                if len(self.events) <= MAX_EVENTS:
                    self.events += piece
            return False
        return True

    def _gone(self, status: int | None, why: str) -> Gone:
        return super()._gone(None if status == TIMED_OUT else status, why)

    def status(self, within: float) -> int | None:
        """With which it has ended; None where it had to be killed after `within` seconds."""
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
        events, self.events = self.events.decode(errors="replace"), bytearray()
        return _text(printed), events

    def settle(self) -> bool:
        """After a call: end the processes that it has started, where nothing kept it from that.
        Whether the worker is fit for another call."""
        self._end_descendants()
        return not (self.stragglers or self.spent)

    def _end_descendants(self) -> None:
        if self.boxed:  # they are in it, and end with it
            return
        if "seccomp" not in self.in_force and self.process.poll() is None:
            for pid in proc.descendants(self.process.pid):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)

    def _kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGSTOP)  # so that it starts no more of them
            self._below = proc.descendants(self.process.pid)
            self._end_descendants()
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End the process and give back what was shared with it."""
        self._kill()
        for file in (self.arena, self.printed, self.reports):
            os.close(file)
        self.channel.close()

    def wait_until_gone(self) -> None:
        """After `stop`: until those have ended, too, that it had started. The kernel of Linux ends
        them, in a box, as soon as it can."""
        deadline = time.monotonic() + ENDING
        while any(map(proc.runs, self._below)) and time.monotonic() < deadline:
            time.sleep(0.001)


def _text(printed: bytes) -> str:
    cut = "\n... (the rest is cut)\n" if len(printed) >= MAX_OUTPUT else ""
    return printed.decode(errors="replace") + cut
