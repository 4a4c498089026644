"""A step of a reference as one would write it, such as "silu(y) * scale"."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from utils.cuda.arguments import Arguments
from utils.judge.torch_calls import Call

DEEP = 2  # operations within each other that are written out; ... stands for the others
SYMBOLS = {"add": "+", "radd": "+", "sub": "-", "rsub": "-", "mul": "*", "rmul": "*",
           "div": "/", "truediv": "/", "rdiv": "/", "rtruediv": "/"}  # fmt: skip
NUMBERS = 0, 1, 2, -1, 0.5  # so common that no size or scalar is meant


def binary_of(step: Call) -> tuple[str, Any, Any] | None:
    """(symbol, left, right), where it is one of + - * /."""
    if step.name not in SYMBOLS or len(step.args) != 2:
        return None
    left, right = reversed(step.args) if step.name.startswith("r") else step.args
    return SYMBOLS[step.name], left, right


def is_view(step: Call) -> bool:
    """Whether it only looks at its argument, as `reshape` does."""
    return isinstance(step.result, Tensor) and bool(step.result._is_view())


def numbers_of(values: Arguments) -> dict[float, str]:
    """Sizes and scalars of an exercise, by their values."""
    numbers = {v: k for k, v in values.items() if isinstance(v, int | float)}
    return {v: k for v, k in numbers.items() if v not in NUMBERS}


def expression(step: Call, values: Arguments) -> str:
    """A step with the names of `values`, all that the reference may ask for."""
    return _written(step, _names(values), DEEP)


def operand(value: Tensor, step: Call, values: Arguments) -> str:
    """A tensor that was there before a step, written in the same way; "..." where nobody knows."""
    names = _names(values)
    value, made = _made(value, step, names)
    if id(value) in names or made is None:
        return names.get(id(value), "...")
    return _written(made, names, DEEP)


def _names(values: Arguments) -> Mapping[object, str]:
    """By the id of a tensor, and by a number itself."""
    names: dict[object, str] = {id(v): k for k, v in values.items() if isinstance(v, Tensor)}
    names.update(numbers_of(values).items())
    return names


def _made(value: Tensor, step: Call, names: Mapping[object, str]) -> tuple[Tensor, Call | None]:
    """The tensor that a value only looks at, and the step that made it; itself, where it has a
    name."""
    made = step.made.get(id(value))
    while made and (is_view(made) or made.name == "detach") and id(value) not in names:
        value = made.args[0]
        made = step.made.get(id(value))
    return value, made


def _written(step: Call, names: Mapping[object, str], most: int) -> str:
    def text(value: object, inner: bool = True) -> str:
        if not isinstance(value, Tensor):
            number = isinstance(value, int | float)
            return names.get(value, f"{value:g}") if number else str(value)
        value, made = _made(value, step, names)
        if id(value) in names or made is None or not most:
            return names.get(id(value), "...")
        written = _written(made, names, most - 1)
        return f"({written})" if inner and binary_of(made) else written

    if binary := binary_of(step):
        symbol, left, right = binary
        return f"{text(left)} {symbol} {text(right)}"
    tensors = [text(value, inner=False) for value in step.args if isinstance(value, Tensor)]
    return f"{step.name}({', '.join(tensors)})"
