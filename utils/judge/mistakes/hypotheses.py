"""What a wrong kernel may have computed instead: the reference with one mistake put into it.

A mistake is told only where it gives the wrong values, all of them; of several the first.
"""

import functools
import math
import re
import time
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from utils.course.cases import Case
from utils.course.exercise import Exercise, reads
from utils.course.precision import Precision
from utils.ground.errors import WorkbookError
from utils.judge.mismatch import wrong
from utils.judge.mistakes import (
    hopper,
    misread,
    missteps,
    unowned,
    welford,
    wrong_derivatives,
    wrong_products,
    wrong_statistics,
    wrong_steps,
)
from utils.judge.oracle import Expected, Values, floating, one_thread, outputs, values_of

MOST = 1_000_000  # elements of a case on which mistakes are tried
MOST_IN_STEPS = 100_000  # and those in the reference's steps, of which there are hundreds
SECONDS = 3.0  # of a core, for all of them: a busy machine tries as many
TILES = 8, 16, 32, 64, 128  # the sides that a tile may have
OWN = 4, 8  # elements of a thread in a direction


def mistakes(
    exercise: Exercise, case: Case, name: str, got: Tensor, expected: Expected
) -> Iterator[str]:
    """Each mistake that gives output `name` all the values `got`, as a sentence.

    None is tried where a value is NaN that should not be.
    """
    if got.is_floating_point():
        for limit, words in (
            ({"max": 0}, "all above 0 become 0: does a minimum begin there?"),
            ({"min": 0}, "all below 0 become 0: does a maximum begin there, or a clamp end?"),
        ):
            clamped = expected.value.clamp(**limit)
            if got.any() and not wrong(got, Expected.known(clamped, expected.bound)).any():
                yield f"this is what comes out if {words}"
    few = sum(tensor.numel() for tensor in case.tensors.values()) <= MOST
    rounded = expected.value.to(got.dtype)
    alike = ~got.isnan() | rounded.isnan()
    if not (few and alike.all()):
        return
    tried = candidates(exercise, case, name, expected.value)
    if not got.any():  # an input may be missing, or anything else
        others = name != exercise.outputs[0]  # come first, and are right: so are the steps before
        tried = iter(()) if others else _familiar(exercise, case, name)
    end = time.thread_time() + SECONDS
    while time.thread_time() < end:
        with one_thread():
            words, value = next(tried, ("", None))
        if not words:
            return
        if value is None or value.shape != got.shape or value.dtype is torch.bool:
            continue
        value = value.to(got.device)
        bound = torch.maximum(4 * expected.bound, 5e-5 * value.abs())
        near = Expected.known(value, bound.nan_to_num(0.0, 0.0, 0.0))
        if not wrong(value.to(got.dtype), expected).any() or wrong(got, near).any():
            continue
        if _nearer(got, value, expected):
            yield words


def _nearer(got: Tensor, value: Tensor, expected: Expected) -> bool:
    """Whether what is wrong is at least twice as near to `value` as to what was expected: of small
    faults several mistakes may come close."""
    where = wrong(got, expected)
    actual, mistaken, right = (v[where].double() for v in (got, value, expected.value))
    finite = actual.isfinite() & mistaken.isfinite() & right.isfinite()
    if not finite.any():
        return True
    return bool(2 * (actual - mistaken)[finite].abs().max() <= (actual - right)[finite].abs().max())


# Numbers that another size would change: a size, where the last round begins, a row or column.
_OF_THE_SIZE = re.compile(
    r"= \d+|(?<=from )\d+(?= on of \S+ = \d+ (?:do not )?count$)|(?<=from )\d+(?= on do not)|"
    r"(?<=values of )\d+(?= groups)|(?<=only 1/)\d+(?= of a group)|"
    r"(?<=last )\d+|(?<=row )\d+|(?<=column )\d+|(?<=value )\d+"
)


def kind(words: str) -> str:
    """A mistake without the numbers that another size would change."""
    return _OF_THE_SIZE.sub("#", words).removesuffix(", and so on")


def candidates(
    exercise: Exercise, case: Case, name: str, right: Tensor
) -> Iterator[tuple[str, Tensor | None]]:
    """Each mistake in words, and the values of the output `name` that it gives."""
    yield from _of_another_output(exercise, case, name)
    if exercise.precision_of(case.sizes) is Precision.SPLIT_FP16:
        run = functools.partial(_output, exercise, case, values_of(case), name)
        yield from wrong_products.outcomes(run)
    yield from _familiar(exercise, case, name)
    yield from _outcomes(exercise, case, name, right)


def _of_another_output(
    exercise: Exercise, case: Case, name: str
) -> Iterator[tuple[str, Tensor | None]]:
    for other in exercise.outputs:
        if other != name and exercise.shapes[other] == exercise.shapes[name]:
            value = _output(exercise, case, values_of(case), other)
            yield f"these are the values that belong in {other}", value


