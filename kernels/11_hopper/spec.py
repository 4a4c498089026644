"""11: Hopper: tiles that the copy engine brings, products of four warps, and who waits for whom."""

from dataclasses import replace

import torch
import torch.nn.functional as F

from utils.course import At, Exercise, Gate, Precision
from utils.course.common_gates import NOT_IN_FLOATS
from utils.course.exercise import takes
from utils.course.models import MODELS
from utils.course.precision import under


def size(M, N, K):
    return {"M": M, "N": N, "K": K}


def to_tf32(x):
    """What the copy engine makes of a float: the nearest with 10 bits of fraction, or the even of
    two."""
    bits = x.detach().float().view(torch.int32)
    near = (bits + 0xFFF + (bits >> 13 & 1) & ~0x1FFF).view(torch.float32).to(x.dtype)
    return x + torch.where(x.isfinite(), near - x.detach(), 0)


def linear(x, W):
    return F.linear(x, W)


def linear_tf32(x, W):
    return F.linear(to_tf32(x), to_tf32(W))


LADDER = At(
    check=(
        size(1, 1, 1),
        size(5, 16, 4),
        size(64, 128, 64),
        size(130, 129, 70),
        size(67, 260, 36),
        size(3, 40, 260),
    ),
    card=(size(500, 300, 1000), size(300, 1000, 4096)),
    bench=size(8192, 8192, 8192),
    draw=size(64, 128, 64),
    gates=size(64, 128, 32),
    drawn=(
        {"M": (250, 270), "N": (246, 290), "K": (3, 20)},
        {"M": (20, 40), "N": (30, 40), "K": (700, 900)},
        {"M": (2, 5), "N": (2, 5), "K": (1400, 1600)},  # more than 40 rounds of a ring
    ),
    anywhere=False,
)


WHOLE = At(
    check=tuple(
        {**size(M, N, K), "groups": groups, "terms": terms}
        for M, N, K, groups, terms in (
            (1, 1, 1, 1, 1),
            (5, 16, 4, 1, 3),
            (3, 96, 7, 6, 3),
            (67, 64, 40, 1, 1),
            (4, 9, 5, 3, 1),
            (130, 160, 36, 5, 3),
            (3, 288, 36, 9, 3),
            (260, 288, 36, 9, 1),
        )
    ),
    card=tuple(
        {**size(M, N, K), "groups": groups, "terms": terms}
        for M, N, K, groups, terms in (
            (1300, 4096, 500, 128, 1),  # several tiles a block, in two bands
            (300, 2400, 200, 100, 3),
            (513, 1024, 1024, 16, 3),
            (1100, 8192, 1000, 256, 3),  # the same, and most rows of W split beside
        )
    ),
    bench={**size(1024, 8192, 8192), "groups": 256, "terms": 3},
    draw={**size(128, 128, 64), "groups": 4, "terms": 3},
    gates={**size(64, 128, 32), "groups": 4, "terms": 3},
    drawn=(
        {"M": (250, 270), "N": (266, 290), "K": (3, 12), "groups": (3, 8), "terms": (3, 3)},
        {"M": (20, 40), "N": (40, 50), "K": (700, 900), "groups": (2, 4), "terms": (1, 1)},
    ),
    choices={"terms": (1, 3)},
    anywhere=False,
)
FEW = 2  # multiprocessors of the emulator's card, so that a block owns several tiles
# For a card: more tiles than it has multiprocessors, in a whole band and a part of one.
MANY_TILES = size(1300, 3400, 516)
# 11.6 splits 44 of 300 rows of W beside the products, where FEW blocks take 256 for their first
# tiles; and of MANY_TILES about half.
SPLIT = replace(
    LADDER,
    check=(*LADDER.check, size(1, 300, 516), size(2, 3, 1850)),  # the last for sums of many rounds
    card=(*LADDER.card, MANY_TILES),
    bench=size(1024, 8192, 8192),
)


def in_tf32(function):
    """The same, with PyTorch's products of floats in TF32."""
    return under(Precision.TF32, function)


