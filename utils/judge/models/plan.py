"""The plan of a trial: which calls, of which models, in which order. Nobody knows it before."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from utils.judge.models import sizes
from utils.judge.models.calls import (
    CONSTANT,
    FAR,
    KINDS,
    OUTLIERS,
    Call,
    add_outliers,
    make_constant,
    move_far,
    randomised,
)
from utils.judge.models.tasks import Size, Task

CALLS = 4, 6  # of a model
IDLE = 3  # calls in which no launch does anything
CHANGED = "one element changed among"

# What a call may have about it, besides its values.
_FORMS: list[dict[str, object]] = [
    {},
    {"grad_output": True},
    {"strided": True},
    {"grad_output": True, "expanded": True},
    {"batch": True},
    {"kind": CONSTANT},
    {"kind": FAR},
    {"grad_output": True, "frozen": True},
    {"change": True},
    {"mode": False},
    {"train": True},
    {"grad_output": True, "batch": True, "mode": False},
]


@dataclass(frozen=True)
class Made:
    """A model of the judged process: its number there, its size, and Model at that size."""

    number: int
    size: Size
    reference: nn.Module
    calls: int | None = None  # at most


class Plan:
    """Draws the calls of a trial by its generator."""

    def __init__(self, task: Task, generator: torch.Generator):
        self.task, self.generator = task, generator
        self.forms: list[dict[str, object]] = []
        self.kinds: list[str] = []

    def draw(self, made: Sequence[Made]) -> list[Call]:
        """Those of all models, mixed. The first model's are the first."""
        first, *others = [self._of(model) for model in made]
        calls, queues = first[:1], [first[1:], *others]
        while queues := [queue for queue in queues if queue]:
            calls.append(queues[self._below(len(queues))].pop(0))
        return calls

    def idle(self, made: Made) -> list[Call]:
        """Calls in which launches do nothing: what comes out then is no kernel's work."""
        return [replace(self._call(made, {}, None), idle=True) for _ in range(IDLE)]

    def _of(self, made: Made) -> list[Call]:
        count = CALLS[0] + self._below(CALLS[1] - CALLS[0] + 1)
        calls: list[Call] = []
        for number in range(min(count, made.calls or count)):
            form = self._next(self.forms, _FORMS) if number or made.number else {}
            calls.append(self._call(made, form, calls[-1] if calls else None))
        return calls

    def _next(self, left: list[Any], whole: Sequence[Any]) -> Any:
        """Each of them once, in an order that is drawn, before any comes again."""
        if not left:
            left += [whole[i] for i in torch.randperm(len(whole), generator=self.generator)]
        return left.pop()

    def _call(self, made: Made, form: dict[str, object], before: Call | None) -> Call:
        kind = str(form.get("kind") or self._next(self.kinds, list(KINDS)))
        size = made.size
        if form.get("batch"):
            size = sizes.other_batch(self.task, size, self.generator)
        state, inputs = self._values(made, size, kind)
        if form.get("change") and before is not None:
            kind, state, inputs = f"{CHANGED} {before.kind}", before.state, before.inputs
            state, inputs = self._changed(state, inputs)
        call = Call(kind, state, inputs, None, made=made.number, mode=form.get("mode") is not False)
        call.strided = bool(form.get("strided")) and all(x.ndim > 1 for x in inputs)
        call.train = bool(form.get("train") or form.get("grad_output"))
        if form.get("grad_output"):
            self._train(made, call, form)
        return call

    def _values(self, made: Made, size: Size, kind: str) -> tuple[list[Tensor], list[Tensor]]:
        draw = KINDS.get(kind, KINDS["normal"])
        inputs = [draw(shape, self.generator) for shape in size.shapes]
        fresh = self.task.make(made.size, self._below(1 << 30))
        state = [randomised(p.detach(), self.generator) for p in fresh.parameters()]
        if kind == OUTLIERS:
            add_outliers(inputs, state, self.generator)
        if kind == CONSTANT:
            make_constant(state)
        if kind == FAR:
            move_far(state)
        return state, inputs

    def _changed(
        self, state: Sequence[Tensor], inputs: Sequence[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The same values, but for one of a parameter, or of an input where there is none."""
        state, inputs = [t.clone() for t in state], [x.clone() for x in inputs]
        among = [t for t in (state or inputs) if t.numel()]
        tensor = among[self._below(len(among))]
        place = self._below(tensor.numel())
        tensor.view(-1)[place] += 1 + tensor.view(-1)[place].abs()
        return state, inputs

    def _train(self, made: Made, call: Call, form: dict[str, object]) -> None:
        with torch.no_grad():
            shape = made.reference(*call.inputs).shape
        call.grad_output = torch.randn(shape, generator=self.generator)
        if form.get("expanded") and shape:
            call.expanded = True
            call.grad_output = call.grad_output[:1].expand(shape).contiguous()
        if form.get("frozen"):
            frozen = [i for i in range(len(call.state)) if self._below(2)]
            call.frozen = tuple(frozen[:-1] if len(frozen) == len(call.state) else frozen)

    def _below(self, most: int) -> int:
        return int(torch.randint(most, (), generator=self.generator))
