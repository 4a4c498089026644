"""Sizes that nobody can know before: at which a model is tried beside those that a task names."""

import math
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch

from utils.judge.models import small
from utils.judge.models.task import Size, Task, as_given

TRIES = 400
NEAR = 40  # tries for one near a size
AMONG = 8  # such sizes, of which the least even one is taken
FURTHER = 3  # times the cost of a small size, at most
LARGEST = 97  # of a secret size's numbers
LITTLE = 8  # features of a model whose channels are the task's own
WIDE = 1 << 17  # elements of a tensor there, at most


def secret(task: Task, generator: torch.Generator) -> list[Size]:
    """A size of the task's kind that is drawn: equal numbers stay equal. None where none is found
    that its Model takes."""
    if task.source:
        return _near(task, generator)
    like = task.small[int(torch.randint(len(task.small), (), generator=generator))]
    numbers = sorted(set(_numbers(like)))
    for _ in range(TRIES):
        drawn = torch.randint(1, LARGEST, (len(numbers),), generator=generator).tolist()
        size = _with(like, dict(zip(numbers, drawn, strict=True)))
        if size != like and takes(task, size):
            return [size]
    return []


def _near(task: Task, generator: torch.Generator) -> list[Size]:
    """One near the small size, where sizes are numbers of the reference's text. Of several that one
    whose tensors have the fewest factors of two: it leaves a rest in blocks and in vectors."""
    changed = dict(task.small[0].changed)
    assert task.source
    candidates: list[tuple[int, Size]] = []
    for _ in range(NEAR):
        drawn = {}
        for number in task.source.numbers:
            base = changed.get(number, number)
            least, most = max(1, base // 2), base + base // 2
            drawn[number] = least + int(torch.randint(most - least + 1, (), generator=generator))
        with suppress(Exception):
            size = small.at(task, drawn)
            if size not in task.small and small.bounded(task, size, FURTHER):
                candidates.append((evenness(task, size), size))
        if len(candidates) == AMONG:
            break
    return [min(candidates, key=lambda one: one[0])[1]] if candidates else []


def evenness(task: Task, size: Size) -> int:
    """How many factors of two the elements of inputs and outputs have. Raises ValueError where
    Model does not give finite values at a size, with values as its file draws them."""
    with torch.no_grad():
        model = task.make(size, 0).train(task.modes[0])
        outputs = small.outputs_of(model(*as_given(task.drawn(size, 0), task.types)))
    if not all(output.numel() and output.isfinite().all() for output in outputs):
        raise ValueError("no finite values")
    counts = [math.prod(shape) for shape in (*size.shapes, *(o.shape for o in outputs))]
    return sum((count & -count).bit_length() - 1 for count in counts)


def own_channels(task: Task, generator: torch.Generator) -> list[Size]:
    """The task's own channels, which a kernel may be written for, with few features and rows."""
    own = task.own
    if task.source or not own.shapes or own in task.small or len(own.shapes[0]) != 2:
        return []
    rows = int(torch.randint(1, 3, (), generator=generator))
    features = own.shapes[0][-1]
    for i, argument in enumerate(own.arguments):
        if argument != features:
            continue
        arguments = (*own.arguments[:i], LITTLE, *own.arguments[i + 1 :])
        size = Size(arguments, ((rows, LITTLE), *own.shapes[1:]))
        if takes(task, size):
            return [size]
    return []


def takes(task: Task, size: Size) -> bool:
    """Whether Model takes it, and is small enough for the emulator then."""
    if task.may_draw and not task.may_draw(size.arguments, size.shapes):
        return False
    with suppress(Exception), torch.no_grad(), torch.device("meta"):
        model = task.model(*size.arguments)
        model(*(torch.empty(shape) for shape in size.shapes))
        return all(p.numel() <= WIDE for p in model.parameters())
    return False


def other_batch(task: Task, size: Size, generator: torch.Generator) -> Size:
    """The same model's size with another number of rows, where Model takes it; else the same."""
    if not task.usual or not all(size.shapes):
        return size
    rows = int(torch.randint(1, 10, (), generator=generator))
    # One more, too: a single row may be taken where no other number is, since it is broadcast.
    other, further = (
        replace(size, shapes=tuple((n, *shape[1:]) for shape in size.shapes))
        for n in (rows, rows + 1)
    )
    few = max(map(math.prod, other.shapes), default=0) <= WIDE
    return other if few and takes(task, other) and takes(task, further) else size


def _numbers(size: Size) -> list[int]:
    """Those above 1, in arguments and shapes."""
    flat = [n for part in (*size.arguments, *size.shapes) for n in _flat(part)]
    return [n for n in flat if n > 1]


def _flat(part: object) -> list[int]:
    if isinstance(part, tuple | list):
        return [n for inner in part for n in _flat(inner)]
    return [part] if isinstance(part, int) and not isinstance(part, bool) else []


def _with(size: Size, changed: dict[int, int]) -> Size:
    def put(part: Any) -> Any:  # arguments may be nested
        if isinstance(part, tuple | list):
            return type(part)(map(put, part))
        return changed.get(part, part) if type(part) is int else part

    return Size(put(size.arguments), put(size.shapes))
