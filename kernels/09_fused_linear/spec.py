"""09: the five models whole: the linear layer and all that follows it in one kernel."""

from dataclasses import replace

import torch
import torch.nn.functional as F

from utils.course import At, Exercise, Gate
from utils.course.case_values import in_turn, sometimes_nan, spread
from utils.course.catalog import topic
from utils.course.common_gates import ALL_LANES, COALESCED_LOADS, COALESCED_STORES, NO_CONFLICTS
from utils.course.models import EPS, MODELS, SLOPE, kinds_of_groups, large_scales


def size(M, N, K, groups):
    return {"M": M, "N": N, "K": K, "groups": groups}


# N / groups is 16, 32 or 64; 128 rows or columns make a whole tile.
FITTING = (
    size(5, 16, 4, 1),
    size(3, 96, 7, 6),
    size(67, 64, 40, 4),
    size(5, 160, 9, 5),
    size(2, 192, 12, 3),
    size(130, 64, 8, 1),
    size(128, 128, 8, 4),
    size(128, 128, 12, 8),  # K is no multiple of BK
)
# And other sizes of groups: 1, 3, 20, 24, 65, 100, 128.
ANY = (
    size(1, 1, 1, 1),
    size(2, 10, 3, 10),
    size(4, 9, 5, 3),
    size(2, 260, 8, 13),
    size(7, 144, 6, 6),
    size(3, 300, 4, 3),
    size(2, 260, 8, 4),  # tiles of one group, which is more than half of a tile
    size(2, 128, 8, 1),
    *FITTING,
)
AT = At(
    check=ANY,
    card=(
        size(1024, 2048, 512, 128),
        size(1000, 2048, 500, 64),
        size(513, 1024, 1024, 16),
        size(300, 2400, 200, 100),
    ),
    bench=size(1024, 8192, 8192, 256),
    draw=size(128, 128, 8, 4),
    gates=size(128, 128, 64, 4),
    edges=False,  # tiles that are not whole take another path
    drawn=(
        {"M": (250, 270), "N": (266, 290), "K": (3, 12), "groups": (3, 8)},
        {"M": (20, 40), "N": (40, 50), "K": (1700, 1900), "groups": (2, 4)},
    ),
    part=128,  # a group fits into a tile
    anywhere=False,
)


def shift_and_spread(sizes, generator):
    """Where the activation comes first: y = x * W^T + b of all kinds, each row of x its own.

    Rows are normal, smaller or very small, far from zero beside their spread, and wide; in the
    larger sizes one value may be NaN. No group lies far outside of what hardtanh lets through: a
    group of equal values has no digits.
    """
    M, N, K = (sizes[name] for name in "MNK")

    def draw(*shape):
        return torch.randn(shape, generator=generator, device=generator.device)

    kinds = in_turn(M, 5, generator)
    x = spread(draw(M, K), kinds, generator)
    x = sometimes_nan(x, generator) if M >= 64 else x
    group = torch.arange(N, device=generator.device) * sizes["groups"] // N
    group = in_turn(sizes["groups"], 6, generator)[group]  # the kind of each channel's
    deviation = torch.where(group % 2 == 0, 0.5, 1e-3)
    # A lone value is its own mean, but for a rounding, and that 316 times.
    steep = 0.05 if N == sizes["groups"] else 1.0
    # One group of three lies far from zero beside its spread: E[x²] - E[x]² has no digit left.
    far = group % 3 == 2
    return {
        "x": x,
        "W": draw(N, K) / K**0.5 * torch.where(far, 1e-3, 1.0)[:, None],
        "b": torch.where(far, 0.6 + 1e-3 * draw(N), draw(N) * deviation),
        "shift": torch.where(far, 0.2 + 1e-3 * draw(N), draw(N) * deviation),
        "weight": draw(N) * steep,
        "bias": draw(N),
    }


def launches(count, advice):
    return Gate("launches", 1.0, advice, ideal=lambda **sizes: count)


