"""Mistakes with the inputs of a reference: left out, read at other places, only a part of them."""

import itertools
import math
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor
from torch.nn import functional

from utils.course.cases import Case

ROUNDS = 8, 16, 32, 64, 128, 256, 512, 1024  # what a round, block or tile may cover
TILES = 8, 16, 32, 64, 128  # the sides that a tile in shared memory may have
COLUMNS = 128, 256  # of a tile, which holds whole groups
QUAD = 4
FEW = 3, 4  # tensors of one shape, of which two may be read in the same wrong way
NOTHING = 0.0, math.inf, -math.inf  # what changes no sum, no minimum, no maximum
COMES = "this is what comes out if"

Mistake = tuple[str, Mapping[str, Tensor]]  # in words, and the inputs that it changes


def mistakes(
    shapes: Mapping[str, str], case: Case, tensors: Mapping[str, Tensor], out: str
) -> Iterator[Mistake]:
    """Each with the inputs `tensors` of a case; `out` is the shape of the output, in words."""
    for k, tensor in tensors.items():
        yield f"{COMES} {k} is left out (0 in its place)", {k: torch.zeros_like(tensor)}
        yield f"{COMES} {k} is left out (1 in its place)", {k: torch.ones_like(tensor)}
        yield f"{COMES} {k} has the other sign", {k: -tensor}
        if len(tensor.reshape(-1)) > 1:
            index = torch.arange(tensor.numel(), dtype=tensor.dtype).reshape(tensor.shape)
            yield f"{COMES} the index stands where the value of {k} should", {k: index}
        for size, length in case.sizes.items():
            if length > 1 and size not in shapes[k].split():
                yield f"{COMES} {k} counts {size} = {length} times", {k: length * tensor}
        if 0 < tensor.ndim < len(out.split()):
            yield f"{COMES} {k} counts twice", {k: 2 * tensor}
    for a in tensors:
        for b in tensors:
            if a != b and shapes[a] == shapes[b]:
                none = {a: torch.ones_like(tensors[a]), b: torch.zeros_like(tensors[b])}
                yield f"{COMES} {a} and {b} are both left out (1 and 0 in their place)", none
                yield f"{COMES} {a} and {b} change places", {a: tensors[b], b: tensors[a]}
                yield f"{COMES} {b} is read where {a} should be", {a: tensors[b]}
    alike: dict[str, list[str]] = {}  # tensors of one shape, which are often read in the same way
    for k in tensors:
        alike.setdefault(shapes[k], []).append(k)
    for shape, names in alike.items():
        several = [names] if len(names) > 1 else []
        if len(names) in FEW:
            several += map(list, itertools.combinations(names, 2))
        for together in [*([k] for k in names), *several]:
            read = [list(_elsewhere(tensors[k], shape.split(), case.sizes)) for k in together]
            for values in zip(*read, strict=True):
                verb = "is" if len(together) == 1 else "are"
                words = values[0][0].format(name=" and ".join(together), verb=verb)
                at = {k: value for k, (_, value) in zip(together, values, strict=True)}
                yield f"{COMES} {words}", at
    yield from _parts_of_sums(shapes, case, tensors, out)
    yield from _again(shapes, tensors)
    yield from _across(shapes, tensors, out)


