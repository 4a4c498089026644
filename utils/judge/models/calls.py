"""The calls that a model is tried by: what goes in, what came out, and the rules for one answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from utils.judge.models import accuracy
from utils.judge.models.accuracy import Truth
from utils.judge.models.verdict import Rejected, Why
from utils.process.guest.framing import Header

Draw = Callable[[Sequence[int], torch.Generator], Tensor]


def _normal(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, device=generator.device)


def _heavy(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Student's t, of 2 degrees of freedom."""
    squares = _normal((2, *shape), generator).square().sum(0)
    return _normal(shape, generator) / (squares / 2).sqrt()


OUTLIERS = "outliers among normal"
KINDS: dict[str, Draw] = {
    "uniform": lambda shape, g: torch.rand(shape, generator=g, device=g.device),
    "normal": _normal,
    "shifted": lambda shape, g: _normal(shape, g) + 5,
    "heavy-tailed": _heavy,
    OUTLIERS: _normal,  # until add_outliers()
    "large": lambda shape, g: 100 * _normal(shape, g),
    "small": lambda shape, g: 1e-3 * _normal(shape, g),
}


def add_outliers(
    inputs: Sequence[Tensor], state: Sequence[Tensor], generator: torch.Generator
) -> None:
    """Put elements of up to 2^30 into one column of each matrix that goes in, where the weights of
    its length have zeros: they must cost the others of their row nothing."""
    for x in inputs:
        weights = [W for W in state if W.ndim == 2 and W.shape[-1] == x.shape[-1]]
        if x.ndim != 2 or not weights:
            continue
        column = int(torch.randint(x.shape[-1], (), generator=generator))
        exponents = 10 * ((torch.arange(len(x)) + 1) % 4)  # a row without one among four
        x[:, column] *= torch.exp2(exponents.to(x.dtype))
        for W in weights:
            W[:, column] = 0


def randomised(parameter: Tensor, generator: torch.Generator) -> Tensor:
    """Matrices as a fresh model has them; what is 0 or 1 in one is neither here."""
    if parameter.ndim == 2:
        return parameter
    return parameter + 0.5 * _normal(parameter.shape, generator)


@dataclass
class Call:
    """One call: what goes in, and what should come out once that has been asked for."""

    kind: str
    state: list[Tensor]
    inputs: list[Tensor]
    grad_output: Tensor | None  # the gradient of the output, where gradients are asked for
    train: bool = False  # whether they might be

    def expected(self, model: nn.Module) -> dict[str, Truth]:
        """Worked out after the run."""
        return accuracy.truths(model, self.state, self.inputs, self.grad_output)

    def blobs(self) -> list[bytes]:
        """As the process gets it."""
        tensors = [*self.state, *self.inputs]
        return [
            *map(bytes_of, tensors),
            bytes_of(self.grad_output) if self.grad_output is not None else b"",
        ]


@dataclass
class Answer:
    """What came of a call: hints in `told`, and bytes."""

    told: Header
    output: bytes
    after: list[bytes]  # of the inputs, then of the parameters
    grads: list[bytes | None]
    kept: bytes = b""  # the output again, after the last call


# --- rules for one answer


def same_parameters(told: object, named: list[tuple[str, nn.Parameter]]) -> None:
    """Raises Rejected where those that a process tells of are not those of Model."""
    wanted = [[n, list(p.shape), str(p.dtype).removeprefix("torch.")] for n, p in named]
    if told == wanted:
        return
    if not (isinstance(told, list) and all(isinstance(t, list) and len(t) == 3 for t in told)):
        raise Rejected(Why.PROTOCOL, "its answer does not fit the question")
    theirs, ours = [str(t[0]) for t in told], [n for n, _ in named]
    if missing := [name for name in ours if name not in theirs]:
        say = f"it has no {', '.join(missing)}"
    elif more := [name for name in theirs if name not in ours]:
        say = f"it has {', '.join(more)[:200]}, too"
    elif theirs != ours:
        say = "they come in another order"
    else:
        say = ", ".join(
            f"{w[0]} is {t[1:]}, not {w[1:]}" for t, w in zip(told, wanted, strict=True) if t != w
        )
    raise Rejected(Why.PARAMETERS, f"{say}; Model has {', '.join(ours)}")


