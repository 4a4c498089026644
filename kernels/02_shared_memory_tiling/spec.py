"""02: matrix products in tiles of shared memory: reuse, barriers, banks."""

from dataclasses import replace

from utils.course import At, Exercise, Gate
from utils.course.catalog import topic
from utils.course.common_gates import (
    ALL_LANES,
    COALESCED_LOADS,
    COALESCED_STORES,
    LANES_LOAD,
    NO_CONFLICTS,
    without_conflicts,
)

FIRST = topic("01_naive_gemm")  # the same products: shapes, reference, ladder and peers stay

AT = replace(
    FIRST["gemm_coalesced"].at,
    check=(
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
MEMORY = (ALL_LANES, LANES_LOAD, COALESCED_LOADS, COALESCED_STORES)
PADDED = without_conflicts(
    "where lanes read down a column, make the rows of the tile one element longer"
)

TRANSPOSE = Exercise(
    name="transpose_wide",
    title="out = x transposed, through a tile of 64 x 64",
    shapes={"x": "rows cols", "out": "cols rows"},
    outputs=("out",),
    reference=lambda x: x.T.contiguous(),
    exact=True,
    at=At(
        check=tuple(
            {"rows": rows, "cols": cols}
            for rows, cols in (
                (1, 1),
                (5, 3),
                (33, 31),
                (31, 65),
                (96, 64),
                (2, 200),
                (200, 2),
            )
        ),
        card=({"rows": 1000, "cols": 1025}, {"rows": 4099, "cols": 37}),
        bench={"rows": 8192, "cols": 8192},
        draw={"rows": 40, "cols": 64},
        gates={"rows": 96, "cols": 64},
        drawn=(
            {"rows": (250, 270), "cols": (250, 270)},
            {"rows": (3, 20), "cols": (22_000, 26_000)},
            {"rows": (22_000, 26_000), "cols": (3, 20)},
        ),
    ),
    flops=lambda rows, cols: 0,
    peers={"PyTorch": lambda x: x.T.contiguous()},
    library="PyTorch",
    gates=(ALL_LANES, LANES_LOAD, COALESCED_LOADS, COALESCED_STORES, PADDED),
    ladder="transposition",
)

EXERCISES = (
    replace(
        FIRST["gemm_coalesced"],
        number="02.1",
        name="gemm_tiled",
        gates=(TILED, *MEMORY, NO_CONFLICTS),
        title="C = A * B, tiles of A and B shared by the block",
        points=15,
        effort="about 7 lines",
        at=AT,
    ),
    replace(
        FIRST["gemm_coalesced"],
        number="02.2",
        name="gemm_tiled_race",
        faulty=True,
        gates=(TILED, *MEMORY, NO_CONFLICTS),
        title="Fix it: the barriers of a tiled product are missing",
        points=10,
        effort="2 lines",
        at=AT,
    ),
    replace(
        FIRST["linear"],
        number="02.3",
        name="linear_tiled",
        gates=(TILED_LINEAR, *MEMORY, PADDED),
        title="out = x * W^T + b in tiles, without bank conflicts",
        points=15,
        effort="about 8 lines",
        at=AT,
    ),
    replace(
        TRANSPOSE,
        number="02.4",
        name="transpose",
        title="out = x transposed, through a tile, coalesced both ways",
        points=10,
        effort="about 11 lines",
    ),
    TRANSPOSE,
)
