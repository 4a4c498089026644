"""Mistakes with places in a tile of Hopper's: where the copy engine puts 16 bytes of a row, and
which columns a thread of a warpgroup owns."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from utils.judge.torch_calls import Args, Function, Options, TorchCalls, name_of

ROW, QUAD, SWIZZLED = 32, 4, 8  # floats of a tile's row, and of 16 bytes; rows that differ
ROWS = 64  # of the tile of 11.0
APART = 8  # rows between the two that a thread has elements of
TILE = {1: 256, 3: 128}  # columns of a tile of out, by the terms of the product

Run = Callable[[Mapping[str, Tensor]], Tensor | None]  # the reference with some inputs changed


def unswizzled(right: Tensor) -> Tensor:
    """A matrix of tiles as the copy engine lays them out, read without the swizzle."""
    rows, columns = right.shape
    whole = functional.pad(right, (0, -columns % ROW)).reshape(rows, -1, ROW // QUAD, QUAD)
    quads = torch.arange(ROW // QUAD) ^ (torch.arange(rows) % SWIZZLED)[:, None]
    moved = torch.stack([whole[row][:, at] for row, at in enumerate(quads)])
    return moved.reshape(rows, -1)[:, :columns]


def mirrored(right: Tensor) -> Tensor:
    """A matrix of tiles, each fetched from the row where its column is, and from the column where
    its row is; outside of the matrix the copy engine puts 0."""
    rows, columns = right.shape
    side = max(rows, columns) + ROWS
    whole = functional.pad(right, (0, side - columns, 0, side - rows))
    row, column = torch.arange(rows)[:, None], torch.arange(columns)
    down, across = row // ROWS * ROWS, column // ROW * ROW  # where the tile begins
    return whole[across + row - down, down + column - across]


def owned(
    run: Run, vectors: Mapping[str, Tensor], terms: int, axis: int
) -> Iterator[tuple[str, Tensor | None]]:
    """`first + i` as the place of a thread's element i in vectors of columns. `axis`: of the rows
    in what `run` returns."""
    several = {"all of them": list(vectors), **{k: [k] for k in vectors}}
    several |= {f"all but {k}": [n for n in vectors if n != k] for k in vectors}
    for which, names in several.items():
        above, below = (
            run({k: vectors[k][_counted(len(vectors[k]), TILE[terms], half)] for k in names})
            for half in (0, 1)
        )
        value = None
        if above is not None and below is not None:
            of_row = torch.arange(above.shape[axis]) % 16 // 8  # which half of a warp's rows
            shape = [-1 if i == axis else 1 for i in range(above.ndim)]
            value = torch.where(of_row.reshape(shape) == 0, above, below)
        yield (
            "this is what comes out if the number of a thread's element is taken for its column, "
            f"in {', '.join(names) if len(names) < 3 else which}: a thread owns every fourth pair "
            "of columns, and patch.at(first + i) says which",
            value,
        )


def _counted(columns: int, tile: int, half: int) -> Tensor:
    """For each column the number, within its tile, of the element that its owner has there."""
    at = torch.arange(columns)
    return at // tile * tile + at % tile // 8 * 4 + 2 * half + at % 2


def by_column(run: Run, x: Tensor) -> Iterator[tuple[str, Tensor | None]]:
    """A row's minimum of elements that were shared out by column, among a thread's two rows. `x` is
    what makes the rows of a product; beyond the matrix it is 0."""
    with _Least() as beyond:
        run({"x": torch.zeros_like(x)})
    if beyond.values is not None:
        with _Least(beyond.values[:1]):
            value = run({})
        yield (
            "this is what comes out if i % 2 says in which of a thread's two rows its element i "
            "is: it says in which of two columns",
            value,
        )


class _Least(TorchCalls):
    """Keeps what a minimum is of; with the row that is `beyond` the matrix, exchanges values."""

    def __init__(self, beyond: Tensor | None = None) -> None:
        super().__init__()
        self.beyond = beyond
        self.values: Tensor | None = None

    def call(self, function: Function, args: Args, options: Options) -> Any:
        if name_of(function) != "min":
            return function(*args, **options)
        self.values, *how = args
        if self.beyond is None:
            return function(self.values, *how, **options)
        return function(exchanged(self.values, self.beyond), *how, **options)


def exchanged(values: Tensor, beyond: Tensor) -> Tensor:
    """Of each two rows of a thread, the first with the even columns of both and the second with the
    odd ones; infinity in other places. `beyond`: the row that is filled up with."""
    rows, columns = values.shape
    filled = torch.cat([values, beyond.expand(-rows % (2 * APART), -1)])
    pairs = filled.reshape(-1, 2, APART, columns)
    own = torch.arange(columns) % 2 == torch.arange(2)[:, None]  # columns, of each of the two
    both = torch.cat([pairs, pairs.flip(1)], -1)
    taken = both.where(own.repeat(1, 2)[:, None], torch.inf)
    return taken.reshape(-1, 2 * columns)[:rows]
