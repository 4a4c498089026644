"""On the emulator, kernels of chapters 10 and 11 that hold nothing but halves, scales and sums of
products give an H200's bits: `benchmarks/same_bits.py` keeps digests of what the card gave."""

import json
import re

import pytest

from benchmarks import same_bits
from utils.course import case_values, catalog
from utils.course.precision import Precision
from utils.ground.paths import ROOT

CARD = json.loads((ROOT / "tests/calibration/products.json").read_text())
KERNELS = [id for id in CARD if "/" in id]


def test_all_products_are_there():
    products = [e.id for e in same_bits.exercises() if not e.eps]  # without GroupNorm
    assert products == KERNELS


def with_plain_maps(text: str) -> str:
    """A kernel whose copies do not round floats: of these the card was asked."""
    last = r"(make_map\([^()]*, (?:BM|BN|BN / CLUSTER))\)"
    return re.sub(last, r"\1, CU_TENSOR_MAP_DATA_TYPE_FLOAT32)", text)


@pytest.mark.parametrize("id", KERNELS)
def test_the_emulator_gives_the_bits_of_the_card(id, monkeypatch):
    exercise = catalog.load(id)
    if exercise.precision_of(exercise.at.bench) is Precision.TF32:
        text = with_plain_maps(catalog.solution_text(exercise))
        assert text.count("FLOAT32)") == 2
        monkeypatch.setattr(catalog, "solution_text", lambda _: text)
    there = CARD[id]
    calls = same_bits.results(exercise, "emulator", kinds=[case_values.NORMAL])
    here = same_bits.digests(exercise, calls)
    if [bits for bits, _ in here] != [bits for bits, _ in there]:
        pytest.skip("this processor draws other normal values than the card's host")
    assert here == there
