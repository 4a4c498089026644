"""The tile of chapter 09: groups that fit into none are refused, not computed wrongly."""

import pytest
import torch

from utils.course import catalog
from utils.course.answers import compile_answer
from utils.ground.errors import LaunchError


@pytest.mark.parametrize("size", [129, 200])
def test_a_group_that_fits_into_no_tile_is_an_error(size):
    exercise = catalog.load("09_fused_linear/linear_groupnorm")
    text = catalog.solution_text(exercise)
    kernel = compile_answer(exercise, text, backend="emulator")
    shapes = [(2, 4), (size, 4), (size,), (size,), (size,), (2, size)]
    with pytest.raises(LaunchError):
        kernel(*map(torch.zeros, shapes), 2, size, 4, 1)