def tensor_cores(terms):
    """All of x * W^T by tensor cores: so many products, or as many as a size of that name says."""
    return Gate(
        "operations of tensor cores",
        1.0,
        "let wgmma multiply, for the whole of x and W, high and low halves where they are split",
        ideal=lambda M, N, K, terms=terms, **more: terms * 2 * M * N * K,
        at_least=True,
    )


def product(name, reference, at, **more):
    return Exercise(
        name=name,
        shapes={"x": "M K", "W": "N K", "out": "M N"},
        outputs=("out",),
        reference=reference,
        peers={"PyTorch fp32": linear, "PyTorch TF32": in_tf32(linear)},
        library="PyTorch TF32" if reference is linear_tf32 else "PyTorch fp32",
        flops=lambda M, N, K: 2 * M * N * K,
        needs="sm_90a",
        at=at,
        **more,
    )


def of_terms(terms, **sizes):
    """The precision of a model whose `terms` is a size."""
    return Precision.SPLIT_FP16 if terms == 3 else Precision.TF32


def whole(name, operations, out="M N", at=WHOLE, **more):
    """A model, whole. `operations` for each element of out, GroupNorm's 8 and b aside. `terms`
    of a tensor core: 1, of floats as they lie; or 3, of halves, as exact as fp32."""
    model = MODELS[name]

    @takes("x", "W", "b", "weight", "bias", *model.extra, "groups", "terms")
    def reference(x, W, terms, **more):
        x, W = (to_tf32(x), to_tf32(W)) if terms == 1 else (x, W)
        return model.whole(x, W, **more)

    bench = size(model.rows, model.channels, model.features)
    return Exercise(
        **{
            "name": f"linear_{name}_hopper",
            "shapes": {
                "x": "M K",
                "W": "N K",
                **dict.fromkeys(("b", "weight", "bias", *model.extra), "N"),
                "out": out,
            },
            "outputs": ("out",),
            "reference": reference,
            "peers": {"PyTorch": model.whole, "PyTorch TF32": in_tf32(model.whole)},
            "library": "PyTorch",
            "flops": lambda M, N, K, groups, terms: 2 * M * N * K + (9 + operations) * M * N,
            "at": replace(at, bench={**bench, "groups": model.groups, "terms": 3}),
            "outliers": ("x", "W"),
            "needs": "sm_90a",
            "multiprocessors": FEW,
            "precision": of_terms,
            "eps": True,
            "follows": {"groups": "N"},
            "gates": (tensor_cores(3), NOT_IN_FLOATS),
            **more,
        }
    )


def rung(name, at=LADDER, **more):
    return product(
        name, linear_tf32, at, gates=(tensor_cores(1),), precision=Precision.TF32, **more
    )


FETCHED = Exercise(
    number="11.0",
    name="fetch_tile",
    title="one tile, fetched by the copy engine",
    shapes={"x": "M K", "out": "M K"},
    outputs=("out",),
    reference=lambda x: x,
    exact=True,
    at=At(
        check=tuple(
            {"M": M, "K": K} for M, K in ((1, 1), (5, 16), (64, 32), (130, 70), (67, 36), (3, 260))
        ),
        card=({"M": 4099, "K": 1004},),
        bench={"M": 16384, "K": 8192},
        draw={"M": 64, "K": 32},
        gates={"M": 128, "K": 64},
        drawn=({"M": (250, 270), "K": (260, 290)},),
    ),
    flops=lambda M, K: 0,
    peers={"PyTorch": lambda x: x.clone()},
    library="PyTorch",
    gates=(
        Gate(
            "load requests to global memory",
            1.0,
            "let the copy engine fetch the tile: load_tile, once for each block",
            ideal=lambda **sizes: 0,
        ),
    ),
    needs="sm_90a",
    listed=False,
    points=5,
    effort="about 7 lines",
)


def in_notebook(name, *exercises):
    """The same, in a later notebook of the chapter."""
    return tuple(replace(exercise, notebook=f"11_hopper_{name}") for exercise in exercises)


