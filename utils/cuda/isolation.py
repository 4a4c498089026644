"""Call a compiled launcher in a worker process: arguments out, results, faults and reports back."""

import re
import signal
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import torch
from torch import Tensor

from utils.cuda.arguments import Arguments
from utils.cuda.entry import packed
from utils.cuda.signature import Parameter
from utils.emulator import reports
from utils.ground.errors import KernelCrash, KernelTimeout, LaunchError
from utils.process import card, pool
from utils.process.arena import Layout, OutOfBoundsWrite
from utils.process.child import GRACE, Gone
from utils.process.guest import framing
from utils.process.guest.framing import Header
from utils.process.workers import Worker

LOAD_LIMIT = 60.0  # more seconds to load a library, of which the first creates a GPU's context
ALTOGETHER = 6  # times the limit of a call, at most, for all calls of a run
MAX_LAUNCHES = 64 << 20  # bytes of what is said of a watched call's launches
KEEP = 256 << 20  # bytes of shared memory that a worker keeps between calls

T = TypeVar("T")

_LIMITS = "a block has 1 to 1024 threads, a grid at least one block"
ADVICE = {
    "cudaErrorLaunchOutOfResources": "a block has more threads than the kernel's "
    "__launch_bounds__, or its registers, allow",
    "cudaErrorInvalidConfiguration": _LIMITS,
    # CUDA 13 has this one name for all that is wrong with a launch, and with cudaMemset.
    "cudaErrorInvalidValue": f"{_LIMITS}; is there more dynamic shared memory than it may have? "
    "does a cudaMemset reach beyond its array?",
}


@dataclass(frozen=True)
class Rehearsed:
    """A launch that was held against the device's limits, and did not run."""

    kernel: str
    blocks: int
    threads: int  # of each block


@dataclass(frozen=True)
class IsolatedRun:
    """What a call left behind."""

    after: dict[str, Tensor]  # every tensor argument's contents, on the CPU
    out_of_bounds: list[OutOfBoundsWrite]  # what it wrote outside of them
    stdout: str  # what it printed
    seconds: float  # of the launcher, including the wait for the device
    live: int = 0  # bytes of device memory that the process now holds, on the emulator
    launches: tuple[Rehearsed, ...] = ()  # that would have been made, in a rehearsal
    detour: bool = False  # in one: values went to the host, and a launch or a copy back followed


@dataclass(frozen=True)
class Covered:
    """What was done to the memory of a tensor, or of several that overlap, in a watched call."""

    bytes: int
    read: int  # bytes that kernels read
    written: int  # bytes that kernels were the last to write
    by_kernels: bool  # whether kernels wrote any
    by_launcher: bool  # whether the launcher did, by cudaMemcpy or cudaMemset


@dataclass(frozen=True)
class Watched:
    """What a diagnosing run saw. The binary records are read by utils/watch/trace.py."""

    after: dict[str, Tensor]  # every tensor argument's contents, on the CPU
    events: str  # the runtime's JSON lines: hazards, and each launch's counters
    error: LaunchError | None  # what ended the launch early
    stdout: str
    addresses: dict[str, int]  # of each tensor argument in the worker
    module_base: int  # where the kernel's library was loaded
    accesses: bytes
    launches: bytes
    shared: list[Header]  # the block's shared arrays: name, offset, element, shape
    truncated: bool  # more accesses were made than were asked for
    covered: dict[str, Covered]  # by tensor argument
    detour: bool  # values went to the host, and a launch or a copy back followed
    scattered: int  # the launcher's copies, on the device, of less than a sector at a time


