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
from torch import Tensor

from utils.ground import files
from utils.ground.errors import ArgumentValueError
from utils.ground.wording import one_line
from utils.judge.models import accuracy, bookkeeping, diagnosis, requests
from utils.judge.models.accuracy import Truth
from utils.judge.models.calls import Answer, Call, outputs_among, outputs_of, same_parameters
from utils.judge.models.judging import Judging
from utils.judge.models.plan import Made, Plan
from utils.judge.models.sizes import own_channels, secret
from utils.judge.models.task import NotJudged, Size, Task
from utils.judge.models.tasks import find
from utils.judge.models.verdict import Rejected, Verdict, Why
from utils.judge.oracle import one_thread
from utils.process.box import Box, Session

LARGEST = 4 << 20  # bytes of a file
_KERNEL = "__global__"
UNTIMED = "Runtime: not measured; correctness alone is judged, on the emulator"


def read_request(
    path: Path,
    task: int | None,
    reference: Path | None,
    forward_only: bool = False,
    known: Task | None = None,
) -> tuple[str, Task]:
    """A file's text, and what it should compute, unless that is `known`. Raises WorkbookError where
    nobody can tell."""
    if not path.is_file():
        raise ArgumentValueError(f"there is no file {path}")
    if path.stat().st_size > LARGEST:
        raise ArgumentValueError(f"{path.name} has more than {LARGEST:,} bytes")
    wanted = known or find(path, task, reference)
    if forward_only:
        wanted = replace(wanted, trains=False, notes=(*wanted.notes, "Not judged: gradients"))
    return files.read_source(path), wanted


def judge_text(text: str, task: Task, box: Box, seed: int | None = None) -> Verdict:
    """The verdict on the text of a file in KernelBench's format."""
    seed = secrets.randbits(31) if seed is None else seed
    trial = Trial(text, task, box, seed)
    untimed = [UNTIMED] if box.backend == "emulator" else []
    verdict = Verdict(passed=True, task=task.name, seed=seed, gradients=task.trains)
    try:
        with one_thread(), torch.enable_grad():
            trial.run()
        verdict = replace(verdict, calls=trial.count)
    except Rejected as rejected:
        why, message = rejected.why, rejected.message
        verdict = replace(verdict, passed=False, reason=why, message=message)
    except (NotJudged, RuntimeError, ValueError, TypeError, LookupError) as error:
        # Of the reference or the judge, so no fault of the file.
        message = one_line(f"{type(error).__name__}: {error}")[:500]
        verdict = replace(verdict, passed=False, reason=Why.NOT_HERE, message=message)
    return replace(verdict, notes=[*trial.notes, *task.notes, *untimed])


