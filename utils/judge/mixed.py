"""Whether a kernel mixes rows that its reference keeps apart: one is changed, and others follow."""

from dataclasses import replace

import torch
from torch import Tensor

from utils.course.cases import Case
from utils.ground.errors import WorkbookError
from utils.judge import oracle
from utils.judge.reruns import Reruns

ROW = 0  # that is changed


def mixed(reruns: Reruns, case: Case, name: str) -> str:
    """Which row of an output changes with a row of an input that it has nothing to do with."""
    exercise = reruns.kernel.exercise
    rows = exercise.shapes[name].split()[:1]
    if not rows or case.sizes.get(rows[0], 1) < 2:
        return ""
    for k, tensor in case.tensors.items():
        axes = exercise.shapes[k].split()
        if axes[:1] != rows or len(axes) < 2 or not tensor.is_floating_point():
            continue
        other = tensor.clone()
        other[ROW] = torch.linspace(-1, 2, other[ROW].numel()).reshape(other[ROW].shape).square()
        cases = case, replace(case, tensors={**case.tensors, k: other})
        try:
            right = [oracle.outputs(exercise, c, oracle.values_of(c))[name] for c in cases]
        except (WorkbookError, RuntimeError, ValueError):
            continue
        before, after = map(reruns.computed, cases)
        if before is None or after is None:
            return ""
        follow = _differ(before[name], after[name]) & ~_differ(*right)
        if row := follow.nonzero().reshape(-1).tolist():
            return (
                f"row {row[0]} of {name} changes with row {ROW} of {k}, and should not: is it "
                "read there, or do several rows get into one sum?"
            )
    return ""


def _differ(a: Tensor, b: Tensor) -> Tensor:
    """In which rows, to the last bit."""
    same = (a == b) | (a.isnan() & b.isnan())
    return ~same.reshape(len(a), -1).all(1)
