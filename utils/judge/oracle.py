"""What a kernel should have computed, and how far from it a correct one may be.

The expected values are the reference in float64. How far off float32 may be depends on the order
of its sums, which is the kernel's to choose, so the bound must pass every order and still refuse
a product in TF32 or fp16. For each output element, with u = 2**-24 for float32:

    scale = |expected| + response
    bound = (ORDER * sqrt(fan_in) * u + PATH * err) * scale + TYPICAL * u * median(scale) + LEAST

* response: what a relative change of every value by u, at random, does to the output, in units of
  u: of the inputs, and of what each operation of the reference gives. It is the conditioning of
  the problem: for a dot product sqrt(2 * sum((a*b)**2)), for GroupNorm |x| / std, which is large
  where the mean is. Inputs alone would not do: behind a clamp they change nothing, and what is
  rounded there may yet be normalised.
* fan_in: how many input values one output depends on. The roundings of a sum of n terms are a
  random walk; taken serially, in fp32, it ends near 0.3 * sqrt(n) * u * scale, a tree's far below.
* err: the largest error of PyTorch's own fp32 path on these inputs, in units of scale.
* TYPICAL: 8e-6 of a typical value, for elements that are all but zero: log(1 + exp(x)) passes.

A product in TF32 is off by about 2**-12 * scale: beyond the bound for every K up to 8192.

A product of split halves whose running sum the tensor core rounds, and nobody promotes, is within
the bound up to K = 8192 or so: `Exercise.share` makes it so much narrower where that is the lesson.

A kernel of two products may round what lies between them, as PyTorch's does in bfloat16:
`Exercise.between` says by how much, and the response in units of it comes on top, BETWEEN times.

Where nothing is rounded, as in the minimum of a row (`Exercise.exact`), the bound is 0.

Changes of u do not see a bend that lies a few roundings away: a sum of large terms that comes out
just above a clamp's edge, and in a right kernel just below. Few elements of a call meet one, so
only what looks wrong is asked about again (`bends`), with changes as large as the error allowed.
"""

import contextlib
import functools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from utils.course.cases import Case, sample
from utils.course.exercise import Exercise, dimensions, reads
from utils.cuda.arguments import Arguments
from utils.ground.errors import WorkbookError
from utils.judge.torch_calls import Args, Function, Options, TorchCalls

Values = Arguments  # all that the reference may ask for, by name
Tensors = Mapping[str, Tensor]
UNIT = {
    torch.float64: 2.0**-53,
    torch.float32: 2.0**-24,
    torch.float16: 2.0**-11,
    torch.bfloat16: 2.0**-8,
}
ORDER, PATH, TYPICAL = 4.0, 8.0, 128.0
BETWEEN = 6.0  # times what roundings do at random: an element in a billion is further off
LARGE = 1 << 20  # elements that are worth threads
FEW = 32  # outputs that are too few to have a typical one among them
LEAST = 2.0**-118  # e^x overflows, or 1 / x is 0, before a result is so small
PROBES = 16  # random changes that the response is estimated from
MOST = 1 << 18  # elements of a tensor whose changes are not drawn for it alone
STEP = 1e-7  # their relative size, in float64
BEND = 4.0  # times the response to small changes: more than chance makes of it


@dataclass(frozen=True)
class Expected:
    """Float64 values (integers as they are), and the bound on |got - value|, element by element."""

    value: Tensor
    bound: Tensor


@contextlib.contextmanager
def full_precision() -> Iterator[None]:
    """PyTorch's fp32 products in fp32, whatever the notebook has allowed; restored afterwards."""
    mkldnn: Any = torch.backends.mkldnn  # which PyTorch puts together when it is imported
    backends = (torch.backends.cuda.matmul, mkldnn.matmul)
    before = [backend.fp32_precision for backend in backends]
    try:
        for backend in backends:
            backend.fp32_precision = "ieee"
        yield
    finally:
        for backend, precision in zip(backends, before, strict=True):
            backend.fp32_precision = precision


def floating(values: Values) -> dict[str, Tensor]:
    """Those of the values that are floating tensors."""
    tensors = {name: value for name, value in values.items() if isinstance(value, Tensor)}
    return {name: tensor for name, tensor in tensors.items() if tensor.is_floating_point()}


def evaluate(
    exercise: Exercise, case: Case, dtype: torch.dtype | None, device: str
) -> dict[str, Tensor]:
    """The reference's outputs by name; floating inputs are cast to `dtype`, unless it is None."""
    return outputs(exercise, case, values_of(case, dtype, device))


def values_of(case: Case, dtype: torch.dtype | None = torch.float64, device: str = "cpu") -> Values:
    """Copies of all that the reference may ask for, floating tensors cast to `dtype`."""
    return {
        name: _cast(value, dtype, device) if isinstance(value, Tensor) else value
        for name, value in case.values.items()
    }


