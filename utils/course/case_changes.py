"""Cases that are nearly those of the call before: what a kernel has kept of that is wrong in them.

Where a generator would be in the way, what changes depends on the case alone: a seed goes on with
what it would have drawn.
"""

import random
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Generator, Tensor

from utils.course import cases
from utils.course.case_values import WHOLE, whole_number
from utils.course.cases import Case
from utils.course.exercise import Exercise

ALL_LATE = 0.5  # of checks in which all tensors of a call begin late; in others some do
ALONE = 3  # inputs and scalars that change alone, one after the other
FAR_OFF = 4.0  # times the largest of a tensor is the element that changes


def seeded(case: object) -> random.Random:
    """What follows from the case alone."""
    return random.Random(str(case))


def with_usual_values(exercise: Exercise, case: Case, dtypes: Mapping[str, torch.dtype]) -> Case:
    """A case of the same sizes."""
    own = Generator().manual_seed(seeded(case).getrandbits(32))
    return cases.sample(exercise, case.sizes, cases.usual(exercise), own, dtypes)


def late(exercise: Exercise, case: Case) -> tuple[str, ...]:
    """The tensors that begin late in a call: all of them, or every second time some."""
    names, own = tuple(exercise.shapes), seeded(case)
    if own.random() < ALL_LATE or len(names) == 1:
        return names
    return tuple(own.sample(names, own.randrange(1, len(names))))


def in_one_element(first: Case, other: Case, generator: Generator) -> Case:
    """The first case, of which one element of each input is changed: a kernel that takes the two
    for the same, since it looks at others, gives the result of the first."""
    changed = {
        name: _changed(tensor, other.tensors[name], generator)
        for name, tensor in first.tensors.items()
    }
    note = "of which one element of each input has changed since the call before"
    return replace(first, tensors=changed, note=note)


def _changed(tensor: Tensor, other: Tensor, generator: Generator) -> Tensor:
    """A tensor with one element of another. It is neither the first nor the last, if it can be,
    since a kernel looks at these soonest; and far larger than all, since in a long row nobody sees
    an ordinary one."""
    ends = int(tensor.numel() > 2)
    place = whole_number(ends, tensor.numel() - ends, generator)
    element = other.view(-1)[place]
    if element.is_floating_point():
        largest = tensor.where(tensor.isfinite(), 0).abs().max()
        far = FAR_OFF * largest
        element = (far if far.isfinite() else largest).copysign(element)
    changed = tensor.clone()
    changed.view(-1)[place] = element
    return changed


def one_after_the_other(case: Case, other: Case, own: random.Random) -> list[Case]:
    """Cases in which one input or scalar after the other, a few of them, becomes that of another
    case of the same sizes, while the rest stays as it was."""
    names = [*case.tensors, *case.scalars]
    changed = [case]
    for name in own.sample(names, min(ALONE, len(names))) if len(names) > 1 else ():
        changed.append(_with_one_of(changed[-1], other, name))
    return changed[1:]


def _with_one_of(case: Case, other: Case, name: str) -> Case:
    """A case in which one input or scalar is that of another one."""
    tensors = {k: (other if k == name else case).tensors[k] for k in case.tensors}
    scalars = {k: (other if k == name else case).scalars[k] for k in case.scalars}
    note = f"of which {name} alone has changed since the call before"
    return replace(case, tensors=tensors, scalars=scalars, note=note)


def has_another_order(exercise: Exercise) -> bool:
    """Whether its first input may be any whole numbers."""
    return WHOLE in cases.families(exercise)


def in_another_order(exercise: Exercise, first: Case, own: random.Random) -> Case:
    """The first case, whose values are whole numbers, with those of one input in another order:
    their sum is the same to the last bit, as is all else that does not mind the order."""
    promised = cases.own_inputs(exercise)
    name = next(name for name in first.tensors if name not in promised)
    x, generator = first.tensors[name], Generator().manual_seed(own.getrandbits(32))
    mixed = x.view(-1)[torch.randperm(x.numel(), generator=generator)].view(x.shape)
    note = f"of which {name} has the elements of the call before, in another order"
    return replace(first, tensors={**first.tensors, name: mixed}, note=note)