def _familiar(exercise: Exercise, case: Case, name: str) -> Iterator[tuple[str, Tensor | None]]:
    """Familiar mistakes in the reference's own steps: see wrong_steps."""
    if sum(tensor.numel() for tensor in case.tensors.values()) > MOST_IN_STEPS:
        return
    values = values_of(case)
    eps = float(case.values.get("eps", 0.0))
    merging = {"var_mean": wrong_statistics.part(wrong=welford.forms)}
    methods = merging if "welford" in exercise.name else {}
    run = functools.partial(_output, exercise, case, values, name)
    yield from wrong_steps.outcomes(run, values, eps, methods)
    yield from wrong_derivatives.outcomes(run, values)
    if "W" in exercise.shapes:
        yield from unowned.outcomes(run)


def _outcomes(
    exercise: Exercise, case: Case, name: str, right: Tensor
) -> Iterator[tuple[str, Tensor | None]]:
    """Mistakes with the inputs, the steps and the places of values."""
    values, shape = values_of(case), exercise.shapes[name]
    tensors = floating(reads(exercise.reference, {k: values[k] for k in case.tensors}))
    for k, tensor in tensors.items():
        if exercise.shapes[k] == shape and tensor.numel() > 1:
            yield f"these are the values of {k}, as they were", tensor
        elif axes := exercise.shapes[k].split():
            lengths = [case.sizes.get(w, 1) if w in axes else 1 for w in shape.split()]
            if math.prod(lengths) == tensor.numel() > 1:
                alone = tensor.reshape(lengths).expand(right.shape).to(right.device)
                yield f"these are the values of {k} alone: the rest does not get into them", alone
                yield f"this is what comes out if {k} is a factor of the result", alone * right
                yield f"this is what comes out if the result is divided by {k}", right / alone
    for words, changed in misread.mistakes(exercise.shapes, case, tensors, shape):
        yield words, _output(exercise, case, {**values, **changed}, name)
    yield from missteps.outcomes(lambda: _output(exercise, case, values, name), values)
    if not right.is_floating_point():
        for n in misread.ROUNDS:
            yield f"what is wrong is right modulo {n}: is it counted within a block?", right % n
        for k, tensor in tensors.items():
            if exercise.shapes[k].split()[:-1] == shape.split():
                indexed = tensor.gather(-1, right.cpu().unsqueeze(-1)).squeeze(-1).to(right.dtype)
                yield f"these are values of {k}, where their places should be", indexed
    if exercise.needs and right.ndim == 2:
        yield from _of_hopper(exercise, case, name, right, tensors)
    if right.ndim == 2 and right.is_floating_point():
        vectors = {k: torch.zeros_like(t) for k, t in tensors.items() if t.ndim == 1}
        bare = _output(exercise, case, {**values, **vectors}, name)
        yield from _misplaced(right, right if bare is None else bare.to(right.device))


def _of_hopper(
    exercise: Exercise, case: Case, name: str, right: Tensor, tensors: Values
) -> Iterator[tuple[str, Tensor | None]]:
    """Mistakes with the places of a tile's elements."""
    if exercise.exact:
        words = "the tile is read as if there were no swizzle"
        yield f"this is what comes out if {words}", hopper.unswizzled(right.cpu())
        words = "row and column of the tile change places: load_tile takes the column first"
        yield f"this is what comes out if {words}", hopper.mirrored(right.cpu())
    if terms := case.sizes.get("terms"):
        values = values_of(case)
        vectors = {k: t for k, t in floating(tensors).items() if exercise.shapes[k] == "N"}

        def run(changed: Values) -> Tensor | None:
            return _output(exercise, case, {**values, **changed}, name)

        axis = exercise.shapes[name].split().index("M")
        yield from hopper.owned(run, vectors, terms, axis)
        yield from hopper.by_column(run, floating(tensors)["x"])


def _misplaced(right: Tensor, bare: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Values of a matrix that stand elsewhere; `bare` is without what single rows or columns add.

    Where a tile reaches beyond the matrix, it holds zeros.
    """
    words = "this is what comes out if {}"
    square = max(right.shape)
    whole = functional.pad(bare, (0, square - bare.shape[1], 0, square - bare.shape[0])).diagonal()
    rows, columns = right.shape
    for used, line in (("row", whole[:rows, None]), ("column", whole[:columns])):
        other = {"row": "column", "column": "row"}[used]
        said = f"the {used} is used where the {other} should be: ty for tx, say, or the reverse"
        yield words.format(said), line + (right - bare)
    for side in TILES:
        said = "row and column are swapped within each tile: threadIdx.x for y, and y for x?"
        yield words.format(said), _turned(bare, side, 1) + (right - bare)
        for own in OWN:
            said = "i and j are swapped among the elements that a thread owns"
            yield words.format(said), _turned(right, own, side)


def _turned(matrix: Tensor, count: int, step: int) -> Tensor:
    """Element (r, c) where (c, r) was, in tiles of count x count patches of step x step each."""
    side = count * step
    rows, columns = matrix.shape
    whole = functional.pad(matrix, (0, -columns % side, 0, -rows % side))
    patches = whole.reshape(-1, count, step, whole.shape[1] // side, count, step)
    return patches.transpose(1, 4).reshape(whole.shape)[:rows, :columns]


def _output(exercise: Exercise, case: Case, values: Values, name: str) -> Tensor | None:
    """What the reference makes of these values; None where it cannot take them."""
    try:
        return outputs(exercise, case, values)[name]
    except (RuntimeError, ValueError, TypeError, IndexError, AttributeError, WorkbookError):
        return None
