"""01: matrix products with one thread for each element, in three orders of access."""

import torch
import torch.nn.functional as F

from utils.course import Exercise
from utils.course.common_gates import ALL_LANES, COALESCED_LOADS, COALESCED_STORES


def gemm_bytes(M, N, K):
    """A and B read once, C written once, 4 bytes a float."""
    return 4 * (M * K + K * N + M * N)


def gemm_flops(M, N, K):
    """One multiplication and one addition for each of M * N * K products."""
    return 2 * M * N * K


GEMM = dict(
    shapes={"A": "M K", "B": "K N", "C": "M N"},
    outputs=("C",),
    reference=lambda A, B: A @ B,
    bytes=gemm_bytes,
    flops=gemm_flops,
    peers={"cuBLAS": lambda A, B: torch.matmul(A, B)},
    library="cuBLAS",
    draw={"M": 40, "N": 36, "K": 8},
)

SIZES = (
    {"M": 1, "N": 1, "K": 1},
    {"M": 5, "N": 3, "K": 4},
    {"M": 33, "N": 31, "K": 17},
    {"M": 32, "N": 64, "K": 32},
    {"M": 3, "N": 150, "K": 40},
    {"M": 150, "N": 3, "K": 40},
)

WHOLE = {"M": 64, "N": 64, "K": 64}  # whole tiles

EXERCISES = (
    Exercise(
        name="gemm_serial",
        title="C = A * B by one single thread",
        sizes=SIZES,
        bench={"M": 128, "N": 128, "K": 128},
        **GEMM,
    ),
    Exercise(
        number="01.1",
        name="gemm_naive",
        gates=(ALL_LANES,),
        gate_sizes=WHOLE,
        title="C = A * B, one thread for each element; neighbours walk down a column",
        sizes=SIZES,
        card_sizes=({"M": 1000, "N": 1025, "K": 777},),
        bench={"M": 4096, "N": 4096, "K": 4096},
        points=10,
        effort="about 7 lines",
        hints=(
            "Compare with `gemm_serial`. Its loops over `row` and `col` are gone: each thread has "
            "one row and one column. Which loop is left?",
            "The grid is rounded up in both directions, so the guard has two halves: "
            "`row < M && col < N`.",
            "Add the products up in a local `float sum = 0.0f;` and write `C[row * N + col]` once, "
            "after the loop.",
        ),
        **GEMM,
    ),
    Exercise(
        number="01.2",
        name="gemm_coalesced",
        gates=(ALL_LANES, COALESCED_LOADS, COALESCED_STORES),
        gate_sizes=WHOLE,
        title="C = A * B, one thread for each element; neighbours walk along a row",
        sizes=SIZES,
        card_sizes=({"M": 1000, "N": 1025, "K": 777},),
        bench={"M": 4096, "N": 4096, "K": 4096},
        points=10,
        effort="3 lines",
        hints=(
            "The 32 threads of a warp differ in `threadIdx.x` and share `threadIdx.y`. Which of "
            "`row` and `col` should differ between neighbours, if they are to own neighbours in "
            "memory?",
            "`col` comes from `x` and `row` from `y`. Then the grid must follow: its first number "
            "counts blocks along x.",
            "`dim3 grid((N + 31) / 32, (M + 31) / 32);` Forget this line and a square C still "
            "comes out right. The check has sizes that are not square.",
        ),
        **GEMM,
    ),
    Exercise(
        number="01.3",
        name="linear",
        gates=(ALL_LANES, COALESCED_STORES),
        gate_sizes=WHOLE,
        title="out = x * W^T + b, the layer nn.Linear",
        shapes={"x": "M K", "W": "N K", "b": "N", "out": "M N"},
        outputs=("out",),
        reference=lambda x, W, b: F.linear(x, W, b),
        sizes=SIZES,
        card_sizes=({"M": 1000, "N": 1025, "K": 777},),
        bench={"M": 4096, "N": 4096, "K": 4096},
        bytes=lambda M, N, K: gemm_bytes(M, N, K) + 4 * N,
        flops=lambda M, N, K: gemm_flops(M, N, K) + M * N,
        peers={"cuBLAS": lambda x, W, b: F.linear(x, W, b)},
        library="cuBLAS",
        draw={"M": 40, "N": 36, "K": 8},
        points=10,
        effort="about 7 lines",
        hints=(
            "W has shape (N, K): one row for each output. Output `col` is the dot product of row "
            "`row` of x and row `col` of W.",
            "Rows of W are K floats long, so element k of row `col` is `W[col * K + k]`.",
            "There is one bias for each output: `b[col]`. Add it once, after the loop.",
        ),
    ),
)
