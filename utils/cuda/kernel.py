"""A compiled launcher as a Python callable, with every argument checked before it is passed on."""

import ctypes
import functools
import struct
import sys
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import torch
from torch import Tensor

from utils.cuda import isolation, suspicions
from utils.cuda.arguments import Arguments, check_arguments, match
from utils.cuda.entry import slot_format
from utils.cuda.isolation import IsolatedRun, Watched
from utils.cuda.signature import Parameter
from utils.ground import settings
from utils.ground.errors import LaunchError
from utils.ground.wording import in_notebook, many
from utils.process import card

CALL_TIMEOUT = 60.0  # seconds that a call from a notebook may take
SILENT = 5.0  # seconds after which it says that it goes on


@dataclass(eq=False)
class Kernel:
    """What `%%cuda` binds: call it with tensors and numbers, in the order of the C++ declaration.

    Tensors that the launcher takes by non-const pointer are written in place.
    """

    name: str
    source: str
    backend: str  # "cuda" or "emulator"
    library: Path
    parameters: tuple[Parameter, ...]
    digest: str
    shapes: Mapping[str, str]  # a tensor's dimensions by name, where they are known: "M K"
    trusted: bool = False  # has passed `check`
    first_line: int = 1  # what messages call the first line of `source`,
    filename: str = ""  # and where they say that it is
    multiprocessors: int = 0  # of the emulator's card; 0: as many as it has

    def __repr__(self) -> str:
        parameters = ", ".join(f"{p.ctype} {p.name}" for p in self.parameters)
        return f"<{self.name}({parameters}) for {self.backend}>"

    @property
    def dtypes(self) -> dict[str, torch.dtype]:
        """Of its tensors, by name."""
        return {p.name: p.dtype for p in self.parameters if p.dtype is not None}

    @property
    def device(self) -> str:
        """Where its tensors must be."""
        return "cuda" if self.backend == "cuda" else "cpu"

    @property
    def _accepted(self) -> str | None:
        """Where its tensors may be; None: anywhere. A card may lack what an exercise needs: there
        the emulator runs it, on copies of tensors that stand where those of all others do."""
        return None if self.backend == "emulator" and settings.device() == "cuda" else self.device

    @property
    def warnings(self) -> str:
        """What g++ warned of, a plain sentence a line; "" for a kernel that nvcc has compiled, of
        which `instrumented.warnings` knows."""
        path = Path(self.library).with_name(suspicions.FILE)
        return path.read_text() if path.is_file() else ""

    def __call__(self, *args: Tensor | int | float, **kwargs: Tensor | int | float) -> None:
        """Launch on `args` and wait, except on a GPU once the kernel is trusted: that is as
        asynchronous as PyTorch's own kernels, on PyTorch's current stream. No check tries a tensor
        without elements: a launcher that divides by its size must not end the notebook.

        Raises ArgumentError naming the argument, LaunchError, KernelCrash and
        KernelTimeout.
        """
        arguments = self.checked(args, kwargs, self._accepted)
        if self.backend == "cuda" and self.trusted and not _is_empty(arguments):
            return self._launch(arguments)
        # Tensors of the card are copied from there and back, whatever runs the kernel.
        on_card = any(isinstance(one, Tensor) and one.is_cuda for one in arguments.values())
        with card.together("cuda" if on_card else self.backend):
            self._run_apart(arguments)

    def _run_apart(self, arguments: Arguments) -> None:
        with self._patience():
            run = self._call(arguments, CALL_TIMEOUT).run()
        sys.stdout.write(run.stdout)
        if run.out_of_bounds:
            write, elements = run.out_of_bounds[0], many(len(run.out_of_bounds), "element")
            raise LaunchError(
                "cudaErrorIllegalAddress",
                f"{self.name} wrote outside of {write.parameter}: {elements}, "
                f"the first at offset {write.offset} from its "
                + ("end" if write.side == "after" else "beginning"),
            )
        written = [p for p in self.parameters if not p.is_const]
        for name, tensor in isolation.tensors_of(written, arguments).items():
            tensor.detach().copy_(run.after[name])

    @contextmanager
    def _patience(self) -> Iterator[None]:
        """Say in a notebook what is waited for, should it take long."""
        text = (
            f"{self.name} has not ended after {SILENT:g} s, and is stopped after "
            f"{CALL_TIMEOUT:g} s; to stop it now: Kernel menu, Interrupt. Is there a loop "
            "that never ends?"
        )
        timer = threading.Timer(SILENT, print, (text,), {"flush": True})
        timer.daemon = True
        if in_notebook():
            timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def isolated(
        self,
        args: Arguments,
        *,
        timeout: float = 10.0,
        rehearsal: bool = False,
        calls: int = 1,
        multiprocessors: int = 0,
        earlier: Mapping[str, Tensor] = MappingProxyType({}),
        order: int = 0,
    ) -> IsolatedRun:
        """Launch on copies of `args` (by parameter name, on any device) in the worker process.

        Raises as a call does; writes out of bounds are returned. In a `rehearsal` the emulator only
        asks whether CUDA would take the launches. Of several `calls`, each on fresh copies, the
        last is returned; in the others, tensors hold what `earlier` has for them. `multiprocessors`
        are those of the emulator's card, where it is not the kernel's own; an `order` other than 0
        is another one of its blocks, warps and threads.
        """
        call = self._call(self.checked((), args), timeout, multiprocessors)
        return call.run(rehearsal, calls, earlier, order)

    def watched(
        self,
        args: Arguments,
        *,
        unwritten: Collection[str] = (),
        most: int = 0,
        order: int = 0,
        timeout: float = 10.0,
        blocks: bool = False,
        idle_products: bool = False,
    ) -> Watched:
        """A diagnosing run of a kernel of the instrumented build; see `isolation.Call.watch`."""
        call = self._call(self.checked((), args), timeout)
        return call.watch(
            unwritten=unwritten, most=most, order=order, blocks=blocks, idle_products=idle_products
        )

    def checked(
        self, args: Sequence[object], kwargs: Mapping[str, object], device: str | None = None
    ) -> Arguments:
        """The arguments of a call by name, without the stream. Raises ArgumentError."""
        arguments = match(self.name, self.parameters, args, kwargs)
        return check_arguments(self.name, self.parameters, arguments, self.shapes, device)

    def _call(
        self, arguments: Arguments, timeout: float, multiprocessors: int = 0
    ) -> isolation.Call:
        return isolation.Call(
            self.name,
            self.library,
            self.backend,
            self.parameters,
            arguments,
            timeout,
            multiprocessors or self.multiprocessors,
        )

    # --- in this process, on the GPU

    @functools.cached_property
    def _entry(self) -> ctypes.CDLL:
        library = ctypes.CDLL(str(self.library))
        library.workbook_error_name.restype = ctypes.c_char_p
        library.workbook_error_text.restype = ctypes.c_char_p
        return library

    @functools.cached_property
    def _slots(self) -> struct.Struct:
        return struct.Struct(slot_format(self.parameters))

    def _launch(self, arguments: Arguments) -> None:
        tensors = (value for value in arguments.values() if isinstance(value, Tensor))
        device = next((tensor.device.index for tensor in tensors), None)  # they share it
        with torch.cuda.device(device):
            current = torch.cuda.current_stream(device)
            takes_stream = len(arguments) < len(self.parameters)
            # Without a stream parameter the launcher uses CUDA's default stream, whose handle is 0
            # and which does not wait for PyTorch's other streams, nor they for it.
            detour = not takes_stream and current.cuda_stream != 0
            if detour:
                torch.cuda.default_stream().wait_stream(current)
            slots = [v.data_ptr() if isinstance(v, Tensor) else v for v in arguments.values()]
            if takes_stream:
                slots.append(current.cuda_stream)
            error = self._entry.workbook_run(self._slots.pack(*slots))
            if detour:
                current.wait_stream(torch.cuda.default_stream())
        if error:
            name = self._entry.workbook_error_name(error).decode()
            text = self._entry.workbook_error_text(error).decode()
            raise LaunchError(
                name, f"{self.name}: {text}\n{isolation.ADVICE.get(name, '')}".rstrip()
            )


def _is_empty(arguments: Arguments) -> bool:
    """Whether a tensor has no elements."""
    return any(isinstance(value, Tensor) and not value.numel() for value in arguments.values())
