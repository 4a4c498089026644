"""Memory of this process that it can lend to a worker: by handing over an open file, and no sooner.

On a GPU the GPU's, else the machine's own.
"""

import fcntl
import mmap
import os
from contextlib import suppress
from typing import Protocol

import torch
from torch import Tensor

from utils.process.guest import device_memory


class Lent(Protocol):
    """Bytes, and the open file by which another process maps them."""

    bytes: Tensor
    file: int

    def close(self) -> None:
        """Give it back; its tensors must not be used any more."""


def lend(size: int, device: int | None) -> Lent:
    """`size` bytes or a few more, of a GPU where `device` is its number.

    Raises MemoryError where there are not so many, OSError where the driver cannot lend memory.
    """
    return _OfMachine(size) if device is None else _OfDevice(size, device)


def file(name: str, size: int = 0) -> int:
    """An open file in memory, of `size` bytes, that nobody can make shorter: that would end who
    has it mapped."""
    made = os.memfd_create(name, os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(made, size)
    with suppress(OSError):
        fcntl.fcntl(made, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    return made


class _OfMachine:
    def __init__(self, size: int) -> None:
        self.file = file("lent", size)
        self.bytes = torch.frombuffer(mmap.mmap(self.file, size), dtype=torch.uint8)

    def close(self) -> None:
        os.close(self.file)
        del self.bytes


class _OfDevice:
    def __init__(self, size: int, device: int) -> None:
        torch.cuda.init()
        torch.cuda.synchronize(device)  # the context exists afterwards
        torch.cuda.empty_cache()  # what PyTorch keeps is memory, too
        self._piece = device_memory.create(size, device)
        all_of_it = device_memory.Array(self._piece.address, self._piece.size, "|u1")
        self.bytes = torch.as_tensor(all_of_it, device=f"cuda:{device}")
        if self.bytes.data_ptr() != self._piece.address:
            raise OSError("PyTorch made a copy of memory that was to be lent")
        self.file = self._piece.file()

    def close(self) -> None:
        torch.cuda.synchronize(self.bytes.device)
        os.close(self.file)
        del self.bytes
        self._piece.close()