@dataclass(frozen=True)
class Call:
    """A call of the launcher `name` of a library. Arguments are contiguous and of its types."""

    name: str
    library: Path
    backend: str
    parameters: Sequence[Parameter]
    arguments: Arguments  # by parameter name, without the stream
    timeout: float  # in seconds
    multiprocessors: int = 0  # of the emulator's card; 0: as many as it has

    def run(
        self,
        rehearsal: bool = False,
        calls: int = 1,
        earlier: Mapping[str, Tensor] = MappingProxyType({}),
        order: int = 0,
    ) -> IsolatedRun:
        """Run on copies of the arguments. Raises LaunchError, KernelCrash, KernelTimeout.

        In a rehearsal the emulator only holds each launch against the device's limits: the
        arguments' memory is there, with anything in it. Of several `calls`, each on fresh copies
        and each with the whole time limit, the last one is told of; in the others, tensors hold
        what `earlier` has for them. On the emulator, an `order` other than 0 permutes blocks, warps
        and threads.
        """
        use: pool.Use = "rehearsals" if rehearsal else "calls"
        return self._safely(lambda w: self._run(w, rehearsal, calls, earlier, order), use)

    def watch(
        self,
        *,
        unwritten: Collection[str],
        most: int = 0,
        order: int = 0,
        blocks: bool = False,
        idle_products: bool = False,
    ) -> Watched:
        """Run a library of the instrumented build, diagnosing it.

        `unwritten` names the tensors whose contents nobody may read before writing them; `most`
        accesses are recorded, with `blocks` the basic blocks that warps begin, too; `order` other
        than 0 permutes the threads. With `idle_products`, products of tensor cores, and of four
        bytes at once, add nothing. Raises KernelCrash and KernelTimeout; a launch that CUDA would
        refuse or abandon is told in `error`.
        """
        options = {"order": order, "blocks": blocks, "idle_products": idle_products}
        return self._safely(lambda worker: self._watch(worker, unwritten, most, options), "watched")

    def _safely(self, action: Callable[[Worker], T], use: pool.Use) -> T:
        try:
            return pool.slot(self.backend, use).safely(str(self.library), action)
        except Gone as gone:
            raise self._explain(gone) from None

    def _load(self, worker: Worker) -> tuple[Layout, Header]:
        """The layout of the arguments, and what a command says of the library, which is loaded."""
        layout = Layout(tensors_of(self.parameters, self.arguments))
        library, device = str(self.library), self._device(layout)
        if library not in worker.libraries:
            with card.together(self.backend):
                if reply := load(worker, library, device, self.timeout):
                    self._raise_error(worker, reply)
        command = {
            "library": library,
            "device": device,
            "pointers": [i for i, p in enumerate(self.parameters) if p.is_tensor],
            "regions": [{"start": r.start, "stop": r.stop} for r in layout.regions],
            "limit": self.timeout,
            "multiprocessors": self.multiprocessors,
        }
        return layout, command

    def _run(
        self,
        worker: Worker,
        rehearsal: bool,
        calls: int,
        earlier: Mapping[str, Tensor],
        order: int,
    ) -> IsolatedRun:
        layout, command = self._load(worker)
        command |= {"do": "run", "size": layout.size, "rehearsal": rehearsal, "order": order}
        arena = worker.memory(layout.size)
        if not rehearsal:
            layout.fill(arena)
        last = arena.clone() if calls > 1 else arena
        layout.put(arena, earlier if calls > 1 else {})
        fresh = arena.clone() if calls > 1 else arena  # sooner copied than filled again
        slots = [self._slots(layout)]
        most = ALTOGETHER * self.timeout
        with card.together(self.backend):  # what it is called with is filled before
            end = time.monotonic() + most
            for done in range(calls):
                if time.monotonic() > end:
                    raise KernelTimeout(
                        f"{done} calls of {self.name} took more than {most:g} seconds, of {calls} "
                        "that were to be made, and the next one was not begun"
                    )
                if done:
                    arena.copy_(last if done == calls - 1 else fresh)
                reply, _ = worker.ask(self.timeout + GRACE, blobs=slots, **command)
                self._raise_error(worker, reply)
        run = IsolatedRun(
            {} if rehearsal else {name: layout.read(arena, name) for name in layout.tensors},
            [] if rehearsal else layout.out_of_bounds(arena),
            worker.said()[0],
            reply["seconds"],
            reply["live"],
            _rehearsed(reply["launches"]),
            reply["detour"],
        )
        del arena
        if layout.size > KEEP:
            worker.release()
        return run

    def _watch(
        self, worker: Worker, unwritten: Collection[str], most: int, options: Header
    ) -> Watched:
        layout, command = self._load(worker)
        size = layout.size + most * framing.ACCESS
        arena = worker.memory(size)
        layout.fill(arena)
        for said, region in zip(command["regions"], layout.regions, strict=True):
            said["name"] = "/".join(region.names)
            said["element"] = layout.tensors[region.names[0]].element_size()
            said["written"] = not set(region.names) <= set(unwritten)
        reply, launches = worker.ask(
            self.timeout + GRACE,
            do="watch",
            blobs=[self._slots(layout)],
            size=size,
            tail=layout.size,
            trace=most,
            most=MAX_LAUNCHES,
            **options,
            **command,
        )
        printed, events = worker.said()
        error = None
        if reply["error"]:
            worker.spent = True
            why = reports.refused(events) or ADVICE.get(reply["name"], "")
            text = f"{self.name}: {reply['text']}\n{why}".rstrip()
            error = LaunchError(reply["name"], text)
        addresses = {
            name: base + layout.offsets[name] - region.start
            for region, base in zip(layout.regions, reply["bases"], strict=True)
            for name in region.names
        }
        count = reply["accesses"] * framing.ACCESS
        return Watched(
            after={name: layout.read(arena, name) for name in layout.tensors},
            events=events,
            error=error,
            stdout=printed,
            addresses=addresses,
            module_base=reply["module_base"],
            accesses=bytes(arena[layout.size : layout.size + count].numpy()),
            launches=b"".join(launches),
            shared=reply["shared"],
            truncated=reply["truncated"],
            covered={
                name: Covered(
                    region.stop - region.start, *figures[:2], *(f != 0 for f in figures[2:])
                )
                for region, figures in zip(layout.regions, reply["covered"], strict=True)
                for name in region.names
            },
            detour=reply["detour"],
            scattered=reply["scattered"],
        )

    def _device(self, layout: Layout) -> int | None:
        if self.backend != "cuda":
            return None
        devices = {t.device.index for t in layout.tensors.values() if t.is_cuda}
        return devices.pop() if devices else current_device()

    def _slots(self, layout: Layout) -> bytes:
        return packed(self.parameters, {**self.arguments, **layout.offsets})

    def _raise_error(self, worker: Worker, reply: Header) -> None:
        if not reply.get("error"):
            return
        printed, events = worker.said()
        hazards = reports.read(events)
        why = reports.refused(events) or ADVICE.get(reply["name"], "")
        said = list(map(str, hazards)) or [why]
        if any(report.kind == "deadlock" for report in hazards):  # a GPU would never come back
            never = KernelTimeout("\n".join([f"{self.name} never ends", *said]))
            never.certain = True
            raise _noted(never, printed)
        text = "\n".join(filter(None, (f"{self.name}: {reply['text']}", *said)))
        raise _noted(LaunchError(reply["name"], text), printed)

    def _explain(self, gone: Gone) -> Exception:
        kind: type[Exception] = KernelCrash
        if gone.why:
            text = f"{self.name}: the process that ran it {gone.why} and was stopped"
        elif gone.status is None:  # and late
            kind = KernelTimeout
            text = f"{self.name} did not end within {self.timeout:g} seconds and was stopped"
        elif gone.status < 0:
            number = signal.Signals(-gone.status)
            how = f"was killed by {number.name} ({signal.strsignal(number)})"
            text = f"{self.name}: the process that ran it {how}"
        else:
            how = f"ended with exit status {gone.status} before the launcher returned"
            text = f"{self.name}: the process that ran it {how}"
        return _noted(kind("\n".join([text, *map(str, reports.read(gone.events))])), gone.printed)


