"""What a model runs on, as the process in a box sees it: a card, or the emulator posing as one.

Used by `model.py` alone, and in its process: PyTorch and the standard library, nothing else.
"""

import contextlib
import ctypes
import functools
import mmap
import types
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.overrides import TorchFunctionMode

from . import device_memory

# What PyTorch computes that is more than a product, a sum of two tensors, a copy or a view.
OWN = """native_group_norm native_layer_norm native_batch_norm silu mish sigmoid tanh softplus
    hardtanh clamp clamp.Tensor clamp_min clamp_max leaky_relu relu gelu elu exp log log1p sqrt
    rsqrt pow.Tensor_Scalar reciprocal div.Tensor var.correction var_mean.correction
    std.correction mean mean.dim sum sum.dim_IntList min min.dim max max.dim amin amax softmax
    _softmax std_mean.correction aminmax minimum maximum where.self""".split()
_IN_PLACE = "silu_ mish_ sigmoid_ tanh_ hardtanh_ clamp_ leaky_relu_ relu_ exp_ sqrt_ div_.Tensor"

Thing = TypeVar("Thing", torch.Tensor, torch.nn.Module)
Floats = Callable[[int, int], torch.Tensor]  # of offset and count: float32 values in memory

# Taken before a file is loaded, which may put others in their places.
_frombuffer, _as_tensor, _synchronize = torch.frombuffer, torch.as_tensor, torch.cuda.synchronize


class Machine:
    """What both have in common."""

    def runs_on(self, library: str) -> None:
        """By this library of CUDA's runtime, or what stands for it."""
        self.runtime = ctypes.CDLL(library)
        self.runtime.cudaGetErrorName.restype = ctypes.c_char_p

    def error(self) -> str:
        """What CUDA has to say of the launches; "" where all is well."""
        error = self.runtime.cudaDeviceSynchronize() or self.runtime.cudaGetLastError()
        return self.runtime.cudaGetErrorName(error).decode() if error else ""


class Emulated(Machine):
    """The CPU's tensors, on which the emulator works."""

    threads = ("emulator",)  # how the names of its own begin

    def __init__(self, runtime: str, capability: tuple[int, int]):
        self.capability = capability
        self.runs_on(runtime)

    def begin(self) -> None:
        """Before a file is loaded."""
        pose(self.capability)
        Posing().__enter__()  # type: ignore[no-untyped-call]  # PyTorch's

    def loaded(self, path: str) -> None:
        """A library of the file's has been loaded."""

    def kernels_off(self) -> None:
        """Launches do nothing from now on."""
        self.runtime.emu_rehearse(1)

    def library_off(self) -> torch.library.Library:
        """PyTorch's own operations fail, for as long as what is returned is kept."""
        return _switched_off("CPU")

    def on(self, what: Thing) -> Thing:
        """A tensor or a model, there."""
        return what

    def wait(self) -> None:
        """Until all is done."""

    def kernels(self, call: Callable[[], object]) -> list[str]:
        """The names of those that ran in a call: nobody asks the emulator."""
        return []

    def borrow(self, file: int, size: int) -> Floats:
        """Memory that another process lends."""
        memory = mmap.mmap(file, size)
        return lambda at, n: _frombuffer(memory, dtype=torch.float32, offset=at, count=n)

    def give_back(self) -> None:
        """Nothing of it is used any more."""


