"""What a wrong kernel may have computed instead: the reference with one mistake put into it.

A mistake is told only where it gives the wrong values, all of them; of several the first.
"""

import functools
import itertools
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from utils.course.cases import Case
from utils.course.exercise import Exercise, reads
from utils.judge import welford, wrong_statistics, wrong_steps
from utils.judge.mismatch import wrong
from utils.judge.oracle import Expected, outputs, values_of

MOST = 1_000_000  # elements of a case on which mistakes are tried
MOST_IN_STEPS = 100_000  # and those in the reference's steps, of which there are hundreds
ROUNDS = 8, 16, 32, 64, 128, 256, 512, 1024  # what a round, block or tile may cover
STEPS = 12  # operations of a reference, at most
SYMBOLS = {"add": "the addition", "radd": "the addition", "mul": "the multiplication",
           "rmul": "the multiplication", "sub": "the subtraction", "div": "the division",
           "truediv": "the division", "silu": "swish (silu)"}  # fmt: skip

Mistake = tuple[str, Mapping[str, Tensor]]  # in words, and the inputs that it changes


def mistake(exercise: Exercise, case: Case, name: str, got: Tensor, expected: Expected) -> str:
    """The mistake that gives output `name` all the values `got`, as a sentence; "" for none.

    None is tried where a value is not finite that should be.
    """
    if not got.is_floating_point():
        return ""
    for limit, words in (
        ({"max": 0}, "all above 0 become 0: does a minimum begin there?"),
        ({"min": 0}, "all below 0 become 0: does a maximum begin there, or a clamp end?"),
    ):
        clamped = expected.value.clamp(**limit)
        if got.any() and not wrong(got, Expected(clamped, expected.bound)).any():
            return f"this is what comes out if {words}"
    few = sum(tensor.numel() for tensor in case.tensors.values()) <= MOST
    rounded = expected.value.to(got.dtype)
    alike = got.isfinite() | (got == rounded) | (got.isnan() & rounded.isnan())
    if not (few and alike.all()):
        return ""
    found = itertools.chain(
        _in_steps(exercise, case, name),
        _outcomes(exercise, case, name) if got.any() else (),  # without an input all may be 0
    )
    for words, value in found:
        if value is None or value.shape != got.shape:
            continue
        value = value.to(got.device)
        bound = torch.maximum(4 * expected.bound, 5e-5 * value.abs())
        near = Expected(value, bound.nan_to_num(0.0, 0.0, 0.0))
        if wrong(value.to(got.dtype), expected).any() and not wrong(got, near).any():
            return words
    return ""


def _in_steps(exercise: Exercise, case: Case, name: str) -> Iterator[tuple[str, Tensor | None]]:
    """Mistakes in the reference's own steps: see wrong_steps."""
    if sum(tensor.numel() for tensor in case.tensors.values()) > MOST_IN_STEPS:
        return
    values = values_of(case)
    inputs = {k: values[k] for k in case.tensors}
    eps = case.values.get("eps", 0.0)
    merging = {"var_mean": wrong_statistics.part(wrong=welford.forms)}
    methods = merging if "welford" in exercise.name else {}
    run = functools.partial(_output, exercise, case, values, name)
    yield from wrong_steps.outcomes(run, inputs, eps, methods)


def _outcomes(exercise: Exercise, case: Case, name: str) -> Iterator[tuple[str, Tensor | None]]:
    """Each mistake in words, and the values of the output `name` that it gives."""
    values, shape = values_of(case), exercise.shapes[name]
    named = reads(exercise.reference, case.tensors)
    tensors = {k: values[k] for k in named if values[k].is_floating_point()}
    for k, tensor in tensors.items():
        if exercise.shapes[k] == shape and tensor.numel() > 1:
            yield f"these are the values of {k}, as they were", tensor
    for words, changed in _mistakes(exercise.shapes, case, tensors, shape):
        yield words, _output(exercise, case, {**values, **changed}, name)
    for number in range(STEPS):
        with _Skipping(number) as skipping:
            found = _output(exercise, case, values, name)
        if not skipping.name:
            return
        what = SYMBOLS.get(skipping.name, skipping.name)
        yield f"this is what comes out without {what}, step {number + 1} of the reference", found


