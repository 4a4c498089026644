"""Are these the values of a model? Held against float64, by two rules that both must hold.

* KernelBench's: each element within atol = rtol = 1e-4 of the expected one, or within as much of it
  as the float32 path of PyTorch itself may be off here.
* Ours: the whole tensor is no further from float64, by the root of its squares' sum, than MARGIN
  times what PyTorch's own float32 path is, or what one rounding of every input makes of it. A
  product in TF32, fp16 or bf16 is hundreds of times further.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from utils.judge.oracle import full_precision

TOLERANCE = 1e-4
MARGIN = 8.0
UNIT = 2.0**-24
NUDGES = 3  # evaluations with each input, parameter and gradient rounded otherwise
NEAR = 1e-2  # a relative error below: imprecise, not wrong
POISON = 0x7F7F7F7F  # as bits: what fresh memory holds


@dataclass(frozen=True)
class Truth:
    """What a tensor should hold, in float64, and how far off PyTorch's float32 is on its own."""

    value: Tensor
    root: float  # of the sum of squares of the error, over all elements
    most: float  # the largest error of one

    def times(self, power: float) -> "Truth":
        """That of a value multiplied by a power of two."""
        return Truth(self.value * power, self.root * power, self.most * power)


def truths(
    model: nn.Module,
    state: Sequence[Tensor],
    inputs: Sequence[Tensor],
    grad_output: Tensor | None = None,
) -> dict[str, Truth]:
    """What a call of a reference model, with these parameters, should give: "output" and, where
    `grad_output` is that of it, the gradient of each input, by its number, and parameter, by name.
    """
    exact = _evaluate(model, state, inputs, grad_output, torch.float64)
    where = exact["output"].device
    generator = torch.Generator(where).manual_seed(0)

    def nudged(tensors: Sequence[Tensor]) -> list[Tensor]:
        drawn = partial(torch.randn, generator=generator, dtype=torch.float64, device=where)
        return [t.double() * (1 + UNIT * drawn(t.shape)) for t in tensors]

    with full_precision():
        others = [_evaluate(model, state, inputs, grad_output, torch.float32)]
    for _ in range(NUDGES):
        # grad_output, too: a gradient that is a sum of it alone is rounded like any other.
        near = nudged([grad_output])[0] if grad_output is not None else None
        others.append(_evaluate(model, nudged(state), nudged(inputs), near, torch.float64))
    expected = {}
    for name, value in exact.items():
        errors = [(other[name].double() - value).nan_to_num(0, 0, 0) for other in others]
        root = max(float(error.norm()) for error in errors)
        most = max(float(error.abs().max()) for error in errors)
        expected[name] = Truth(value, root, most)
    return expected


def _evaluate(
    model: nn.Module,
    state: Sequence[Tensor],
    inputs: Sequence[Tensor],
    grad_output: Tensor | None,
    dtype: torch.dtype,
) -> Mapping[str, Tensor]:
    model = model.to(dtype)
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), state, strict=True):
            parameter.copy_(value)
    leaves = [x.to(dtype).clone().requires_grad_(grad_output is not None) for x in inputs]
    with torch.set_grad_enabled(grad_output is not None):
        output = model(*leaves)
    values = {"output": output.detach()}
    if grad_output is not None:
        named = {f"input {i}": leaf for i, leaf in enumerate(leaves)} | dict(
            model.named_parameters()
        )
        gradients = torch.autograd.grad(output, list(named.values()), grad_output.to(dtype))
        values |= dict(zip(named, gradients, strict=True))
    return values


def deviation(got: Tensor, truth: Truth) -> tuple[str, str] | None:
    """What is wrong with a tensor, of the right shape: one of "not written", "nan", "wrong values",
    "too imprecise", and a sentence. None where nothing is."""
    want = truth.value
    left = int((got.view(torch.int32) == POISON).sum())
    if left:
        return "not written", f"{left} of {got.numel()} elements were never written"
    bad = ~got.isfinite() & want.isfinite()
    if bad.any():
        return "nan", f"{int(bad.sum())} of {got.numel()} elements are not finite"
    error = (got.double() - want).abs()
    within = torch.clamp(TOLERANCE * (1 + want.abs()), min=MARGIN * truth.most)
    root = float(error.norm())
    allowed = MARGIN * truth.root + 4 * UNIT * float(want.norm()) + 1e-30
    relative = root / (float(want.norm()) or 1.0)
    if root <= allowed and bool((error <= within).all()):
        return None
    at = int((error / within).argmax())
    place = tuple(int(i) for i in torch.unravel_index(torch.tensor(at), want.shape))
    message = f"at {place} {want.flatten()[at]:.7g} is expected, got {got.flatten()[at]:.7g}"
    if relative < NEAR:
        times = root / max(truth.root, 1e-30)
        far = f"the error against float64 is {times:.0f} times that of PyTorch's float32"
        return "too imprecise", f"{far} ({relative:.1e} of the values); {message}"
    count = int((error > within).sum())
    return "wrong values", f"{count} of {got.numel()} elements; {message}"