class Card(Machine):
    """A GPU: the first one that this process sees."""

    threads = ("cuda", "pt_autograd")  # how the names of the driver's and PyTorch's own begin

    def __init__(self) -> None:
        self.libraries: list[ctypes.CDLL] = []
        self.borrowed: list[device_memory.Piece] = []
        self.off = False

    def begin(self) -> None:
        """Before a file is loaded: what PyTorch does once, when a card is first used, is done."""
        torch.cuda.init()
        weight = torch.ones(8, 8, device="cuda", requires_grad=True)
        torch.mm(weight, weight).sum().backward()
        _synchronize()
        torch.cuda.device_count()  # which it keeps, once CUDA has been started
        assert torch.version.cuda  # it is PyTorch for a card
        self.runs_on(f"libcudart.so.{torch.version.cuda.partition('.')[0]}")

    def loaded(self, path: str) -> None:
        """A library of the file's has been loaded."""
        self.libraries.append(ctypes.CDLL(path))
        self._switch()

    def kernels_off(self) -> None:
        """Launches do nothing from now on."""
        self.off = True
        self._switch()

    def _switch(self) -> None:
        for library in self.libraries:
            library.launches_off(int(self.off))

    def library_off(self) -> torch.library.Library:
        """PyTorch's own operations fail, for as long as what is returned is kept."""
        return _switched_off("CUDA")

    def on(self, what: Thing) -> Thing:
        """A tensor or a model, there."""
        return what.cuda()

    def wait(self) -> None:
        """Until all is done."""
        _synchronize()

    def kernels(self, call: Callable[[], object]) -> list[str]:
        """The names of those that ran in a call."""
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            call()
            _synchronize()
        ran = sorted((e for e in seen.events()), key=lambda event: event.time_range.start)
        return [e.name for e in ran if e.device_type == torch._C._autograd.DeviceType.CUDA]

    def borrow(self, file: int, size: int) -> Floats:
        """Memory that another process lends."""
        self.borrowed.append(piece := device_memory.borrow(file, size, 0))
        start, kind = piece.address, device_memory.Array
        return lambda at, n: _as_tensor(kind(start + at, n, "<f4"), device="cuda:0")

    def give_back(self) -> None:
        """Nothing of it is used any more."""
        while self.borrowed:
            self.borrowed.pop().close()


def _off(name: str, *args: object, **kwargs: object) -> None:
    raise RuntimeError(f"switched off: torch's own {name.partition('.')[0].strip('_')}")


def _switched_off(key: str) -> torch.library.Library:
    """Let PyTorch's own operations fail, but for products, sums of two tensors, copies, views."""
    library = torch.library.Library("aten", "IMPL")
    for name in (*OWN, *_IN_PLACE.split()):
        with contextlib.suppress(RuntimeError):
            library.impl(name, functools.partial(_off, name), key)
    return library


# --- the emulator poses as a card


class Posing(TorchFunctionMode):
    """The CPU's tensors say that they are a card's, as those are that the emulator works on."""

    card = torch.device("cuda", 0)

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = {name: _on_cpu(value) for name, value in (kwargs or {}).items()}
        name = getattr(function, "__name__", "")
        if name == "__get__":
            owner = getattr(getattr(function, "__self__", None), "__name__", "")
            if owner == "is_cuda":
                return True
            if owner == "is_cpu":
                return False
            if owner == "device":
                return self.card
        if name in ("cuda", "record_stream", "pin_memory"):
            return args[0]
        if name == "numpy":
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        if name == "get_device":
            return 0
        return function(*(_on_cpu(value) for value in args), **kwargs)


def _on_cpu(value: Any) -> Any:
    if isinstance(value, torch.device):
        return torch.device("cpu") if value.type == "cuda" else value
    return "cpu" if isinstance(value, str) and value.split(":")[0] == "cuda" else value


class Stream:
    """A stream, or an event, of a card that is none: all is done when a call returns."""

    cuda_stream = 0
    device = Posing.card

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: None

    def query(self) -> bool:
        """Whether what was asked for is done."""
        return True

    def elapsed_time(self, other: object) -> float:
        """Nothing is measured here."""
        return 0.0

    def record_event(self, event: "Stream | None" = None) -> "Stream":
        """An event behind what was asked for."""
        return event or Stream()


def pose(capability: tuple[int, int]) -> None:
    """Let torch.cuda answer as if there were a card of that compute capability."""
    major, minor = capability
    properties = types.SimpleNamespace(
        name="emulator", major=major, minor=minor, multi_processor_count=4, warp_size=32
    )
    for name, answer in {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_capability": capability,
        "get_device_name": "emulator",
        "get_device_properties": properties,
        "synchronize": None,
        "empty_cache": None,
        "set_device": None,
        "init": None,
    }.items():
        setattr(torch.cuda, name, lambda *args, _answer=answer, **kwargs: _answer)
    for name in ("Stream", "Event", "stream", "device", "current_stream", "default_stream"):
        setattr(torch.cuda, name, Stream)
    taken: Callable[..., Any] = torch.library.custom_op

    def custom_op(
        name: str, function: object = None, /, *, device_types: object = None, **how: Any
    ) -> Any:
        return taken(name, function, **how)  # for a card alone, it would not be for the CPU

    torch.library.custom_op = custom_op
