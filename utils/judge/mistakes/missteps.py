"""Mistakes in the steps of a reference: one left out, - for +, another number, no parentheses.

A step is an operation of PyTorch's. Those that are formulas themselves, such as swish, are taken
apart, since a kernel has to write them out.
"""

import contextlib
import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from utils.judge.torch_calls import Call, Function, Heard

STEPS = 24  # operations of a reference, at most
MOST = 1 << 22  # products of a matrix product that is taken as sums
SYMBOLS = {"add": "+", "radd": "+", "sub": "-", "rsub": "-", "mul": "*", "rmul": "*",
           "div": "/", "truediv": "/", "rdiv": "/", "rtruediv": "/"}  # fmt: skip
COMPUTE = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
WORDS = {"+": "the addition", "*": "the multiplication", "-": "the subtraction",
         "/": "the division", "silu": "swish (silu)"}  # fmt: skip
FORMULAS: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = {
    "silu": ("x / (1 + exp(-x))", lambda x: x / (1 + torch.exp(-x))),
    "sigmoid": ("1 / (1 + exp(-x))", lambda x: 1 / (1 + torch.exp(-x))),
    "mish": ("x * tanh(log(1 + exp(x)))", lambda x: x * torch.tanh(torch.log(1 + torch.exp(x)))),
}
PIECES = "leaky_relu", "relu", "hardtanh", "clamp"
NUMBERS = 0, 1, 2, -1, 0.5  # that may stand in the place of another


def _binary(step: Call) -> tuple[str, Any, Any] | None:
    """(symbol, left, right), where it is one of + - * /."""
    if step.name not in SYMBOLS or len(step.args) != 2:
        return None
    left, right = reversed(step.args) if step.name.startswith("r") else step.args
    return SYMBOLS[step.name], left, right


Values = Iterator[tuple[str, Tensor]]  # a way in words, and the value instead
Otherwise = Callable[[Call], Values]


def _left_out(step: Call) -> Values:
    tensors = [arg for arg in step.args if isinstance(arg, Tensor)]
    binary = _binary(step)
    symbol = binary[0] if binary else step.name
    what = "the minus" if step.name == "neg" else WORDS.get(symbol, symbol)
    for tensor in tensors:
        if step.result.shape == tensor.shape:
            yield f"without {what}", tensor


def _other_symbol(step: Call) -> Values:
    if step.name == "matmul" and all(arg.ndim == 2 for arg in step.args):
        a, b = step.args
        if a.numel() * b.shape[1] <= MOST:
            yield "with + for * in the products", (a.unsqueeze(-1) + b).sum(dim=1)
    if binary := _binary(step):
        symbol, left, right = binary
        for other in (other for other in COMPUTE if other != symbol):
            yield f"with {other} for {symbol}", COMPUTE[other](left, right)
            yield f"with {other} for {symbol}", COMPUTE[other](right, left)


def _no_parentheses(step: Call) -> Values:
    """a * (b + c) as a * b + c, and (a + b) * c as a + b * c."""
    if not (binary := _binary(step)):
        return
    symbol, left, right = binary
    compute = COMPUTE[symbol]
    for other, a, b in _made_of(step, right):
        yield f"without the parentheses around the {other}", COMPUTE[other](compute(left, a), b)
    for other, a, b in _made_of(step, left):
        yield f"without the parentheses around the {other}", COMPUTE[other](a, compute(b, right))


def _made_of(step: Call, value: object) -> Iterator[tuple[str, object, object]]:
    """(symbol, a, b), where a step before this one made the value so; in both orders, if equal."""
    made = step.made.get(id(value))
    if made and made.apart == step.apart and (binary := _binary(made)):
        symbol, a, b = binary
        yield symbol, a, b
        if symbol in "+*":
            yield symbol, b, a


def _other_number(step: Call) -> Values:
    binary = _binary(step)
    arguments: dict[Any, Any] = {**dict(enumerate(step.args)), **step.options}  # by place or name
    for key, number in arguments.items():
        if isinstance(number, float) or (binary and isinstance(number, int)):  # no dimension
            for other in dict.fromkeys((*NUMBERS, -number, 10 * number, number / 10)):
                if other != number:
                    changed = {**arguments, key: other}
                    args = [changed.pop(i) for i in range(len(step.args))]
                    yield f"with {other:g} for {number:g}", step.function(*args, **changed)
    if binary and binary[0] == "/" and isinstance(binary[1], Tensor):
        yield "with 1 for what is divided", 1 / binary[2]


def _swapped_sides(step: Call) -> Values:
    """What holds below 0 above it, and the other way round: -f(-x)."""
    if step.name in PIECES:
        turned = step.function(-step.args[0], *step.args[1:], **step.options)
        yield f"with the two sides of {step.name} swapped", -turned


WAYS: tuple[Otherwise, ...] = (
    _left_out,
    _other_symbol,
    _no_parentheses,
    _other_number,
    _swapped_sides,
)


def _ways(step: Call) -> Values:
    """All of them; where one cannot go on, the next."""
    for way in WAYS:
        with contextlib.suppress(RuntimeError, ValueError, TypeError, IndexError):
            yield from way(step)


def outcomes(compute: Callable[[], Tensor | None]) -> Iterator[tuple[str, Tensor | None]]:
    """What `compute` gives with one of its steps taken in another way, and the way in words."""
    for formulas in ({}, {name: formula for name, (_, formula) in FORMULAS.items()}):
        with Heard(formulas) as heard:
            compute()
        made = [isinstance(c.result, Tensor) and not c.result._is_view() for c in heard.calls]
        steps = [n for n, c in enumerate(heard.calls) if made[n] and c.apart == bool(formulas)]
        for count, number in enumerate(steps[:STEPS], 1):
            step = heard.calls[number]
            part = f"in {FORMULAS[step.within][0]}" if step.within else ""
            where = part or f"step {count} of the reference"
            for words, value in _ways(step):
                with Heard(formulas, number, _constant(value)):
                    output = compute()
                yield f"this is what comes out {words}, {where}", output


def _constant(value: Tensor) -> Function:
    return lambda *_, **__: value
