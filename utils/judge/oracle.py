"""What a kernel should have computed, and how far from it a correct one may be.

The expected values are the reference in float64. How far off float32 may be depends on the order
of its sums, which is the kernel's to choose, so the bound must pass every order and still refuse
a product in TF32 or fp16. For each output element, with u = 2**-24 for float32:

    scale = |expected| + response
    bound = (ORDER * sqrt(fan_in) * u + PATH * err) * scale + TYPICAL * u * median(scale) + LEAST

* response: what a relative change of every value by u, at random, does to the output, in units of
  u: of the inputs, and of what each operation of the reference gives (of `in_operations`, where
  PyTorch has fused some). It is the conditioning of
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

Most of that is work for which a right kernel has no need. So the bound is made in steps, each no
smaller than the one before it: what keeps to one of them keeps to the bound. The first needs
neither response nor fan-in.

Changes of u do not see a bend that lies a few roundings away: a sum of large terms that comes out
just above a clamp's edge, and in a right kernel just below. Few elements of a call meet one, so
only what looks wrong is asked about again (`bends`), with changes as large as the error allowed.
Nor do they see what float32 loses below 2**-126: a weight of e**-100 times a gradient of 10**9. So
these changes have that size at least.

Of an infinite parameter one right formula makes NaN where another has a limit. Where an output
depends on one (`Expected.either`), NaN is as good as what is expected, and where that is NaN,
anything is. What is left to be wrong is a finite value in place of an infinite one.
"""

import contextlib
import functools
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from utils.course.cases import Case, formula_decides, sample
from utils.course.exercise import Exercise, dimensions, reads
from utils.cuda.arguments import Arguments
from utils.ground.errors import WorkbookError
from utils.judge.changes import STEP, Tensors, changes

Values = Arguments  # all that the reference may ask for, by name
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
# Of a bound: probes at most, whether the fan-in is in it, whether PyTorch's own fp32 path is.
STEPS = (0, False, False), (2, False, False), (2, True, False), (PROBES, True, True)
BEND = 4.0  # times the response to small changes: more than chance makes of it


@dataclass(frozen=True)
class Expected:
    """Float64 values (integers as they are), and the bound on |got - value|, element by element.

    It is the last of `bounds`; each before it is sooner made, and nowhere larger.
    """

    value: Tensor
    bounds: Sequence[Callable[[], Tensor]]
    either: Tensor | None = None  # where NaN may be as right as another value

    @property
    def bound(self) -> Tensor:
        """The bound itself."""
        return self.bounds[-1]()

    @classmethod
    def known(cls, value: Tensor, bound: Tensor) -> "Expected":
        """With a bound that is there."""
        return cls(value, [lambda: bound])


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
    expected = {
        name: Expected.known(tensor, torch.zeros(tensor.shape, device=device))
        for name, tensor in values.items()
        if name not in inexact
    }
    bounds = _Bounds(exercise, case, wide, values, inexact, dtypes, probes)
    for name in inexact:
        steps = [functools.partial(bounds.made, name, *parts) for parts in STEPS]
        if bends:
            steps = [functools.partial(bounds.made, name, bends=True)]
        expected[name] = Expected(values[name], [functools.cache(step) for step in steps])
    if formula_decides(exercise, case):
        for name, reached in _reached(exercise, case, wide).items():
            expected[name] = replace(expected[name], either=reached)
    return {name: expected[name] for name in values}


def _reached(exercise: Exercise, case: Case, wide: Values) -> dict[str, Tensor]:
    """Which elements of the outputs depend on an infinite value: with NaN in its place they are
    NaN. None of an output of integers."""
    marked = {n: v.where(v.isfinite(), torch.nan) for n, v in floating(wide).items()}
    results = outputs(exercise, case, {**wide, **marked})
    return {name: tensor.detach().isnan() for name, tensor in results.items()}


