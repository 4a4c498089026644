"""What chapter 12 takes for right is what PyTorch's autograd gives."""

from dataclasses import replace

import pytest
import torch

from utils.course import cases, catalog
from utils.course.exercise import reads
from utils.judge import oracle

BOTH_WAYS = "PyTorch, forward and backward"
GRADIENTS = [exercise for exercise in catalog.exercises() if BOTH_WAYS in exercise.peers]


def test_all_gradients_of_chapter_12_are_compared():
    assert len(GRADIENTS) == 8


@pytest.mark.parametrize("exercise", GRADIENTS, ids=lambda exercise: exercise.name)
def test_a_reference_gives_what_autograd_does(exercise):
    generator = torch.Generator().manual_seed(0)
    for sizes in exercise.at.check:
        case = cases.sample(exercise, sizes, cases.usual(exercise), generator)
        values = oracle.values_of(case)
        peer = exercise.peers[BOTH_WAYS]
        result = peer(**reads(peer, values))
        results = (result,) if isinstance(result, torch.Tensor) else result
        for reference in filter(None, (exercise.reference, exercise.in_operations)):
            ours = oracle.outputs(replace(exercise, reference=reference), case, values)
            for got, right in zip(ours.values(), results, strict=True):
                torch.testing.assert_close(
                    *(got, right.reshape(got.shape)), rtol=1e-9, atol=1e-11, equal_nan=True
                )