def _cast(value: Tensor, dtype: torch.dtype | None, device: str) -> Tensor:
    dtype = dtype if dtype and value.is_floating_point() else value.dtype
    moved = value.to(device)  # first, since a card converts sooner than a core
    return moved.to(dtype, copy=moved is value)


def outputs(exercise: Exercise, case: Case, values: Values) -> dict[str, Tensor]:
    """What the reference makes of `values`, by the names of the exercise's outputs."""
    result = exercise.reference(**reads(exercise.reference, values))
    results = (result,) if isinstance(result, Tensor) else result
    if len(results) != len(exercise.outputs):
        raise WorkbookError(
            f"the reference of {exercise.id} returns {len(results)} tensors for the outputs "
            f"{', '.join(exercise.outputs)}"
        )
    made = {}
    for name, tensor in zip(exercise.outputs, results, strict=True):
        shape = dimensions(exercise.shapes[name], case.sizes)
        if tensor.numel() != torch.Size(shape).numel():
            raise WorkbookError(
                f"the reference of {exercise.id} gives '{name}' the shape {tuple(tensor.shape)}, "
                f"its spec says {shape}"
            )
        made[name] = tensor.reshape(shape)
    return made


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Small tensors gain nothing from threads, and on a busy machine wait long for each other."""
    with threads(0):
        yield


@contextlib.contextmanager
def threads(elements: int) -> Iterator[None]:
    """As many as tensors of so many elements altogether are worth."""
    before = torch.get_num_threads()
    torch.set_num_threads(os.cpu_count() or 1 if elements > LARGE else 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@one_thread()
@torch.inference_mode(False)
@torch.enable_grad()  # whatever the notebook has switched off
def expect(
    exercise: Exercise,
    case: Case,
    dtypes: dict[str, torch.dtype],
    device: str = "cpu",
    probes: int = PROBES,
    bends: bool = False,
) -> dict[str, Expected]:
    """What the outputs of a call should hold. `dtypes` are those of the kernel's own tensors.

    Fewer probes are cheaper; the response is then taken as even over each output tensor. With
    `bends`, what changes of the size of the allowed error do to an output is allowed as well.
    """
    wide = values_of(case, device=device)
    values = {name: tensor.detach() for name, tensor in outputs(exercise, case, wide).items()}
    inexact = [name for name, tensor in values.items() if tensor.is_floating_point()]
    inexact = [] if exercise.exact else inexact
    bounds = {name: torch.zeros(tensor.shape, device=device) for name, tensor in values.items()}
    if inexact:
        responses = _responses(exercise, case, wide, values, inexact, probes)
        fans = fan_in(exercise, case, wide, inexact)
        others = _others(exercise, case, values, inexact)
        with full_precision():
            path = evaluate(exercise, case, torch.float32, device)
    for name in inexact:
        scale = values[name].abs().nan_to_num(0, 0) + responses[name]
        unit = UNIT.get(dtypes[name], UNIT[torch.float32])
        # an empty maximum is 0: where the fp32 path overflows it gives no licence to do so. Nor do
        # values near the end of the type's range, which have lost digits or become 0.
        least = torch.finfo(torch.float32).tiny / UNIT[torch.float32]
        errors = ((path[name].double() - values[name]).abs() / (scale + least)).nan_to_num(0, 0)
        relative = ORDER * fans[name] ** 0.5 * unit + PATH * float(errors.max())
        typical = _typical(scale[values[name].isfinite()], others[name])
        if bends:
            far = _reach(exercise, case, wide, values, name, relative)
            scale = torch.where(far > BEND * responses[name], values[name].abs() + far, scale)
        bound = relative * scale + TYPICAL * unit * typical
        bounds[name] = exercise.share * bound + LEAST
        if exercise.between:
            bounds[name] += BETWEEN * exercise.between * responses[name]
    return {name: Expected(values[name], bounds[name]) for name in values}


def _typical(scale: Tensor, others: Tensor) -> float:
    """The median of the scales of finite values; 0 where there are none."""
    scales = torch.cat([scale, others[others.isfinite()]])
    return float(scales.median()) if len(scales) else 0.0


def _responses(
    exercise: Exercise, case: Case, wide: Values, values: Tensors, names: list[str], probes: int
) -> dict[str, Tensor]:
    """Root mean square of the outputs' change under random relative changes of all values, over
    the size of these."""
    squares = {name: torch.zeros_like(values[name]) for name in names}
    for changes in _changed(exercise, case, wide, values, names, probes, STEP):
        for name in names:
            squares[name] += changes[name] ** 2 / probes
    if probes < PROBES:
        squares = {name: square.mean().expand_as(square) for name, square in squares.items()}
    return {name: square.sqrt() for name, square in squares.items()}


def _reach(
    exercise: Exercise, case: Case, wide: Values, values: Tensors, name: str, step: float
) -> Tensor:
    """The largest such change of an output, and a little more. A sum that may come out on either
    side of two edges is on one or the other, and never in the middle."""
    most = torch.zeros_like(values[name])
    for changes in _changed(exercise, case, wide, values, [name], PROBES, step):
        most = torch.maximum(most, changes[name].abs())
    return 1.25 * most


def _changed(
    exercise: Exercise,
    case: Case,
    wide: Values,
    values: Tensors,
    names: list[str],
    probes: int,
    step: float,
) -> Iterator[dict[str, Tensor]]:
    """What random relative changes of this size, of all values, do to outputs, over the size."""
    generator = torch.Generator(values[names[0]].device).manual_seed(0)
    for _ in range(probes):
        changed = {k: _nudged(tensor, generator, step) for k, tensor in floating(wide).items()}
        with _Rounding(generator, step):
            nudged = outputs(exercise, case, {**wide, **changed})
        yield {name: (nudged[name] - values[name]).nan_to_num(0, 0, 0) / step for name in names}


def _nudged(value: Tensor, generator: Generator, step: float) -> Tensor:
    """The value, each element changed a little at random: by a piece of what was drawn once."""
    count = value.numel()
    if step != STEP or not FEW * FEW < count <= MOST:
        return _changes(value.shape, value.dtype, generator, step).mul_(value)
    drawn = _drawn(value.dtype, value.device)
    start = int(torch.randint(len(drawn) - count + 1, (), generator=generator, device=value.device))
    return drawn[start : start + count].view(value.shape) * value


def _changes(
    shape: torch.Size | int, dtype: torch.dtype, generator: Generator, step: float
) -> Tensor:
    most = 3**0.5 * step  # evenly spread up to there: then it is the root of the mean square
    changes = torch.empty(shape, dtype=dtype, device=generator.device)
    return changes.uniform_(1 - most, 1 + most, generator=generator)


@functools.cache
def _drawn(dtype: torch.dtype, device: torch.device) -> Tensor:
    """Changes enough for most tensors. To draw one takes ten times as long as to use it."""
    return _changes(2 * MOST, dtype, Generator(device).manual_seed(1), STEP)


class _Rounding(TorchCalls):
    """PyTorch's operations, each with its result changed a little at random, as rounding would.

    A view of what was rounded already is left as it is. (A TorchDispatchMode would do, and import
    torch._dynamo, at three seconds.)
    """

    def __init__(self, generator: Generator, step: float):
        super().__init__()
        self.generator, self.step = generator, step

    def call(self, function: Function, args: Args, options: Options) -> Any:
        result = function(*args, **options)
        if isinstance(result, tuple):
            return type(result)([self._rounded(part) for part in result])  # `.min(dim=1)` has names
        return self._rounded(result)

    def _rounded(self, result: Any) -> Any:
        fresh = isinstance(result, Tensor) and result.is_floating_point() and not result._is_view()
        return _nudged(result, self.generator, self.step) if fresh else result


def _others(exercise: Exercise, case: Case, values: Tensors, names: list[str]) -> Tensors:
    """Magnitudes of more outputs of this size, where one call has too few to tell a typical one.

    They depend on nothing else, so they are kept.
    """
    key = (id(exercise), tuple(case.sizes.items()), str(values[names[0]].device), *names)
    if key not in _kept:
        _kept[key] = exercise, _more_outputs(exercise, case, values, names)
    return _kept[key][1]


_kept: dict[tuple[object, ...], tuple[Exercise, Tensors]] = {}  # with the owner of each id


def _more_outputs(exercise: Exercise, case: Case, values: Tensors, names: list[str]) -> Tensors:
    few = min(values[name].numel() for name in names) < FEW
    few = few and sum(tensor.numel() for tensor in case.tensors.values()) < 10_000
    extra = {name: [values[name].new_empty(0)] for name in names}
    generator = torch.Generator().manual_seed(0)
    for _ in range(PROBES if few else 0):
        again = sample(exercise, case.sizes, "standard normal", generator)
        more = evaluate(exercise, again, torch.float64, str(values[names[0]].device))
        for name in names:
            extra[name].append(more[name].abs().reshape(-1)[:FEW])
    return {name: torch.cat(magnitudes) for name, magnitudes in extra.items()}


def fan_in(exercise: Exercise, case: Case, wide: Values, names: list[str]) -> dict[str, int]:
    """How many input values an output depends on: non-zero derivatives, at a few elements."""
    leaves = {name: value.clone().requires_grad_() for name, value in floating(wide).items()}
    results = outputs(exercise, case, {**wide, **leaves})
    fans = {}
    for name in names:
        flat = results[name].reshape(-1)
        chosen = {0, flat.numel() // 3, 2 * flat.numel() // 3, flat.numel() - 1}
        fans[name] = 1
        for i in chosen if flat.requires_grad else ():
            gradients = torch.autograd.grad(
                flat[i], list(leaves.values()), retain_graph=True, allow_unused=True
            )
            count = sum(int((one != 0).sum()) for one in gradients if one is not None)
            fans[name] = max(fans[name], count)
    return fans
