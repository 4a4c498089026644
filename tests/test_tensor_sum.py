"""The emulator's tensor cores round as an H200's: bit for bit, on what the card was asked."""

import ctypes

import numpy as np
import pytest
import torch

from utils.cuda.compiler import compile_cuda
from utils.emulator import build
from utils.ground.paths import ROOT
from utils.judge.mistakes import wrong_products

OPERANDS = np.load(ROOT / "tests/calibration/tensor_cores.npz")
TYPES = {
    "f16": (0, 16),
    "bf16": (1, 16),
    "tf32": (2, 8),
}  # number, products that are summed at once


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    return ctypes.CDLL(str(build.runtime_library()))


def in_rows(library, type_: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The same, eight columns at once, as mma and wgmma make them."""
    number, step = TYPES[type_]
    cases, m, k = a.shape
    n = b.shape[1]
    eights = -(-n // 8)
    wide = np.zeros((cases, 8 * eights, k), np.uint32)
    wide[:, :n] = b
    sums = np.zeros((cases, m, 8 * eights), np.uint32)
    sums[:, :, :n] = c
    for at in range(0, k, step):
        left = np.broadcast_to(a[:, :, None, at : at + step], (cases, m, eights, step))
        right = wide[:, :, at : at + step].reshape(cases, 1, eights, 8, step).swapaxes(3, 4)
        right = np.broadcast_to(right, (cases, m, eights, step, 8))
        arrays = [np.ascontiguousarray(x, np.uint32) for x in (left, right, sums)]
        sums = np.empty_like(sums)
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (*arrays, sums)]
        library.emu_tensor_rows(number, step, sums.size // 8, *pointers)
    return sums[:, :, :n]


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
    "names", ["mma_{}_{}", "wgmma_{}_{}_1_1", "wgmma_{}_{}_1_0", "wgmma_{}_{}_2_1"]
)
def test_every_bit_is_the_cards(library, type_, names):
    a, b, c, d = (OPERANDS[names.format(type_, name)] for name in "abcd")
    c = np.zeros_like(c) if names.endswith("_0") else c
    for sums in (products, in_rows):
        assert d.size > 900 and np.array_equal(sums(library, type_, a, b, c), d)


def operands(random, type_: str, shape: tuple[int, ...], spread: int) -> np.ndarray:
    """Bits whose exponents lie `spread` around 1, some of them zeros; beyond that any bits."""
    fraction, exponent = {"f16": (10, 5), "bf16": (7, 8), "tf32": (23, 8)}[type_]
    bias = (1 << (exponent - 1)) - 1
    any_bits = random.integers(0, 1 << (1 + exponent + fraction), shape, dtype=np.uint32)
    if spread > bias:
        return any_bits
    fields = random.integers(bias - spread, bias + spread + 1, shape, dtype=np.uint32)
    keep = np.uint32(1 << (exponent + fraction) | ((1 << fraction) - 1))
    bits = any_bits & keep | fields << np.uint32(fraction)
    return np.where(random.random(shape) < 0.1, 0, bits).astype(np.uint32)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("spread", [0, 3, 14, 60, 120, 999])
def test_eight_sums_at_once_are_those_one_by_one(library, type_, spread):
    random = np.random.default_rng(spread)
    a, b = (operands(random, type_, (40, 8, TYPES[type_][1]), spread) for _ in "ab")
    c = operands(random, "tf32", (40, 8, 8), min(2 * spread, 120) if spread < 999 else 999)
    a[:5, 3:] = 0  # rows and columns beyond the edge
    b[5:10, 4:] = 0x8000 if type_ != "tf32" else 0x80000000
    one_by_one = products(library, type_, a, b, c)
    assert np.array_equal(in_rows(library, type_, a, b, c), one_by_one)


def test_the_questions_tell_models_apart(library):
    """A sum in float32, each product rounded in, is another one often enough."""
    a, b, c, d = (OPERANDS[f"mma_f16_{name}"] for name in "abcd")
    sums = c.view(np.float32)
    with np.errstate(all="ignore"):
        for i in range(a.shape[2]):
            left, right = (x.view(np.float16).astype(np.float32)[:, :, i] for x in (a, b))
            sums = sums + left[:, :, None] * right[:, None, :]
    assert np.mean(sums.view(np.uint32) != d) > 0.2


def test_a_running_sum_that_explains_a_mistake_has_the_same_bits(library):
    generator = torch.Generator().manual_seed(5)
    x, W = (torch.randn(rows, 320, generator=generator).half() for rows in (5, 8))
    # A power of two for each row makes its largest magnitude the same: then nothing is scaled.
    x, W = (m * 2.0 ** (14 - (torch.frexp(m.abs().amax(1))[1] - 1))[:, None] for m in (x, W))
    bits = [m.half().numpy().view("uint16").astype("uint32")[None] for m in (x, W)]
    zeros = torch.zeros(1, 5, 8).numpy().view("uint32")
    want = torch.from_numpy(products(library, "f16", *bits, zeros).view("float32"))[0]
    got = wrong_products.running(x.double(), W.double())
    assert torch.equal(got.float(), want) and not torch.equal(got, x.double() @ W.double().T)


ZEROS = """#include "tensor_cores.cuh"
__global__ void k(const float* c, float* out, unsigned factor) {
    unsigned a[4] = {}, b[2] = {factor, factor};
    float d[4] = {c[0], c[1], c[2], c[3]};
    mma_f16(d, a, b);
    for (int i = 0; i < 4; i++) out[4 * threadIdx.x + i] = d[i];
}
void zeros(const float* c, float* out, unsigned factor) { k<<<1, 32>>>(c, out, factor); }"""


def test_a_sum_without_products_is_what_the_whole_sum_would_be(library):
    """The emulator leaves out the sums of rows and columns of zeros."""
    kernel = compile_cuda(ZEROS, "zeros", backend="emulator")
    c = np.array([-0.0, 1e-40, -1.5, np.inf], np.float32)
    for factor in (0x0000, 0xBC00, 0x7C00, 0x7E00):  # 0, -1, infinity, NaN
        arguments = {
            "c": torch.from_numpy(c),
            "out": torch.zeros(32, 4),
            "factor": factor * 0x10001,
        }
        got = kernel.isolated(arguments).after["out"].numpy().view(np.uint32)
        a, b = np.zeros((1, 1, 16), np.uint32), np.full((1, 4, 16), factor, np.uint32)
        expected = products(library, "f16", a, b, c.view(np.uint32).reshape(1, 1, 4))
        assert np.array_equal(got, np.broadcast_to(expected.reshape(4), (32, 4))), hex(factor)


COPIED = np.load(ROOT / "tests/calibration/tile_floats.npz")
COPY = """\
#include "hopper.cuh"
__global__ void copy_kernel(const __grid_constant__ CUtensorMap words, unsigned* copied) {
    __shared__ __align__(1024) unsigned tile[256][32];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        fence_barriers();
        barrier_arrive_expect(&full, sizeof tile);
        load_tile(tile, &words, 0, blockIdx.x * 256, &full);
    }
    __syncthreads();
    barrier_wait(&full, 0);
    for (int i = threadIdx.x; i < 256 * 32; i += blockDim.x) {
        int row = i / 32, col = i % 32;
        copied[blockIdx.x * 256 * 32 + i] = tile[row][(col / 4 ^ row % 8) * 4 + col % 4];
    }
}
void copy(const float* words, unsigned* copied, int rows, int type) {
    auto map = make_map(words, rows, 32, 256, CUtensorMapDataType(type));
    copy_kernel<<<rows / 256, 128>>>(map, copied);
}
"""


@pytest.mark.parametrize(("type_", "expected"), [(7, "words"), (11, "tfloat32")])
def test_the_copy_engine_makes_of_floats_what_an_h200_makes(type_, expected):
    """7: as they are; 11: rounded to TF32. NaNs, infinities and subnormals are among them."""
    kernel = compile_cuda(COPY, "copy", backend="emulator")
    words = torch.from_numpy(COPIED["words"].view(np.float32)).reshape(-1, 32)
    arguments = {"words": words, "copied": torch.zeros(words.shape, dtype=torch.uint32)}
    after = kernel.isolated({**arguments, "rows": len(words), "type": type_}).after["copied"]
    assert np.array_equal(after.numpy().ravel(), COPIED[expected])
