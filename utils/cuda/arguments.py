"""Checks of a launcher's arguments; each error names the argument and says what to do."""

import math
import operator
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from utils.cuda.signature import Parameter
from utils.ground.errors import ArgumentTypeError, ArgumentValueError

Argument = Tensor | int | float
Arguments = Mapping[str, Argument]  # by parameter name, without the stream
_BITS = {"i": (-(2**31), 2**31), "I": (0, 2**32), "q": (-(2**63), 2**63), "Q": (0, 2**64)}


def match(
    name: str, parameters: Sequence[Parameter], args: Sequence[object], kwargs: Mapping[str, object]
) -> dict[str, object]:
    """Arguments by parameter name. A stream is not among them: PyTorch's current one is passed.

    Raises ArgumentTypeError where there are too many or too few, or some that the launcher does not
    know.
    """
    names = [p.name for p in parameters if not p.is_stream]
    if len(args) > len(names):
        raise ArgumentTypeError(
            f"{name} got {len(args)} arguments, but takes {len(names)}{_takes(names)}"
        )
    by_name = dict(zip(names, args, strict=False))
    for key, value in kwargs.items():
        if key not in names:
            raise ArgumentTypeError(f"{name} has no parameter '{key}'{_takes(names)}")
        if key in by_name:
            raise ArgumentTypeError(f"{name} got '{key}' twice{_takes(names)}")
        by_name[key] = value
    if len(by_name) < len(names):
        missing = ", ".join(n for n in names if n not in by_name)
        raise ArgumentTypeError(f"{name} is missing {missing}{_takes(names)}")
    return by_name


def _takes(names: Sequence[str]) -> str:
    return f"; it takes {', '.join(names) or 'nothing'}"


def check_arguments(
    name: str,
    parameters: Sequence[Parameter],
    arguments: Mapping[str, object],
    shapes: Mapping[str, str],
    device: str | None,
) -> dict[str, Argument]:
    """The arguments, numbers converted to plain int, float or bool.

    `shapes` are the dimensions of tensors, such as "M K", of which some may be integer arguments.
    `device` is "cpu" or "cuda"; None accepts both. Raises ArgumentError.
    """
    checked: dict[str, Argument] = {}
    for parameter in parameters:
        if parameter.is_stream:
            continue
        check = _tensor if parameter.is_tensor else _number
        where = f"{name}: {parameter.name}"
        checked[parameter.name] = check(where, parameter, arguments[parameter.name], device)
    tensors = [value for value in checked.values() if isinstance(value, Tensor)]
    if device is not None and len({tensor.get_device() for tensor in tensors}) > 1:
        devices = ", ".join(sorted({str(tensor.device) for tensor in tensors}))
        raise ArgumentValueError(f"{name}: tensors are on several devices: {devices}")
    _check_sizes(name, shapes, checked)
    return checked


def _tensor(where: str, parameter: Parameter, value: object, device: str | None) -> Tensor:
    if not isinstance(value, Tensor):
        raise ArgumentTypeError(
            f"{where} is {_kind(value)}, but {parameter.ctype} takes a torch.Tensor"
        )
    if value.dtype is not parameter.dtype:
        raise ArgumentTypeError(
            f"{where} has dtype {value.dtype}, but {parameter.ctype} takes {parameter.dtype}; "
            f"convert it with .to({parameter.dtype})"
        )
    if device is not None and not (value.is_cuda if device == "cuda" else value.is_cpu):
        raise ArgumentValueError(
            f"{where} is on '{value.device}', but this kernel works on '{device}'; "
            f"move it with .{device}()"
        )
    if value.layout is not torch.strided or not value.is_contiguous():
        raise ArgumentValueError(f"{where} is not contiguous; pass {parameter.name}.contiguous()")
    if not parameter.is_const and value.requires_grad:
        raise ArgumentValueError(
            f"{where} requires a gradient, and the kernel writes to it behind autograd's back; "
            f"pass {parameter.name}.detach()"
        )
    return value


def _number(where: str, parameter: Parameter, value: Any, device: str | None) -> int | float:
    code = parameter.code
    if code in "fd":
        if not isinstance(value, Real):
            raise ArgumentTypeError(
                f"{where} is {_kind(value)}, but {parameter.ctype} takes a number"
            )
        number = float(value)
        if code == "f" and math.isfinite(number) and abs(number) > torch.finfo(torch.float32).max:
            raise ArgumentValueError(f"{where} is {value}, which does not fit in a float")
        return number
    try:
        whole = operator.index(value)
    except TypeError:
        message = f"{where} is {_kind(value)}, but {parameter.ctype} takes an integer"
        raise ArgumentTypeError(message) from None
    if code == "?":
        return bool(whole)
    low, high = _BITS[code]
    if not low <= whole < high:
        raise ArgumentValueError(f"{where} is {whole}, which does not fit in {parameter.ctype}")
    return whole


def _kind(value: object) -> str:
    return "a torch.Tensor" if isinstance(value, Tensor) else f"of type {type(value).__name__}"


def _check_sizes(name: str, shapes: Mapping[str, str], arguments: Mapping[str, object]) -> None:
    """Compare each tensor with its dimensions, as far as the integer arguments give them."""
    integers = {key: value for key, value in arguments.items() if isinstance(value, int)}
    known: dict[str, list[int]] = {}
    for shape in set(shapes.values()):
        words = shape.split()
        stated = [int(word) if word.isdigit() else integers.get(word) for word in words]
        sizes = [size for size in stated if size is not None]
        if len(sizes) == len(words):  # else the learner's launcher names things in another way
            known[shape] = sizes
    for tensor, shape in shapes.items():
        value = arguments.get(tensor)
        if not isinstance(value, Tensor) or shape not in known:
            continue
        sizes = known[shape]
        have, want = value.numel(), math.prod(sizes)
        if have != want:
            product = "*".join(shape.split()) or "one value"
            numbers = f"{'*'.join(map(str, sizes))} = {want}" if len(sizes) > 1 else str(want)
            raise ArgumentValueError(
                f"{name}: {tensor} has {have} elements, but {product} = {numbers}"
            )
