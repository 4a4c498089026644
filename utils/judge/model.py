"""`workbook judge model.py`: is a `ModelNew` what it says? Written to be asked of files that lie.

The file runs in a box: no network, no other file, none of what is expected. It is given bytes, and
of what it gives back only the bytes of tensors count. What should be in them is worked out here,
after the run. That its own kernels compute them is shown twice, by what becomes of the values:
with the kernels switched off they must not come out right, and with PyTorch's own operations
switched off, all but products, sums of two tensors, copies and views, they must.

What the process tells of itself, such as a patched function or a thread left behind, can fail a
file and never pass it.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

import torch
from torch import Tensor, nn

from utils import files
from utils.cuda.model_box import Box, Left, Session
from utils.errors import ArgumentValueError
from utils.judge import accuracy
from utils.judge.accuracy import Truth
from utils.judge.model_task import Size, Task, find
from utils.judge.oracle import one_thread

LOADING, CALLING = (
    120.0,
    30.0,
)  # seconds to load a file, builds not counted; for the calls of a size
SEEDS = 5  # for each size
_KERNEL = "__global__"


class Why(StrEnum):
    """What a model is rejected for."""

    BUILD = "does not build"
    LOAD = "does not load"
    NO_MODEL = "no ModelNew"
    PARAMETERS = "other parameters"
    INITIAL = "other initial values"
    RAISED = "raises"
    ENDED = "ended"
    TIMEOUT = "timeout"
    PROTOCOL = "answered out of turn"
    NOT_A_TENSOR = "not a plain tensor"
    SHAPE = "wrong shape"
    DTYPE = "wrong dtype"
    LAUNCH = "launch error"
    INPUT = "input modified"
    PARAMETER = "parameter modified"
    CHANGED = "output changed afterwards"
    STALE = "stale output"
    NOT_WRITTEN = "not written"
    NAN = "nan"
    VALUES = "wrong values"
    IMPRECISE = "too imprecise"
    NO_TRAINING = "does not train"
    GRADIENT = "wrong gradient"
    PATCHED = "changes its surroundings"
    LEFT = "left behind"
    NO_KERNEL = "no kernel"
    LIBRARY = "library"


class Rejected(Exception):
    """A model is not what it should be: `why`, and a message."""

    def __init__(self, why: Why, message: str):
        super().__init__(f"{why}: {message}")
        self.why, self.message = why, message


@dataclass(frozen=True)
class Verdict:
    """What the judge says of a file. `notes` are on what was not judged."""

    task: str
    passed: bool
    seed: int
    reason: str = ""
    message: str = ""
    calls: int = 0
    runtime: dict | None = None  # milliseconds, by whose they are; None where nothing was timed
    notes: list[str] = field(default_factory=list)

    def as_json(self) -> dict:
        """For other programs."""
        return {"evaluation": "passed" if self.passed else "failed", **asdict(self)}

    def __str__(self) -> str:
        lines = [f"Evaluation: {'passed' if self.passed else 'failed'}"]
        if not self.passed:
            lines += [f"Reason: {self.reason}: {self.message}", f"Seed: {self.seed}"]
        else:
            lines += [f"Task: {self.task}, {self.calls} calls beside float64, gradients too"]
        return "\n".join([*lines, *self.notes])


UNTIMED = "Runtime: not measured; correctness alone is judged, on the emulator"


def judge(
    path: Path, *, task: int | None = None, reference: Path | None = None, seed: int | None = None
) -> Verdict:
    """The verdict on a file in KernelBench's format. Raises ToolError where there is no box, and
    WorkbookError where it is not known what the file should compute."""
    if not path.is_file():
        raise ArgumentValueError(f"there is no file {path}")
    text = files.read_source(path)
    wanted = find(path, task, reference)
    with Box() as box:
        return judge_text(text, wanted, box, seed)


def judge_text(text: str, task: Task, box: Box, seed: int | None = None) -> Verdict:
    """The same of the text of a file, in a box that is there."""
    seed = secrets.randbits(31) if seed is None else seed
    trial = Trial(text, task, box, seed)
    told = {"task": task.name, "seed": seed, "notes": [*trial.notes, UNTIMED]}
    try:
        with one_thread(), torch.enable_grad():
            trial.run()
    except Rejected as rejected:
        return Verdict(passed=False, reason=rejected.why, message=rejected.message, **told)
    told["notes"] = [*trial.notes, UNTIMED]
    return Verdict(passed=True, calls=trial.count, **told)


# --- what a model is tried on

Draw = Callable[[Sequence[int], torch.Generator], Tensor]


def _heavy(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Student's t, of 2 degrees of freedom."""
    squares = torch.randn((2, *shape), generator=generator).square().sum(0)
    return torch.randn(shape, generator=generator) / (squares / 2).sqrt()


