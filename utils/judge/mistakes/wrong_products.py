"""Wrong forms of a product that is taken as three products of halves, high and low."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from utils.judge.mistakes.wrong_statistics import Form
from utils.judge.torch_calls import Heard

MOST = 14  # a row's largest magnitude lies between two to the power of this, and twice that
FEW = 4096  # results whose sums are taken as a tensor core takes them
DEPTH, BELOW, FLOAT = 16, 25, 23  # products in a sum; bits kept of them, and of the sum
NOTHING = -300.0  # the exponent of a zero
MISSING = {  # which halves of x and of W, 0 the high ones
    "the low halves of x times the high halves of W are left out: one of three products": ((1, 0),),
    "the high halves of x times the low halves of W are left out: one of three products": ((0, 1),),
    "both products with low halves are left out": ((1, 0), (0, 1)),
    "the product of the high halves is left out": ((0, 0),),
}


def outcomes(run: Callable[[], Tensor | None]) -> Iterator[tuple[str, Tensor | None]]:
    """Each mistake in words, and what `run`, the reference, gives with it."""
    with Heard() as heard:
        run()
    for number, call in enumerate(heard.calls):
        for words, form in forms(*call.args) if call.name == "linear" else ():
            with Heard(number=number, answer=form):
                value = run()
            yield f"this is what comes out if {words}", value


def forms(x: Tensor, W: Tensor, *_: object, **__: object) -> Iterator[tuple[str, Form]]:
    """Of `linear(x, W, b)`, in words, and as functions of the same arguments."""
    for words, missing in MISSING.items():

        def form(
            x: Tensor,
            W: Tensor,
            b: Tensor | float = 0.0,
            missing: tuple[tuple[int, int], ...] = missing,
        ) -> Tensor:
            of_x, of_W = halves(x), halves(W)
            left_out = sum(of_x[i] @ of_W[j].T for i, j in missing)
            return x @ W.T - left_out + b

        yield words, form
    if len(x) * len(W) <= FEW and x.shape[1] > DEPTH:
        words = "sums are not promoted: a tensor core cuts its running sum at each step along K"
        yield words, lambda x, W, b=0.0: running(x, W) + b


def halves(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """The high and the low halves of each row of a matrix, times a power of two of its own, which
    is taken out again."""
    most = matrix.abs().amax(-1, keepdim=True)
    up = torch.where(most == 0, 1.0, torch.exp2(MOST - _exponent(most)))
    scaled = matrix * up
    high = scaled.half().double()
    return high / up, (scaled - high).half().double() / up


def running(x: Tensor, W: Tensor) -> Tensor:
    """x * W^T in three products, with one running sum for all of K: see
    emulator/runtime/tensor_sum.h."""
    of_x = [(part[:, None], _exponent(part)[:, None]) for part in halves(x)]
    of_W = [(part[None], _exponent(part)[None]) for part in halves(W)]
    total = x.new_zeros(len(x), len(W))
    for at in range(0, x.shape[1], DEPTH):
        now = slice(at, at + DEPTH)
        for i, j in ((0, 1), (1, 0), (0, 0)):
            (a, of_a), (b, of_b) = of_x[i], of_W[j]
            most = (of_a[..., now] + of_b[..., now]).amax(-1)
            step = torch.exp2(torch.maximum(most, _exponent(total)) - BELOW)
            terms = (a[..., now] * b[..., now] / step[..., None]).trunc().sum(-1)
            total = (terms + (total / step).trunc()) * step
            step = torch.exp2(_exponent(total) - FLOAT)
            total = (total / step).trunc() * step
    return total


def _exponent(values: Tensor) -> Tensor:
    """Of the leading bit; far below all others for 0."""
    exponent = (torch.frexp(values).exponent - 1).double()
    return exponent.masked_fill(values == 0, NOTHING)
