"""01: matrix products with one thread for each element, in three orders of access."""

from dataclasses import replace

import torch
import torch.nn.functional as F

from utils.course import At, Exercise, Gate
from utils.course.common_gates import ALL_LANES, COALESCED_LOADS, COALESCED_STORES, LANES_LOAD


def gemm_flops(M, N, K):
    """One multiplication and one addition for each of M * N * K products."""
    return 2 * M * N * K


PRODUCTS = (1e-30, 1e33)  # of one factor: a sum of them stays below the largest float
GEMM = dict(
    shapes={"A": "M K", "B": "K N", "C": "M N"},
    outputs=("C",),
    reference=lambda A, B: A @ B,
    products=True,
    magnitudes=PRODUCTS,
    ladder="gemm",
    flops=gemm_flops,
    peers={"cuBLAS": lambda A, B: torch.matmul(A, B)},
    library="cuBLAS",
)

# A thread may compute a few elements. One that walks along a row, which is 64 long at least, leaves
# a card idle, however evenly the rows are shared.
A_THREAD_EACH = Gate(
    "threads",
    1 / 16,
    "one thread computes a whole row, or much of one: give each element a thread of its own",
    ideal=lambda M, N, K: M * N,
    at_least=True,
)

AT = At(
    check=(
        {"M": 1, "N": 1, "K": 1},
        {"M": 5, "N": 3, "K": 4},
        {"M": 33, "N": 31, "K": 17},
        {"M": 32, "N": 64, "K": 32},
        {"M": 3, "N": 150, "K": 40},
        {"M": 150, "N": 3, "K": 40},
    ),
    card=({"M": 1000, "N": 1025, "K": 777},),
    bench={"M": 4096, "N": 4096, "K": 4096},
    draw={"M": 40, "N": 36, "K": 8},
    gates={"M": 64, "N": 64, "K": 64},
    drawn=(
        {"M": (258, 270), "N": (255, 270), "K": (3, 12)},
        {"M": (34, 40), "N": (34, 40), "K": (1950, 2100)},
    ),
)

EXERCISES = (
    Exercise(
        name="gemm_serial",
        title="C = A * B by one single thread",
        at=replace(AT, card=(), bench={"M": 128, "N": 128, "K": 128}),  # for one thread
        **GEMM,
    ),
    Exercise(
        number="01.1",
        name="gemm_naive",
        gates=(ALL_LANES, LANES_LOAD, A_THREAD_EACH),
        title="C = A * B, one thread for each element; neighbours walk down a column",
        at=AT,
        points=10,
        effort="about 7 lines",
        **GEMM,
    ),
    Exercise(
        number="01.2",
        name="gemm_coalesced",
        gates=(ALL_LANES, LANES_LOAD, COALESCED_LOADS, COALESCED_STORES, A_THREAD_EACH),
        title="C = A * B, one thread for each element; neighbours walk along a row",
        at=AT,
        points=10,
        effort="3 lines",
        **GEMM,
    ),
    Exercise(
        number="01.3",
        name="linear",
        gates=(ALL_LANES, LANES_LOAD, COALESCED_STORES, A_THREAD_EACH),
        title="out = x * W^T + b, the layer nn.Linear",
        shapes={"x": "M K", "W": "N K", "b": "N", "out": "M N"},
        outputs=("out",),
        reference=lambda x, W, b: F.linear(x, W, b),
        products=True,
        magnitudes=PRODUCTS,
        ladder="linear",
        listed=False,
        at=AT,
        flops=lambda M, N, K: gemm_flops(M, N, K) + M * N,
        peers={"cuBLAS": lambda x, W, b: F.linear(x, W, b)},
        library="cuBLAS",
        points=10,
        effort="about 7 lines",
    ),
)