class Trial:
    """A file and what it is tried on, by a seed. `run` raises Rejected."""

    def __init__(self, text: str, task: Task, box: Box, seed: int):
        self.text, self.task, self.box, self.seed = text, task, box, seed
        self.generator = torch.Generator().manual_seed(seed)
        self.notes: list[str] = []
        self.count = 0
        self.models = 0  # of the process

    def run(self) -> None:
        """Raises Rejected where the file is not what it should be."""
        with self.box.open() as session:
            requests.safely(self._tried, session)
        if self.box.backend == "cuda":
            with self.box.open() as session:
                requests.safely(self._without_library, session)

    def _tried(self, session: Session) -> None:
        """Does it compute what it should, by its own kernels, and nothing else?"""
        requests.load(session, self.text, work=self.task.work)
        if _KERNEL not in session.source:
            raise Rejected(Why.NO_KERNEL, "the file has no kernel of its own compiled")
        plan = Plan(self.task, self.generator)
        made = self._made(session)
        bookkeeping.loads_a_state(session, made[0], self.generator)
        calls = plan.draw(made)
        idle = plan.idle(made[0])
        reply, answers = requests.call(session, [*calls, *idle])
        hazards = diagnosis.reports_of(session, reply)
        requests.surroundings(session)
        bookkeeping.same_elsewhere(session, self.task, self.generator)
        self.count = len(calls)
        work = self.task.work
        judging = Judging(made, calls, answers, hazards, work)  # what is expected is worked out now
        judging.run()
        self.notes += judging.notes
        self._by_kernels(made[0], idle, answers[len(calls) :])

    def _made(self, session: Session) -> list[Made]:
        """The models of the process: of each size one, of the first three, the third a copy."""
        first, *others = self.task.small
        sizes = [first, first, *others, *secret(self.task, self.generator)]
        made = [m for size in sizes if (m := self._make(session, size, bool(self.models)))]
        for size in own_channels(self.task, self.generator):
            if one := self._make(session, size, refusable=True):
                made.append(replace(one, calls=1))
        if refused := requests.copied(session, made[0].number):
            self.notes.append(f"Not judged: a deep copy, which it refuses: {refused}")
            return made
        return [*made, replace(made[0], number=self.models)]

    def _make(self, session: Session, size: Size, refusable: bool) -> Made | None:
        """None for a size that is refused in words, as one may be that is not the first."""
        seed = self.seed + self.models
        reference = self.task.make(size, seed)
        reply, values = requests.made(session, size, seed, reference)
        if "error" in reply:
            said = f"{reply['error']}: {reply.get('text', '')}"[:500]
            if not refusable or requests.absent_here(session, said):
                raise requests.raised(session, f"with {size}: {said}")
            self.notes.append(f"Not judged: {size}, which it refuses: {said}")
            return None
        named = list(reference.named_parameters())
        same_parameters(reply.get("parameters"), named)
        bookkeeping.same_values(named, values)
        self.models += 1
        has = reply.get("buffers")
        wanted = [name for name, _ in reference.named_buffers() if "running_" in name]
        buffers = isinstance(has, list) and set(wanted) <= {str(name) for name in has}
        note = "Not judged: eval(), since ModelNew has no running means and variances"
        if not buffers and note not in self.notes:
            self.notes.append(note)
        return Made(self.models - 1, size, reference, buffers=buffers)

    def _by_kernels(self, made: Made, idle: Sequence[Call], answers: Sequence[Answer]) -> None:
        """Raises Rejected where values come out right when no launch does anything."""
        for call, answer in zip(idle, answers, strict=True):
            wanted = outputs_among(call.expected(made.reference))
            if all(truth.dtype.itemsize == 1 for truth in wanted):  # fresh memory is as true as any
                continue
            try:
                outputs = outputs_of(answer, wanted, "")
            except Rejected:  # another answer: so they do something
                continue
            if all(map(_right, outputs, wanted)):
                raise Rejected(
                    Why.NO_KERNEL, "the same values come out when none of its kernels runs"
                )

    def _without_library(self, session: Session) -> None:
        """On a card, where no call is watched: PyTorch's own operations fail in this process, but
        for products and the like. The kernels must do."""
        requests.load(session, self.text, "library off", self.task.work)
        made = self._make(session, self.task.small[0], refusable=False)
        assert made is not None  # else it has raised
        plan = Plan(self.task, self.generator)
        calls = [replace(call, idle=False) for call in plan.idle(made)]
        trains = self.task.trains
        calls = [replace(c, made=0, train=trains and i % 2 == 1) for i, c in enumerate(calls)]
        _, answers = requests.call(session, calls)
        for call, answer in zip(calls, answers, strict=True):
            if answer.raised:
                said = f"{self.task.work} must be its own kernels' work ({answer.raised})"
                raise Rejected(Why.LIBRARY, said)
            wanted = outputs_among(call.expected(made.reference))
            outputs = outputs_of(answer, wanted, "PyTorch's own operations switched off")
            for output, truth in zip(outputs, wanted, strict=True):
                if problem := accuracy.deviation(output, truth):
                    said = f"without PyTorch's own operations it is {problem[0]}: {problem[1]}"
                    raise Rejected(Why.LIBRARY, said)


def _right(output: Tensor, truth: Truth) -> bool:
    return accuracy.deviation(output, truth) is None