def load(worker: Worker, library: str, device: int | None, timeout: float) -> Header | None:
    """Load a library, if that was not done before: the reply. On a GPU the first one creates a
    context. Raises Gone."""
    if library in worker.libraries:
        return None
    worker.libraries.add(library)
    within = timeout + (GRACE if device is None else LOAD_LIMIT)
    return worker.ask(within, do="load", library=library, device=device)[0]


def make_ready(worker: Worker, library: str, device: int | None, timeout: float) -> None:
    """Load a library before a call is made. Raises LaunchError and Gone."""
    reply = load(worker, library, device, timeout)
    if reply and reply.get("error"):
        raise LaunchError(reply["name"], reply["text"])


def current_device() -> int:
    """The number of PyTorch's."""
    return torch.cuda.current_device() if torch.cuda.is_available() else 0


def tensors_of(parameters: Sequence[Parameter], arguments: Arguments) -> dict[str, Tensor]:
    """Those of a call's arguments that are tensors, by name, in the order of the declaration."""
    tensors = {p.name: arguments[p.name] for p in parameters if p.is_tensor}
    return {name: value for name, value in tensors.items() if isinstance(value, Tensor)}


def _noted(error: Exception, printed: str) -> Exception:
    if printed.strip():
        error.add_note("printed before that:\n" + printed[-2000:].rstrip())
    return error


def _rehearsed(text: str) -> tuple[Rehearsed, ...]:
    """The launches that the emulator noted, a line for each."""
    lines = re.findall(r"^(\d+) (\d+) (.*)$", text, re.MULTILINE)
    return tuple(Rehearsed(kernel, int(blocks), int(threads)) for blocks, threads, kernel in lines)
