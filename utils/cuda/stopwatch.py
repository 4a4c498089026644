"""How long calls of a launcher take, by a clock that it cannot reach.

Whoever wrote the launcher owns the process in which it runs, with all that the process says. So
nothing that it says counts. The time is this process's own: from lending the memory, in which the
inputs are, to having looked at what is in the outputs.

* Before, the worker has no inputs: the open file by which the memory is mapped comes with "go".
  Where each call's arrays are is drawn anew, and comes with "go" as well.
* At the word "done", bytes at secret places of all outputs are read before the clock stops. Then
  the worker is ended, and the outputs are judged. Where those bytes are others now, or where
  outputs are not there, "done" was said too soon.
* A process makes one run. Nothing is kept from one to the next, and none is left that could slow
  down who is timed next.

What every run costs is in it: messages, the mapping, a wait at the end. A run that calls nothing
tells how much that is; of whoever can be trusted.
"""

import contextlib
import itertools
import math
import secrets
import struct
import time
from collections.abc import Iterator, Mapping

import torch
from torch import Generator, Tensor

from utils.cuda import workers
from utils.cuda.arena import ALIGNMENT
from utils.cuda.entry import slot_format
from utils.cuda.kernel import Kernel
from utils.cuda.lent import lend
from utils.cuda.workers import Ended, Worker
from utils.errors import KernelCrash, KernelTimeout, LaunchError

Arguments = Mapping[str, Tensor | int | float]  # by parameter name

LOOKED_AT = 1 << 16  # bytes of the outputs: who leaves a thousandth undone is found
GAPS = 64  # between arrays, at most, in units of ALIGNMENT
START = 60.0  # seconds for a process to start and load the library, the GPU's context with it


@contextlib.contextmanager
def process(kernel: Kernel, device: int | None) -> Iterator[Worker]:
    """A fresh process, in a box where boxes are on, that has loaded the kernel's library.

    It has ended afterwards, and all that it has started. Raises LaunchError, KernelCrash.
    """
    worker = workers.fresh(kernel.backend, str(kernel.library))
    try:
        place = {"library": str(kernel.library), "device": device}
        _answered(kernel, worker, START, do="load", **place)
        yield worker
    finally:
        worker.stop()
        worker.wait_until_gone()


class Run:
    """The memory of several calls of one kernel with arguments of the same types and shapes."""

    def __init__(self, kernel: Kernel, like: Arguments, calls: int, device: int | None) -> None:
        """Raises MemoryError, and OSError where memory cannot be lent."""
        self.kernel, self.device = kernel, device
        self._like = {p.name: like[p.name].to("meta") for p in kernel.parameters if p.is_tensor}
        self._offsets, size = _placed(self._like, calls)
        self._values: list[Arguments] = [{}] * calls
        self._lent = lend(size, device)
        self.size = len(self._lent.bytes)

    @staticmethod
    def bytes(like: Arguments) -> int:
        """What a call takes, at most."""
        tensors = [value for value in like.values() if isinstance(value, Tensor)]
        return sum(t.nbytes + ALIGNMENT * (GAPS + 1) for t in tensors)

    def fill(self, call: int, arguments: Arguments) -> None:
        """What a call is made with."""
        for name in self._like:
            self.tensor(call, name).copy_(arguments[name])
        self._values[call] = {n: v for n, v in arguments.items() if n not in self._like}

    def tensor(self, call: int, name: str) -> Tensor:
        """An argument of a call, as it is in the memory now."""
        like, start = self._like[name], self._offsets[call, name]
        flat = self._lent.bytes[start : start + like.nbytes]
        return flat.view(like.dtype).view(like.shape)

    def clock(self, worker: Worker, within: float, idle: bool = False) -> float:
        """Seconds that the calls take; `idle`: that none of them takes, with all that is around.

        Raises LaunchError, KernelCrash, KernelTimeout.
        """
        calls = 0 if idle else len(self._values)
        slots = b"".join(map(self._slots, range(calls)))
        command = {
            "library": str(self.kernel.library),
            "device": self.device,
            "slots": slots.hex(),
            "calls": calls,
            "pointers": [i for i, p in enumerate(self.kernel.parameters) if p.is_tensor],
            "size": self.size,
            "limit": within,
        }
        self._places = self.drawn_places()
        self.look()  # what is slow the first time
        self._wait()
        start = time.perf_counter()
        worker.hand(self._lent.file)
        _answered(self.kernel, worker, within, do="time", **command)
        self._seen = self.look()
        self._wait()
        return time.perf_counter() - start

    def drawn_places(self) -> Tensor:
        """Secret places of bytes of the outputs; all of them where they are few."""
        written = {p.name for p in self.kernel.parameters if p.is_tensor and not p.is_const}
        spans = [
            (start, self._like[name].nbytes)
            for (_, name), start in self._offsets.items()
            if name in written and self._like[name].nbytes
        ]
        total = sum(length for _, length in spans)
        drawn = torch.arange(total) if total <= LOOKED_AT else _drawn(total, LOOKED_AT)
        starts = torch.tensor([start for start, _ in spans])
        ends = torch.tensor(list(itertools.accumulate(length for _, length in spans)))
        lengths = torch.tensor([length for _, length in spans])
        span = torch.searchsorted(ends, drawn, right=True)
        places = starts[span] + drawn - (ends - lengths)[span]
        return places.to(self._lent.bytes.device)

    def look(self) -> Tensor:
        """The bytes at those places, as they are now."""
        return self._lent.bytes[self._places]

    def changed_since(self) -> bool:
        """Whether an output is another than it was when the clock stopped."""
        return not torch.equal(self.look(), self._seen)

    def close(self) -> None:
        """Give back the memory."""
        self._lent.close()

    def _slots(self, call: int) -> bytes:
        offsets = {name: self._offsets[call, name] for name in self._like}
        values = {**self._values[call], **offsets}
        parameters = self.kernel.parameters
        return struct.pack(slot_format(parameters), *(values.get(p.name, 0) for p in parameters))

    def _wait(self) -> None:
        if self.device is not None:
            torch.cuda.synchronize(self.device)


def _drawn(below: int, count: int) -> Tensor:
    """So many whole numbers that nobody can foresee."""
    return torch.randint(below, (count,), generator=Generator().manual_seed(secrets.randbits(63)))


def _placed(like: Mapping[str, Tensor], calls: int) -> tuple[dict[tuple[int, str], int], int]:
    """Where the arrays of each call begin, in bytes, in an order and at distances that nobody can
    foresee; and how many bytes that are."""
    arrays = [(call, name) for call in range(calls) for name in like]
    secrets.SystemRandom().shuffle(arrays)
    offsets, position = {}, 0
    for call, name in arrays:
        position += ALIGNMENT * (1 + secrets.randbelow(GAPS))
        offsets[call, name] = position
        position += math.ceil(like[name].nbytes / ALIGNMENT) * ALIGNMENT
    return offsets, position + ALIGNMENT


def _answered(kernel: Kernel, worker: Worker, within: float, **command) -> None:
    """Wait for the reply, of which only counts that it comes, and an error.

    Raises LaunchError, KernelCrash, KernelTimeout.
    """
    try:
        reply = worker.ask(within, **command)
    except Ended as end:
        if end.why or end.status is not None:
            why = end.why or f"ended with status {end.status}"
            raise KernelCrash(f"{kernel.name}: the process that ran it {why}") from None
        raise KernelTimeout(f"{kernel.name} did not end within {within:.3g} seconds") from None
    if reply.get("error"):
        raise LaunchError(reply["name"], f"{kernel.name}: {reply['text']}")
