"""02: matrix products in tiles of shared memory: reuse, barriers, banks."""

from dataclasses import replace

from utils.course import Gate
from utils.course.catalog import topic
from utils.course.common_gates import (
    ALL_LANES,
    COALESCED_LOADS,
    COALESCED_STORES,
    NO_CONFLICTS,
    without_conflicts,
)

FIRST = topic("01_naive_gemm")  # the same products: shapes, reference, bytes and peers stay

CHAPTER = dict(
    sizes=(
        {"M": 1, "N": 1, "K": 1},
        {"M": 5, "N": 3, "K": 4},
        {"M": 33, "N": 31, "K": 65},
        {"M": 64, "N": 32, "K": 64},
        {"M": 2, "N": 100, "K": 40},
        {"M": 100, "N": 2, "K": 40},
        {"M": 17, "N": 19, "K": 300},
    ),
    draw={"M": 40, "N": 40, "K": 80},
)

# With 32 x 32 tiles every element of A and B is loaded once for 32 rows or columns of C. The gate
# lets 16 x 16 tiles through, and no kernel without tiles, which loads 20 times as much.
TILED = Gate(
    "bytes loaded from global memory",
    2.25,
    "bring each element of a tile once, and let the whole block read it from shared memory",
    ideal=lambda M, N, K: 2 * 4 * M * N * K / 32,
)
TILED_LINEAR = replace(TILED, ideal=lambda M, N, K: 2 * 4 * M * N * K / 32 + 4 * M * N)  # + b
MEMORY = (ALL_LANES, COALESCED_LOADS, COALESCED_STORES)
PADDED = without_conflicts("make the rows of the tile one element longer")

EXERCISES = (
    replace(
        FIRST["gemm_coalesced"],
        number="02.1",
        name="gemm_tiled",
        gates=(TILED, *MEMORY, NO_CONFLICTS),
        title="C = A * B, tiles of A and B shared by the block",
        points=15,
        effort="about 7 lines",
        hints=(
            "Four steps make a round: bring one element of each tile, wait, add up BK products "
            "from shared memory, wait again.",
            "This thread brings `As[ty][tx]`, which is A at (row, k0 + tx), and `Bs[ty][tx]`, "
            "which is B at (k0 + ty, col). Outside the matrix put `0.0f`: a product with 0 adds "
            "nothing.",
            "`As[ty][tx] = row < M && k0 + tx < K ? A[row * K + k0 + tx] : 0.0f;` The tile of B "
            "has its own condition, `k0 + ty < K && col < N`. Then `__syncthreads()`, the loop "
            "over `k < BK`, and `__syncthreads()` again.",
        ),
        **CHAPTER,
    ),
    replace(
        FIRST["gemm_coalesced"],
        number="02.2",
        name="gemm_tiled_race",
        faulty=True,
        gates=(TILED, *MEMORY, NO_CONFLICTS),
        title="Mend it: the barriers of a tiled product are missing",
        points=10,
        effort="2 lines",
        hints=(
            "Look for two threads that touch the same element of `As` with nothing in between that "
            "makes one of them wait, where at least one of the two writes.",
            "There are two such pairs: the write of this round and the reads of this round; the "
            "reads of this round and the write of the next.",
            "One `__syncthreads();` after the tiles are written, one after the loop over `k`. Both "
            "stand in the loop over `k0`, and outside any `if`: every thread must reach them.",
        ),
        **CHAPTER,
    ),
    replace(
        FIRST["linear"],
        number="02.3",
        name="linear_tiled",
        gates=(TILED_LINEAR, *MEMORY, PADDED),
        title="out = x * W^T + b in tiles, without bank conflicts",
        points=15,
        effort="about 8 lines",
        hints=(
            "Bring the tile of W the way it lies in memory: neighbouring threads, neighbouring k. "
            "So `Ws[ty][tx]` is W at (w_row, k0 + tx), with its own condition.",
            "The thread's own output column is `tx` of the tile, so it multiplies with row `tx` of "
            "`Ws`: `sum += xs[ty][k] * Ws[tx][k];`",
            "32 threads read `Ws[0][k]` to `Ws[31][k]`, which lie BK = 32 floats apart: all in one "
            "bank. Make the rows one float longer, `Ws[BN][BK + 1]`, and they lie in 32 banks.",
        ),
        **CHAPTER,
    ),
)
