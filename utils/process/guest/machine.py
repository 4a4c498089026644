"""What a model runs on, as the process in a box sees it: a card, or the emulator posing as one.

Used by `model.py` alone, and in its process: PyTorch and the standard library, nothing else.
"""

import contextlib
import ctypes
import functools
import mmap
import os
import re
import types
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from . import device_memory, lockdown

# What PyTorch computes that is more than a product, a sum of two tensors, a copy or a view.
OWN = """native_group_norm native_layer_norm native_batch_norm silu mish sigmoid tanh softplus
    hardtanh clamp clamp.Tensor clamp_min clamp_max leaky_relu relu gelu elu exp log log1p sqrt
    rsqrt pow.Tensor_Scalar reciprocal div.Tensor var.correction var_mean.correction
    std.correction mean mean.dim sum sum.dim_IntList min min.dim max max.dim amin amax softmax
    _softmax std_mean.correction aminmax minimum maximum where.self""".split()
PRODUCTS = "mm bmm mv dot addmm baddbmm addmv addr convolution".split()
_IN_PLACE = "silu_ mish_ sigmoid_ tanh_ hardtanh_ clamp_ leaky_relu_ relu_ exp_ sqrt_ div_.Tensor"

_CARD = torch.device("cuda", 0)
ROOM = 1 << 20  # bytes, more than an event has: a file that has no room for them may lack one
GAP = 16 << 20  # bytes between two tensors
HAZARDS = 1 << 16  # characters of them that are passed on
_SKIPPED = re.compile('"event":"launch|"variant":"same-value"')  # no hazards
# Taken before a file is loaded, which may put others in their places.
_empty, _storage = torch.empty, torch._C._construct_storage_from_data_pointer
_frombuffer, _as_tensor, _synchronize = torch.frombuffer, torch.as_tensor, torch.cuda.synchronize


Thing = TypeVar("Thing", torch.Tensor, torch.nn.Module)
Floats = Callable[[int, int], torch.Tensor]  # of offset and count: float32 values in memory
FORWARD, BACKWARD = 1, 2  # phases of a call, as the device knows them


class Machine:
    """What both have in common."""

    guarded = False  # whether host code is kept from the memory

    def runs_on(self, library: str) -> None:
        """By this library of CUDA's runtime, or what stands for it."""
        self.runtime = ctypes.CDLL(library)
        self.runtime.cudaGetErrorName.restype = ctypes.c_char_p
        self._finish, self._last = self.runtime.cudaDeviceSynchronize, self.runtime.cudaGetLastError
        self._name = self.runtime.cudaGetErrorName

    def error(self) -> str:
        """What CUDA has to say of the launches; "" where all is well."""
        error = self._finish() or self._last()
        return self._name(error).decode() if error else ""

    def on(self, what: Thing) -> Thing:
        """A tensor or a model, there."""
        return what.cuda()


