"""GroupNorm with the right value and a wrong derivative.

With n = (x - mean) * rstd, a gradient u of n gives x the gradient (u - mean(u) - n mean(u n)) rstd.
That is linear and symmetric in u: so a way of x, linear in it, gives what a mistake there gives.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from utils.judge.torch_calls import Function

Way = Callable[[Tensor, Tensor, Tensor], Tensor]  # of a group's values or gradients, n and rstd


def _mean(values: Tensor) -> Tensor:
    return values.mean(-1, keepdim=True)


WAYS: dict[str, Way] = {
    "the mean of u is not subtracted": lambda u, n, rstd: (u - n * _mean(u * n)) * rstd,
    "n times the mean of u n is not subtracted": lambda u, n, rstd: (u - _mean(u)) * rstd,
    "neither mean is subtracted": lambda u, n, rstd: u * rstd,
    "n times the mean of u n is added": lambda u, n, rstd: (u - _mean(u) + n * _mean(u * n)) * rstd,
    "the mean of u n is subtracted without its factor n": lambda u, n, rstd: (
        (u - _mean(u) - _mean(u * n)) * rstd
    ),
    "nothing is multiplied by rstd": lambda u, n, rstd: u - _mean(u) - n * _mean(u * n),
}
FORMULA = "(u - mean of u - n * mean of u n) * rstd"


def derivatives(x: Tensor, groups: int) -> Iterator[tuple[str, Function]]:
    """In words, and as functions of group_norm's arguments; x: (rows, channels)."""
    grouped = x.shape[0], groups, -1

    def normal(v: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        v = v.detach().reshape(grouped)
        rstd = (v.var(-1, correction=0, keepdim=True) + eps).rsqrt()
        return (v - _mean(v)) * rstd, rstd

    for words, way in WAYS.items():

        def norm(
            v: Tensor, _: int, weight: Tensor, bias: Tensor, eps: float, *, way: Way = way
        ) -> Tensor:
            n, rstd = normal(v, eps)
            moving = v.reshape(grouped)
            changed = n + way(moving - moving.detach(), n, rstd)
            return changed.reshape(v.shape) * weight + bias

        yield f"on the way back through the normalising, {FORMULA}, {words}", norm

    def of_values(v: Tensor, _: int, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        right = torch.group_norm(v, groups, weight.detach(), bias, eps)
        return right + (weight - weight.detach()) * v.detach()

    yield "the gradient of weight is made of the values, not of the normalised ones", of_values


def unweighted(groups: int) -> tuple[str, Function]:
    """The same for a gradient that does not meet weight. Where nothing comes after the normalising,
    that is weight left out."""

    def norm(v: Tensor, _: int, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        right = torch.group_norm(v.detach(), groups, weight, bias, eps)
        moving = torch.group_norm(v, groups, eps=eps)
        return right + (moving - moving.detach())

    words = "u is not multiplied by weight"
    return f"on the way back through the normalising, {FORMULA}, {words}", norm
