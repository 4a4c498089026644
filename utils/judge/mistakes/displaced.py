"""Whether wrong rows, columns or values are right ones in another place; in words."""

from torch import Tensor

from utils.judge.mismatch import wrong
from utils.judge.oracle import Expected

MOST = 300  # lines along an axis: each is held against each


def displaced(got: Tensor, expected: Expected, bad: Tensor) -> str:
    """Such as "row 1 holds what belongs to row 0"; "" where a wrong line is no other's."""
    if not got.is_floating_point() or got.ndim not in (1, 2):
        return ""
    for axis, unit in enumerate(("row", "column") if got.ndim == 2 else ("value",)):
        if 1 < got.shape[axis] <= MOST and (owners := _owners(got, expected, bad, axis)):
            (at, owner), few = next(iter(owners.items())), set(owners.values())
            if len(owners) > 1 and len(few) == 1:
                return f"each {unit} that is wrong holds what belongs to {unit} {owner}"
            more = ", and so on" if len(owners) > 1 else ""
            return f"{unit} {at} holds what belongs to {unit} {owner}{more}"
    return ""


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
