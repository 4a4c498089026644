"""Which elements are wrong: whole rows or columns from one on, or every so many; in words.

A cause is named only where the region begins where a block, a tile or a warp may begin.
"""

import torch
from torch import Tensor

WARP = 32
TAIL = 32  # right ones that may come before many more that are not
FEW_ROWS = 3  # or columns: fewer are on a diagonal by chance
FEW = 10  # rows or columns, in which every second may be wrong by chance
CAUSE = {
    "wrong": "what begins there: another block, tile or round?",
    "missing": "no thread comes there; are there blocks enough in this direction, or should each "
    "thread take several?",
}
OF_TILES = " Of a block that takes several tiles: is a tile's number made the right row and column?"


def region(bad: Tensor, word: str = "wrong") -> str:
    """What is `word`, "wrong" or "missing", as one sentence; "" where there is no such pattern.

    Of each row or column that it names more than half must be so: a lone value has other causes.
    """
    if bad.ndim not in (1, 2) or bool(bad.all()) or not bool(bad.any()):
        return ""
    axes = {0: "row", 1: "column"} if bad.ndim == 2 else {0: "value"}
    if bad.ndim == 2 and (said := _diagonal(bad, word) or _rest(bad, word)):
        return said
    for axis, unit in axes.items():
        others = [i for i in range(bad.ndim) if i != axis]
        share = bad.double().mean(dim=others) if others else bad.double()
        hit, clean = share > 0.5, share == 0
        if bool(hit.all()) or not bool((hit | clean).all()):
            continue
        if said := _end(hit, unit, word) or _periodic(hit, unit, word) or _lone(hit, unit, word):
            return said
    return ""


def _lone(hit: Tensor, unit: str, word: str) -> str:
    """Where a single row or column is hit."""
    if unit == "value" or int(hit.sum()) > 1 or len(hit) <= FEW_ROWS:
        return ""
    return f"only {unit} {int(hit.nonzero()[0])} is {word}"


def _end(hit: Tensor, unit: str, word: str) -> str:
    """Where all from one on are hit, or all up to one."""
    count, first = int(hit.sum()), int(hit.nonzero()[0])
    if bool(hit[first:].all()):
        tiles = OF_TILES if word == "missing" and unit != "value" else ""
        cause = f": {CAUSE[word]}{tiles}" if first % WARP == 0 else ""
        if count == 1:
            return f"only the last {unit}, {first}, is {word}{cause}"
        if first == 1:
            where = f"only {unit} 0 is {_right(word)}"
            if word == "missing":
                return f"{where}: do other threads come there, and is their index right?"
            return f"{where}: is the index right for what follows it?"
        if count > 2 * first and first < TAIL and first % 4:
            return ""
        return f"all {unit}s from {first} on are {word}, those before are {_right(word)}{cause}"
    chance = len(hit) - count < FEW_ROWS and count % 4 > 0  # that the last few are right
    if bool(hit[:count].all()) and (count == 1 or not chance):
        what = f"{unit} 0 is" if count == 1 else f"{unit}s 0 to {count - 1} are"
        return f"only {what} {word}"
    return ""


def _diagonal(bad: Tensor, word: str) -> str:
    """Where the diagonal alone is spared, or hit."""
    if min(bad.shape) < FEW_ROWS:
        return ""
    diagonal = torch.zeros_like(bad).fill_diagonal_(True)
    for state, rest in ((bad, word), (~bad, _right(word))):
        if bool((state == diagonal).all()):
            return f"only row = column is {rest}: does one index stand where both should?"
    return ""


def _rest(bad: Tensor, word: str) -> str:
    """Where the last few elements of all are hit, which do not fill a row."""
    flat = bad.reshape(-1)
    count, first = int(flat.sum()), int(flat.nonzero()[0])
    if (
        word == "missing"
        and first % bad.shape[1]
        and bool(flat[first:].all())
        and 2 * count > len(flat)
    ):
        return f"all {count} elements from there on are missing: {CAUSE[word]}"
    lone = not 1 < count < min(bad.shape[1], WARP)
    if lone or first % bad.shape[1] == 0 or not bool(flat[first:].all()):
        return ""
    said = f"only the last {count} of all {len(flat)} elements are {word}"
    few = count < 4 and first % 4 == 0
    return f"{said}: they do not fill a group of 4, so who takes care of them?" if few else said


def _periodic(hit: Tensor, unit: str, word: str) -> str:
    """Where every so many are hit, or are spared, from the same one on."""
    for state, rest in ((hit, word), (~hit, _right(word))):
        places = state.nonzero().reshape(-1)
        if len(places) < 3 or (word == "wrong" and len(hit) < FEW):
            continue
        period = int(places[1] - places[0])
        even = bool((places.diff() == period).all())
        if even and int(places[0]) < period and len(hit) - int(places[-1]) <= period:
            return f"only {unit}s {', '.join(str(int(p)) for p in places[:3])}, ... are {rest}"
    return ""


def _right(word: str) -> str:
    return {"wrong": "right", "missing": "written"}[word]
