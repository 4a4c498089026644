"""Welford's method on the lanes of a warp, and what comes of it with a mistake."""

import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

LANES = 32
Moments = Callable[[Tensor], tuple[Tensor, Tensor]]  # (.., size) -> variance and mean, (.., 1)


class Stats(NamedTuple):
    """What each lane has seen, (.., LANES) each. squares: the sum of (value - mean)^2."""

    counts: Tensor
    mean: Tensor
    squares: Tensor


Merge = Callable[[Stats, Stats], Stats]
Update = Callable[[Tensor, Tensor], Tensor]  # of distances from the mean before and after


def _merged(a: Stats, b: Stats) -> Stats:
    """Chan's formula; where both are empty, a."""
    count = a.counts + b.counts
    share = b.counts / count.clamp(min=1)
    d = b.mean - a.mean
    return Stats(count, a.mean + d * share, a.squares + b.squares + d * d * a.counts * share)


def _with(**changed: Callable[[Stats, Stats], Tensor]) -> Merge:
    """A merging of which these parts are others; where both are empty, still a."""

    def merged(a: Stats, b: Stats) -> Stats:
        wrong = _merged(a, b)._replace(**{part: of(a, b) for part, of in changed.items()})
        none = a.counts + b.counts == 0
        return Stats(*(torch.where(none, old, new) for old, new in zip(a, wrong, strict=True)))

    return merged


def _share_of_a(a: Stats, b: Stats) -> Tensor:
    return a.counts / (a.counts + b.counts).clamp(min=1)


MERGES = {
    "the share in merge is that of a, not of b": _with(
        mean=lambda a, b: a.mean + (b.mean - a.mean) * _share_of_a(a, b),
        squares=lambda a, b: (
            a.squares + b.squares + (b.mean - a.mean).square() * a.counts * _share_of_a(a, b)
        ),
    ),
    "merge leaves out what lies between the two means": _with(
        squares=lambda a, b: a.squares + b.squares
    ),
    "merge keeps the count of a": _with(counts=lambda a, b: a.counts),
    "merge takes the middle of the two means": _with(mean=lambda a, b: (a.mean + b.mean) / 2),
    "merge keeps the mean of a": _with(mean=lambda a, b: a.mean),
    "merge does not add the squares of b": _with(
        squares=lambda a, b: _merged(a, b).squares - b.squares
    ),
}
UPDATES: dict[str, Update] = {
    "both distances of a value are from the mean before it": lambda d, new: d * d,
    "both distances of a value are from the mean after it": lambda d, new: new * new,
}


def forms(size: int) -> Iterator[tuple[str, Moments]]:
    """Each mistake in words, and the statistics that it gives of groups of any size."""
    for words, merge in MERGES.items():
        yield words, partial(_moments, merge=merge)
    for words, update in UPDATES.items():
        yield words, partial(_moments, update=update)


def _moments(
    values: Tensor, merge: Merge = _merged, update: Update = operator.mul
) -> tuple[Tensor, Tensor]:
    """Of lane 0 at the end. One lane takes every 32nd value, then the lanes merge in five steps."""
    size = values.shape[-1]
    none = values.new_zeros(*values.shape[:-1], LANES)
    stats = Stats(none, none, none)
    lanes = torch.arange(LANES)
    for first in range(0, size, LANES):
        there = first + lanes < size
        value = values[..., (first + lanes).clamp(max=size - 1)]
        d, count = value - stats.mean, stats.counts + 1
        mean = stats.mean + d / count
        seen = Stats(count, mean, stats.squares + update(d, value - mean))
        stats = Stats(*(torch.where(there, new, old) for new, old in zip(seen, stats, strict=True)))
    for step in (16, 8, 4, 2, 1):
        stats = merge(stats, Stats(*(part[..., lanes ^ step] for part in stats)))
    return stats.squares[..., :1] / size, stats.mean[..., :1]
