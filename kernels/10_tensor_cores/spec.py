"""10: tensor cores: products of halves, and how three of them stand in for one of floats."""

from dataclasses import replace

import torch
import torch.nn.functional as F

from utils.course import At, Exercise, Gate, Precision
from utils.course.common_gates import (
    ALL_LANES,
    COALESCED_LOADS,
    COALESCED_STORES,
    NOT_IN_FLOATS,
    tensor_cores,
    without_conflicts,
)
from utils.course.models import MODELS, large_scales
from utils.course.precision import under


def size(M, N, K):
    return {"M": M, "N": N, "K": K}


def of_halves(x, W):
    return x.half().to(x.dtype) @ W.half().to(W.dtype).T


def linear(x, W):
    return F.linear(x, W)


def linear_fp16(x, W):
    return F.linear(x.half(), W.half()).float()


WARP = At(
    check=(
        size(1, 1, 1),
        size(16, 8, 16),
        size(5, 3, 7),
        size(33, 17, 40),
        size(16, 8, 35),
        size(70, 20, 9),
    ),
    card=(size(500, 300, 1000),),
    bench=size(4096, 4096, 4096),
    draw=size(16, 8, 32),
    gates=size(32, 32, 32),
    drawn=(
        {"M": (250, 270), "N": (246, 290), "K": (3, 20)},
        {"M": (20, 40), "N": (30, 40), "K": (1700, 1900)},
        {"M": (2, 5), "N": (2, 5), "K": (4096, 4200)},  # their own K, and a little more
    ),
    anywhere=False,
)
TILES = At(
    check=(
        size(1, 1, 1),
        size(5, 16, 4),
        size(128, 128, 64),
        size(130, 129, 65),
        size(67, 200, 136),
        size(3, 260, 128),
    ),
    card=(size(500, 300, 1000), size(300, 1000, 4096)),
    bench=size(4096, 4096, 4096),
    draw=size(128, 128, 64),
    gates=size(128, 128, 64),
    drawn=WARP.drawn,
    anywhere=False,
)
MODEL = At(
    check=tuple(
        {**size(M, N, K), "groups": groups}
        for M, N, K, groups in (
            (1, 1, 1, 1),
            (5, 16, 4, 1),
            (3, 96, 7, 6),
            (67, 64, 40, 2),
            (2, 192, 12, 3),
            (4, 9, 5, 3),
            (7, 144, 6, 6),
            (2, 260, 8, 2),
            (130, 128, 72, 4),
        )
    ),
    card=({**size(1000, 2048, 500), "groups": 64}, {**size(300, 2400, 200), "groups": 100}),
    bench={**size(1024, 8192, 8192), "groups": 256},
    draw={**size(128, 128, 64), "groups": 4},
    gates={**size(128, 128, 64), "groups": 4},
    drawn=(
        {"M": (250, 270), "N": (266, 290), "K": (3, 12), "groups": (3, 8)},
        {"M": (20, 40), "N": (40, 50), "K": (1700, 1900), "groups": (2, 4)},
    ),
    anywhere=False,
)
# More than one promotion; and sums of one sign, long enough that what a tensor core
# cuts off shows (their number chooses the values: utils.course.cases.plan).
LONG_SUMS = size(16, 8, 300), size(2, 3, 1850)
FEW = size(6, 9, 20)  # one round, for the sizes that are called many times
SPLIT = replace(TILES, check=(*TILES.check, *LONG_SUMS, FEW), bench=size(1024, 8192, 8192))


def product(name, reference, at, **more):
    halves = {"PyTorch fp16": under(Precision.FP16, linear_fp16)}
    peers = halves if reference is of_halves else {}
    return Exercise(
        name=name,
        shapes={"x": "M K", "W": "N K", "out": "M N"},
        outputs=("out",),
        reference=reference,
        peers={"PyTorch fp32": linear, **peers},
        library=next(reversed(peers), "PyTorch fp32"),
        flops=lambda M, N, K: 2 * M * N * K,
        at=at,
        **more,
    )


def task_88(x, W, b, weight, bias, scale, groups):
    return MODELS["gn_swish_multiply_swish"].tail(F.linear(x, W, b), weight, bias, scale, groups)


def split_rows(x, padded):
    most = x.abs().nan_to_num(0.0).amax(dim=1).double()
    exponent = torch.where(most > 0, torch.floor(torch.log2(most)).clamp(-100, 100) - 14, 0.0)
    scale = torch.exp2(exponent).to(x.dtype)
    wide = F.pad(x / scale[:, None], (0, padded - x.shape[1]))
    high = wide.half()
    return high, (wide - high.to(x.dtype)).half(), scale


