"""The sizes that a kernel is tried at: the exercise's, and others drawn around them."""

import torch
from torch import Generator

from utils.course.case_values import whole_number
from utils.course.exercise import Exercise, Sizes, dimensions
from utils.ground.errors import WorkbookError


def size_text(sizes: Sizes) -> str:
    """Such as "M=8 N=4"."""
    return " ".join(f"{name}={value}" for name, value in sizes.items())


def toy_sizes(exercise: Exercise, sizes: Sizes) -> dict[str, int]:
    """The sizes that an exercise is drawn at, with those `given` in their place.

    Raises WorkbookError for a size that it does not have, or that is no whole number from 1.
    """
    usual = exercise.at.draw or exercise.at.check[-1]
    for name, value in sizes.items():
        if name not in usual:
            raise WorkbookError(
                f"{exercise.name} has no size '{name}'; its sizes are {', '.join(usual)}"
            )
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise WorkbookError(f"{name} is {value!r}, but a size is a whole number from 1")
    return {**usual, **sizes}


def drawn(exercise: Exercise, generator: Generator) -> list[Sizes]:
    """One of each of the sizes that `at.drawn` leaves open. A size that another one follows is a
    multiple of that."""
    chosen: list[Sizes] = []
    for spans in exercise.at.drawn:
        sizes = {
            name: whole_number(low, high + 1, generator) for name, (low, high) in spans.items()
        }
        _follow(exercise, sizes)
        order = [name for name in exercise.at.check[0] if name in sizes]
        chosen.append({name: sizes[name] for name in order})
    return chosen


def lengths(exercise: Exercise) -> list[str]:
    """The sizes that are dimensions of tensors."""
    named = " ".join(exercise.shapes.values()).split()
    return [name for name in exercise.at.check[0] if name in named]


def long_sizes(exercise: Exercise, name: str, span: tuple[int, int], generator: Generator) -> Sizes:
    """From `span` in the size `name`, and short in all others but those that this one follows."""
    sizes = {other: whole_number(1, 4, generator) for other in exercise.at.check[0]}
    sizes[name] = whole_number(*span, generator)
    _follow(exercise, sizes)
    return sizes


def _follow(exercise: Exercise, sizes: dict[str, int]) -> None:
    """Make each size that another one follows a multiple of that."""
    for follower, leader in exercise.follows.items():
        parts = sizes[follower]
        sizes[leader] = max(sizes[leader] // parts, 1) * parts


FINE, WHOLE = 16, 1024  # parts of a size; each of so many elements, which are whole tiles


def gate_sizes(exercise: Exercise, generator: Generator) -> Sizes:
    """Larger than `at.gates` in one size, and what follows it, by another factor each time: from
    two to seven, and between these where a size stands alone and is of many tiles."""
    known = exercise.at.gates
    of_tensors = lengths(exercise)
    free = [name for name in known if name not in exercise.follows and name in of_tensors]
    name = free[whole_number(0, len(free), generator)]
    grown = {name, *(follower for follower, leader in exercise.follows.items() if leader == name)}
    parts = FINE if len(grown) == 1 and known[name] % (FINE * WHOLE) == 0 else 1
    times = whole_number(2 * parts, 7 * parts + 1, generator)
    return {n: size * times // parts if n in grown else size for n, size in known.items()}


def elements(exercise: Exercise, sizes: Sizes) -> int:
    """Of all tensors of a call."""
    return sum(torch.Size(dimensions(shape, sizes)).numel() for shape in exercise.shapes.values())