class _Bounds:
    """The bounds of a call's outputs, of which each part is worked out when it is first needed.

    What they are made of only grows from step to step, and so do they: each operation here gives no
    less where an operand is larger, however it rounds.
    """

    def __init__(
        self,
        exercise: Exercise,
        case: Case,
        wide: Values,
        values: Tensors,
        names: list[str],
        dtypes: Mapping[str, torch.dtype],
        probes: int,
    ):
        self.exercise, self.case, self.wide, self.values = exercise, case, wide, values
        self.names, self.dtypes, self.probes = names, dtypes, probes
        self._changes = self._changed(names, STEP)
        self._squares = {name: torch.zeros_like(values[name]) for name in names}
        self._changed_by = 0  # probes so far
        self._fans: dict[str, int] = {}

    @one_thread()
    @torch.inference_mode(False)
    @torch.enable_grad()
    def made(
        self,
        name: str,
        probes: int = PROBES,
        fan: bool = True,
        path: bool = True,
        bends: bool = False,
    ) -> Tensor:
        """That of one output; lower where a part is left out: some probes of its response, the
        fan-in, or what PyTorch's own fp32 path is off by."""
        exercise, value, response = self.exercise, self.values[name], self._response(name, probes)
        scale = value.abs().nan_to_num(0, 0) + response
        unit = UNIT.get(self.dtypes[name], UNIT[torch.float32])
        relative = ORDER * float(self._fan(name) if fan else 1) ** 0.5 * unit
        if path:
            relative += PATH * self._error(name, scale)
        typical = _typical(scale[value.isfinite()], self._others[name])
        if bends:
            far = self._reach(name, relative)
            scale = torch.where(far > BEND * response, value.abs() + far, scale)
        bound: Tensor = relative * scale + TYPICAL * unit * typical
        bound = exercise.share * bound + LEAST
        return bound + BETWEEN * exercise.between * response if exercise.between else bound

    def _response(self, name: str, probes: int) -> Tensor:
        """Root mean square of an output's change under random relative changes of all values, over
        the size of these; a part of it after some probes."""
        while self._changed_by < min(probes, self.probes):
            for changed, change in next(self._changes).items():
                self._squares[changed] += change**2 / self.probes
            self._changed_by += 1
        square = self._squares[name]
        if self.probes < PROBES:  # of few a mean tells, of the elements that change at all
            square = (square.sum() / (square > 0).sum().clamp(min=1)).expand_as(square)
        return square.sqrt()

    def _reach(self, name: str, step: float) -> Tensor:
        """The largest such change of an output, and a little more. A sum that may come out on
        either side of two edges is on one or the other, and never in the middle."""
        most = torch.zeros_like(self.values[name])
        changed = self._changed([name], step, underflow=True)
        for change in itertools.islice(changed, PROBES):
            most = torch.maximum(most, change[name].abs())
        return 1.25 * most

    def _changed(
        self, names: list[str], step: float, underflow: bool = False
    ) -> Iterator[dict[str, Tensor]]:
        steps = self.exercise.in_operations or self.exercise.reference
        run = functools.partial(outputs, replace(self.exercise, reference=steps), self.case)
        return changes(run, self.wide, self.values, names, step, underflow)

    def _error(self, name: str, scale: Tensor) -> float:
        """The largest of PyTorch's own fp32 path, in units of scale."""
        # An empty maximum is 0: where the fp32 path overflows it gives no licence to do so. Nor do
        # values near the end of the type's range, which have lost digits or become 0.
        least = torch.finfo(torch.float32).tiny / UNIT[torch.float32]
        errors = (self._path[name].double() - self.values[name]).abs() / (scale + least)
        return float(errors.nan_to_num(0, 0).max())

    @functools.cached_property
    def _path(self) -> Tensors:
        device = str(self.values[self.names[0]].device)
        with full_precision():
            return evaluate(self.exercise, self.case, torch.float32, device)

    def _fan(self, name: str) -> int:
        if name not in self._fans:
            self._fans |= fan_in(self.exercise, self.case, self.wide, [name])
        return self._fans[name]

    @functools.cached_property
    def _others(self) -> Tensors:
        return _others(self.exercise, self.case, self.values, self.names)


def _typical(scale: Tensor, others: Tensor) -> float:
    """The median of the scales of finite values; 0 where there are none."""
    scales = torch.cat([scale, others[others.isfinite()]])
    return float(scales.median()) if len(scales) else 0.0


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
    """How many input values an output depends on: non-zero derivatives, at a few elements; one is
    the largest, since many may be 0, such as gradients of what was not chosen."""
    leaves = {name: value.clone().requires_grad_() for name, value in floating(wide).items()}
    results = outputs(exercise, case, {**wide, **leaves})
    fans = dict.fromkeys(names, 1)
    for name in names:
        flat = results[name].reshape(-1)
        largest = int(flat.detach().abs().nan_to_num(0, 0).argmax())
        chosen = {0, flat.numel() // 3, 2 * flat.numel() // 3, flat.numel() - 1, largest}
        counts = []
        for i in chosen if flat.requires_grad else ():
            gradients = torch.autograd.grad(
                flat[i], list(leaves.values()), retain_graph=True, allow_unused=True
            )
            some = [one.count_nonzero() for one in gradients if one is not None]
            counts.append(sum(some, torch.zeros((), dtype=torch.int64, device=flat.device)))
        if counts:  # once for all: a GPU is waited for each time
            fans[name] = max(1, int(torch.stack(counts).max()))
    return fans
