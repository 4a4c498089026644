"""What a gradient is where a step of the forward has a wrong derivative, and values that are right.

A reference of gradients goes forward by PyTorch's calls and back by autograd. So a step whose value
stays, and whose derivative is another, gives what a backward with that mistake gives.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from utils.cuda.arguments import Arguments
from utils.judge.mistakes import wrong_normalising
from utils.judge.mistakes.expressions import binary_of, expression, operand
from utils.judge.torch_calls import (
    Args,
    Call,
    Function,
    Heard,
    Options,
    TorchCalls,
    name_of,
)

FUNCTIONS = "silu", "leaky_relu", "hardtanh", "mish", "sigmoid", "tanh", "gelu"
Derivative = Callable[[Tensor, Tensor], Tensor]  # of a function's argument and its value
DERIVATIVES: dict[str, Derivative] = {
    "the derivative of {step} is left out (1 in its place)": lambda x, y: torch.ones_like(x),
    "{step} stands where its derivative should": lambda x, y: y,
    "the derivative of {step} is the sigmoid's, s (1 - s)": lambda x, y: (
        x.sigmoid() * (1 - x.sigmoid())
    ),
    "the derivative of {step} is the sigmoid alone": lambda x, y: x.sigmoid(),
}


def outcomes(
    run: Callable[[], Tensor | None], inputs: Arguments
) -> Iterator[tuple[str, Tensor | None]]:
    """Each mistake in words, and what `run`, the reference, gives with it; none where it does not
    differentiate. `inputs` name what steps are done with."""
    with Heard() as heard:
        run()
    moving = [call for call in heard.calls if getattr(call.result, "requires_grad", False)]
    for name in FUNCTIONS:
        if len(several := [call for call in moving if call.name == name]) > 1:
            for words, answer in _otherwise(several[0]):
                with _Every(name, answer):
                    value = run()
                yield f"this is what comes out if {words.format(step=f'each {name}')}", value
    for number, call in enumerate(heard.calls):
        if isinstance(call.result, Tensor) and call.result.requires_grad:
            for words, answer in _otherwise(call):
                with Heard(number=number, answer=answer):
                    value = run()
                step = words.format(step=expression(call, inputs))
                yield f"this is what comes out if {step}", value
            yield from _skipped(run, heard.calls, number, inputs)
            yield from _behind(run, heard.calls, number, inputs)
            yield from _late(run, heard.calls, number, inputs)
            yield from _by_another(run, heard.calls, number, inputs)


def _skipped(
    run: Callable[[], Tensor | None], calls: list[Call], number: int, inputs: Arguments
) -> Iterator[tuple[str, Tensor | None]]:
    """A function of a function whose derivative is taken where the inner one's argument is."""
    call = calls[number]
    inner = call.made.get(id(call.args[0])) if call.args else None
    if call.name not in FUNCTIONS or inner is None or inner.name not in FUNCTIONS:
        return
    with _Inner(calls.index(inner), number, _derivative) as answers:
        value = run()
    if answers.taken:
        yield (
            f"this is what comes out if the way back leaves out {expression(inner, inputs)}, and "
            f"takes the derivative of {call.name} at its argument",
            value,
        )


def _behind(
    run: Callable[[], Tensor | None], calls: list[Call], number: int, inputs: Arguments
) -> Iterator[tuple[str, Tensor | None]]:
    """What is normalised gets its gradient without weight; or that of the result, as if nothing
    came between."""
    call = calls[number]
    last = max(i for i, later in enumerate(calls) if getattr(later.result, "requires_grad", False))
    if call.name != "group_norm" or len(call.args) != 5 or last == number:
        return
    words, norm = wrong_normalising.unweighted(call.args[1])
    with Heard(number=number, answer=norm):
        value = run()
    yield f"this is what comes out if {words}", value
    if calls[last].result.shape != call.result.shape:
        return
    with _Inner(number + 1, last, lambda _function, x, *_: torch.ones_like(x)) as answers:
        value = run()
    if answers.taken:
        yield (
            "this is what comes out if the way back leaves out all that comes after "
            f"{expression(call, inputs)}",
            value,
        )


def _late(
    run: Callable[[], Tensor | None], calls: list[Call], number: int, inputs: Arguments
) -> Iterator[tuple[str, Tensor | None]]:
    """What is added to a function's value gets its gradient multiplied by that function's
    derivative."""
    call = calls[number]
    if not (sides := _joined(call, "+")):
        return
    made = [call.made.get(id(value)) for value in sides]
    for i in (0, 1):
        if (curve := made[i]) is None or curve.name not in FUNCTIONS or made[1 - i] is curve:
            continue
        derivative = _derivative(
            curve.function, curve.args[0].detach(), curve.args[1:], curve.options
        )

        def added(*values: Tensor, i: int = i, derivative: Tensor = derivative) -> Tensor:
            ones = torch.ones_like(derivative)
            changed = [(values[i], ones), (values[1 - i], derivative)]
            return _along((values[0] + values[1]).detach(), *changed)

        with Heard(number=number, answer=added):
            value = run()
        yield (
            f"this is what comes out if {_name(inputs, sides[1 - i])} gets its gradient after the "
            f"derivative of {expression(curve, inputs)}, not before it",
            value,
        )