class Emulated(Machine):
    """The emulator, on whose memory PyTorch has a device "cuda"; see torch_device/device.cpp."""

    threads = ("emulator", "pt_autograd")  # how the names of its own and PyTorch's begin

    def __init__(self, runtime: str, device: str, capability: tuple[int, int], guarded: bool):
        """`guarded`: host code cannot reach the memory, and every launch is diagnosed."""
        self.capability, self.guarded = capability, guarded
        self.events, self.seen = os.memfd_create("events"), 0
        ctypes.CDLL(None).setenv(b"EMU_REPORT_FD", str(self.events).encode(), 1)
        self.runs_on(runtime)
        library = ctypes.PyDLL(device)
        self._call, self._keep = library.device_call, library.device_keep
        self._kept, self._refused = library.device_kept, library.device_refused
        self._allow = library.device_allow
        for function in (self._call, self._kept, self._refused):
            function.restype = ctypes.py_object
        self.modules: list[str] = []
        self.lent: list[mmap.mmap] = []
        self._lend = self.runtime.emu_lend_memory
        self.runtime.emu_set_gap(ctypes.c_size_t(GAP))
        if guarded:
            self.runtime.emu_watch_begin()
            self.runtime.emu_lock_memory()

    def begin(self) -> None:
        """Before a file is loaded."""
        pose(self.capability)

    def loaded(self, path: str) -> None:
        """A library of the file's has been loaded."""
        self.modules.append(path)

    def refused(self) -> str:
        """What the last call has asked PyTorch for that it may not do in a forward."""
        return str(self._refused())

    def call(self, phase: int, idle: bool, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function of the file's gives, while PyTorch does no more than the phase allows.
        `idle`: no launch does anything."""
        return self._call(phase, int(idle), ctypes.py_object(function), ctypes.py_object(arguments))

    def allow(self, products: list[str], count: int, sums: int) -> None:
        """What PyTorch may do in a forward from now on: these products, so many of them, and so
        many sums of tensors; -1 for any number. It can be said once."""
        names = " ".join(products).encode()
        self._allow(ctypes.c_char_p(names), ctypes.c_long(count), ctypes.c_long(sums))

    def keep(self, places: list[tuple[int, int]]) -> None:
        """Copy memory, from within a call, to where nothing in that call gets at it: addresses and
        sizes, one behind the other."""
        for number, (address, size) in enumerate(places):
            first = ctypes.c_int(number == 0)
            self._keep(ctypes.c_void_p(address), ctypes.c_size_t(size), first)

    def kept(self) -> bytes:
        """What was kept last."""
        return bytes(self._kept())

    def hazards(self) -> str:
        """What the diagnosis has told since the last time; modules as numbers of builds. Raises
        MemoryError where launches have left no room for it."""
        size = os.fstat(self.events).st_size
        if size > lockdown.MAX_OUTPUT - ROOM:
            raise MemoryError(f"{size >> 20} MB of reports of launches: more than are kept")
        text = os.pread(self.events, size - self.seen, self.seen).decode(errors="replace")
        self.seen = size
        lines = [line for line in text.splitlines() if not _SKIPPED.search(line)]
        hazards = "\n".join(lines)[:HAZARDS]
        for number, path in enumerate(self.modules):
            hazards = hazards.replace(f'"{path}"', f'"build {number}"')
        return hazards

    def library_off(self) -> None:
        """It never does more than it may."""

    def wait(self) -> None:
        """Until all is done."""

    def kernels(self, call: Callable[[], object]) -> list[str]:
        """The names of those that ran in a call: nobody asks the emulator."""
        return []

    def borrow(self, file: int, size: int) -> Floats:
        """Memory that another process lends."""
        memory = mmap.mmap(file, size)
        first = _frombuffer(memory, dtype=torch.uint8).data_ptr()
        self._lend(ctypes.c_void_p(first), ctypes.c_size_t(size))
        self.lent.append(memory)
        storage = _storage(first, _CARD, size)
        return lambda at, n: _empty(0, device=_CARD).set_(storage, at // 4, (n,), (1,))

    def give_back(self) -> None:
        """Nothing of it is used any more."""


class Card(Machine):
    """A GPU: the first one that this process sees."""

    threads = ("cuda", "pt_autograd")  # how the names of the driver's and PyTorch's own begin

    def __init__(self) -> None:
        self.libraries: list[ctypes.CDLL] = []
        self.borrowed: list[device_memory.Piece] = []
        self.places: list[tuple[int, int]] = []
        self.products: list[str] | None = None  # None: all of them

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

    def call(self, phase: int, idle: bool, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function of the file's gives. `idle`: no launch of its libraries does anything."""
        for library in self.libraries:
            library.launches_off(int(idle))
        return function(*arguments)

    def allow(self, products: list[str], count: int, sums: int) -> None:
        """What PyTorch may do where its own operations are switched off: these products."""
        self.products = products

    def keep(self, places: list[tuple[int, int]]) -> None:
        """Nothing is told apart from within a call here."""
        self.places = places

    def kept(self) -> bytes:
        """What was kept last."""
        parts = []
        for address, size in self.places:
            host = ctypes.create_string_buffer(size)
            self.runtime.cudaMemcpy(host, ctypes.c_void_p(address), ctypes.c_size_t(size), 2)
            parts.append(host.raw)
        return b"".join(parts)

    def hazards(self) -> str:
        """Nobody diagnoses a card."""
        return ""

    def refused(self) -> str:
        """PyTorch is not asked there, but in a process of its own; see library_off()."""
        return ""

    def library_off(self) -> torch.library.Library:
        """PyTorch's own operations fail, but for the products that it may make, sums of two
        tensors, copies and views: for as long as what is returned is kept."""
        products = () if self.products is None else set(PRODUCTS) - set(self.products)
        library = torch.library.Library("aten", "IMPL")
        for name in (*OWN, *_IN_PLACE.split(), *products):
            with contextlib.suppress(RuntimeError):
                library.impl(name, functools.partial(_off, name), "CUDA")
        return library

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


# --- the emulator poses as a card, by the name that a driver gives to one that it does not know

NAME = "NVIDIA Graphics Device"
PROPERTIES = {
    "multi_processor_count": 4,
    "warp_size": 32,
    "total_memory": 40 << 30,
    "max_threads_per_multi_processor": 2048,
    "regs_per_multiprocessor": 65536,
    "shared_memory_per_block": 48 << 10,
    "shared_memory_per_block_optin": 227 << 10,
    "shared_memory_per_multiprocessor": 228 << 10,
    "L2_cache_size": 40 << 20,
    "clock_rate": 1410000,
    "is_integrated": 0,
    "is_multi_gpu_board": 0,
}


class Stream:
    """A stream, or an event, of a card that is none: all is done when a call returns."""

    cuda_stream = 0
    device = _CARD

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
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


def _cloned(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    """A copy of a storage: PyTorch without CUDA makes none of a card's."""
    whole = torch.empty(0, dtype=torch.uint8, device=storage.device)
    whole.set_(storage, 0, (storage.nbytes(),), (1,))
    return whole.clone().untyped_storage()


def pose(capability: tuple[int, int]) -> None:
    """Let torch.cuda answer as if there were a card of that compute capability."""
    major, minor = capability
    properties = types.SimpleNamespace(name=NAME, major=major, minor=minor, **PROPERTIES)
    for name, answer in {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_capability": capability,
        "get_device_name": NAME,
        "get_device_properties": properties,
        "synchronize": None,
        "empty_cache": None,
        "set_device": None,
        "init": None,
        "_lazy_init": None,
        "is_initialized": True,
        "mem_get_info": (32 << 30, 40 << 30),
        "memory_allocated": 0,
        "max_memory_allocated": 0,
        "reset_peak_memory_stats": None,
    }.items():
        setattr(torch.cuda, name, lambda *args, _answer=answer, **kwargs: _answer)
    setattr(torch.Tensor, "record_stream", lambda tensor, stream: None)  # noqa: B010
    for name in ("range_push", "range_pop", "range_start", "range_end", "mark"):
        setattr(torch.cuda.nvtx, name, lambda *args, **kwargs: None)
    setattr(torch.UntypedStorage, "clone", _cloned)  # noqa: B010  # which copy.deepcopy() asks for
    for name in ("Stream", "Event", "stream", "device", "current_stream", "default_stream"):
        setattr(torch.cuda, name, Stream)
