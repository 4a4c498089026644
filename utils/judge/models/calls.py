"""The calls that a model is tried by: what goes in, what came out, and the rules for one answer."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from utils.judge.models import accuracy
from utils.judge.models.accuracy import How, Truth, named
from utils.judge.models.verdict import Rejected, Why
from utils.process.guest.framing import Header

Draw = Callable[[Sequence[int], torch.Generator], Tensor]


def _normal(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, device=generator.device)


def _heavy(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Student's t, of 2 degrees of freedom."""
    squares = _normal((2, *shape), generator).square().sum(0)
    return _normal(shape, generator) / (squares / 2).sqrt()


FLOATS = "float16 bfloat16 float32 float64".split()
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


CONSTANT = "constant"  # what is normalised has no spread


FAR = "far from 0"  # what is normalised has a mean beside which its spread is small
OFFSET = 100.0


def move_far(state: Sequence[Tensor]) -> None:
    """Add as much to the bias behind each matrix."""
    for matrix, bias in itertools.pairwise(state):
        if matrix.ndim == 2 and bias.shape == matrix.shape[:1]:
            bias += OFFSET


def make_constant(state: Sequence[Tensor]) -> None:
    """Let every channel be like the first: a norm then divides by the root of eps."""
    for tensor in state:
        if tensor.ndim:  # else it is a number for all channels
            tensor[...] = tensor[:1]


def randomised(parameter: Tensor, generator: torch.Generator) -> Tensor:
    """Matrices and filters as a fresh model has them; what is 0 or 1 in one is neither here."""
    many = parameter.ndim >= 2 and not _of_channels(parameter)
    if parameter.ndim == 2 or many and bool((parameter != parameter.flatten()[0]).any()):
        return parameter
    return (parameter + 0.5 * _normal(parameter.shape, generator)).to(parameter.dtype)


def _of_channels(parameter: Tensor) -> bool:
    """Whether it has one number for each of something, as a bias or a scale has."""
    return parameter.numel() == max(parameter.shape, default=1)


def running(model: nn.Module, generator: torch.Generator) -> dict[str, Tensor]:
    """Running means and variances, by name, that a fresh model does not have."""
    drawn = {}
    for name, buffer in model.named_buffers():
        noise = 0.5 * _normal(buffer.shape, generator)
        if name.endswith("running_mean"):
            drawn[name] = buffer + noise
        if name.endswith("running_var"):
            drawn[name] = buffer * noise.exp()
    return drawn


@dataclass
class Call:
    """One call: what goes in, and what should come out once that has been asked for."""

    kind: str
    state: list[Tensor]
    inputs: list[Tensor]
    grad_output: Tensor | None  # the gradient of the output, where gradients are asked for
    train: bool = False  # whether they might be
    made: int = 0  # which model of the process is called
    mode: bool = True  # as of nn.Module.train()
    strided: bool = False  # whether the inputs are not contiguous
    expanded: bool = False  # whether the grad_output is one row's, for all rows
    frozen: tuple[int, ...] = ()  # parameters, by number, that need no gradient
    idle: bool = False  # whether launches do nothing
    types: tuple[str, ...] = ()  # of the inputs; () where all are float32
    buffers: dict[str, Tensor] = field(default_factory=dict)  # that are set before it

    def expected(self, model: nn.Module) -> dict[str, Truth]:
        """Worked out after the run."""
        return accuracy.truths(model, self.state, self.inputs, self.grad_output, self.how())

    def how(self) -> How:
        """As the reference is told of it."""
        return How(self.types, self.mode, self.buffers)

    def kinds(self) -> list[str]:
        """The types of the inputs."""
        return list(self.types) or ["float32"] * len(self.inputs)

    def wanted(self, names: Sequence[str]) -> list[str]:
        """Of inputs and parameters, those that get gradients."""
        if self.grad_output is None:
            return []
        inputs = [f"input {i}" for i, kind in enumerate(self.kinds()) if kind in FLOATS]
        return [*inputs, *(n for i, n in enumerate(names) if i not in self.frozen)]

    def blobs(self) -> list[bytes]:
        """As the process gets it."""
        tensors = [*self.state, *self.buffers.values(), *self.inputs]
        return [
            *map(bytes_of, tensors),
            bytes_of(self.grad_output) if self.grad_output is not None else b"",
        ]

    def header(self) -> Header:
        """The same, besides the values."""
        shapes = [list(x.shape) for x in self.inputs]
        names = "train made mode strided expanded frozen idle".split()
        described = {name: getattr(self, name) for name in names}
        return {"shapes": shapes, "types": self.kinds(), "buffers": list(self.buffers), **described}

    def __str__(self) -> str:
        tensors = [x for x in self.inputs if x.ndim]
        rows = f", {tensors[0].shape[0]} rows" if tensors else ""
        said = [word for word in ("strided", "expanded") if getattr(self, word)]
        said += [] if self.mode else ["eval()"]
        said += ["some parameters frozen"] if self.frozen else []
        return ", ".join([f"{self.kind} values{rows}", *said])


