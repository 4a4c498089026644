"""A Kernel whose launcher is a Python function on tensors, for tests of what judges kernels."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import torch
from torch import Tensor

from utils.course.exercise import Exercise
from utils.cuda.isolation import Rehearsed
from utils.cuda.kernel import Kernel

torch.set_num_threads(1)  # small tensors; threads would only wait for each other
ZONE = 64  # guard elements on either side of a buffer


@dataclass
class Parameter:
    name: str
    ctype: str
    is_tensor: bool
    is_const: bool
    dtype: torch.dtype | None
    is_stream: bool = False


@dataclass
class OutOfBoundsWrite:
    parameter: str
    side: str
    offset: int


@dataclass
class Run:
    after: dict[str, Tensor]
    out_of_bounds: list[OutOfBoundsWrite]
    stdout: str = ""
    seconds: float = 0.0
    live: int = 0
    launches: tuple[Rehearsed, ...] = ()
    detour: bool = False


@dataclass
class FakeKernel:
    """Calls `function(A, B, C, M, ...)`, with its parameters' names, on buffers that it keeps.

    As in the worker, buffers of the same size keep their addresses from call to call.
    """

    function: object
    exercise: Exercise | None
    backend: str = "emulator"
    trusted: bool = False
    learners: bool = False
    untouched: bool = False
    begun: object = None
    source: str = ""
    first_line: int = 1
    filename: str = ""
    digest: str = "0"
    library: Path = Path()
    types: dict = field(default_factory=dict)  # of tensors that are no floats
    built: bool = False
    seconds: float = 0.0  # that a call claims to have taken
    device = Kernel.device
    _buffers: dict = field(default_factory=dict)

    def __post_init__(self):
        self.name = self.exercise.name if self.exercise else self.function.__name__
        shapes = self.exercise.shapes if self.exercise else {}
        outputs = self.exercise.outputs if self.exercise else ()
        self.parameters = tuple(
            Parameter(
                name,
                ctype="float*" if name in shapes else "int",
                is_tensor=name in shapes,
                is_const=name in shapes and name not in outputs,
                dtype=self.types.get(name, torch.float32) if name in shapes else None,
            )
            for name, parameter in inspect.signature(self.function).parameters.items()
            if parameter.default is parameter.empty  # a default only binds a test's loop variable
        )

    @property
    def dtypes(self) -> dict:
        return {p.name: p.dtype for p in self.parameters if p.is_tensor}

    def __call__(self, *args, **kwargs) -> None:
        self.function(*args, **kwargs)

    def isolated(
        self,
        args: dict,
        *,
        timeout: float = 10.0,
        rehearsal: bool = False,
        calls: int = 1,
        multiprocessors: int = 0,
        earlier: Mapping[str, Tensor] = MappingProxyType({}),
        order: int = 0,
    ) -> Run:
        if rehearsal:
            return Run({}, [], launches=(Rehearsed("kernel", 64, 256),))
        for _ in range(calls - 1):
            self._isolated({**args, **earlier})
        return self._isolated(args)

    def _isolated(self, args: dict) -> Run:
        held, call = {}, dict(args)
        for name, value in args.items():
            if isinstance(value, Tensor):
                held[name] = self._buffer(name, value)
                call[name] = held[name][ZONE : ZONE + value.numel()].view(value.shape)
                call[name].copy_(value)
        self.function(**call)
        out_of_bounds = [write for name in held for write in _out_of_bounds(name, held[name])]
        after = {name: call[name].clone() for name in held}
        return Run(after, out_of_bounds, seconds=self.seconds)

    def _buffer(self, name: str, value: Tensor) -> Tensor:
        key = (name, value.numel(), value.dtype)
        if key not in self._buffers:
            self._buffers[key] = torch.empty(value.numel() + 2 * ZONE, dtype=value.dtype)
        self._buffers[key].view(torch.uint8).fill_(0xFF)
        return self._buffers[key]


def _out_of_bounds(name: str, buffer: Tensor) -> list[OutOfBoundsWrite]:
    size, bytes_ = buffer.numel() - 2 * ZONE, buffer.element_size()
    touched = (buffer.view(torch.uint8).view(-1, bytes_) != 0xFF).any(dim=1).nonzero().reshape(-1)
    before = [OutOfBoundsWrite(name, "before", i - ZONE) for i in touched.tolist() if i < ZONE]
    after = [
        OutOfBoundsWrite(name, "after", i - ZONE - size)
        for i in touched.tolist()
        if i >= ZONE + size
    ]
    return before + after


def beyond(tensor: Tensor, offset: int) -> Tensor:
    """The element `offset` places from a buffer's first, as a pointer in C would reach it."""
    return tensor.as_strided((1,), (1,), tensor.storage_offset() + offset)