def _elsewhere(
    tensor: Tensor, words: list[str], sizes: Mapping[str, int]
) -> Iterator[tuple[str, Tensor]]:
    """A matrix read with another row length, or across; a vector at other places."""
    flat = tensor.reshape(-1)
    if tensor.ndim == 2 and min(tensor.shape) > 1:
        (rows, columns), (high, long) = tensor.shape, words
        row, column = torch.arange(rows)[:, None], torch.arange(columns)
        across = flat[column * rows + row]
        yield (
            f"{{name}} {{verb}} read as if it were ({long}, {high}); it is ({high}, {long})",
            across,
        )
        for size, length in sizes.items():
            if length != columns:
                text = (
                    f"a row of {{name}} has {size} = {length} elements; it has {long} = {columns}"
                )
                yield text, _at(flat, row * length + column)
        yield "row 0 of {name} is read for every row", tensor[:1].expand_as(tensor)
    elif tensor.ndim == 1 and len(tensor) > 1:
        groups, at = sizes.get("groups", 1), torch.arange(len(tensor))
        if words != ["groups"] and groups > 1 and len(tensor) % groups == 0:
            channels = len(tensor) // groups
            by = "{name} {verb} looked up by the"
            yield f"{by} number of the group, not of the channel", flat[at // channels]
            yield f"{by} place within the group, not the channel", flat[at % channels]
            for tile in [tile for tile in COLUMNS if channels < tile < len(tensor)]:
                first = at // tile * tile + at % tile % channels
                yield f"{by} place within the group, not the channel", flat[first]
        yield "{name} {verb} looked up at 0 every time", flat[:1].expand_as(flat)


def _at(flat: Tensor, places: Tensor) -> Tensor:
    """The elements at these places; 0 beyond the end, as a guard would have it."""
    return torch.where(places < len(flat), flat[places.clamp(max=len(flat) - 1)], 0.0)


def _parts_of_sums(
    shapes: Mapping[str, str], case: Case, tensors: Mapping[str, Tensor], out: str
) -> Iterator[Mistake]:
    """What runs along a size that the output does not have, with some of its terms."""
    for size, length in case.sizes.items():
        k = next((k for k in tensors if size in shapes[k].split()), None)
        if k and size not in out.split():
            at = torch.arange(length)
            axis = shapes[k].split().index(size)
            at = at.reshape([-1 if i == axis else 1 for i in range(tensors[k].ndim)])
            for words, counts in _parts(size, case.sizes, at):
                for nothing in NOTHING:
                    value = torch.where(counts == 0, nothing, counts * tensors[k])
                    yield f"{COMES} {words}", {k: value}


def _parts(size: str, sizes: Mapping[str, int], at: Tensor) -> Iterator[tuple[str, Tensor]]:
    """How often each term may count along `size`, in words and as numbers."""
    yield from _some(size, sizes, at)
    length = sizes[size]
    whole = f"{size} = {length}"
    for n in ROUNDS if length > 2 else ():
        often = f"the later ones of {whole} count up to {n} times: does a step of 1 stand for {n}?"
        yield often, 1 + at.clamp(max=n - 1)
    for n in [n for n in ROUNDS if n < length]:
        last = (length - 1) // n * n  # where the last round begins
        yield f"those from {n} on of {whole} count twice", 1 + (at >= n)
        yield f"one in {n} of {whole} counts twice: 0, {n}, ...", 1 + (at % n == 0)
        late = 1 + 1 * (at < n) - 1 * (at >= last)
        yield f"the first {n} of {whole} count twice, and those from {last} on do not", late


def _some(size: str, sizes: Mapping[str, int], at: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Which terms may count, in words and as a mask; most first, as a minimum may fit several."""
    length = sizes[size]
    whole = f"{size} = {length}"
    if length > 1:
        yield f"the last of {whole} does not count", at < length - 1
        yield f"the first of {whole} does not count", at > 0
    for n in (2, QUAD):
        if 1 < length % n < length:
            yield f"the last {length % n} of {whole} do not count", at < length - length % n
            yield f"only the last {length % n} of {whole} count", at >= length - length % n
    for other, n in sizes.items():
        if n < length:
            yield f"only the first {other} = {n} of {whole} count", at < n
    for n in [n for n in reversed(ROUNDS) if n < length]:
        last = (length - 1) // n * n  # where the last round begins
        yield f"those from {last} on of {whole} do not count", at < last
        yield f"only the first {n} of {whole} count", at < n
        yield f"only those from {last} on of {whole} count", at >= last
    for n in [n for n in (2, QUAD, *ROUNDS) if n < length]:
        yield f"only one in {n} of {whole} counts: 0, {n}, ...", at % n == 0
    if length > QUAD:
        for i in range(QUAD):
            missing = f"{i}, {i + QUAD}, {i + 2 * QUAD}, ... of {whole}"
            yield f"{missing} do not count ({'xyzw'[i]} of each quad)", at % QUAD != i
    if length > 1:
        yield f"only the last of {whole} counts", at == length - 1
        yield f"only the first of {whole} counts", at == 0


def _again(shapes: Mapping[str, str], tensors: Mapping[str, Tensor]) -> Iterator[Mistake]:
    """The first block, tile or round of an input in place of every other; quads in disorder."""
    for k, tensor in tensors.items():
        for axis, size in enumerate(shapes[k].split()):
            length = tensor.shape[axis]
            at = torch.arange(length)
            for n in [n for n in ROUNDS if n < length]:
                words = (
                    f"the first {n} of {k} along {size} = {length} are read again where others "
                    "should be: does its index say where the block, tile or round begins?"
                )
                yield f"{COMES} {words}", {k: tensor.index_select(axis, at % n)}
            for a, b in itertools.combinations(range(QUAD), 2):
                order = torch.arange(QUAD)
                order[[a, b]] = order[[b, a]]
                places = at // QUAD * QUAD + order[at % QUAD]
                if bool((places < length).all()) and length > 1:
                    words = f"{'xyzw'[a]} and {'xyzw'[b]} of every quad of {k} along {size}"
                    yield f"{COMES} {words} change places", {k: tensor.index_select(axis, places)}


def _across(
    shapes: Mapping[str, str], tensors: Mapping[str, Tensor], out: str
) -> Iterator[Mistake]:
    """Row and column swapped in an index: into a matrix, into its tile, or into both tiles.

    A tile has zeros outside of its matrix. So where a sum runs along a whole tile, all inputs are
    given a whole tile's length there.
    """
    matrices = [k for k in tensors if tensors[k].ndim == 2]
    for high, wide in itertools.product(TILES, TILES):
        tiles = {k: _swapped(tensors[k], high, wide) for k in matrices}
        for k in matrices:
            yield from _fitting(shapes, tensors, out, {k: tiles[k]})
        if len(matrices) > 1 and high == wide:
            yield from _fitting(shapes, tensors, out, tiles)
    for k in matrices:
        yield from _fitting(shapes, tensors, out, {k: _swapped(tensors[k], *tensors[k].shape)})


def _swapped(matrix: Tensor, high: int, wide: int) -> Tensor:
    """Tiles of high x wide, zeros outside of the matrix; (r, c) has the index of (c, r) in each."""
    (rows, columns), (down, right) = (
        matrix.shape,
        (-(-s // n) for s, n in zip(matrix.shape, (high, wide), strict=True)),
    )
    whole = functional.pad(matrix, (0, right * wide - columns, 0, down * high - rows))
    tiles = whole.reshape(down, high, right, wide).transpose(1, 2).reshape(down, right, -1)
    places = torch.arange(wide) * wide + torch.arange(high)[:, None]
    inside = places < high * wide
    read = torch.where(inside, tiles[:, :, places.clamp(max=high * wide - 1)], 0.0)
    return read.transpose(1, 2).reshape(down * high, right * wide)


def _fitting(
    shapes: Mapping[str, str], tensors: Mapping[str, Tensor], out: str, changed: dict[str, Tensor]
) -> Iterator[Mistake]:
    """The changed matrices, cut to what the output has; the others as long as they are."""
    lengths = {
        s: n for k in tensors for s, n in zip(shapes[k].split(), tensors[k].shape, strict=True)
    }
    for k, tensor in changed.items():
        for size, n in zip(shapes[k].split(), tensor.shape, strict=True):
            if size not in out.split():
                lengths[size] = max(lengths[size], n)
    fitted = {
        k: _fit(changed.get(k, t), [lengths[s] for s in shapes[k].split()])
        for k, t in tensors.items()
    }
    whose = " and ".join(changed)
    tile = "its tile" if len(changed) == 1 else "their tiles"
    yield f"{COMES} row and column are swapped in an index of {whose}, or of {tile}", fitted


def _fit(tensor: Tensor, lengths: list[int]) -> Tensor:
    """Cut, or continued with zeros."""
    short = [n - have for n, have in zip(lengths, tensor.shape, strict=True)]
    return functional.pad(tensor, [x for n in reversed(short) for x in (0, n)])
