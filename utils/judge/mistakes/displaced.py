"""Whether wrong rows, columns or values are right ones in another place; in words."""

from torch import Tensor

from utils.judge.mismatch import wrong
from utils.judge.oracle import Expected

FEW = 4  # values, of which all may be on one side by chance
MOST = 300  # lines along an axis: each is held against each


def displaced(got: Tensor, expected: Expected, bad: Tensor) -> str:
    """Such as "row 1 holds what belongs to row 0"; "" where a wrong line is no other's."""
    if not got.is_floating_point() or got.ndim not in (1, 2):
        return ""
    for axis, unit in enumerate(("row", "column") if got.ndim == 2 else ("value",)):
        if 1 < got.shape[axis] <= MOST and (owners := _owners(got, expected, bad, axis)):
            if _chosen(got, expected, bad, axis):
                return ""
            (at, owner), few = next(iter(owners.items())), set(owners.values())
            if len(owners) > 1 and len(few) == 1:
                return f"each {unit} that is wrong holds what belongs to {unit} {owner}"
            more = ", and so on" if len(owners) > 1 else ""
            return f"{unit} {at} holds what belongs to {unit} {owner}{more}"
    return ""


def _chosen(got: Tensor, expected: Expected, bad: Tensor, axis: int) -> bool:
    """Whether all that is wrong is too large, or too small, by one number along each line: the
    largest, or smallest, of several lines' numbers is the number of one of them, too."""
    far = (got.double() - expected.value.double()).movedim(axis, 0)[bad.movedim(axis, 0)]
    if len(far) < FEW or not bool(((far > 0) == (far[0] > 0)).all()):
        return False
    each = (got.double() - expected.value.double()).movedim(axis, 0).reshape(got.shape[axis], -1)
    spread = each.amax(1) - each.amin(1)
    return bool((spread <= 4 * expected.bound.max() + 1e-4 * each.abs().amax(1)).all())


def _owners(got: Tensor, expected: Expected, bad: Tensor, axis: int) -> dict[int, int]:
    """Each line with a wrong element -> the line whose values it holds; {} if one has none."""
    got, bad = got.movedim(axis, 0), bad.movedim(axis, 0)
    value, bound = expected.value.movedim(axis, 0), expected.bound.movedim(axis, 0)
    owners = {}
    for at in bad.reshape(len(bad), -1).any(1).nonzero().reshape(-1).tolist():
        far = wrong(got[at].expand_as(value), Expected.known(value, bound))
        same = (~far).reshape(len(value), -1).all(1).nonzero().reshape(-1)
        if len(same) != 1:  # where many lines are alike, that one fits says nothing
            return {}
        owners[at] = int(same[0])
    return owners
