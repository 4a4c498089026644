"""A minimum behind a product and a GroupNorm that also takes columns which its block does not own.

A block owns whole groups, as many as fit into its tile. The columns of the tile behind them are no
whole group: they stay as they are but for the factor of a variance of 0. Beyond the matrix, all
are 0.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from utils.judge.torch_calls import Args, Function, Options, TorchCalls, name_of

TILE = 128  # columns


def outcomes(run: Callable[[], Tensor | None]) -> Iterator[tuple[str, Tensor | None]]:
    """The mistake in words, and what `run`, the reference, gives with it."""
    with _Unowned() as calls:
        value = run()
    if calls.taken:
        yield (
            "this is what comes out if columns that the block does not own get into the minimum: "
            "tile.owns says which are its own",
            value,
        )


class _Unowned(TorchCalls):
    """Adds columns to the first argument of a minimum."""

    def __init__(self) -> None:
        super().__init__()
        self.normalised: list[Any] = []
        self.taken = False

    def call(self, function: Function, args: Args, options: Options) -> Any:
        name = name_of(function)
        if name == "group_norm" and len(args) == 5:
            self.normalised = list(args)
        elif name == "min" and self.normalised:
            values, *how = args
            self.taken = True
            return function(torch.cat([values, others(*self.normalised)], 1), *how, **options)
        return function(*args, **options)


def others(y: Tensor, groups: int, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """What columns of the tiles give that no block owns. y: (rows, columns)"""
    rows, columns = y.shape
    own = TILE // (columns // groups) * (columns // groups)
    firsts = range(0, columns, own) if own else range(0)
    at = torch.tensor([c for first in firsts for c in range(first + own, first + TILE)])
    at = at[at < columns].long()
    beyond = bool(firsts) and firsts[-1] + TILE > columns
    zeros = y.new_zeros(rows, int(beyond))
    return torch.cat([y[:, at] / eps**0.5 * weight[at] + bias[at], zeros], 1)
