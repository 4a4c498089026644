"""The emulator's tensor cores round as an H200's: bit for bit, on what the card was asked."""

import ctypes

import numpy as np
import pytest

from utils.emulator import build
from utils.paths import ROOT

ASKED = np.load(ROOT / "tests/calibration/tensor_cores.npz")
TYPES = {
    "f16": (0, 16),
    "bf16": (1, 16),
    "tf32": (2, 8),
}  # number, products that are summed at once


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    return ctypes.CDLL(str(build.runtime_library()))


def products(library, type_: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """c + a b^T of each case, as bits, in steps along k."""
    number, step = TYPES[type_]
    cases, m, k = a.shape
    n = b.shape[1]
    sums = np.ascontiguousarray(c, np.uint32)
    for at in range(0, k, step):
        left = np.broadcast_to(a[:, :, None, at : at + step], (cases, m, n, step))
        right = np.broadcast_to(b[:, None, :, at : at + step], (cases, m, n, step))
        arrays = [np.ascontiguousarray(x, np.uint32) for x in (left, right, sums)]
        sums = np.empty_like(sums)
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (*arrays, sums)]
        library.emu_tensor_sums(number, step, sums.size, *pointers)
    return sums


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize(
    "asked", ["mma_{}_{}", "wgmma_{}_{}_1_1", "wgmma_{}_{}_1_0", "wgmma_{}_{}_2_1"]
)
def test_every_bit_is_the_cards(library, type_, asked):
    a, b, c, d = (ASKED[asked.format(type_, name)] for name in "abcd")
    got = products(library, type_, a, b, np.zeros_like(c) if asked.endswith("_0") else c)
    assert d.size > 900 and np.array_equal(got, d)


def test_the_questions_tell_models_apart(library):
    """A sum in float32, each product rounded in, is another one often enough."""
    a, b, c, d = (ASKED[f"mma_f16_{name}"] for name in "abcd")
    sums = c.view(np.float32)
    with np.errstate(all="ignore"):
        for i in range(a.shape[2]):
            left, right = (x.view(np.float16).astype(np.float32)[:, :, i] for x in (a, b))
            sums = sums + left[:, :, None] * right[:, None, :]
    assert np.mean(sums.view(np.uint32) != d) > 0.2
