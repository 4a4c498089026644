"""The plan of a trial: which calls, of which models, in which order. Nobody knows it before."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from utils.judge.models import accuracy, sizes, small
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
    running,
)
from utils.judge.models.task import PYTHON, Size, Task, as_given

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
    buffers: bool = True  # whether it has Model's running means and variances


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
        mode = form.get("mode") is not False
        modes = self.task.modes if made.buffers else self.task.modes[:1]
        call = Call(kind, state, inputs, None, made=made.number)
        call.mode, call.types = mode if mode in modes else modes[0], self.task.types
        call.buffers = running(made.reference, self.generator) if made.buffers else {}
        call = self._usable(made, call)
        call.strided = bool(form.get("strided")) and any(x.ndim > 1 for x in call.inputs)
        call.train = self.task.trains and bool(form.get("train") or form.get("grad_output"))
        if call.train and form.get("grad_output"):
            self._train(made, call, form)
        return call

    def _values(self, made: Made, size: Size, kind: str) -> tuple[list[Tensor], list[Tensor]]:
        draw = KINDS.get(kind, KINDS["normal"])
        if self.task.usual:
            inputs = [draw(shape, self.generator) for shape in size.shapes]
        else:
            free = self.task.free or (True,) * len(size.shapes)
            inputs = [
                draw(x.shape, self.generator).to(x.dtype) if any_values else x
                for x, any_values in zip(self._own(size), free, strict=True)
            ]
        fresh = self.task.make(made.size, self._below(1 << 30))
        state = [randomised(p.detach(), self.generator) for p in fresh.parameters()]
        if kind == OUTLIERS:
            add_outliers(inputs, state, self.generator)
        if kind == CONSTANT:
            make_constant(state)
        if kind == FAR:
            move_far(state)
        return state, inputs

    def _own(self, size: Size) -> list[Tensor]:
        """Inputs as the reference draws them, but for a number, which is another each time."""
        kinds = self.task.dtypes
        inputs = self.task.drawn(size, self._below(1 << 30))
        factors = [0.5 + 0.1 * self._below(16) if k == "python float" else 1 for k in kinds]
        return [x * f if f != 1 else x for x, f in zip(inputs, factors, strict=True)]

    def _usable(self, made: Made, call: Call) -> Call:
        """The call, or one with the reference's own values where these give none that are finite:
        a logarithm's, say."""
        if self._finite(made, call) or not self.task.source:
            return call
        size = made.size
        call = replace(call, kind="its own", inputs=self.task.drawn(size, self._below(1 << 30)))
        if not self._finite(made, call):
            fresh = self.task.make(size, self._below(1 << 30))
            call = replace(call, state=[p.detach().clone() for p in fresh.parameters()])
        return call

    def _finite(self, made: Made, call: Call) -> bool:
        try:
            output = accuracy.values_of(
                made.reference, call.state, call.inputs, None, call.how(), torch.float32
            )
        except (RuntimeError, ValueError, IndexError):
            return False
        return all(value.isfinite().all() for value in output.values())

    def _changed(
        self, state: Sequence[Tensor], inputs: Sequence[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The same values, but for one of a parameter, or of an input where there is none."""
        state, inputs = [t.clone() for t in state], [x.clone() for x in inputs]
        free = self.task.free or (True,) * len(inputs)
        pairs = zip(inputs, free, strict=True)
        floats = [t for t, f in pairs if f and t.ndim and t.is_floating_point()]
        among = [t for t in (state or floats) if t.numel()]
        if not among:
            return state, inputs
        tensor = among[self._below(len(among))]
        place = self._below(tensor.numel())
        tensor.view(-1)[place] += 1 + tensor.view(-1)[place].abs()
        return state, inputs

    def _train(self, made: Made, call: Call, form: dict[str, object]) -> None:
        call.grad_output = self._gradient(made, call)
        if call.grad_output is None:
            return
        shape = call.grad_output.shape
        if form.get("expanded") and shape:
            call.expanded = True
            call.grad_output = call.grad_output[:1].expand(shape).contiguous()
        if form.get("frozen"):
            frozen = [i for i in range(len(call.state)) if self._below(2)]
            call.frozen = tuple(frozen[:-1] if len(frozen) == len(call.state) else frozen)

    def _gradient(self, made: Made, call: Call) -> Tensor | None:
        """A gradient of the first output that has one."""
        floats = [x.clone().requires_grad_(x.is_floating_point()) for x in call.inputs]
        with torch.enable_grad():
            model = copy.deepcopy(made.reference).train(call.mode)
            output = model(*as_given(floats, [t if t in PYTHON else "" for t in self.task.dtypes]))
        for one in small.outputs_of(output):
            if one.requires_grad:
                return torch.randn(one.shape, generator=self.generator).to(one.dtype)
        return None

    def _below(self, most: int) -> int:
        return int(torch.randint(most, (), generator=self.generator))