def about(parameter: Tensor, blob: bytes) -> bool:
    """Whether these are its values, but for a last digit, which hangs on a processor's vectors."""
    if len(blob) != 4 * parameter.numel():
        return False
    return torch.allclose(tensor_of(blob, parameter.shape), parameter, rtol=1e-4, atol=1e-5)


def answers_of(told: Header, values: list[bytes], calls: Sequence[Call]) -> list[Answer]:
    """The blobs of each call, in their places. Raises Rejected where they do not add up."""
    found, blobs = [], iter(values)
    try:
        results = told["results"]
        for call, result in zip(calls, results, strict=True):
            flags = [flag is True for flag in result["grads"]]
            output = next(blobs)
            after = [next(blobs) for _ in (*call.inputs, *call.state)]
            grads = [next(blobs) if flag else None for flag in flags]
            found.append(Answer(result, output, after, grads))
        for answer in found:
            answer.kept = next(blobs)
        if next(blobs, None) is not None:
            raise ValueError
    except (KeyError, TypeError, ValueError, StopIteration):
        raise Rejected(Why.PROTOCOL, "its answer does not fit the question") from None
    return found


def place_of(call: Call, number: int, calls: Sequence[Call]) -> str:
    """Which call it was, as messages say it."""
    return f"{call.kind} values, call {number + 1} of {len(calls)}"


def output_of(answer: Answer, shape: torch.Size, place: str) -> Tensor:
    """The output, where it is a plain tensor of that shape. Raises Rejected."""
    told = answer.told
    if told.get("kind") not in ("torch.Tensor", "torch.nn.parameter.Parameter"):
        raise Rejected(Why.NOT_A_TENSOR, f"{place}: forward returned a {told.get('kind')}"[:300])
    if told.get("error"):
        raise Rejected(Why.LAUNCH, f"{place}: {told['error']}"[:300])
    if told.get("shape") != list(shape):
        raise Rejected(Why.SHAPE, f"{place}: {told.get('shape')}, not {list(shape)}"[:300])
    if told.get("type") != "float32":
        raise Rejected(Why.DTYPE, f"{place}: {told.get('type')}, not float32"[:300])
    if len(answer.output) != 4 * shape.numel():
        raise Rejected(Why.PROTOCOL, "its answer does not fit the question")
    return tensor_of(answer.output, shape)


def same_inputs(call: Call, answer: Answer, names: Sequence[str], place: str) -> None:
    """Raises Rejected where the call has written to an input or a parameter."""
    for i, (was, now) in enumerate(zip([*call.inputs, *call.state], answer.after, strict=True)):
        if bytes_of(was) == now:
            continue
        if i < len(call.inputs):
            raise Rejected(Why.INPUT, f"{place}: input {i} was written to")
        raise Rejected(Why.PARAMETER, f"{place}: {names[i - len(call.inputs)]} was written to")


def gradients_right(answer: Answer, expected: dict[str, Truth], place: str) -> None:
    """Raises Rejected where a gradient is missing or wrong."""
    names = [name for name in expected if name != "output"]
    if answer.told.get("trains") is not True:
        raise Rejected(
            Why.NO_TRAINING, f"{place}: the output hangs on no parameter: no backward was written"
        )
    if len(answer.grads) != len(names):
        raise Rejected(Why.PROTOCOL, "its answer does not fit the question")
    for name, grad in zip(names, answer.grads, strict=True):
        truth = expected[name]
        if grad is None:
            raise Rejected(Why.NO_TRAINING, f"{place}: {name} gets no gradient")
        if len(grad) != 4 * truth.value.numel():
            raise Rejected(Why.GRADIENT, f"{place}: that of {name} has another shape or dtype")
        if found := accuracy.objection(tensor_of(grad, truth.value.shape), truth):
            raise Rejected(Why.GRADIENT, f"{place}: that of {name}: {found[0]}: {found[1]}")


def whose(output: Tensor, truths: Sequence[Truth], number: int) -> int | None:
    """The other call that these are the values of."""
    for other, truth in enumerate(truths):
        if other != number and accuracy.objection(output, truth) is None:
            return other
    return None


def tensor_of(blob: bytes, shape: Sequence[int]) -> Tensor:
    """A float32 tensor of these bytes."""
    return torch.frombuffer(bytearray(blob), dtype=torch.float32).reshape(tuple(shape))


def bytes_of(tensor: Tensor) -> bytes:
    """Those of a float32 tensor, row by row."""
    return tensor.detach().contiguous().numpy().tobytes()