KINDS: dict[str, Draw] = {
    "uniform": lambda shape, g: torch.rand(shape, generator=g),
    "normal": lambda shape, g: torch.randn(shape, generator=g),
    "shifted": lambda shape, g: torch.randn(shape, generator=g) + 5,
    "heavy-tailed": _heavy,
    "large": lambda shape, g: 100 * torch.randn(shape, generator=g),
    "small": lambda shape, g: 1e-3 * torch.randn(shape, generator=g),
}


@dataclass
class Call:
    """One call: what goes in, and what should come out once that has been asked for."""

    kind: str
    state: list[Tensor]
    inputs: list[Tensor]
    slope: Tensor | None  # the gradient of the output, where gradients are asked for
    train: bool = False  # whether they might be

    def expected(self, model: nn.Module) -> dict[str, Truth]:
        """Worked out after the run."""
        return accuracy.truths(model, self.state, self.inputs, self.slope)

    def blobs(self) -> list[bytes]:
        """As the process gets it."""
        tensors = [*self.state, *self.inputs]
        return [*map(_bytes, tensors), _bytes(self.slope) if self.slope is not None else b""]


@dataclass
class Answer:
    """What came of a call: hints in `told`, and bytes."""

    told: dict
    output: bytes
    after: list[bytes]  # of the inputs, then of the parameters
    grads: list[bytes | None]
    kept: bytes = b""  # the output again, after the last call


