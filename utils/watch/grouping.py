"""Rows of records that have fields in common."""

import numpy as np


def packed(*fields: np.ndarray) -> np.ndarray:
    """One number for each row, the same where all fields are, and in the order of the fields."""
    key, most = np.zeros(len(fields[0]), "i8"), 1
    for field in fields:
        index = field.astype("i8")
        index -= index.min(initial=0 if not len(index) else index[0])
        size = int(index.max(initial=0)) + 1
        if most * size >= 1 << 62:  # sorting takes most of the time: only where it must be
            values, index = np.unique(field, return_inverse=True)
            size = len(values)
        key, most = key * size + index, most * size
    return key


def groups(*fields: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows with equal fields: (index of each group's first row, group of each row), in order."""
    _, first, label = np.unique(packed(*fields), return_index=True, return_inverse=True)
    return first, label


def rank(group: np.ndarray, value: np.ndarray | None = None) -> np.ndarray:
    """The place of each row among those of its group: by value, or as they come."""
    order = np.argsort(group, kind="stable") if value is None else np.lexsort((value, group))
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    lengths = np.diff(starts, append=len(group))
    places = np.empty(len(group), "i8")
    places[order] = np.arange(len(group)) - np.repeat(starts, lengths)
    return places


def rank_of_value(group: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The place of each row's value among the different values of its group."""
    first, label = groups(group, value)
    starts = np.flatnonzero(np.diff(group[first], prepend=-1))
    lengths = np.diff(starts, append=len(first))
    return np.take(np.arange(len(first)) - np.repeat(starts, lengths), label)
