"""On a card too, `check` reaches what a kernel of chapter 11 has that the one before had not."""

import pytest

from utils.course import catalog

BM, BAND = 128, 8  # of hopper_tile.cuh: rows of a tile, rows of tiles in a band
MULTIPROCESSORS = 78, 114, 132  # of an H20, an H100 with PCIe, and other cards with sm_90a
PERSISTENT = [
    exercise
    for exercise in catalog.exercises()
    if exercise.topic == "11_hopper" and exercise.multiprocessors
]


def columns(exercise, sizes):
    """How many columns of out a tile has: 128 where x and W are split, else 256."""
    return 128 if exercise.halves(sizes) == 3 else 256


def blocks_and_tiles(exercise, sizes, most):
    """As blocks_for() of hopper_tile.cuh counts them, on a card of `most` multiprocessors."""
    tiles = -(-sizes["M"] // BM) * -(-sizes["N"] // columns(exercise, sizes))
    return -(-tiles // -(-tiles // most)), tiles


def test_persistent_kernels_are_known():
    assert len(PERSISTENT) == 9


@pytest.mark.parametrize("most", MULTIPROCESSORS)
@pytest.mark.parametrize("exercise", PERSISTENT, ids=lambda exercise: exercise.name)
def test_blocks_own_several_tiles_in_several_bands(exercise, most):
    """With one product, of floats as they lie, and with three."""
    ways = {exercise.halves(sizes) for sizes in exercise.at.card}
    met = set()
    for sizes in exercise.at.card:
        blocks, tiles = blocks_and_tiles(exercise, sizes, most)
        if tiles > blocks and sizes["M"] > BAND * BM:
            met.add(exercise.halves(sizes))
    assert met == ways


@pytest.mark.parametrize("most", MULTIPROCESSORS)
def test_rows_of_W_are_split_beside_the_products(most):
    """As first_rows() of hopper_tile.cuh counts those that are split before."""
    exercise = catalog.load("11_hopper/linear_split_beside")
    beside = []
    for sizes in exercise.at.card:
        blocks, _ = blocks_and_tiles(exercise, sizes, most)
        together = min(-(-sizes["M"] // BM), BAND)
        before = -(-blocks // together) * columns(exercise, sizes)
        beside.append(sizes["N"] - before if sizes["K"] % 4 == 0 else 0)
    assert max(beside) > 1000
