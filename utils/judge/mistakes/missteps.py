"""Mistakes in the steps of a reference: one left out, - for +, another number, no parentheses,
and one that is done with another value.

A step is an operation of PyTorch's. Those that are formulas themselves, such as swish, are taken
apart, since a kernel has to write them out.
"""

import contextlib
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from utils.cuda.arguments import Arguments
from utils.judge.mistakes.expressions import (
    NUMBERS,
    binary_of,
    expression,
    is_view,
    numbers_of,
    operand,
)
from utils.judge.torch_calls import Call, Function, Heard

STEPS = 24  # operations of a reference, at most
MOST = 1 << 22  # products of a matrix product that is taken as sums
COMPUTE = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
WORDS = {"+": "the addition", "*": "the multiplication", "-": "the subtraction",
         "/": "the division", "silu": "swish (silu)"}  # fmt: skip
FORMULAS: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = {
    "silu": ("x / (1 + exp(-x))", lambda x: x / (1 + torch.exp(-x))),
    "sigmoid": ("1 / (1 + exp(-x))", lambda x: 1 / (1 + torch.exp(-x))),
    "mish": ("x * tanh(log(1 + exp(x)))", lambda x: x * torch.tanh(torch.log(1 + torch.exp(x)))),
}
PIECES = "leaky_relu", "relu", "hardtanh", "clamp"


Values = Iterator[tuple[str, Tensor]]  # a way in words, and the value instead
Names = Mapping[float, str]  # of sizes and scalars, by their value
Otherwise = Callable[[Call, Names], Values]


def _left_out(step: Call, names: Names) -> Values:
    tensors = [arg for arg in step.args if isinstance(arg, Tensor)]
    binary = binary_of(step)
    symbol = binary[0] if binary else step.name
    what = "the minus" if step.name == "neg" else WORDS.get(symbol, symbol)
    for tensor in tensors:
        if step.result.shape == tensor.shape:
            yield f"without {what}", tensor


def _other_symbol(step: Call, names: Names) -> Values:
    if step.name == "matmul" and all(arg.ndim == 2 for arg in step.args):
        a, b = step.args
        if a.numel() * b.shape[1] <= MOST:
            yield "with + for * in the products", (a.unsqueeze(-1) + b).sum(dim=1)
    if binary := binary_of(step):
        symbol, left, right = binary
        for other in (other for other in COMPUTE if other != symbol):
            yield f"with {other} for {symbol}", COMPUTE[other](left, right)
            yield f"with {other} for {symbol}", COMPUTE[other](right, left)


def _no_parentheses(step: Call, names: Names) -> Values:
    """a * (b + c) as a * b + c, and (a + b) * c as a + b * c."""
    if not (binary := binary_of(step)):
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
    if made and made.apart == step.apart and (binary := binary_of(made)):
        symbol, a, b = binary
        yield symbol, a, b
        if symbol in "+*":
            yield symbol, b, a


def _other_number(step: Call, names: Names) -> Values:
    binary = binary_of(step)
    arguments: dict[Any, Any] = {**dict(enumerate(step.args)), **step.options}  # by place or name
    for key, number in arguments.items():
        if isinstance(number, float) or (binary and isinstance(number, int)):  # no dimension
            for other, words in _others(number, names.get(number, "")).items():
                changed = {**arguments, key: other}
                args = [changed.pop(i) for i in range(len(step.args))]
                yield words, step.function(*args, **changed)
    if binary and binary[0] == "/" and isinstance(binary[1], Tensor):
        yield "with 1 for what is divided", 1 / binary[2]


def _others(number: float, name: str) -> dict[float, str]:
    """What may stand in the place of a number, in words; `name` is what the exercise calls it."""
    others = {other: f"{other:g}" for other in NUMBERS}
    for other, times in ((-number, "-"), (10 * number, "10 * "), (number / 10, "0.1 * ")):
        others.setdefault(other, f"{times}{name}" if name else f"{other:g}")
    return {
        n: f"with {text} for {name or f'{number:g}'}" for n, text in others.items() if n != number
    }


def _swapped_sides(step: Call, names: Names) -> Values:
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


def _ways(step: Call, names: Names) -> Values:
    """All of them; where one cannot go on, the next."""
    for way in WAYS:
        with contextlib.suppress(RuntimeError, ValueError, TypeError, IndexError):
            yield from way(step, names)


def outcomes(
    compute: Callable[[], Tensor | None], values: Arguments
) -> Iterator[tuple[str, Tensor | None]]:
    """What `compute` gives with one of its steps taken in another way, and the way in words.

    `values` are all that the reference may ask for, by name.
    """
    numbers = numbers_of(values)
    for formulas in ({}, {name: formula for name, (_, formula) in FORMULAS.items()}):
        with Heard(formulas) as heard:
            compute()
        made = [isinstance(c.result, Tensor) and not is_view(c) for c in heard.calls]
        steps = [n for n, c in enumerate(heard.calls) if made[n] and c.apart == bool(formulas)]
        for number in steps[:STEPS]:
            step = heard.calls[number]
            where = FORMULAS[step.within][0] if step.within else expression(step, values)
            for words, value in _ways(step, numbers):
                with Heard(formulas, number, _constant(value)):
                    output = compute()
                yield f"this is what comes out {words}, in {where}", output
    with Heard() as heard:
        compute()
    for number, step in enumerate(heard.calls):
        if number < STEPS and isinstance(step.result, Tensor) and not is_view(step):
            for words, value in _other_operand(step, heard.calls[:number], values):
                with Heard(number=number, answer=_constant(value)):
                    output = compute()
                where = expression(step, values)
                yield f"this is what comes out {words}, in {where}", output


def _other_operand(step: Call, before: Sequence[Call], values: Arguments) -> Values:
    """A step with an input, or with what a step before it gave, in place of its own operand."""
    there = [*values.values(), *(c.result for c in before if not is_view(c))]
    tensors = [t for t in there if isinstance(t, Tensor) and t.numel() > 1]
    for place, own in enumerate(step.args):
        if not isinstance(own, Tensor) or not own.is_floating_point():
            continue
        for other in tensors:
            if other.numel() != own.numel() or other.data_ptr() == own.data_ptr():
                continue
            args = [*step.args[:place], other.reshape(own.shape), *step.args[place + 1 :]]
            texts = [operand(value, step, values) for value in (other, own)]
            with contextlib.suppress(RuntimeError, ValueError, TypeError, IndexError):
                result = step.function(*args, **step.options)
                yield f"with {texts[0]} for {texts[1]}", result


def _constant(value: Tensor) -> Function:
    return lambda *_, **__: value
