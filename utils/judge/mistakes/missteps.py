"""Mistakes in the steps of a reference: one left out, - for +, another number, no parentheses.

A step is an operation of PyTorch's. Those that are formulas themselves, such as swish, are taken
apart, since a kernel has to write them out.
"""

import itertools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from utils.judge.torch_calls import Args, Function, Options, TorchCalls, name_of

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


@dataclass(frozen=True)
class Step:
    """One operation: its name, what it was given, what it gave."""

    name: str
    args: Args
    options: Options
    result: Tensor
    function: Function
    made: "dict[int, Step]"  # by its result's id: the steps before it

    @property
    def binary(self) -> tuple[str, Any, Any] | None:
        """(symbol, left, right), where it is one of + - * /."""
        if self.name not in SYMBOLS or len(self.args) != 2:
            return None
        turned = self.name.startswith("r")
        left, right = reversed(self.args) if turned else self.args
        return SYMBOLS[self.name], left, right


Values = Iterator[tuple[str, Tensor]]  # a way in words, and the value instead
Otherwise = Callable[[Step], Values]


def _left_out(step: Step) -> Values:
    given = [arg for arg in step.args if isinstance(arg, Tensor)]
    symbol = step.binary[0] if step.binary else step.name
    what = "the minus" if step.name == "neg" else WORDS.get(symbol, symbol)
    for tensor in given:
        if getattr(step.result, "shape", None) == tensor.shape:
            yield f"without {what}", tensor


def _other_symbol(step: Step) -> Values:
    if step.name == "matmul" and all(arg.ndim == 2 for arg in step.args):
        a, b = step.args
        if a.numel() * b.shape[1] <= MOST:
            yield "with + for * in the products", (a.unsqueeze(-1) + b).sum(dim=1)
    if step.binary:
        symbol, left, right = step.binary
        for other in (other for other in COMPUTE if other != symbol):
            yield f"with {other} for {symbol}", COMPUTE[other](left, right)
            yield f"with {other} for {symbol}", COMPUTE[other](right, left)


def _no_parentheses(step: Step) -> Values:
    """a * (b + c) as a * b + c, and (a + b) * c as a + b * c."""
    if not step.binary:
        return
    symbol, left, right = step.binary
    compute = COMPUTE[symbol]
    for other, a, b in _made_of(step, right):
        yield f"without the parentheses around the {other}", COMPUTE[other](compute(left, a), b)
    for other, a, b in _made_of(step, left):
        yield f"without the parentheses around the {other}", COMPUTE[other](a, compute(b, right))


def _made_of(step: Step, value: object) -> Iterator[tuple[str, object, object]]:
    """(symbol, a, b), where a step before this one made the value so; in both orders, if equal."""
    made = step.made.get(id(value))
    if made and made.binary:
        symbol, a, b = made.binary
        yield symbol, a, b
        if symbol in "+*":
            yield symbol, b, a


def _other_number(step: Step) -> Values:
    given: dict[Any, Any] = {**dict(enumerate(step.args)), **step.options}  # by place or name
    for key, number in given.items():
        if isinstance(number, float) or (step.binary and isinstance(number, int)):  # no dimension
            for other in dict.fromkeys((*NUMBERS, -number, 10 * number, number / 10)):
                if other != number:
                    changed = {**given, key: other}
                    args = [changed.pop(i) for i in range(len(step.args))]
                    yield f"with {other:g} for {number:g}", step.function(*args, **changed)
    if step.binary and step.binary[0] == "/" and isinstance(step.binary[1], Tensor):
        yield "with 1 for what is divided", 1 / step.binary[2]


def _swapped_sides(step: Step) -> Values:
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


class _Taking(TorchCalls):
    """PyTorch's operations, of which number `number` is taken in another way.

    With `apart`, only the operations within FORMULAS count; else they count as one.
    """

    def __init__(self, apart: bool, number: int, way: Otherwise, variant: int):
        super().__init__()
        self.apart, self.number, self.way, self.variant = apart, number, way, variant
        self.seen, self.formula, self.words = 0, "", ""
        self.made: dict[int, Step] = {}

    def call(self, function: Function, args: Args, options: Options) -> Any:
        name = name_of(function)
        if self.apart and name in FORMULAS:
            self.formula, formula = FORMULAS[name]
            with self:
                result = formula(args[0])
            self.formula = ""
            return result
        result = function(*args, **options)
        if not isinstance(result, Tensor) or result._is_view() or self.apart > bool(self.formula):
            return result
        step = Step(name, args, options, result, function, self.made)
        self.made[id(result)] = step
        self.seen += 1
        if self.seen != self.number + 1:
            return result
        found = next(itertools.islice(self.way(step), self.variant, None), None)
        if found is None:
            return result
        where = f"in {self.formula}" if self.formula else f"step {self.seen} of the reference"
        self.words = f"this is what comes out {found[0]}, {where}"
        return found[1]


def outcomes(compute: Callable[[], Tensor | None]) -> Iterator[tuple[str, Tensor | None]]:
    """What `compute` gives with one of its steps taken in another way, and the way in words."""
    for apart, number, way in itertools.product((False, True), range(STEPS), WAYS):
        for variant in itertools.count():
            with _Taking(apart, number, way, variant) as taking:
                value = compute()
            if not taking.words:
                break
            yield taking.words, value
