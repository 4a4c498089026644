"""Run a compiled launcher in the worker process: the parent's side of `worker.py`."""

import fcntl
import json
import mmap
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from utils import toolchain
from utils.arena import Layout, Stray
from utils.declarations import Parameter
from utils.emulator import reports
from utils.entry import slot_format
from utils.errors import KernelCrash, KernelTimeout, LaunchError

TIMED_OUT = 124  # exit status with which the emulator stops at its time limit
GRACE = 2.0  # seconds that a worker has beyond the time limit to stop by itself
LOAD_LIMIT = 60.0  # seconds to load a library; the first one on a GPU creates its context
MAX_LIBRARIES = 200  # loaded into one worker; none is ever unloaded
MAX_OUTPUT = 1 << 20  # bytes of what a kernel printed that are shown
KEEP = 256 << 20  # bytes of shared memory that a worker keeps between calls


ADVICE = {
    "cudaErrorInvalidConfiguration": "a block has 1 to 1024 threads, a grid at least one block",
    "cudaErrorInvalidValue": "is there more dynamic shared memory than a block may have?",
}


@dataclass(frozen=True)
class IsolatedRun:
    """What a call left behind."""

    after: dict[str, Tensor]  # every tensor argument's contents, on the CPU
    strays: list[Stray]  # what it wrote outside of them
    stdout: str  # what it printed
    seconds: float  # of the launcher, including the wait for the device


@dataclass(frozen=True)
class Watched:
    """What a diagnosing run saw. The binary records are read by `tracing.py`."""

    after: dict[str, Tensor]  # every tensor argument's contents, on the CPU
    events: str  # the runtime's JSON lines: hazards, and each launch's counters
    error: LaunchError | None  # what ended the launch early
    stdout: str
    addresses: dict[str, int]  # of each tensor argument in the worker
    module_base: int  # where the kernel's library was loaded
    accesses: bytes
    launches: bytes
    shared: list[dict]  # the block's shared arrays: name, offset, bytes, element
    truncated: bool  # more accesses were made than were asked for


class _Ended(Exception):
    """The worker is gone. `status` is as of subprocess; None where it was killed for being late."""

    def __init__(self, status: int | None, printed: str, events: str):
        super().__init__(status)
        self.status, self.printed, self.events = status, printed, events


class _Worker:
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
            [sys.executable, "-I", "-S", Path(__file__).with_name("worker.py"), *map(str, passed)],
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
        """The reply to a command. Raises _Ended where none comes `within` as many seconds."""
        deadline, reply = time.monotonic() + within, b""
        poll = select.poll()
        poll.register(self.replies, select.POLLIN)
        try:
            os.write(self.commands, json.dumps(command).encode() + b"\n")
            while not reply.endswith(b"\n"):
                left = max(0.0, deadline - time.monotonic())
                if not poll.poll(1000 * left):
                    raise _Ended(self.status(0.0), *self.said())
                piece = os.read(self.replies, 65536)
                if not piece:
                    raise BrokenPipeError
                reply += piece
        except BrokenPipeError:
            raise _Ended(self.status(GRACE), *self.said()) from None
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


_workers: dict[str, _Worker] = {}  # by backend
_lock = threading.RLock()  # a worker does one thing at a time


def prestart(backend: str | None = None) -> None:
    """Start the worker now, in the background, so that the first call need not wait for it."""
    backend = backend or toolchain.backend()
    with _lock:
        if backend not in _workers:
            _workers[backend] = _Worker()


def _discard(backend: str) -> None:
    with _lock:
        if worker := _workers.pop(backend, None):
            worker.stop()


def _forget() -> None:
    """In a forked process: the workers are the parent's, and the lock may be held there."""
    global _lock
    _lock = threading.RLock()
    _workers.clear()


os.register_at_fork(after_in_child=_forget)


