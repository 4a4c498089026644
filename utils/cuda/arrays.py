"""Arrays of several calls in memory that is lent: nobody can foresee where they are.

At the word "done", bytes at secret places of the outputs are looked at before a clock stops. Where
they are others afterwards, or where outputs are not there, that was said too soon.
"""

import itertools
import math
import secrets
from collections.abc import Iterable, Mapping

import torch
from torch import Generator, Tensor

from utils.process.arena import ALIGNMENT
from utils.process.memory import lend

LOOKED_AT = 1 << 16  # bytes of the outputs: who leaves a thousandth undone is found
MEMORY = 24 << 30  # bytes of a run, and no more than a third of what is free
GAPS = 64  # between arrays, at most, in units of ALIGNMENT


class Arrays:
    """So many calls' arrays, of the types and shapes of `like`, of which some are `outputs`."""

    def __init__(
        self, like: Mapping[str, Tensor], outputs: Iterable[str], calls: int, device: int | None
    ) -> None:
        """Raises MemoryError, and OSError where memory cannot be lent."""
        self.device, self.calls = device, calls
        self._like = {name: tensor.to("meta") for name, tensor in like.items()}
        self._outputs = set(outputs)
        self._offsets, size = _placed(self._like, calls)
        self._lent = lend(size, device)
        self.size = len(self._lent.bytes)

    @property
    def file(self) -> int:
        """The open file by which another process maps them."""
        return self._lent.file

    @staticmethod
    def room(like: Iterable[Tensor], on_card: bool) -> int:
        """For how many calls there is memory, of which a run takes a third of what is free."""
        free = torch.cuda.mem_get_info()[0] if on_card else 1 << 30
        each = sum(t.nbytes + ALIGNMENT * (GAPS + 1) for t in like)
        return min(free // 3, MEMORY) // each

    def tensor(self, call: int, name: str) -> Tensor:
        """An array of a call, as it is in the memory now."""
        like, start = self._like[name], self._offsets[call, name]
        flat = self._lent.bytes[start : start + like.nbytes]
        return flat.view(like.dtype).view(like.shape)

    def shapes(self) -> list[list[int]]:
        """Of the arrays of a call, in their order."""
        return [list(tensor.shape) for tensor in self._like.values()]

    def offsets(self, call: int) -> dict[str, int]:
        """Where the arrays of a call begin, in bytes."""
        return {name: self._offsets[call, name] for name in self._like}

    def drawn_places(self) -> Tensor:
        """Secret places of bytes of the outputs; all of them where they are few."""
        spans = [
            (start, self._like[name].nbytes)
            for (_, name), start in self._offsets.items()
            if name in self._outputs and self._like[name].nbytes
        ]
        total = sum(length for _, length in spans)
        drawn = torch.arange(total) if total <= LOOKED_AT else _drawn(total, LOOKED_AT)
        starts = torch.tensor([start for start, _ in spans])
        ends = torch.tensor(list(itertools.accumulate(length for _, length in spans)))
        lengths = torch.tensor([length for _, length in spans])
        span = torch.searchsorted(ends, drawn, right=True)
        places = starts[span] + drawn - (ends - lengths)[span]
        return places.to(self._lent.bytes.device)

    def hide(self) -> None:
        """Draw the places that are looked at from now on."""
        self._places = self.drawn_places()
        self.look()  # what is slow the first time

    def look(self) -> None:
        """Keep the bytes at those places, as they are once all is done that was asked for here."""
        self._seen = self._lent.bytes[self._places]
        self.wait()

    def changed_since(self) -> bool:
        """Whether an output is another than it was when it was looked at."""
        return not torch.equal(self._lent.bytes[self._places], self._seen)

    def wait(self) -> None:
        """Until all is done that this process asked of the device."""
        if self.device is not None:
            torch.cuda.synchronize(self.device)

    def close(self) -> None:
        """Give back the memory."""
        self._lent.close()


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
