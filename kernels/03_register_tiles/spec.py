"""03: matrix products with many elements of C for each thread, kept in registers."""

from dataclasses import replace

from utils.course import Gate
from utils.course.catalog import topic
from utils.course.common_gates import (
    ALL_LANES,
    COALESCED_LOADS,
    COALESCED_STORES,
    LANES_LOAD,
    NO_CONFLICTS,
    without_conflicts,
)

FIRST = topic("01_naive_gemm")["gemm_coalesced"]  # shapes, reference, ladder and peers stay

AT = replace(
    FIRST.at,
    check=(
        {"M": 1, "N": 1, "K": 1},
        {"M": 5, "N": 3, "K": 4},
        {"M": 67, "N": 65, "K": 17},
        {"M": 128, "N": 128, "K": 12},  # whole tiles of C; the last round along K is half a tile
        {"M": 129, "N": 132, "K": 8},  # rows of a multiple of 16 bytes; tiles beyond the edges
        {"M": 128, "N": 130, "K": 16},  # rows of B and C that begin between multiples of 16 bytes
        {"M": 128, "N": 128, "K": 10},  # and rows of A
        {"M": 128, "N": 128, "K": 4},  # not even one whole round
        {"M": 2, "N": 200, "K": 40},
        {"M": 200, "N": 2, "K": 40},
    ),
    draw={"M": 128, "N": 128, "K": 8},
    gates={"M": 128, "N": 128, "K": 32},
)
QUADS = replace(AT, edges=False)  # tiles that are not whole are brought one by one
DEEP = replace(QUADS, draw={"M": 128, "N": 128, "K": 16})  # two rounds


def tiled(side):
    """Each element of A and B is loaded once for `side` columns or rows of C, or nearly."""
    return Gate(
        "bytes loaded from global memory",
        1.25,
        "bring each element of a tile once, and let the whole block read it from shared memory",
        ideal=lambda M, N, K: 2 * 4 * M * N * K / side,
    )


def shared_loads(requests, steps, advice):
    """`requests` of a warp to shared memory for `steps` multiply-adds of each of its lanes."""
    return Gate(
        "load requests to shared memory",
        1.25,
        advice,
        ideal=lambda M, N, K: M * N * K / 32 * requests / steps,
    )


MEMORY = (ALL_LANES, LANES_LOAD, COALESCED_LOADS, COALESCED_STORES)
NEIGHBOURS = without_conflicts(
    "let a thread own every 16th row and column, so that neighbouring lanes read neighbours"
)
PADDED = without_conflicts(
    "make the rows of the tile four elements longer, so that quads stay at multiples of 16 bytes"
)
QUADS_SIDE_BY_SIDE = without_conflicts(
    "leave the rows of As four elements longer, and let neighbouring lanes read neighbouring quads"
)
QUADS_IN_SHARED = shared_loads(
    4, 64, "read four neighbours of shared memory at once: turn the tile of A around, use quad()"
)
QUADS_IN_GLOBAL = Gate(
    "load requests to global memory",
    1.25,
    "bring four neighbours at once: where the tile is whole, load a float4",
    ideal=lambda M, N, K: 2 * M * N * K / 128 / (4 * 32),
)
# A thread of TM x TN = 8 x 16 reads 2 + 4 quads for 128 products; with 8 x 8 it would be 8.
FRAGMENTS = shared_loads(
    6, 128, "let each lane own TM x TN = 8 x 16 elements, and read a and b in quads"
)
# A round has BK = 8. It needs two barriers; where tiles are kept twice, one is enough.
TWO_BARRIERS = Gate(
    "barriers a block",
    1.25,
    "two barriers a round are enough: one before the tiles are read, one after",
    ideal=lambda M, N, K: 2 * K / 8,
)
ONE_BARRIER = Gate(
    "barriers a block",
    1.5,
    "keep two sets of tiles: use one, fill the other, and one barrier a round is enough",
    ideal=lambda M, N, K: K / 8,
)

EXERCISES = (
    replace(
        FIRST,
        number="03.1",
        name="gemm_1d",
        gates=(
            shared_loads(9, 8, "read b once, keep it in a variable, and use it for all TM rows"),
            tiled(64),
            *MEMORY,
            NO_CONFLICTS,
        ),
        title="C = A * B, each thread owns 8 elements of a column",
        at=replace(AT, draw={"M": 64, "N": 64, "K": 8}),
        points=15,
        effort="about 11 lines",
    ),
    replace(
        FIRST,
        number="03.2",
        name="gemm_2d",
        gates=(
            shared_loads(16, 64, "read TM elements of As and TN of Bs, then use each many times"),
            tiled(128),
            *MEMORY,
            NEIGHBOURS,
        ),
        title="C = A * B, each thread owns 8 x 8 elements: an outer product in registers",
        at=AT,
        points=20,
        effort="about 12 lines",
    ),
    replace(
        FIRST,
        number="03.3",
        name="gemm_vectorized",
        gates=(QUADS_IN_SHARED, QUADS_IN_GLOBAL, tiled(128), *MEMORY, PADDED),
        title="C = A * B, four floats at a time; A turned around in shared memory",
        at=QUADS,
        points=20,
        effort="about 15 lines",
    ),
    replace(
        FIRST,
        number="03.4",
        notebook="03_register_tiles_2_warps",
        name="gemm_warp_tile",
        gates=(
            FRAGMENTS,
            QUADS_IN_GLOBAL,
            TWO_BARRIERS,
            tiled(128),
            *MEMORY,
            QUADS_SIDE_BY_SIDE,
        ),
        title="C = A * B, each warp owns a tile of 32 x 128, each lane 8 x 16 elements",
        at=DEEP,
        listed=False,
        points=10,
        effort="about 9 lines",
    ),
    replace(
        FIRST,
        number="03.5",
        notebook="03_register_tiles_2_warps",
        name="gemm_double_buffer",
        gates=(
            QUADS_IN_SHARED,
            QUADS_IN_GLOBAL,
            ONE_BARRIER,
            tiled(128),
            *MEMORY,
            QUADS_SIDE_BY_SIDE,
        ),
        title="C = A * B with two sets of tiles: one is used, the other filled",
        at=DEEP,
        listed=False,
        points=10,
        effort="about 7 lines",
    ),
    replace(
        FIRST,
        number="03.6",
        notebook="03_register_tiles_2_warps",
        name="gemm_warp",
        gates=(
            QUADS_IN_SHARED,
            QUADS_IN_GLOBAL,
            ONE_BARRIER,
            tiled(128),
            *MEMORY,
            QUADS_SIDE_BY_SIDE,
        ),
        title="Challenge: C = A * B with warp tiles, reading ahead, at 93 % of cuBLAS",
        at=DEEP,
        points=10,
        effort="about 8 lines",
    ),
)