@dataclass(frozen=True)
class Call:
    """A call of the launcher `name` of a library. Arguments are contiguous and of its types."""

    name: str
    library: Path
    backend: str
    parameters: Sequence[Parameter]
    arguments: Mapping[str, Tensor | int | float]  # by parameter name, without the stream
    timeout: float  # in seconds

    def run(self) -> IsolatedRun:
        """Run on copies of the arguments. Raises LaunchError, KernelCrash, KernelTimeout."""
        return self._safely(self._run)

    def watch(self, *, unwritten: Collection[str], most: int = 0, order: int = 0) -> Watched:
        """Run a library of the instrumented build, diagnosing it.

        `unwritten` names the tensors whose contents nobody may read before writing them; `most`
        accesses are recorded; `order` other than 0 permutes the threads. Raises KernelCrash and
        KernelTimeout; a launch that CUDA would refuse or abandon is told in `error`.
        """
        return self._safely(lambda worker: self._watch(worker, unwritten, most, order))

    def _safely(self, action):
        """`action(worker)`; a worker that cannot be trusted after it is replaced."""
        with _lock:
            while True:
                worker = self._worker()
                suspect = bool(worker.libraries - {str(self.library)})
                try:
                    return action(worker)
                except _Ended as end:
                    self._restart()
                    if suspect and end.status not in (None, TIMED_OUT):
                        continue  # another kernel may have damaged that worker: ask a fresh one
                    raise self._explain(end) from None
                except BaseException:  # after a fault, or an interrupt, nothing in it is certain
                    self._restart()
                    raise

    def _worker(self) -> _Worker:
        prestart(self.backend)
        worker = _workers[self.backend]
        if len(worker.libraries) >= MAX_LIBRARIES or worker.process.poll() is not None:
            self._restart()
        return _workers[self.backend]

    def _restart(self) -> None:
        _discard(self.backend)
        prestart(self.backend)

    def _load(self, worker: _Worker) -> tuple[Layout, dict]:
        """The layout of the arguments, and what a command says of the library, which is loaded."""
        layout = Layout({p.name: self.arguments[p.name] for p in self.parameters if p.is_tensor})
        place = {"library": str(self.library), "device": self._device(layout)}
        if place["library"] not in worker.libraries:
            worker.libraries.add(place["library"])
            self._raise_error(worker, worker.ask(LOAD_LIMIT, do="load", **place))
        command = {
            **place,
            "slots": self._slots(layout).hex(),
            "pointers": [i for i, p in enumerate(self.parameters) if p.is_tensor],
            "limit": self.timeout,
        }
        return layout, command

    def _run(self, worker: _Worker) -> IsolatedRun:
        layout, command = self._load(worker)
        arena = worker.memory(layout.size)
        layout.fill(arena)
        reply = worker.ask(self.timeout + GRACE, do="run", size=layout.size, **command)
        self._raise_error(worker, reply)
        after = {name: layout.read(arena, name) for name in layout.tensors}
        run = IsolatedRun(after, layout.strays(arena), worker.said()[0], reply["seconds"])
        del arena
        if layout.size > KEEP:
            os.ftruncate(worker.arena, 0)
        return run

    def _watch(self, worker: _Worker, unwritten: Collection[str], most: int, order: int) -> Watched:
        layout, command = self._load(worker)
        record = 32  # bytes of an access
        arena = worker.memory(layout.size + most * record)
        layout.fill(arena)
        regions = [
            {
                "name": "/".join(region.names),
                "start": region.start,
                "stop": region.stop,
                "element": layout.tensors[region.names[0]].element_size(),
                "written": not set(region.names) <= set(unwritten),
            }
            for region in layout.regions
        ]
        reply = worker.ask(
            self.timeout + GRACE,
            do="watch",
            size=layout.size + most * record,
            regions=regions,
            tail=layout.size,
            most=most,
            order=order,
            **command,
        )
        printed, events = worker.said()
        error = None
        if reply["error"]:
            self._restart()
            error = LaunchError(reply["name"], f"{self.name}: {reply['text']}")
        addresses = {
            name: base + layout.offsets[name] - region.start
            for region, base in zip(layout.regions, reply["bases"], strict=True)
            for name in region.names
        }
        count = reply["accesses"] * record
        return Watched(
            after={name: layout.read(arena, name) for name in layout.tensors},
            events=events,
            error=error,
            stdout=printed,
            addresses=addresses,
            module_base=reply["module_base"],
            accesses=bytes(arena[layout.size : layout.size + count].numpy()),
            launches=bytes.fromhex(reply["launches"]),
            shared=reply["shared"],
            truncated=reply["truncated"],
        )

    def _device(self, layout: Layout) -> int | None:
        if self.backend != "cuda":
            return None
        devices = {t.device.index for t in layout.tensors.values() if t.is_cuda}
        if devices:
            return devices.pop()
        return torch.cuda.current_device() if torch.cuda.is_available() else 0

    def _slots(self, layout: Layout) -> bytes:
        values = {**self.arguments, **layout.offsets}
        return struct.pack(
            slot_format(self.parameters), *(values.get(p.name, 0) for p in self.parameters)
        )

    def _raise_error(self, worker: _Worker, reply: dict) -> None:
        if not reply.get("error"):
            return
        printed, events = worker.said()
        found = reports.read(events)
        said = list(map(str, found)) or [ADVICE.get(reply["name"], "")]
        if any(report.kind == "deadlock" for report in found):  # a GPU would never come back
            raise _noted(KernelTimeout("\n".join([f"{self.name} never ends", *said])), printed)
        text = "\n".join(filter(None, (f"{self.name}: {reply['text']}", *said)))
        raise _noted(LaunchError(reply["name"], text), printed)

    def _explain(self, end: _Ended) -> Exception:
        found = "\n".join(map(str, reports.read(end.events)))
        if end.status in (None, TIMED_OUT):
            text = f"{self.name} did not end within {self.timeout:g} seconds and was stopped"
            return _noted(KernelTimeout("\n".join(filter(None, (text, found)))), end.printed)
        if end.status < 0:
            number = signal.Signals(-end.status)
            how = f"was killed by {number.name} ({signal.strsignal(number)})"
        else:
            how = f"ended with exit status {end.status} before the launcher returned"
        text = f"{self.name}: the process that ran it {how}"
        return _noted(KernelCrash("\n".join(filter(None, (text, found)))), end.printed)


def _noted(error: Exception, printed: str) -> Exception:
    if printed.strip():
        error.add_note("printed before that:\n" + printed[-2000:].rstrip())
    return error