@dataclass
class Answer:
    """What came of a call: hints in `told`, and bytes."""

    header: Header
    output: bytes = b""  # of all outputs, one behind the other
    after: list[bytes] = field(default_factory=list)  # of the inputs, then of the parameters
    grads: list[bytes | None] = field(default_factory=list)
    again: list[bytes | None] = field(default_factory=list)  # of half the grad_output, afterwards
    kept: bytes = b""  # the output again, after the last call

    @property
    def raised(self) -> str:
        """The exception that came instead."""
        return (
            f"{self.header['raised']}: {self.header.get('text')}" if "raised" in self.header else ""
        )


# --- rules for one answer


def same_parameters(reply: object, named: list[tuple[str, nn.Parameter]]) -> None:
    """Raises Rejected where those that a process tells of are not those of Model."""
    wanted = [[n, list(p.shape), str(p.dtype).removeprefix("torch.")] for n, p in named]
    if reply == wanted:
        return
    if not (isinstance(reply, list) and all(isinstance(t, list) and len(t) == 3 for t in reply)):
        raise Rejected(Why.PROTOCOL, "its answer does not fit the question")
    theirs, ours = [str(t[0]) for t in reply], [n for n, _ in named]
    if missing := [name for name in ours if name not in theirs]:
        say = f"it has no {', '.join(missing)}"
    elif more := [name for name in theirs if name not in ours]:
        say = f"it has {', '.join(more)[:200]}, too"
    elif theirs != ours:
        say = "they come in another order"
    else:
        say = ", ".join(
            f"{w[0]} is {t[1:]}, not {w[1:]}" for t, w in zip(reply, wanted, strict=True) if t != w
        )
    raise Rejected(Why.PARAMETERS, f"{say}; Model has {', '.join(ours)}")


def about(parameter: Tensor, blob: bytes) -> bool:
    """Whether these are its values, but for a last digit, which hangs on a processor's vectors."""
    if len(blob) != parameter.nbytes:
        return False
    theirs = tensor_of(blob, parameter.shape, parameter.dtype)
    slack = 1e-4 if parameter.element_size() > 2 else 1e-2
    return torch.allclose(theirs, parameter, rtol=slack, atol=slack / 10)


def answers_of(header: Header, values: list[bytes], calls: Sequence[Call]) -> list[Answer]:
    """The blobs of each call, in their places. Raises Rejected where they do not add up."""
    answers, blobs = [], iter(values)
    try:
        for call, result in zip(calls, header["results"], strict=True):
            if not isinstance(result, dict):
                raise TypeError
            if "raised" in result:
                answers.append(Answer(result))
                continue
            flags = [flag is True for flag in result["grads"]]
            output = next(blobs)
            after = [next(blobs) for _ in (*call.inputs, *call.state)]
            grads = [next(blobs) if flag else None for flag in flags]
            half = len(grads) // 2
            answers.append(Answer(result, output, after, grads[:half], grads[half:]))
        for answer in answers:
            answer.kept = b"" if answer.raised else next(blobs)
        if next(blobs, None) is not None:
            raise ValueError
    except (KeyError, TypeError, ValueError, StopIteration):
        raise Rejected(Why.PROTOCOL, "its answer does not fit the question") from None
    return answers


def place_of(call: Call, number: int, calls: Sequence[Call]) -> str:
    """Which call it was, as messages say it."""
    return f"{call}, call {number + 1} of {len(calls)}"


