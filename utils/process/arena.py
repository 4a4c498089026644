"""The layout of a call's tensors in one piece of memory, with red zones around each.

Tensors that share memory share it there too. A region starts where a GPU's allocator would put it,
so a kernel meets the alignment that it would meet on a GPU.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

ALIGNMENT = 256  # bytes, as cudaMalloc gives
RED_ZONE = 4096  # bytes on either side of a region, a multiple of ALIGNMENT
RED = 0xFF  # in every second byte: NaN in any floating-point type
MARKS = range(0xC1, 0xFF)  # in the others, by region: a NaN read in one zone shows in another


@dataclass(frozen=True)
class OutOfBoundsWrite:
    """An element outside of a tensor that a kernel wrote to.

    `offset` counts elements from the tensor's edge: 0, 1, ... behind it, -1, -2, ... in front.
    """

    parameter: str
    side: str  # "before" or "after"
    offset: int


@dataclass(frozen=True)
class _Region:
    """Tensors that overlap, and the bytes of the arena that they have together."""

    names: list[str]  # by address
    start: int  # in the arena, in bytes
    stop: int


class Layout:
    """Where each tensor of a call is. `offsets` and `size` are in bytes."""

    def __init__(self, tensors: Mapping[str, Tensor]):
        """`tensors` are contiguous and on any device."""
        self.tensors = dict(tensors)
        self.offsets: dict[str, int] = {}
        self.regions: list[_Region] = []
        position = 0
        for names in self._overlapping():
            first = self.tensors[names[0]]
            base = first.untyped_storage().data_ptr()
            start = position + RED_ZONE + (first.data_ptr() - base) % ALIGNMENT
            for name in names:
                self.offsets[name] = start + self.tensors[name].data_ptr() - first.data_ptr()
            stop = max(self.offsets[name] + self.tensors[name].nbytes for name in names)
            self.regions.append(_Region(names, start, stop))
            position = -(-stop // ALIGNMENT) * ALIGNMENT + RED_ZONE
        self.size = max(position, ALIGNMENT)

    def _overlapping(self) -> list[list[str]]:
        """Names of tensors in groups that share memory, each sorted by address."""

        def place(name: str) -> tuple[str, int]:
            return str(self.tensors[name].device), self.tensors[name].data_ptr()

        groups: list[list[str]] = []
        device, stop = "", 0
        for name in sorted(self.tensors, key=place):
            where, start = place(name)
            if where == device and start < stop:
                groups[-1].append(name)
            else:
                groups.append([name])
                device, stop = where, 0
            stop = max(stop, start + self.tensors[name].nbytes)
        return groups

    def fill(self, arena: Tensor) -> None:
        """Copy the tensors into `arena` (bytes) and paint the red zones."""
        for number, (region, zones) in enumerate(
            zip(self.regions, self._zones(arena), strict=True)
        ):
            for zone in zones:
                zone.copy_(_red(zone, number))
            self.put(arena, {name: self.tensors[name] for name in region.names})

    def put(self, arena: Tensor, values: Mapping[str, Tensor]) -> None:
        """Copy values into the places of tensors of these names, of the same types and shapes."""
        for name, value in values.items():
            if value.numel():
                self._bytes(arena, name).copy_(_flat(value))

    def read(self, arena: Tensor, name: str) -> Tensor:
        """A copy of what `arena` holds for a tensor now, on the CPU."""
        tensor = self.tensors[name]
        return self._bytes(arena, name).clone().view(tensor.dtype).reshape(tensor.shape)

    def out_of_bounds(self, arena: Tensor) -> list[OutOfBoundsWrite]:
        """Every element of the red zones that was written to, nearest first on each side."""
        writes = []
        for number, (region, zones) in enumerate(
            zip(self.regions, self._zones(arena), strict=True)
        ):
            before, after = (zone != _red(zone, number) for zone in zones)
            first = region.names[0]
            last = max(region.names, key=lambda n: self.offsets[n] + self.tensors[n].nbytes)
            size = self.tensors[first].element_size()
            places = {int(i - len(before)) // size for i in before.nonzero().flatten()}
            writes += [
                OutOfBoundsWrite(first, "before", place) for place in sorted(places, reverse=True)
            ]
            size = self.tensors[last].element_size()
            places = {int(i) // size for i in after.nonzero().flatten()}
            writes += [OutOfBoundsWrite(last, "after", place) for place in sorted(places)]
        return writes

    def _bytes(self, arena: Tensor, name: str) -> Tensor:
        return arena[self.offsets[name] :][: self.tensors[name].nbytes]

    def _zones(self, arena: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Before and after each region; a region's zones end where the next one's begin."""
        starts = [r.start - (r.start % ALIGNMENT) - RED_ZONE for r in self.regions] + [self.size]
        return [
            (arena[starts[i] : region.start], arena[region.stop : starts[i + 1]])
            for i, region in enumerate(self.regions)
        ]


def _red(zone: Tensor, number: int) -> Tensor:
    """What a red zone of the region of that number holds while nobody has written to it."""
    return _pattern(MARKS[number % len(MARKS)], zone.storage_offset() % 2 == 1, len(zone))


@functools.lru_cache(maxsize=64)  # zones are of a few lengths, and each call fills and reads them
def _pattern(mark: int, late: bool, length: int) -> Tensor:
    """So many bytes of a mark and red in turns; `late`: red is first. Not to be written to."""
    pair = [RED, mark] if late else [mark, RED]
    return torch.tensor(pair, dtype=torch.uint8, device="cpu").repeat(length // 2 + 1)[:length]


def _flat(tensor: Tensor) -> Tensor:
    """The bytes of a contiguous tensor."""
    return tensor.detach().reshape(-1).view(torch.uint8)
