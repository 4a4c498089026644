"""Tensors are laid out apart, with red zones; those that share memory go on sharing it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from utils.cuda.signature import POINTERS
from utils.process.arena import ALIGNMENT, RED_ZONE, Layout, OutOfBoundsWrite


def filled(tensors):
    layout = Layout(tensors)
    arena = torch.zeros(layout.size, dtype=torch.uint8)
    layout.fill(arena)
    return layout, arena


@given(st.lists(st.integers(0, 3000), max_size=5), st.sampled_from(list(POINTERS.values())))
def test_tensors_are_apart_and_come_back_as_they_were(sizes, dtype):
    tensors = {f"t{i}": torch.randint(0, 2, (n,)).to(dtype) for i, n in enumerate(sizes)}
    layout, arena = filled(tensors)
    ends = [0]
    for name, tensor in tensors.items():
        assert torch.equal(layout.read(arena, name), tensor)
        assert layout.offsets[name] % ALIGNMENT == 0
    for name in sorted(tensors, key=layout.offsets.get):
        assert layout.offsets[name] - ends[-1] >= RED_ZONE
        ends.append(layout.offsets[name] + tensors[name].nbytes)
    assert not tensors or layout.size - ends[-1] >= RED_ZONE
    assert layout.out_of_bounds(arena) == []


def test_shapes_and_single_values_come_back():
    tensors = {"a": torch.randn(2, 3, 4), "b": torch.tensor(5.0), "c": torch.empty(0, 3)}
    layout, arena = filled(tensors)
    assert all(torch.equal(layout.read(arena, name), tensors[name]) for name in tensors)


def test_a_tensor_given_twice_is_one_piece_of_memory():
    x = torch.arange(10.0)
    layout, arena = filled({"x": x, "y": torch.zeros(3), "out": x})
    assert layout.offsets["x"] == layout.offsets["out"]


def test_tensors_that_overlap_overlap_in_the_arena():
    x = torch.arange(100.0)
    layout, arena = filled({"tail": x[50:], "head": x[:60], "apart": x[:0]})
    assert layout.offsets["tail"] - layout.offsets["head"] == 50 * 4
    assert torch.equal(layout.read(arena, "head"), x[:60])
    assert torch.equal(layout.read(arena, "tail"), x[50:])


def test_neighbours_in_one_storage_get_red_zones_between_them():
    x = torch.arange(100.0)
    layout, _ = filled({"low": x[:50], "high": x[50:]})
    assert layout.offsets["high"] - layout.offsets["low"] >= 50 * 4 + 2 * RED_ZONE


def test_a_view_is_as_misaligned_as_it_would_be_on_a_gpu():
    layout, _ = filled({"x": torch.arange(100.0)[1:]})
    assert layout.offsets["x"] % ALIGNMENT == 4


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.int8])
@pytest.mark.parametrize(
    ("index", "side", "offset"),
    [(10, "after", 0), (12, "after", 2), (-1, "before", -1), (-3, "before", -3)],
)
def test_a_write_outside_is_found(dtype, index, side, offset):
    layout, arena = filled({"x": torch.zeros(10, dtype=dtype), "y": torch.zeros(3)})
    size = torch.zeros(0, dtype=dtype).element_size()
    start = layout.offsets["x"] + index * size
    arena[start : start + size] = 1
    assert layout.out_of_bounds(arena) == [OutOfBoundsWrite("x", side, offset)]


def test_strays_are_listed_nearest_first_for_every_tensor():
    layout, arena = filled({"x": torch.zeros(10), "y": torch.zeros(0)})
    for name, offset in (("x", 40), ("x", 48), ("x", -4), ("x", -12), ("y", 0), ("y", -1)):
        arena[layout.offsets[name] + offset] = 0
    assert [(s.parameter, s.offset) for s in layout.out_of_bounds(arena)] == [
        ("y", -1), ("y", 0), ("x", -1), ("x", -3), ("x", 0), ("x", 2),
    ]  # fmt: skip
