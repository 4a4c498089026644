"""An index of the smallest or largest element, where several are equal: another than the first."""

from torch import Tensor

from utils.course.cases import Case
from utils.course.exercise import Exercise
from utils.judge.oracle import floating, values_of

TIES = (
    "wherever this is wrong, another one of several equal elements is taken, or of several NaN: "
    "which of them should it be, whatever the order in which threads meet them?"
)


def ties(exercise: Exercise, case: Case, name: str, got: Tensor, expected: Tensor) -> str:
    """TIES where that is so; "" where a wrong index is of another value, or of none."""
    axes = exercise.shapes[name].split()
    matrices = [
        tensor
        for k, tensor in floating(values_of(case)).items()
        if k in case.tensors and exercise.shapes[k].split()[:-1] == axes != []
    ]
    if got.is_floating_point() or len(matrices) != 1:
        return ""
    (x,), got, right = matrices, got.cpu().long(), expected.cpu().long()
    inside = (got >= 0) & (got < x.shape[-1])
    taken, best = (
        x.gather(-1, at.clamp(0, x.shape[-1] - 1).unsqueeze(-1)).squeeze(-1) for at in (got, right)
    )
    same = inside & ((taken == best) | (taken.isnan() & best.isnan()))
    # What a thread without an element brings: an infinity, which is no better than one of the row.
    same |= (got == x.shape[-1]) & best.isinf()
    wrong = got != right
    return TIES if bool(same[wrong].all() and (wrong & inside).any()) else ""
