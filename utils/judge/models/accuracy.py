"""Are these the values of a model? Held against float64, by two rules that both must hold.

* KernelBench's: each element within atol = rtol = 1e-4 of the expected one, or within as much of it
  as the float32 path of PyTorch itself may be off here.
* Ours: the whole tensor is no further from float64, by the root of its squares' sum, than MARGIN
  times what PyTorch's own float32 path is, or what one rounding of every input makes of it. A
  product in TF32, fp16 or bf16 is hundreds of times further.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn

from utils.judge.models.task import PYTHON, as_given
from utils.judge.oracle import full_precision

TOLERANCE = 1e-4
HALVES = 1e-2  # the same for numbers of 16 bits
MARGIN = 8.0
UNIT = 2.0**-24
FEW = 64  # numbers of which the error says little of another's
NUDGES = 3  # evaluations with each input, parameter and gradient rounded otherwise
NEAR = 1e-2  # a relative error below: imprecise, not wrong
POISON = 0x7F7F7F7F  # as bits: what fresh memory holds


@dataclass(frozen=True)
class How:
    """How a model is called, besides its values."""

    types: Sequence[str] = ()  # of the inputs
    mode: bool = True  # as of nn.Module.train()
    buffers: Mapping[str, Tensor] = field(default_factory=dict)

    def typed(self, inputs: Sequence[Tensor]) -> list[tuple[Tensor, str]]:
        """Each with its type."""
        return list(zip(inputs, self.types or [""] * len(inputs), strict=True))


USUAL = How()


@dataclass(frozen=True)
class Truth:
    """What a tensor should hold, in float64 where those are no whole numbers, and how far off
    PyTorch is on its own."""

    value: Tensor
    root: float  # of the sum of squares of the error, over all elements
    most: float  # the largest error of one
    kind: str = "float32"  # the dtype of a model's answer
    sure: Tensor | None = None  # of whole numbers: where rounding does not change them

    @property
    def dtype(self) -> torch.dtype:
        """The same as PyTorch's."""
        dtype: torch.dtype = getattr(torch, self.kind)
        return dtype

    @property
    def bytes(self) -> int:
        """That a model's answer has."""
        return self.value.numel() * self.dtype.itemsize

    def times(self, power: float) -> "Truth":
        """That of a value multiplied by a power of two."""
        return Truth(self.value * power, self.root * power, self.most * power, self.kind)


def truths(
    model: nn.Module,
    state: Sequence[Tensor],
    inputs: Sequence[Tensor],
    grad_output: Tensor | None = None,
    how: How = USUAL,
) -> dict[str, Truth]:
    """What a call of a reference model, with these parameters, should give: "output", "output 1"
    and so on, and, where `grad_output` is that of one of them, the gradient of each input, by its
    number, and parameter, by name.
    """
    values = state, inputs, grad_output
    own = next((x.dtype for x in (*inputs, *state) if x.is_floating_point()), torch.float32)
    try:
        exact = values_of(model, *values, how, torch.float64)
    except (RuntimeError, TypeError):  # it has numbers of a type that it names itself
        exact = {name: value.clone() for name, value in values_of(model, *values, how, own).items()}
    where = exact["output"].device
    generator = torch.Generator(where).manual_seed(0)
    unit = float(torch.finfo(own).eps) / 2 if own != torch.float64 else UNIT
    fine = torch.float64 if exact["output"].dtype == torch.float64 else own

    def nudged(tensors: Sequence[Tensor]) -> list[Tensor]:
        drawn = partial(torch.randn, generator=generator, dtype=torch.float64, device=where)
        floats = [t.is_floating_point() for t in tensors]
        pairs = zip(tensors, floats, strict=True)
        return [t.double() * (1 + unit * drawn(t.shape)) if f else t for t, f in pairs]

    with full_precision():
        others = [values_of(model, *values, how, own)]
    for _ in range(NUDGES):
        # grad_output, too: a gradient that is a sum of it alone is rounded like any other.
        near = nudged([grad_output])[0] if grad_output is not None else None
        others.append(values_of(model, nudged(state), nudged(inputs), near, how, fine))
    expected = {}
    for name, value in exact.items():
        kind = str(others[0][name].dtype).removeprefix("torch.")
        differing = [other[name] != value for other in others] if _whole(value) else []
        sure = ~torch.stack(differing).any(0) if differing else None
        value = value if _whole(value) else value.double()
        errors = [(other[name].double() - value.double()).nan_to_num(0, 0, 0) for other in others]
        root = max(float(error.norm()) for error in errors)
        most = max((float(error.abs().max()) for error in errors if error.numel()), default=0.0)
        expected[name] = Truth(value, root, most, kind, sure)
    return expected


def _whole(tensor: Tensor) -> bool:
    return not tensor.is_floating_point()