class Trial:
    """A file and what it is tried on, by a seed. `run` raises Rejected."""

    def __init__(self, text: str, task: Task, box: Box, seed: int):
        self.text, self.task, self.box, self.seed = text, task, box, seed
        self.generator = torch.Generator().manual_seed(seed)
        self.notes: list[str] = []
        self.count = 0
        self.sizes: list[Size] = []  # that the model takes
        self.made = 0  # models of the session

    def run(self) -> None:
        """Raises Rejected where the file is not what it should be."""
        with self.box.open() as session:
            self._safely(session, self._behaves)
        size = self.sizes[0]
        with self.box.open() as session:
            self._without_kernels(session, size)
        with self.box.open() as session:
            self._safely(session, self._without_library, size)

    @staticmethod
    def _safely(session: Session, action: Callable, *arguments) -> None:
        try:
            action(session, *arguments)
        except Left as left:
            if left.late:
                raise Rejected(Why.TIMEOUT, f"the model {left.why}") from None
            out_of_turn = left.why == str(Why.PROTOCOL)
            why = Why.PROTOCOL if out_of_turn else Why.ENDED
            raise Rejected(why, f"its process {left.why}") from None

    def _load(self, session: Session, mode: str) -> None:
        told, _ = session.ask(LOADING, "load", text=self.text, mode=mode)
        if "error" in told:
            text = str(told.get("text", ""))
            why = Why.BUILD if text.startswith("Error building extension") else Why.LOAD
            raise Rejected(why, f"{told['error']}: {text}")
        if told.get("new") is not True:
            raise Rejected(Why.NO_MODEL, "the file defines no class ModelNew")
        if mode == "plain":
            self._surroundings(session)

    def _behaves(self, session: Session) -> None:
        """As it is: does it compute what it should, and nothing else?"""
        self._load(session, "plain")
        if _KERNEL not in session.source:
            raise Rejected(Why.NO_KERNEL, "the file has no kernel of its own compiled")
        tried = []
        for number, size in enumerate(self.task.small):
            if (made := self._make(session, size, number)) is None:
                continue
            calls = self._calls(size, number)
            answers = self._ask(session, made, size, calls)
            if answers is not None:
                tried.append((size, calls, answers))
                self.sizes.append(size)
        self._surroundings(session)
        for size, calls, answers in tried:  # what is expected is worked out from here on
            self._judge(self.task.make(size, 0), calls, answers)

    def _make(self, session: Session, size: Size, number: int) -> int | None:
        """Which of the session's models it is; None for a size that is refused in words."""
        reference = self.task.make(size, self.seed + number)
        named = list(reference.named_parameters())
        most = 8 * sum(p.numel() for _, p in named) + 4096
        told, values = session.ask(
            CALLING, "make", arguments=size.arguments, seed=self.seed + number, most=most
        )
        if "error" in told:
            return self._refused(size, told)
        _same_parameters(told.get("parameters"), named)
        if at := [n for (n, p), v in zip(named, values, strict=False) if not _about(p, v)]:
            raise Rejected(
                Why.INITIAL, f"the same seed gives Model and ModelNew another {', '.join(at)}"
            )
        self.made += 1
        return self.made - 1

    def _refused(self, size: Size, told: dict) -> None:
        """A model may say that it does not take a size, but for the first one."""
        said = f"{told['error']}: {told.get('text', '')}"[:500]
        if not self.sizes:
            raise Rejected(Why.RAISED, f"with {size}: {said}")
        self.notes.append(f"Not judged: {size}, which it refuses: {said}")

    def _calls(self, size: Size, number: int) -> list[Call]:
        kinds = list(KINDS)
        calls = []
        for i in range(SEEDS):
            kind = kinds[(i + number) % len(kinds)]
            inputs = [KINDS[kind](shape, self.generator) for shape in size.shapes]
            model = self.task.make(size, int(torch.randint(1 << 30, (), generator=self.generator)))
            state = [self._randomised(p.detach()) for p in model.parameters()]
            slope = None
            if (i + number) % 2 == 0:
                with torch.no_grad():
                    shape = model(*inputs).shape
                slope = torch.randn(shape, generator=self.generator)
            calls.append(Call(kind, state, inputs, slope, slope is not None))
        return calls

    def _randomised(self, parameter: Tensor) -> Tensor:
        """Matrices as a fresh model has them; what is 0 or 1 in one is neither here."""
        if parameter.ndim == 2:
            return parameter
        return parameter + 0.5 * torch.randn(parameter.shape, generator=self.generator)

    def _ask(
        self, session: Session, made: int, size: Size, calls: Sequence[Call], slopes: bool = True
    ) -> list[Answer] | None:
        blobs = [blob for call in calls for blob in call.blobs()]
        shapes = [{"shapes": size.shapes, "train": call.train} for call in calls]
        most = 16 * sum(map(len, blobs)) + (1 << 20)
        told, values = session.ask(
            CALLING, "calls", made=made, calls=shapes, blobs=blobs, most=most
        )
        if "error" in told:
            return self._refused(size, told)
        self.count += len(calls)
        return _answers(told, values, calls)

    def _judge(self, model: nn.Module, calls: Sequence[Call], answers: Sequence[Answer]) -> None:
        """What came of the calls of one size."""
        expected = [call.expected(model) for call in calls]
        names = [name for name, _ in model.named_parameters()]
        for number, (call, answer) in enumerate(zip(calls, answers, strict=True)):
            place = _place(call, number, calls)
            output = _output(answer, expected[number]["output"].value.shape, place)
            _same_inputs(call, answer, names, place)
            if found := accuracy.objection(output, expected[number]["output"]):
                whose = _whose(output, [e["output"] for e in expected], number)
                if answer.kept != answer.output:
                    raise Rejected(Why.CHANGED, f"{place}: it was not done when it was returned")
                if whose is not None:
                    raise Rejected(
                        Why.STALE, f"{place}: it returned what call {whose + 1} asks for"
                    )
                raise Rejected(Why(found[0]), f"{place}: {found[1]}")
            if answer.kept != answer.output:
                raise Rejected(
                    Why.CHANGED, f"{place}: a later call has changed what this one returned"
                )
        for number, (call, answer) in enumerate(zip(calls, answers, strict=True)):
            if call.slope is not None:
                _gradients(answer, expected[number], _place(call, number, calls))

    def _surroundings(self, session: Session) -> None:
        """What it has changed or left behind. That is seen or told before any value is judged."""
        told, _ = session.ask(CALLING, "after")
        if session.processes():
            raise Rejected(Why.LEFT, "a process that it has started still runs")
        if left := told.get("left"):
            raise Rejected(Why.LEFT, f"threads still run: {', '.join(map(str, left))}"[:500])
        if changed := told.get("changed"):
            raise Rejected(Why.PATCHED, f"it changes {', '.join(map(str, changed))}"[:500])

    def _without_kernels(self, session: Session, size: Size) -> None:
        """No launch does anything: the values must not come out right."""
        calls = [self._plain_call(size, number) for number in range(3)]
        try:
            self._load(session, "kernels off")
            told, _ = session.ask(CALLING, "make", arguments=size.arguments, seed=0, most=1 << 28)
            answers = self._ask(session, 0, size, calls)
        except (Left, Rejected):  # as it may, where its kernels are not there
            return
        model = self.task.make(size, 0)
        for call, answer in zip(calls, answers or (), strict=bool(answers)):
            truth = call.expected(model)["output"]
            if len(answer.output) != 4 * truth.value.numel():
                continue
            if accuracy.objection(_tensor(answer.output, truth.value.shape), truth) is None:
                raise Rejected(
                    Why.NO_KERNEL, "the same values come out when none of its kernels runs"
                )

    def _without_library(self, session: Session, size: Size) -> None:
        """PyTorch's own operations fail, but for products and the like: the kernels must do."""
        self._load(session, "library off")
        session.ask(CALLING, "make", arguments=size.arguments, seed=0, most=1 << 28)
        calls = [self._plain_call(size, number) for number in range(2)]
        notes = list(self.notes)
        answers = self._ask(session, 0, size, calls)
        if answers is None:
            said, self.notes = self.notes[-1].partition("refuses: ")[2], notes
            raise Rejected(
                Why.LIBRARY, f"what follows the products must be its own kernels' work ({said})"
            )
        model = self.task.make(size, 0)
        for call, answer in zip(calls, answers, strict=True):
            truth = call.expected(model)["output"]
            output = _output(answer, truth.value.shape, "PyTorch's own operations switched off")
            if found := accuracy.objection(output, truth):
                raise Rejected(
                    Why.LIBRARY, f"without PyTorch's own operations it is {found[0]}: {found[1]}"
                )

    def _plain_call(self, size: Size, number: int) -> Call:
        call = self._calls(size, 1)[number]
        return Call(call.kind, call.state, call.inputs, None, train=number % 2 == 1)


