"""What a kernel is called with: copies of a case's tensors, and poison for its outputs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Generator, Tensor

from utils.course.answers import Answer, attempted, exercise_of
from utils.course.case_sizes import toy_sizes
from utils.course.case_values import NORMAL
from utils.course.cases import Case, sample
from utils.course.exercise import Sizes, dimensions, inputs_of
from utils.cuda.arguments import Argument, Arguments
from utils.cuda.kernel import Kernel
from utils.ground.errors import DeclarationError

# What outputs hold before a call. NaN in floats, so that an unwritten value can never pass, with a
# bit pattern of its own, so that it can be told from a NaN that was computed.
POISON = {
    torch.float64: (torch.int64, 0x7FF8BEEF7FF8BEEF),
    torch.float32: (torch.int32, 0x7FC0BEEF),
    torch.float16: (torch.int16, 0x7EBE),
    torch.bfloat16: (torch.int16, 0x7FBE),
    torch.bool: (torch.uint8, 0x5A),
}


def poison(shape: tuple[int, ...], dtype: torch.dtype, device: str = "cpu") -> Tensor:
    """A tensor that nobody has written yet."""
    integer, value = POISON.get(dtype, (dtype, 0x5A if dtype.itemsize == 1 else 0x5AEF))
    return torch.full(shape, value, dtype=integer, device=device).view(dtype)


def tensors(arguments: Arguments) -> dict[str, Tensor]:
    """Those of the arguments that are tensors."""
    return {name: value for name, value in arguments.items() if isinstance(value, Tensor)}


def arguments(
    kernel: Answer, case: Case, device: str = "cpu", copy: bool = True
) -> dict[str, Argument]:
    """What to call an exercise's kernel with: fresh copies of the inputs, or the case's own, and
    poisoned outputs.

    Raises DeclarationError where the launcher's parameters are not those of the exercise.
    """
    exercise, numbers = kernel.exercise, {**case.scalars, **case.sizes}
    known = [*exercise.shapes, *numbers]
    values: dict[str, Argument] = {}
    for parameter in kernel.parameters:
        if parameter.is_stream:
            continue
        name = parameter.name
        if name not in known or parameter.is_tensor != (name in exercise.shapes):
            raise DeclarationError(
                f"{kernel.name} has a parameter '{parameter.ctype} {name}'; its exercise knows "
                f"the tensors {', '.join(exercise.shapes)} and the values {', '.join(numbers)}"
            )
        if name in case.tensors:
            values[name] = case.tensors[name].to(device, parameter.dtype, copy=copy)
        elif parameter.dtype is not None:
            shape = dimensions(exercise.shapes[name], case.sizes)
            values[name] = poison(shape, parameter.dtype, device)
        else:
            values[name] = numbers[name]
    missing = [name for name in exercise.shapes if name not in values]
    if missing:
        raise DeclarationError(
            f"{kernel.name} has no parameter '{missing[0]}'; its exercise needs one"
        )
    return values


@dataclass(frozen=True)
class Example:
    """One call of an exercise's kernel, the same each time: for pictures and estimates."""

    sizes: Sizes
    arguments: dict[str, Argument]
    unwritten: frozenset[str]  # tensors that hold nothing yet


def example(kernel: Answer, sizes: Sizes) -> Example:
    """A call with normal values of a fixed seed. Raises DeclarationError, as arguments() does."""
    exercise, seeded = kernel.exercise, Generator().manual_seed(0)
    case = sample(exercise, sizes, NORMAL, seeded, kernel.dtypes)
    fresh = frozenset(exercise.outputs) - frozenset(inputs_of(exercise))
    return Example(sizes, arguments(kernel, case), fresh)


def requested_call(
    kernel: Kernel, own: Sequence[object], sizes: Mapping[str, int], what: str
) -> Example | None:
    """The call that a reader wants to see: with arguments of their own, if there are any, else a
    small one of the exercise. None, and a line that says so, for a starter that nobody has touched:
    to `what` it has to wait.

    Raises WorkbookError for a kernel that has neither, and what `toy_sizes` and `example` raise.
    """
    if own and isinstance(kernel, Kernel):
        arguments = kernel.checked(own, sizes)
        numbers = {name: value for name, value in arguments.items() if isinstance(value, int)}
        return Example(numbers, dict(arguments), frozenset())
    exercise, answer = exercise_of(kernel), cast(Answer, kernel)
    if not exercise.faulty and not attempted(answer, what):
        return None
    return example(answer, toy_sizes(exercise, sizes))


def sliced(tensor: Tensor, late: int = 1) -> Tensor:
    """A copy that begins so many elements behind the start of its memory, as `y[1:]` does."""
    whole = tensor.new_empty(tensor.numel() + late)
    return whole[late:].view(tensor.shape).copy_(tensor)


def late_text(names: Collection[str], late: str) -> str:
    """What a case says of tensors that begin late, such as "x and y begin 4 bytes late"."""
    return f"{' and '.join(names)} begin{'s' * (len(names) == 1)} {late}"


def a_quad_late(arguments: Arguments, names: Collection[str]) -> dict[str, Argument]:
    """The same arguments, of which the tensors of these names begin where quads may begin, and
    nothing longer."""
    late = {n: t for n, t in tensors(arguments).items() if n in names}
    return {**arguments, **{n: sliced(t, QUAD // t.element_size()) for n, t in late.items()}}


QUAD = 16  # bytes


def nothing(kernel: Answer, sizes: Sizes) -> Case:
    """A case whose values do not matter. Its tensors take no memory before somebody writes."""
    exercise, dtypes = kernel.exercise, kernel.dtypes
    shapes = {name: dimensions(text, sizes) for name, text in exercise.shapes.items()}
    zeros = {n: torch.zeros(shape, dtype=dtypes.get(n)) for n, shape in shapes.items()}
    return Case(sizes, "no", zeros, {name: span[0] for name, span in exercise.scalars.items()})
