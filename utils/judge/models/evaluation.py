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
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from utils.ground import files
from utils.ground.errors import ArgumentValueError
from utils.judge.models import accuracy, requests
from utils.judge.models.calls import (
    KINDS,
    OUTLIERS,
    Answer,
    Call,
    about,
    add_outliers,
    answers_of,
    gradients_right,
    output_of,
    place_of,
    randomised,
    same_inputs,
    same_parameters,
    tensor_of,
    whose,
)
from utils.judge.models.tasks import Size, Task, find
from utils.judge.models.verdict import Rejected, Verdict, Why
from utils.judge.oracle import one_thread
from utils.process.box import Box, Session
from utils.process.child import Gone
from utils.process.guest.framing import Header

SEEDS = 5  # for each size
LARGEST = 4 << 20  # bytes of a file
_KERNEL = "__global__"
UNTIMED = "Runtime: not measured; correctness alone is judged, on the emulator"


def asked(path: Path, task: int | None, reference: Path | None) -> tuple[str, Task]:
    """A file's text, and what it should compute. Raises WorkbookError where that is not known."""
    if not path.is_file():
        raise ArgumentValueError(f"there is no file {path}")
    if path.stat().st_size > LARGEST:
        raise ArgumentValueError(f"{path.name} has more than {LARGEST:,} bytes")
    return files.read_source(path), find(path, task, reference)


def judge_text(text: str, task: Task, box: Box, seed: int | None = None) -> Verdict:
    """The verdict on the text of a file in KernelBench's format."""
    seed = secrets.randbits(31) if seed is None else seed
    trial = Trial(text, task, box, seed)
    untimed = [UNTIMED] if box.backend == "emulator" else []
    verdict = Verdict(passed=True, task=task.name, seed=seed)
    try:
        with one_thread(), torch.enable_grad():
            trial.run()
        verdict = replace(verdict, calls=trial.count)
    except Rejected as rejected:
        why, message = rejected.why, rejected.message
        verdict = replace(verdict, passed=False, reason=why, message=message)
    return replace(verdict, notes=[*trial.notes, *untimed])


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
            requests.safely(self._behaves, session)
        size = self.sizes[0]
        with self.box.open() as session:
            self._without_kernels(session, size)
        with self.box.open() as session:
            requests.safely(self._without_library, session, size)

    def _behaves(self, session: Session) -> None:
        """As it is: does it compute what it should, and nothing else?"""
        requests.load(session, self.text, "plain")
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
        requests.surroundings(session)
        for size, calls, answers in tried:  # what is expected is worked out from here on
            self._judge(self.task.make(size, 0), calls, answers)

    def _make(self, session: Session, size: Size, number: int) -> int | None:
        """Which of the session's models it is; None for a size that is refused in words."""
        reference = self.task.make(size, self.seed + number)
        named = list(reference.named_parameters())
        most = 8 * sum(p.numel() for _, p in named) + 4096
        told, values = session.ask(
            requests.CALLING, "make", arguments=size.arguments, seed=self.seed + number, most=most
        )
        if "error" in told:
            self._refused(size, told)
            return None
        same_parameters(told.get("parameters"), named)
        if at := [n for (n, p), v in zip(named, values, strict=False) if not about(p, v)]:
            raise Rejected(
                Why.INITIAL, f"the same seed gives Model and ModelNew another {', '.join(at)}"
            )
        self.made += 1
        return self.made - 1

    def _refused(self, size: Size, told: Header) -> None:
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
            state = [randomised(p.detach(), self.generator) for p in model.parameters()]
            if kind == OUTLIERS:
                add_outliers(inputs, state, self.generator)
            grad_output = None
            if (i + number) % 2 == 0:
                with torch.no_grad():
                    shape = model(*inputs).shape
                grad_output = torch.randn(shape, generator=self.generator)
            calls.append(Call(kind, state, inputs, grad_output, grad_output is not None))
        return calls

    def _ask(
        self, session: Session, made: int, size: Size, calls: Sequence[Call], gradients: bool = True
    ) -> list[Answer] | None:
        blobs = [blob for call in calls for blob in call.blobs()]
        shapes = [{"shapes": size.shapes, "train": call.train} for call in calls]
        most = 16 * sum(map(len, blobs)) + (1 << 20)
        told, values = session.ask(
            requests.CALLING, "calls", made=made, calls=shapes, blobs=blobs, most=most
        )
        if "error" in told:
            self._refused(size, told)
            return None
        self.count += len(calls)
        return answers_of(told, values, calls)

    def _judge(self, model: nn.Module, calls: Sequence[Call], answers: Sequence[Answer]) -> None:
        """What came of the calls of one size."""
        expected = [call.expected(model) for call in calls]
        names = [name for name, _ in model.named_parameters()]
        for number, (call, answer) in enumerate(zip(calls, answers, strict=True)):
            place = place_of(call, number, calls)
            output = output_of(answer, expected[number]["output"].value.shape, place)
            same_inputs(call, answer, names, place)
            if found := accuracy.objection(output, expected[number]["output"]):
                other = whose(output, [e["output"] for e in expected], number)
                if answer.kept != answer.output:
                    raise Rejected(Why.CHANGED, f"{place}: it was not done when it was returned")
                if other is not None:
                    raise Rejected(
                        Why.STALE, f"{place}: it returned what call {other + 1} asks for"
                    )
                raise Rejected(Why(found[0]), f"{place}: {found[1]}")
            if answer.kept != answer.output:
                raise Rejected(
                    Why.CHANGED, f"{place}: a later call has changed what this one returned"
                )
        for number, (call, answer) in enumerate(zip(calls, answers, strict=True)):
            if call.grad_output is not None:
                gradients_right(answer, expected[number], place_of(call, number, calls))

    def _without_kernels(self, session: Session, size: Size) -> None:
        """No launch does anything: the values must not come out right."""
        calls = [self._plain_call(size, number) for number in range(3)]
        try:
            requests.load(session, self.text, "kernels off")
            told, _ = session.ask(
                requests.CALLING, "make", arguments=size.arguments, seed=0, most=1 << 28
            )
            answers = self._ask(session, 0, size, calls)
        except (Gone, Rejected):  # as it may, where its kernels are not there
            return
        model = self.task.make(size, 0)
        for call, answer in zip(calls, answers or (), strict=bool(answers)):
            truth = call.expected(model)["output"]
            if len(answer.output) != 4 * truth.value.numel():
                continue
            if accuracy.objection(tensor_of(answer.output, truth.value.shape), truth) is None:
                raise Rejected(
                    Why.NO_KERNEL, "the same values come out when none of its kernels runs"
                )

    def _without_library(self, session: Session, size: Size) -> None:
        """PyTorch's own operations fail, but for products and the like: the kernels must do."""
        requests.load(session, self.text, "library off")
        session.ask(requests.CALLING, "make", arguments=size.arguments, seed=0, most=1 << 28)
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
            output = output_of(answer, truth.value.shape, "PyTorch's own operations switched off")
            if found := accuracy.objection(output, truth):
                raise Rejected(
                    Why.LIBRARY, f"without PyTorch's own operations it is {found[0]}: {found[1]}"
                )

    def _plain_call(self, size: Size, number: int) -> Call:
        call = self._calls(size, 1)[number]
        return Call(call.kind, call.state, call.inputs, None, train=number % 2 == 1)