# --- rules for one answer


def _same_parameters(told: object, named: list[tuple[str, nn.Parameter]]) -> None:
    wanted = [[n, list(p.shape), str(p.dtype).removeprefix("torch.")] for n, p in named]
    if told == wanted:
        return
    told = told if isinstance(told, list) else []
    theirs, ours = [str(t[0]) for t in told if t], [n for n, _ in named]
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


def _about(parameter: Tensor, blob: bytes) -> bool:
    """Whether these are its values, but for a last digit, which hangs on a processor's vectors."""
    if len(blob) != 4 * parameter.numel():
        return False
    return torch.allclose(_tensor(blob, parameter.shape), parameter, rtol=1e-4, atol=1e-5)


def _answers(told: dict, values: list[bytes], calls: Sequence[Call]) -> list[Answer]:
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


def _place(call: Call, number: int, calls: Sequence[Call]) -> str:
    return f"{call.kind} values, call {number + 1} of {len(calls)}"


def _output(answer: Answer, shape: torch.Size, place: str) -> Tensor:
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
    return _tensor(answer.output, shape)


def _same_inputs(call: Call, answer: Answer, names: Sequence[str], place: str) -> None:
    for i, (was, now) in enumerate(zip([*call.inputs, *call.state], answer.after, strict=True)):
        if _bytes(was) == now:
            continue
        if i < len(call.inputs):
            raise Rejected(Why.INPUT, f"{place}: input {i} was written to")
        raise Rejected(Why.PARAMETER, f"{place}: {names[i - len(call.inputs)]} was written to")


def _gradients(answer: Answer, expected: dict[str, Truth], place: str) -> None:
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
        if found := accuracy.objection(_tensor(grad, truth.value.shape), truth):
            raise Rejected(Why.GRADIENT, f"{place}: that of {name}: {found[0]}: {found[1]}")


def _whose(output: Tensor, truths: Sequence[Truth], number: int) -> int | None:
    """The other call that these are the values of."""
    for other, truth in enumerate(truths):
        if other != number and accuracy.objection(output, truth) is None:
            return other
    return None


def _tensor(blob: bytes, shape: Sequence[int]) -> Tensor:
    return torch.frombuffer(bytearray(blob), dtype=torch.float32).reshape(tuple(shape))


def _bytes(tensor: Tensor) -> bytes:
    return tensor.detach().contiguous().numpy().tobytes()
