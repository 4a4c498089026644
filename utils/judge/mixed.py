"""Whether a kernel mixes rows that its reference keeps apart: one is changed, and others follow."""

from collections.abc import Collection
from dataclasses import replace

import torch
from torch import Tensor

from utils.course.cases import Case
from utils.ground.errors import WorkbookError
from utils.judge import oracle
from utils.judge.reruns import Reruns

ROW = 0  # that is changed


def mixed(reruns: Reruns, case: Case, name: str, bad: Tensor | None = None) -> str:
    """Which row or column of an output changes with rows of an input that it has nothing to do
    with. `bad`: which elements of the output are wrong.

    A minimum over rows need not follow a certain one of them; but one that is wrong, because it is
    another row's, follows the others.
    """
    exercise = reruns.kernel.exercise
    words = exercise.shapes[name].split()
    for k, tensor in case.tensors.items():
        axes = exercise.shapes[k].split()
        if len(axes) < 2 or axes[0] not in words[:2] or not tensor.is_floating_point():
            continue
        along = words.index(axes[0])
        if len(tensor) < 2 or along and len(words) != 2:
            continue
        tries = [([ROW], f"row {ROW}")]
        if bad is not None:
            own = int(bad.movedim(along, 0).reshape(len(tensor), -1).any(1).nonzero()[0])
            tries.append(([row for row in range(len(tensor)) if row != own], "other rows"))
        for rows, what in tries:
            lines = _follow(reruns, case, name, k, rows, along)
            if lines is None:
                return ""
            if lines:
                return (
                    f"{('row', 'column')[along]} {lines[0]} of {name} changes with {what} of {k}, "
                    "and should not: is it read there, or do several rows get into one result?"
                )
    return ""


def _follow(
    reruns: Reruns, case: Case, name: str, k: str, rows: Collection[int], along: int
) -> list[int] | None:
    """Which lines of an output change with these rows of the input k, and should not. None where a
    hazard, or want of time, leaves it open."""
    exercise = reruns.kernel.exercise
    other, unknown = (case.tensors[k].clone() for _ in range(2))
    for row in rows:
        values = torch.linspace(-1, 2, other[row].numel()).square() * (1 + row)
        other[row] = values.reshape(other[row].shape)
        unknown[row] = torch.nan  # gets wherever the row is read: into a minimum of others', too
    cases = [case, *(replace(case, tensors={**case.tensors, k: t}) for t in (other, unknown))]
    try:
        right = [oracle.outputs(exercise, c, oracle.values_of(c))[name] for c in cases]
    except (WorkbookError, RuntimeError, ValueError):
        return []
    before, after = map(reruns.computed, cases[:2])
    if before is None or after is None:
        return None
    may = _differ(right[0], right[1], along) | _differ(right[0], right[2], along)
    follow = _differ(before[name], after[name], along) & ~may
    return [int(line) for line in follow.nonzero()]


def _differ(a: Tensor, b: Tensor, along: int) -> Tensor:
    """In which rows, or columns, to the last bit."""
    same = ((a == b) | (a.isnan() & b.isnan())).movedim(along, 0)
    return ~same.reshape(len(same), -1).all(1)
