"""A piece of a GPU's memory that one process makes and another one maps, by an open file.

CUDA's virtual memory management, from the driver's library. The open file is the permission: who
was not handed it cannot map the memory, whatever he guesses, and it passes into a box, whatever
namespaces that has. Standard library only: the worker uses it, too, which has no PyTorch.

Source: "Virtual Memory Management" in NVIDIA's CUDA driver API; the layouts are those of cuda.h.
"""

import ctypes
import functools
from ctypes import c_int, c_size_t, c_ubyte, c_uint64, c_ushort, c_void_p

_PINNED, _DEVICE, _AS_FILE, _READ_WRITE = 1, 1, 1, 3  # CU_MEM_..., of four enumerations


class _Location(ctypes.Structure):
    _fields_ = [("type", c_int), ("id", c_int)]


class _Properties(ctypes.Structure):
    _fields_ = [
        ("type", c_int),
        ("requested_handle_types", c_int),
        ("location", _Location),
        ("win32_meta_data", c_void_p),
        ("compression_type", c_ubyte),
        ("gpu_direct_rdma_capable", c_ubyte),
        ("usage", c_ushort),
        ("reserved", c_ubyte * 4),
    ]


class _Access(ctypes.Structure):
    _fields_ = [("location", _Location), ("flags", c_int)]


class Piece:
    """Memory of a GPU, mapped at `address` in this process; its context must exist."""

    def __init__(self, size: int, device: int, handle: c_uint64) -> None:
        self.size, self._handle, self._address = size, handle, c_uint64()
        access = _Access(_Location(_DEVICE, device), _READ_WRITE)
        at, nothing = ctypes.byref(self._address), c_uint64(0)
        _call("cuMemAddressReserve", at, c_size_t(size), c_size_t(0), nothing, nothing)
        _call("cuMemMap", self._address, c_size_t(size), c_size_t(0), handle, nothing)
        _call("cuMemSetAccess", self._address, c_size_t(size), ctypes.byref(access), c_size_t(1))

    @property
    def address(self) -> int:
        """Of its first byte, as kernels see it."""
        return self._address.value

    def file(self) -> int:
        """An open file that stands for the memory; whoever asks for it closes it."""
        file = c_int(-1)
        zero = c_uint64(0)
        _call("cuMemExportToShareableHandle", ctypes.byref(file), self._handle, _AS_FILE, zero)
        return file.value

    def close(self) -> None:
        """Unmap it; the memory is free once nobody has it mapped or open."""
        _call("cuMemUnmap", self._address, c_size_t(self.size))
        _call("cuMemAddressFree", self._address, c_size_t(self.size))
        _call("cuMemRelease", self._handle)


class Array:
    """What PyTorch takes for an array in such memory: as_tensor(Array(...), device=...)."""

    def __init__(self, address: int, count: int, kind: str) -> None:
        """`kind`: as numpy writes it, "|u1" for bytes and "<f4" for float32."""
        self.__cuda_array_interface__ = {
            "shape": (count,),
            "typestr": kind,
            "data": (address, False),
            "version": 3,
        }


def create(size: int, device: int) -> Piece:
    """At least `size` bytes of the device. Raises OSError; MemoryError where it has no more."""
    properties = _Properties(
        type=_PINNED, requested_handle_types=_AS_FILE, location=_Location(_DEVICE, device)
    )
    grain, handle = c_size_t(), c_uint64()
    said = ctypes.byref(properties)
    _call("cuMemGetAllocationGranularity", ctypes.byref(grain), said, 0)
    size = -(-size // grain.value) * grain.value
    _call("cuMemCreate", ctypes.byref(handle), c_size_t(size), said, c_uint64(0))
    return _mapped(size, device, handle)


def borrow(file: int, size: int, device: int) -> Piece:
    """What another process has made, all `size` bytes of it. Raises OSError."""
    handle = c_uint64()
    _call("cuMemImportFromShareableHandle", ctypes.byref(handle), c_void_p(file), _AS_FILE)
    return _mapped(size, device, handle)


def _mapped(size: int, device: int, handle: c_uint64) -> Piece:
    try:
        return Piece(size, device, handle)
    except OSError:
        _call("cuMemRelease", handle)
        raise


@functools.cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


_OUT_OF_MEMORY = 2


def _call(name: str, *arguments: object) -> None:
    error = getattr(_driver(), name)(*arguments)
    if error:
        said = ctypes.c_char_p()
        _driver().cuGetErrorName(error, ctypes.byref(said))
        text = f"{name}: {(said.value or b'error').decode()} ({error})"
        raise MemoryError(text) if error == _OUT_OF_MEMORY else OSError(text)
