"""How a class has done: the spread of its scores, and for each exercise who tried and passed it."""

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from utils.course import catalog
from utils.grading import tables
from utils.grading.grades import Grade, Mark
from utils.grading.tables import number
from utils.grading.verdicts import Status

COLUMNS = ("exercise", "submissions", "tried", "passed", "mean", "median", "of")


def summary(scores: Iterable[float], of: float) -> str:
    """In a line; scores of those who have handed in."""
    sorted_ = sorted(scores)
    if not sorted_:
        return "no scores"
    low, median, high = _quartiles(sorted_)
    return (
        f"scores of {number(of)}: mean {number(statistics.fmean(sorted_))}, median "
        f"{number(median)}, half of them from {number(low)} to {number(high)}, "
        f"lowest {number(sorted_[0])}, highest {number(sorted_[-1])}"
    )


def _quartiles(values: Sequence[float]) -> list[float]:
    if len(values) == 1:
        return [values[0]] * 3
    return statistics.quantiles(values, n=4, method="inclusive")


def by_exercise(grades: Sequence[Grade]) -> list[tables.Row]:
    """A row for each exercise, with the columns COLUMNS, in their order."""
    marks: dict[str, list[Mark]] = {}
    for grade in grades:
        for mark in grade.exercises:
            marks.setdefault(mark.exercise, []).append(mark)
    rows = []
    for id, every in marks.items():
        exercise = catalog.load(id)
        tried = [m for m in every if m.status not in (Status.NOT_ATTEMPTED, Status.NOT_REACHED)]
        points = [mark.points for mark in tried] or [0.0]
        values: tuple[object, ...] = (
            f"{exercise.number} {exercise.name}",
            *(len(every), len(tried), sum(mark.status is Status.PASSED for mark in every)),
            *(number(statistics.fmean(points)), number(statistics.median(points))),
            exercise.points,
        )
        rows.append(dict(zip(COLUMNS, map(str, values), strict=True)))
    return rows


def write(grades: Sequence[Grade], path: Path) -> None:
    """Write the rows of by_exercise() as a table: means and medians are of those who tried."""
    tables.write(path, COLUMNS, by_exercise(grades))