def _mistakes(
    shapes: Mapping[str, str], case: Case, tensors: Mapping[str, Tensor], out: str
) -> Iterator[Mistake]:
    """Such as can be made with the inputs."""
    comes = "this is what comes out if"
    for k, tensor in tensors.items():
        yield f"{comes} {k} is left out (0 in its place)", {k: torch.zeros_like(tensor)}
        yield f"{comes} {k} is left out (1 in its place)", {k: torch.ones_like(tensor)}
    for a in tensors:
        for b in tensors:
            if a != b and shapes[a] == shapes[b]:
                none = {a: torch.ones_like(tensors[a]), b: torch.zeros_like(tensors[b])}
                yield f"{comes} {a} and {b} are both left out (1 and 0 in their place)", none
                yield f"{comes} {a} and {b} change places", {a: tensors[b], b: tensors[a]}
                yield f"{comes} {b} is read in place of {a}", {a: tensors[b]}
    alike = {}  # tensors of one shape, which are often read in the same way
    for k in tensors:
        alike.setdefault(shapes[k], []).append(k)
    for shape, names in alike.items():
        for together in [*([k] for k in names), *([names] if len(names) > 1 else [])]:
            read = [list(_misread(tensors[k], shape.split(), case.sizes)) for k in together]
            for found in zip(*read, strict=True):
                verb = "is" if len(together) == 1 else "are"
                words = found[0][0].format(name=" and ".join(together), verb=verb)
                at = {k: value for k, (_, value) in zip(together, found, strict=True)}
                yield f"{comes} {words}", at
    for size, length in case.sizes.items():
        k = next((k for k in tensors if size in shapes[k].split()), None)
        if k and size not in out.split():
            at = torch.arange(length)
            axis = shapes[k].split().index(size)
            at = at.reshape([-1 if i == axis else 1 for i in range(tensors[k].ndim)])
            for words, kept in _parts(size, case.sizes, at):
                yield f"{comes} {words}", {k: torch.where(kept, tensors[k], 0.0)}


def _misread(
    tensor: Tensor, words: list[str], sizes: Mapping[str, int]
) -> Iterator[tuple[str, Tensor]]:
    """A matrix read with another row length, or across; a vector at other places."""
    flat = tensor.reshape(-1)
    if tensor.ndim == 2 and min(tensor.shape) > 1:
        (rows, columns), (high, long) = tensor.shape, words
        row, column = torch.arange(rows)[:, None], torch.arange(columns)
        across = flat[column * rows + row]
        yield (
            f"{{name}} {{verb}} read as if it were ({long}, {high}); it is ({high}, {long})",
            across,
        )
        for size, length in sizes.items():
            at = row * length + column
            if length != columns and int(at.max()) < len(flat):
                text = (
                    f"a row of {{name}} has {size} = {length} elements; it has {long} = {columns}"
                )
                yield text, flat[at]
        yield "row 0 of {name} is read for every row", tensor[:1].expand_as(tensor)
    elif tensor.ndim == 1 and len(tensor) > 1:
        groups, at = sizes.get("groups", 1), torch.arange(len(tensor))
        if words != ["groups"] and groups > 1 and len(tensor) % groups == 0:
            size = len(tensor) // groups
            by = "{name} {verb} looked up by the"
            yield f"{by} number of the group, not of the channel", flat[at // size]
            yield f"{by} place within the group, not the channel", flat[at % size]
        yield "{name} {verb} looked up at the first of each four", flat[at // 4 * 4]
        yield "{name} {verb} looked up at 0 every time", flat[:1].expand_as(flat)


def _parts(size: str, sizes: Mapping[str, int], at: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Which terms may get into a sum over `size`, in words and as a mask."""
    length = sizes[size]
    whole = f"{size} = {length}"
    for other, n in sizes.items():
        if 1 < n < length:
            yield f"only the first {other} = {n} of {whole} count", at < n
    for n in [n for n in ROUNDS if n < length]:
        last = (length - 1) // n * n  # where the last round begins
        yield f"only the first {n} of {whole} count", at < n
        yield f"only those from {last} on of {whole} count", at >= last
        yield f"those from {last} on of {whole} do not count", at < last
        yield f"only one in {n} of {whole} counts: 0, {n}, ...", at % n == 0
    for n in (2, 4):
        if length % n and length > n:
            yield f"the last {length % n} of {whole} do not count", at < length - length % n
            yield f"only the last {length % n} of {whole} count", at >= length - length % n
    if length > 1:
        yield f"the last of {whole} does not count", at < length - 1
        yield f"the first of {whole} does not count", at > 0
        yield f"only the last of {whole} counts", at == length - 1
        yield f"only the first of {whole} counts", at == 0


class _Skipping(TorchFunctionMode):
    """PyTorch's operations, of which number `skipped` gives back what it was given."""

    def __init__(self, skipped: int):
        super().__init__()
        self.left, self.name = skipped, ""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        given = next((arg for arg in args if isinstance(arg, Tensor)), None)
        alike = given is not None and getattr(result, "shape", None) == given.shape
        if not alike or result._is_view():
            return result
        self.left -= 1
        if self.left != -1:
            return result
        self.name = function.__name__.strip("_")
        return given


def _output(exercise: Exercise, case: Case, values: dict, name: str) -> Tensor | None:
    """What the reference makes of these values; None where it cannot take them."""
    try:
        return outputs(exercise, case, values)[name]
    except (RuntimeError, ValueError, IndexError):
        return None