ONE_LAUNCH = launches(
    1, "do all of it in one kernel: a second launch has to read what the first one wrote"
)
TWO_LAUNCHES = launches(2, "one kernel for the minima, one that spreads them; no third")


def loads(parameters, more=0):
    """Each element of x and W once for 128 columns or rows, the parameters once for each warp.

    `more`: bytes for each element of out.
    """
    more += parameters * 4 * 4 * 64 / 128 / 128  # 4 warps of a tile, 64 columns each
    return Gate(
        "bytes loaded from global memory",
        1.3,
        "use what multiply() left in sums, and read each parameter once, not once for each row",
        ideal=lambda M, N, K, groups=1: 2 * 4 * M * N * K / 128 + more * M * N,
    )


def stores(each):
    return Gate(
        "store requests to global memory",
        1.125,
        "store each element once, and nothing else" + ", four at a time" * (each == 4),
        ideal=lambda M, N, K, groups=1: M * N / 32 / each,
    )


BARRIERS = Gate(
    "barriers a block",
    1.25,
    "a row of a group lies in one warp: lanes can shuffle, and need not wait for the block",
    ideal=lambda M, N, K, groups=1: K / 8 + 1,
)


def gates(parameters):
    return (
        ONE_LAUNCH,
        loads(parameters),
        stores(4),
        BARRIERS,
        ALL_LANES,
        COALESCED_LOADS,
        COALESCED_STORES,
        NO_CONFLICTS,
    )


# One for each row of a warp's tile of 64 columns.
FEW_ATOMICS = Gate(
    "atomic operations",
    1.125,
    "find the minimum of a row within the warp first: one lane then tells it to all",
    ideal=lambda M, N, K, groups: M * N / 64,
)
MIN_GATES = (
    TWO_LAUNCHES,
    loads(3, more=1),  # a shift for each quad of a warp, which is one sector
    replace(stores(1), times=1.25),  # a row of minima for each tile, say
    BARRIERS,
    FEW_ATOMICS,
    ALL_LANES,
    COALESCED_LOADS,
    COALESCED_STORES,
    NO_CONFLICTS,
)


def fused(name, of, operations, parameters, peer, out="M N", **more):
    """An exercise that begins with x * W^T + b. `of`: names of what else there is for a channel."""
    return Exercise(
        **{
            "name": name,
            "shapes": {
                "x": "M K",
                "W": "N K",
                "b": "N",
                **dict.fromkeys(of, "N"),
                "out": out,
            },
            "outputs": ("out",),
            "reference": peer,
            "peers": {"PyTorch": peer},
            "library": "PyTorch",
            "flops": lambda M, N, K, groups=1: 2 * M * N * K + operations * M * N,
            "gates": gates(parameters),
            **more,
        }
    )


def whole(name, operations, **more):
    """A model, whole. `operations` for each element of out, GroupNorm's 8 and b aside."""
    model = MODELS[name]
    return fused(
        f"linear_{name}",
        ("weight", "bias", *model.extra),
        9 + operations,
        3 + len(model.extra),
        model.whole,
        at=replace(AT, bench=size(model.rows, model.channels, model.features, model.groups)),
        eps=True,
        follows={"groups": "N"},
        **more,
    )


def linear_bias_act(x, W, b):
    return F.leaky_relu(F.linear(x, W, b), SLOPE)


def linear_groupnorm(x, W, b, weight, bias, groups):
    return torch.group_norm(F.linear(x, W, b), groups, weight, bias, EPS)


def without_groups(at):
    def less(sizes):
        return {name: sizes[name] for name in "MNK"}

    return At(
        check=tuple(map(less, at.check)),
        card=tuple(map(less, at.card)),
        bench=less(at.bench),
        draw=less(at.draw),
        gates=less(at.gates),
        edges=at.edges,
        drawn=tuple(map(less, at.drawn)),
    )