BY_LDMATRIX = Gate(
    "load requests to shared memory",
    1.5,
    "load_matrices() brings four matrices of 8 x 8 in a request: two calls for 32 rows of x, four "
    "for 64 of W, and what they bring serves 16 products",
    # 6 for 32 x 64 elements of out and 16 of K.
    ideal=lambda M, N, K: 6 * M * N * K / (32 * 64 * 16),
)
# Two that split, one that multiplies.
THREE_LAUNCHES = Gate(
    "launches",
    1.0,
    "split x, split W, and do all the rest in one kernel: a further launch reads what one wrote",
    ideal=lambda **sizes: 3,
)


EXERCISES = (
    product(
        "linear_mma",
        of_halves,
        WARP,
        number="10.1",
        title="x * W^T by a warp's tensor core instruction: who owns what",
        ladder="x * W^T of halves",
        magnitudes=(1e-4, 1e4),
        precision=Precision.FP16,
        gates=(tensor_cores(1), ALL_LANES),
        points=10,
        effort="about 8 lines",
    ),
    product(
        "linear_mma_tiled",
        of_halves,
        TILES,
        number="10.2",
        listed=False,
        title="tiles of halves in shared memory, swizzled, loaded by ldmatrix",
        ladder="x * W^T of halves",
        magnitudes=(1e-4, 1e4),
        slices=True,
        precision=Precision.FP16,
        gates=(
            tensor_cores(1),
            BY_LDMATRIX,
            without_conflicts("let a chunk's place in its row depend on the row, too"),
        ),
        points=15,
        effort="about 13 lines",
    ),
    Exercise(
        name="split_rows",
        listed=False,
        number="10.3",
        title="a row of floats as two rows of halves and a power of two",
        shapes={"x": "rows cols", "high": "rows padded", "low": "rows padded", "scale": "rows"},
        outputs=("high", "low", "scale"),
        reference=split_rows,
        peers={"PyTorch": split_rows},
        library="PyTorch",
        exact=True,
        at=At(
            check=(
                {"rows": 1, "cols": 1, "padded": 1},
                {"rows": 2, "cols": 1, "padded": 64},
                {"rows": 5, "cols": 64, "padded": 64},
                {"rows": 3, "cols": 100, "padded": 128},
                {"rows": 7, "cols": 300, "padded": 320},
                {"rows": 2, "cols": 1025, "padded": 1088},
            ),
            bench={"rows": 8192, "cols": 8192, "padded": 8192},
            draw={"rows": 2, "cols": 60, "padded": 64},
            gates={"rows": 8, "cols": 512, "padded": 512},
            edges=False,  # padded is a multiple of 64
            drawn=({"rows": (60, 70), "cols": (1090, 1152), "padded": (1152, 1152)},),
            anywhere=False,  # padded is the next multiple of 64
        ),
        follows={"padded": "cols"},
        gates=(ALL_LANES, COALESCED_LOADS, COALESCED_STORES),
        flops=lambda rows, cols, padded: 4 * rows * cols,
        traffic=lambda rows, cols, padded: 4 * rows * (cols + padded + 1),
        points=15,
        effort="about 5 lines",
    ),
    product(
        "linear_split",
        linear,
        SPLIT,
        number="10.4",
        listed=False,
        title="three products of halves in place of one of floats",
        share=0.25,
        outliers=("x", "W"),
        precision=Precision.SPLIT_FP16,
        gates=(tensor_cores(3), THREE_LAUNCHES, NOT_IN_FLOATS),
        points=20,
        effort="about 12 lines",
    ),
    Exercise(
        name="linear_gn_swish_multiply_swish_split",
        number="10.5",
        title="Task 88, whole, on tensor cores, by three products",
        shapes={
            "x": "M K",
            "W": "N K",
            **dict.fromkeys(("b", "weight", "bias", "scale"), "N"),
            "out": "M N",
        },
        outputs=("out",),
        reference=task_88,
        peers={"PyTorch": task_88},
        library="PyTorch",
        flops=lambda M, N, K, groups: 2 * M * N * K + 18 * M * N,
        inputs=large_scales,
        outliers=("x", "W"),
        at=MODEL,
        eps=True,
        follows={"groups": "N"},
        precision=Precision.SPLIT_FP16,
        gates=(tensor_cores(3), THREE_LAUNCHES, NOT_IN_FLOATS),
        points=20,
        effort="about 14 lines",
    ),
)