def values_of(
    model: nn.Module,
    state: Sequence[Tensor],
    inputs: Sequence[Tensor],
    grad_output: Tensor | None,
    how: How,
    dtype: torch.dtype,
) -> Mapping[str, Tensor]:
    """What Model gives, in numbers of a type: outputs and gradients, by their names."""
    model = copy.deepcopy(model).to(dtype).train(how.mode)
    buffers = dict(model.named_buffers())
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), state, strict=True):
            parameter.copy_(value)
        for name, value in how.buffers.items():
            buffers[name].copy_(value)
    trains = grad_output is not None
    floats = [x.is_floating_point() and t not in PYTHON for x, t in how.typed(inputs)]
    leaves = [x.to(dtype) if f else x for x, f in zip(inputs, floats, strict=True)]
    leaves = [x.clone().requires_grad_(trains and f) for x, f in zip(leaves, floats, strict=True)]
    with torch.set_grad_enabled(trains):
        made = model(*as_given(leaves, how.types))
    outputs = list(made) if isinstance(made, tuple | list) else [made]
    values = {named(i): output.detach() for i, output in enumerate(outputs)}
    if grad_output is not None:
        wanted = {f"input {i}": leaf for i, leaf in enumerate(leaves) if floats[i]}
        wanted |= dict(model.named_parameters())
        (output,) = [o for o in outputs if o.requires_grad][:1]
        gradients = torch.autograd.grad(
            output, list(wanted.values()), grad_output.to(output.dtype), allow_unused=True
        )
        pairs = zip(wanted, gradients, strict=True)
        values |= {name: gradient for name, gradient in pairs if gradient is not None}
    return values


def named(number: int) -> str:
    """An output's name."""
    return f"output {number}" if number else "output"


def deviation(got: Tensor, truth: Truth) -> tuple[str, str] | None:
    """What is wrong with a tensor, of the right shape: one of "not written", "nan", "wrong values",
    "too imprecise", and a sentence. None where nothing is."""
    want = truth.value
    if not got.numel():
        return None
    if left := _unwritten(got):
        return "not written", f"{left} of {got.numel()} elements were never written"
    if truth.sure is not None:
        return _whole_numbers(got, want, truth.sure)
    bad = ~got.isfinite() & want.isfinite()
    if bad.any():
        return "nan", f"{int(bad.sum())} of {got.numel()} elements are not finite"
    infinite = ~want.isfinite()
    if infinite.any():  # NaN is NaN's, and each infinity its own
        got, want = got.double(), want.double()
        if not torch.equal(got[infinite].nan_to_num(), want[infinite].nan_to_num()):
            return "wrong values", f"infinite or NaN: {int(infinite.sum())} elements should be"
        got, want = got.masked_fill(infinite, 0), want.masked_fill(infinite, 0)
    unit, tolerance = UNIT, TOLERANCE
    if truth.dtype.itemsize < 4:
        unit, tolerance = float(torch.finfo(truth.dtype).eps) / 2, HALVES
    error = (got.double() - want).abs()
    within = torch.clamp(tolerance * (1 + want.abs()), min=MARGIN * truth.most)
    root = float(error.norm())
    # PyTorch's own error of a few numbers may be small by luck. Equal ones are one.
    by_luck = max(1.0, FEW / want.unique().numel()) ** 0.5
    allowed = MARGIN * by_luck * truth.root + 4 * unit * float(want.norm()) + 1e-30
    relative = root / (float(want.norm()) or 1.0)
    if root <= allowed and bool((error <= within).all()):
        return None
    message = _worst(got, want, error / within, ".7g")
    if relative < NEAR:
        times = root / max(truth.root, 1e-30)
        far = f"the error against float64 is {times:.0f} times that of PyTorch's {truth.kind}"
        return "too imprecise", f"{far} ({relative:.1e} of the values); {message}"
    count = int((error > within).sum())
    return "wrong values", f"{count} of {got.numel()} elements; {message}"


def _unwritten(got: Tensor) -> int:
    """Elements that are as fresh memory is; of one byte, any value may be so."""
    if got.element_size() == 1:
        return 0
    each = got.contiguous().view(-1).view(torch.uint8).view(got.numel(), got.element_size())
    return int((each == POISON & 0xFF).all(1).sum())


def _whole_numbers(got: Tensor, want: Tensor, sure: Tensor) -> tuple[str, str] | None:
    """They are right or not; where rounding changes them, any may be."""
    wrong = (got != want) & sure
    if not wrong.any():
        return None
    message = _worst(got, want, wrong.to(torch.int8))
    return "wrong values", f"{int(wrong.sum())} of {got.numel()} elements; {message}"


def _worst(got: Tensor, want: Tensor, badness: Tensor, form: str = "") -> str:
    """The worst element, what is expected there and what came."""
    at = badness.argmax()
    place = tuple(int(i) for i in torch.unravel_index(at, want.shape))
    return f"at {place} {want[place].item():{form}} is expected, got {got[place].item():{form}}"
