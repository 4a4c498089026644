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
import time
from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor

from utils.cuda.arguments import Arguments
from utils.cuda.arrays import Arrays
from utils.cuda.entry import packed
from utils.cuda.isolation import tensors_of
from utils.cuda.kernel import Kernel
from utils.ground.errors import KernelCrash, KernelTimeout, LaunchError
from utils.process import pool
from utils.process.child import Gone
from utils.process.workers import Worker

START = 60.0  # seconds for a process to start and load the library, the GPU's context with it


@contextlib.contextmanager
def process(kernel: Kernel, device: int | None) -> Iterator[Worker]:
    """A fresh process, in a box where boxes are on, that has loaded the kernel's library.

    It has ended afterwards, and all that it has started. Raises LaunchError, KernelCrash.
    """
    worker = pool.fresh(kernel.backend, str(kernel.library))
    try:
        library = str(kernel.library)
        _answered(kernel, worker, START, "load", library=library, device=device)
        yield worker
    finally:
        worker.stop()
        worker.wait_until_gone()


class Run(Arrays):
    """The memory of several calls of one kernel with arguments of the same types and shapes."""

    def __init__(self, kernel: Kernel, like: Arguments, calls: int, device: int | None) -> None:
        """Raises MemoryError, and OSError where memory cannot be lent."""
        self.kernel = kernel
        tensors = tensors_of(kernel.parameters, like)
        written = {p.name for p in kernel.parameters if p.is_tensor and not p.is_const}
        super().__init__(tensors, written, calls, device)
        self._values: list[Arguments] = [{}] * calls

    def fill(self, call: int, arguments: Arguments) -> None:
        """What a call is made with."""
        for name, value in tensors_of(self.kernel.parameters, arguments).items():
            self.tensor(call, name).copy_(value)
        self._values[call] = {n: v for n, v in arguments.items() if not isinstance(v, Tensor)}

    def clock(self, worker: Worker, within: float, idle: bool = False) -> float:
        """Seconds that the calls take; `idle`: that none of them takes, with all that is around.

        Raises LaunchError, KernelCrash, KernelTimeout.
        """
        calls = 0 if idle else len(self._values)
        slots = b"".join(map(self._slots, range(calls)))
        command = {
            "library": str(self.kernel.library),
            "device": self.device,
            "calls": calls,
            "pointers": [i for i, p in enumerate(self.kernel.parameters) if p.is_tensor],
            "size": self.size,
            "limit": within,
            "multiprocessors": self.kernel.multiprocessors,
        }
        self.hide()
        start = time.perf_counter()
        _answered(self.kernel, worker, within, "time", [slots], self.file, **command)
        self.look()
        return time.perf_counter() - start

    def _slots(self, call: int) -> bytes:
        return packed(self.kernel.parameters, {**self._values[call], **self.offsets(call)})


def _answered(
    kernel: Kernel,
    worker: Worker,
    within: float,
    do: str,
    blobs: Sequence[bytes] = (),
    file: int | None = None,
    **command: Any,
) -> None:
    """Wait for the reply, of which only counts that it comes, and an error.

    Raises LaunchError, KernelCrash, KernelTimeout.
    """
    try:
        reply, _ = worker.ask(within, do, blobs, file=file, **command)
    except Gone as gone:
        if gone.late:
            raise KernelTimeout(f"{kernel.name} did not end within {within:.3g} seconds") from None
        raise KernelCrash(f"{kernel.name}: the process that ran it {gone}") from None
    if reply.get("error"):
        raise LaunchError(reply["name"], f"{kernel.name}: {reply['text']}")
