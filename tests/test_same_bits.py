"""On the emulator, kernels of chapters 10 and 11 that hold nothing but halves, scales and sums of
products give an H200's bits: `benchmarks/same_bits.py` keeps digests of what the card gave."""

import json

import pytest

from benchmarks import same_bits
from utils.course import cases, catalog
from utils.paths import ROOT

CARD = json.loads((ROOT / "tests/calibration/products.json").read_text())
KERNELS = [id for id in CARD if "/" in id]


def test_all_products_are_there():
    products = [e.id for e in same_bits.exercises() if not e.eps]  # without GroupNorm
    assert products == KERNELS


@pytest.mark.parametrize("id", KERNELS)
def test_the_emulator_gives_the_bits_of_the_card(id):
    exercise = catalog.load(id)
    there = CARD[id]
    calls = same_bits.results(exercise, "emulator", kinds=[cases.NORMAL])
    here = same_bits.digests(exercise, calls)
    if [given for given, _ in here] != [given for given, _ in there]:
        pytest.skip("this processor draws other normal values than the card's host")
    assert here == there