PERSISTENT = in_notebook(
    "2_persistent",
    rung(
        "linear_persistent",
        at=replace(  # tiles in two bands, of one column and of two
            LADDER,
            check=(*LADDER.check, size(1030, 1, 132)),
            card=(*LADDER.card, MANY_TILES),
            drawn=(*LADDER.drawn, {"M": (1026, 1034), "N": (257, 260), "K": (1, 4)}),
        ),
        multiprocessors=FEW,
        number="11.4",
        title="a block for each multiprocessor, tiles in an order that shares them",
        points=15,
        effort="about 4 lines",
    ),
    rung(
        "linear_cluster",
        title="two blocks that share the tiles of W",
    ),
    replace(
        product(
            "linear_bf16",
            linear,
            replace(
                LADDER,
                check=(*LADDER.check, size(1030, 1, 132)),
                card=(*LADDER.card, MANY_TILES),
            ),
            gates=(tensor_cores(1),),
            precision=Precision.BF16,
            multiprocessors=FEW,
            title="11.4 of bfloat16: half the bytes, half the time",
            traffic=lambda M, N, K: 2 * (M * K + N * K) + 4 * M * N,
        ),
        peers={"PyTorch bf16": under(Precision.BF16, linear)},  # which leaves bfloat16, too
        library="PyTorch bf16",
    ),
    product(
        "linear_split_wgmma",
        linear,
        SPLIT,
        share=0.25,
        outliers=("x", "W"),
        gates=(tensor_cores(3), NOT_IN_FLOATS),
        precision=Precision.SPLIT_FP16,
        multiprocessors=FEW,
        number="11.5",
        title="three products of halves by warpgroups, as exact as floats",
        listed=False,
        points=15,
        effort="about 7 lines",
    ),
    product(
        "linear_split_beside",
        linear,
        SPLIT,
        outliers=("x", "W"),
        gates=(tensor_cores(3), NOT_IN_FLOATS),
        precision=Precision.SPLIT_FP16,
        multiprocessors=FEW,
        number="11.6",
        title="a warpgroup that splits W while two others multiply",
        points=15,
        effort="about 7 lines",
    ),
)
# One for each row of a tile of 128 columns; with one shuffle in place of two there are 2.
ONE_ATOMIC_A_ROW = Gate(
    "atomic operations",
    1.5,
    "find the minimum of a row's four lanes first, by two shuffles: one lane then tells it to all",
    ideal=lambda M, N, **more: M * -(-N // 128),
)
WHOLE_MODELS = in_notebook(
    "3_models",
    whole(
        "gn_swish_multiply_swish",
        9,
        number="11.7",
        title="Task 88, whole, by warpgroups",
        points=20,
        effort="about 9 lines",
    ),
    whole(
        "gn_leaky_relu_double",
        3,
        number="11.8",
        title="Task 62, whole, by warpgroups",
        points=10,
        effort="about 8 lines",
    ),
    whole(
        "bias_hardtanh_mish_gn",
        12,
        number="11.9",
        title="Task 94, whole, by warpgroups",
        points=10,
        effort="about 10 lines",
    ),
    whole(
        "swish_bias_gn",
        5,
        number="11.10",
        title="Task 37, whole, by warpgroups",
        points=10,
        effort="about 10 lines",
    ),
    whole(
        "gn_min_bias",
        2,
        number="11.11",
        out="N M",  # a row for each channel
        # An odd K: rows of W are split before, not beside, where atomics count them.
        at=replace(WHOLE, gates={**size(64, 128, 33), "groups": 4, "terms": 3}),
        gates=(tensor_cores(3), NOT_IN_FLOATS, ONE_ATOMIC_A_ROW),
        title="Task 75, whole, by warpgroups",
        points=20,
        effort="about 14 lines",
    ),
)


EXERCISES = (
    FETCHED,
    rung(
        "linear_wgmma",
        number="11.1",
        title="tiles by the copy engine, products by four warps",
        listed=False,
        points=10,
        effort="about 10 lines",
    ),
    rung(
        "linear_ring",
        number="11.2",
        title="a ring of tiles: copies run ahead of the products",
        listed=False,
        points=10,
        effort="about 13 lines",
    ),
    rung(
        "linear_specialised",
        number="11.3",
        title="warpgroups with tasks of their own: one brings, two multiply",
        listed=False,
        points=20,
        effort="about 22 lines",
    ),
    *PERSISTENT,
    *WHOLE_MODELS,
)