KEYS = replace(
    topic("04_reductions")["row_min"],
    number="09.7",
    name="row_min_keys",
    title="the smallest element of each row, of which several blocks have a part",
    gates=(
        COALESCED_LOADS,
        Gate(
            "atomic operations",
            1.125,
            "find the minimum of a warp first: one lane then tells it to all",
            ideal=lambda rows, channels: rows * channels / 32,
        ),
        Gate(
            "blocks",
            0.5,
            "let several blocks share a row: in 09.9 they do",
            ideal=lambda rows, channels: rows * channels / 256,
            at_least=True,
        ),
    ),
    listed=False,
    points=10,
    effort="about 5 lines",
)

SPREAD = Exercise(
    number="09.8",
    name="spread_minima",
    title="the minima in the first row of out, spread over all rows, in place",
    shapes={"out": "N M", "shift": "N"},
    outputs=("out",),
    reference=lambda out, shift: out[0] + shift[:, None],
    must_read={"out": 0.0},  # the first of its rows alone
    at=At(
        check=tuple(
            {"M": M, "N": N}
            for M, N in ((1, 1), (5, 3), (8, 1), (8, 300), (13, 40), (9, 36), (26, 7), (40, 260))
        ),
        card=({"M": 1024, "N": 8192}, {"M": 1021, "N": 4099}),
        bench={"M": 1024, "N": 8192},
        draw={"M": 16, "N": 16},
        gates={"M": 32, "N": 512},
        drawn=({"M": (3, 20), "N": (22_000, 26_000)}, {"M": (300, 400), "N": (200, 300)}),
    ),
    traffic=lambda M, N: 4 * (M * N + M + N),
    flops=lambda M, N: M * N,
    peers={"PyTorch": lambda out, shift: out[0] + shift[:, None]},
    library="PyTorch",
    gates=(
        replace(stores(1), ideal=lambda M, N: M * N / 32),
        ALL_LANES,
        replace(COALESCED_STORES, advice="let a block own 8 columns of out: a whole sector"),
    ),
    listed=False,
    points=10,
    effort="about 6 lines",
)


EXERCISES = (
    fused(
        "linear_bias_act",
        (),
        3,
        1,
        linear_bias_act,
        products=True,
        number="09.1",
        listed=False,
        title="out = LeakyReLU(x * W^T + b): a first epilogue",
        at=without_groups(AT),
        points=10,
        effort="about 6 lines",
    ),
    fused(
        "linear_groupnorm",
        ("weight", "bias"),
        9,
        3,
        linear_groupnorm,
        number="09.2",
        listed=False,
        title="GroupNorm of a linear layer, in the registers of the product",
        inputs=kinds_of_groups,
        at=AT,
        eps=True,
        follows={"groups": "N"},
        points=20,
        effort="about 14 lines",
    ),
    whole(
        "gn_leaky_relu_double",
        3,
        number="09.3",
        listed=False,
        title="Task 62, whole",
        inputs=kinds_of_groups,
        points=15,
        effort="about 10 lines",
    ),
    whole(
        "gn_swish_multiply_swish",
        9,
        number="09.4",
        listed=False,
        title="Task 88, whole",
        inputs=large_scales,
        points=15,
        effort="about 12 lines",
    ),
    whole(
        "bias_hardtanh_mish_gn",
        12,
        number="09.5",
        listed=False,
        title="Task 94, whole",
        inputs=shift_and_spread,
        points=15,
        effort="about 14 lines",
    ),
    whole(
        "swish_bias_gn",
        5,
        number="09.6",
        title="Task 37, whole",
        inputs=shift_and_spread,
        points=15,
        effort="about 12 lines",
    ),
    KEYS,
    SPREAD,
    whole(
        "gn_min_bias",
        2,
        number="09.9",
        listed=False,
        out="N M",  # a row for each channel
        gates=MIN_GATES,
        title="Task 75, whole",
        inputs=kinds_of_groups,
        points=10,
        effort="about 16 lines",
    ),
)