def _by_another(
    run: Callable[[], Tensor | None], calls: list[Call], number: int, inputs: Arguments
) -> Iterator[tuple[str, Tensor | None]]:
    """A factor whose gradient is made with what the other factor is a function of, with the
    product, or with the factor itself."""
    call = calls[number]
    if not (factors := _joined(call, "*")):
        return
    for i, which in enumerate(("left", "right")):
        instead = {"itself": factors[i], "the product": call.result}
        curve = call.made.get(id(factors[1 - i]))
        if curve and curve.name in FUNCTIONS:
            instead[operand(curve.args[0], curve, inputs)] = curve.args[0]
        for name, tensor in instead.items():

            def product(a: Tensor, b: Tensor, *, i: int = i, tensor: Tensor = tensor) -> Tensor:
                derivatives = [b.detach(), a.detach()]
                derivatives[i] = tensor.detach()
                return _along((a * b).detach(), (a, derivatives[0]), (b, derivatives[1]))

            with Heard(number=number, answer=product):
                value = run()
            yield (
                f"this is what comes out if on the way back the {which} of "
                f"{expression(call, inputs)} gets all times {name}, not times the other factor",
                value,
            )


def _joined(call: Call, sign: str) -> tuple[Any, ...]:
    """The two tensors that a call adds, or multiplies; none where it does something else."""
    binary = binary_of(call)
    sides: tuple[Any, ...] = binary[1:] if binary and binary[0] == sign else ()
    return sides if all(isinstance(side, Tensor) for side in sides) else ()


def _name(inputs: Arguments, tensor: Tensor) -> str:
    """The name of an input, also of what was made of it to be differentiated."""
    tensors = ((k, v) for k, v in inputs.items() if isinstance(v, Tensor))
    same = (k for k, v in tensors if v.shape == tensor.shape and torch.equal(v, tensor))
    return next(same, "what is added")


def _derivative(function: Function, x: Tensor, more: Args, options: Options) -> Tensor:
    """Of a function of each element alone."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        (derivative,) = torch.autograd.grad(function(x, *more, **options).sum(), x)
    return derivative


class _Inner(TorchCalls):
    """Keeps the argument of one call; another, of its value, gets the derivative that it has at
    that argument, and hands all of its gradient on to it."""

    def __init__(self, inner: int, outer: int, derivative: Callable[..., Tensor]):
        super().__init__()
        self.first, self.then, self.count, self.derivative = inner, outer, -1, derivative
        self.x: Tensor | None = None
        self.taken = False

    def call(self, function: Function, args: Args, options: Options) -> Any:
        self.count += 1
        if self.count == self.first:
            self.x = args[0]
        if self.count == self.then and self.x is not None:
            self.taken = True
            derivative = self.derivative(function, self.x.detach(), args[1:], options)
            return _along(function(*args, **options).detach(), (self.x, derivative))
        return function(*args, **options)


class _Every(TorchCalls):
    """Answers all calls of a name."""

    def __init__(self, name: str, answer: Function):
        super().__init__()
        self.name, self.answer = name, answer

    def call(self, function: Function, args: Args, options: Options) -> Any:
        if name_of(function) == self.name:
            return self.answer(*args, **options)
        return function(*args, **options)


def _otherwise(call: Call) -> Iterator[tuple[str, Function]]:
    """In words, and a function of the same value with another derivative."""
    if call.name in FUNCTIONS:
        for words, derivative in DERIVATIVES.items():

            def curve(
                x: Tensor, *args: object, derivative: Derivative = derivative, **options: object
            ) -> Tensor:
                y = call.function(x, *args, **options).detach()
                return _along(y, (x, derivative(x.detach(), y)))

            yield words, curve
        yield from _elsewhere(call)
    elif call.name == "group_norm" and len(call.args) == 5:
        yield from wrong_normalising.derivatives(call.args[0], call.args[1])
    elif (binary := binary_of(call)) and binary[0] == "*":
        if all(isinstance(factor, Tensor) for factor in binary[1:]):
            for i, which in enumerate(("left", "right")):

                def product(a: Tensor, b: Tensor, *, i: int = i) -> Tensor:
                    derivatives = [b.detach(), a.detach()]
                    derivatives[i] = torch.ones_like(derivatives[i])
                    y = (a * b).detach()
                    return _along(y, (a, derivatives[0]), (b, derivatives[1]))

                way = f"on the way back the {which} of {{step}} gets all, without the other factor"
                yield way, product


def _elsewhere(call: Call) -> Iterator[tuple[str, Function]]:
    """A function behind GroupNorm, with the derivative that it has at values on their way there."""
    norm = call.made.get(id(call.args[0]))
    if norm is None or norm.name != "group_norm" or len(norm.args) != 5:
        return
    v, groups, _, _, eps = norm.args
    for which, place in (
        ("the normalised values, without weight and bias", torch.group_norm(v, groups, eps=eps)),
        ("the values before the normalising", v),
    ):

        def curve(x: Tensor, *args: Any, place: Tensor = place, **options: Any) -> Tensor:
            derivative = _derivative(call.function, place, args, options)
            return _along(call.function(x, *args, **options).detach(), (x, derivative))

        yield f"the derivative of {{step}} is taken at {which}", curve


def _along(value: Tensor, *derivatives: tuple[Tensor, Tensor]) -> Tensor:
    """The value, which moves with each tensor by its derivative."""
    for tensor, derivative in derivatives:
        value = value + (tensor - tensor.detach()) * derivative
    return value