def outputs_of(answer: Answer, wanted: Sequence[Truth], place: str) -> list[Tensor]:
    """The outputs, where they are plain tensors of these shapes and types. Raises Rejected."""
    header = answer.header
    described = header.get("outputs")
    if not isinstance(described, list) or not all(isinstance(one, dict) for one in described):
        raise Rejected(Why.PROTOCOL, "its answer does not fit the question")
    if header.get("error"):
        raise Rejected(Why.LAUNCH, f"{place}: {header['error']}"[:300])
    if len(described) != len(wanted) or (header.get("several") is True) != (len(wanted) > 1):
        kind = "in a tuple or list" if header.get("several") is True else "on its own"
        said = f"{place}: {len(described)} outputs {kind}, not {len(wanted)}"
        raise Rejected(Why.NOT_A_TENSOR, said)
    outputs, at = [], 0
    for number, (one, truth) in enumerate(zip(described, wanted, strict=True)):
        here = place if len(wanted) == 1 else f"{place}: {named(number)}"
        shape = list(truth.value.shape)
        if one.get("kind") not in ("torch.Tensor", "torch.nn.parameter.Parameter"):
            raise Rejected(Why.NOT_A_TENSOR, f"{here}: forward returned a {one.get('kind')}"[:300])
        if one.get("shape") != shape:
            raise Rejected(Why.SHAPE, f"{here}: {one.get('shape')}, not {shape}"[:300])
        if one.get("type") != truth.kind:
            raise Rejected(Why.DTYPE, f"{here}: {one.get('type')}, not {truth.kind}"[:300])
        data = answer.output[at : (at := at + truth.bytes)]
        if len(data) != truth.bytes:
            raise Rejected(Why.PROTOCOL, "its answer does not fit the question")
        outputs.append(tensor_of(data, shape, truth.dtype))
    if at != len(answer.output):
        raise Rejected(Why.PROTOCOL, "its answer does not fit the question")
    return outputs


def outputs_among(truths: Mapping[str, Truth]) -> list[Truth]:
    """What the outputs should be, in order."""
    return [truths[name] for i in range(len(truths)) if (name := named(i)) in truths]


def same_inputs(call: Call, answer: Answer, names: Sequence[str], place: str) -> None:
    """Raises Rejected where the call has written to an input or a parameter."""
    for i, (was, now) in enumerate(zip([*call.inputs, *call.state], answer.after, strict=True)):
        if bytes_of(was) == now:
            continue
        if i < len(call.inputs):
            raise Rejected(Why.INPUT, f"{place}: input {i} was written to")
        raise Rejected(Why.PARAMETER, f"{place}: {names[i - len(call.inputs)]} was written to")


def gradients_right(
    answer: Answer, expected: dict[str, Truth], names: Sequence[str], place: str
) -> None:
    """Raises Rejected where one of the gradients `names` is missing or wrong."""
    if answer.header.get("trains") is not True:
        raise Rejected(
            Why.NO_TRAINING, f"{place}: the output hangs on no parameter: no backward was written"
        )
    if not len(answer.grads) == len(answer.again) == len(names):
        raise Rejected(Why.PROTOCOL, "its answer does not fit the question")
    for name, grad, again in zip(names, answer.grads, answer.again, strict=True):
        truth = expected.get(name)
        if truth is None:  # Model's own is none
            continue
        if grad is None or again is None:
            raise Rejected(Why.NO_TRAINING, f"{place}: {name} gets no gradient")
        if len(grad) != truth.bytes or len(again) != len(grad):
            raise Rejected(Why.GRADIENT, f"{place}: that of {name} has another shape or dtype")
        first, second = (tensor_of(g, truth.value.shape, truth.dtype) for g in (grad, again))
        if problem := accuracy.deviation(first, truth):
            raise Rejected(Why.GRADIENT, f"{place}: that of {name}: {problem[0]}: {problem[1]}")
        if problem := accuracy.deviation(second, truth.times(0.5)):
            said = f"that of {name} when asked for once more: {problem[0]}: {problem[1]}"
            raise Rejected(Why.GRADIENT, f"{place}: {said}")


def whose(output: Tensor, truths: Mapping[int, Truth]) -> int | None:
    """The call, of these, that an output has the values of."""
    for other, truth in truths.items():
        alike = output.shape == truth.value.shape
        if alike and accuracy.deviation(output, truth) is None:
            return other
    return None


def tensor_of(blob: bytes, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
    """A tensor of these bytes."""
    if not blob:
        return torch.empty(tuple(shape), dtype=dtype)
    if dtype == torch.bool:  # any byte but 0 is true
        return torch.frombuffer(bytearray(blob), dtype=torch.uint8).reshape(tuple(shape)) != 0
    return torch.frombuffer(bytearray(blob), dtype=dtype).reshape(tuple(shape))


def bytes_of(tensor: Tensor) -> bytes:
    """Those of a tensor, row by row."""
    flat = tensor.detach().contiguous().view(-1)
    return bytes(flat.view(torch.uint8).numpy().tobytes()) if flat.numel() else b""
