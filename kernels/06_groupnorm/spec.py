"""06: GroupNorm: mean and variance of many small groups, then one line for each element."""

from dataclasses import replace

import torch

from utils.course import At, Exercise, Gate
from utils.course.case_values import between, in_turn, sometimes_nan, whole_number
from utils.course.common_gates import (
    ALL_LANES,
    COALESCED_LOADS,
    COALESCED_STORES,
    NO_CONFLICTS,
    few_shared_loads,
)


def stats(x, rows, groups, eps):
    """mean and rstd, (rows, groups) each, of x, (rows, channels)."""
    variance, mean = torch.var_mean(x.reshape(rows, groups, -1), dim=2, correction=0)
    return mean, (variance + eps).rsqrt()


def group_norm(x, weight, bias, groups, eps):
    """F.group_norm, less its refusal of a single value."""
    return torch.group_norm(x, groups, weight, bias, eps)


def mixed(sizes, generator):
    """Each group has a kind of its own: its variance near 1, below eps, between these, zero, beside
    a large mean, or anywhere up to 1e20; or its mean is 0. In the larger sizes one value may be
    NaN.

    No infinities: whether one makes the mean infinite or NaN is a matter of the formula.
    """
    rows, groups = sizes["rows"], sizes["groups"]
    shape = (rows * groups, sizes["channels"] // groups)
    x = torch.randn(shape, generator=generator, device=generator.device)
    kinds = in_turn(shape[0], 6, generator, first=shape[1])
    x[kinds == 1] += 1000.0
    x[kinds == 2] *= 1e-3
    x[kinds == 3] = 0.375
    power = 1.7 + 8.3 * torch.rand(shape[0], 1, generator=generator, device=x.device)
    x = torch.where(kinds[:, None] == 4, x * 10**power, x)
    x = torch.where(kinds[:, None] == 5, x * between(1e-3, 1.0, shape[0], generator), x)
    x = sometimes_nan(x, generator) if shape[1] >= 128 else x
    if whole_number(0, 2, generator):  # groups of an even size whose sum is exactly 0
        some = x[kinds == 0][:, : shape[1] // 2]
        x[kinds == 0] = torch.cat([some, x[kinds == 0][:, : shape[1] % 2], -some], dim=1)
    return {"x": x.reshape(rows, sizes["channels"])}


def size(rows, channels, groups):
    return {"rows": rows, "channels": channels, "groups": groups}


def per_value(metric, number, advice, lanes=32):
    """`number` requests of a warp for `lanes` values of x."""
    return Gate(
        metric,
        1.125,
        advice,
        ideal=lambda rows, channels, groups: number * rows * channels / lanes,
    )


AT = At(
    check=(
        size(1, 1, 1),
        size(3, 5, 1),
        size(3, 7, 7),  # one channel a group: its variance is zero
        size(2, 12, 4),
        size(5, 64, 4),
        size(3, 96, 3),
        size(2, 66, 2),  # one more than a warp
        size(9, 40, 5),
        size(6, 192, 16),  # quads, but 3 of them a group
        size(32, 48, 12),  # whole blocks of threads, or of warps, for all groups
        size(3, 128, 2),
        size(2, 300, 3),
        size(5, 512, 4),
        size(2, 1040, 2),  # groups larger than a block, and no multiple of a warp
    ),
    card=(size(1024, 8192, 256), size(37, 4096, 64), size(131, 8000, 80), size(9, 8192, 1)),
    bench=size(1024, 8192, 256),
    draw=size(2, 64, 4),
    drawn=(
        {"rows": (4, 5), "channels": (22_000, 26_000), "groups": (1, 2)},
        {"rows": (300, 400), "channels": (100, 200), "groups": (2, 5)},
    ),
)

CHAPTER = dict(
    scalars={"eps": (1e-6, 10.0)},
    eps=True,
    follows={"groups": "channels"},
    library="PyTorch",
)

STATS = dict(
    shapes={"x": "rows channels", "mean": "rows groups", "rstd": "rows groups"},
    outputs=("mean", "rstd"),
    inputs=mixed,
    reference=stats,
    ladder="stats",
    flops=lambda rows, channels, groups: 4 * rows * channels,  # add; subtract, multiply, add
    peers={"PyTorch": stats},
    at=replace(AT, gates=size(4, 1024, 8)),
    **CHAPTER,
)

NORM = dict(
    shapes={
        "x": "rows channels",
        "weight": "channels",
        "bias": "channels",
        "out": "rows channels",
    },
    outputs=("out",),
    reference=group_norm,
    may_be_infinite="bias",
    ladder="groupnorm",
    flops=lambda rows, channels, groups: 8 * rows * channels,  # 4 for the statistics, then 4 more
    peers={"PyTorch": group_norm},
    **CHAPTER,
)

# x three times, weight and bias once each.
FIVE_READS = per_value(
    "load requests to global memory",
    5,
    "let the lanes of a warp read neighbours: x for the mean, for the variance and for the result, "
    "weight and bias once each",
)

EXERCISES = (
    Exercise(
        name="groupnorm_serial",
        title="GroupNorm, one thread for each group",
        at=AT,
        **NORM,
    ),
    Exercise(
        number="06.1",
        name="stats_two_pass",
        gates=(
            COALESCED_LOADS,
            per_value("load requests to global memory", 2, "read each value twice, by 32 lanes"),
        ),
        title="mean and rstd of each group, in two passes, a warp for each group",
        points=10,
        effort="about 12 lines",
        **STATS,
    ),
    Exercise(
        number="06.2",
        name="stats_welford",
        gates=(
            COALESCED_LOADS,
            per_value(
                "load requests to global memory",
                1,
                "read each value once: update count, mean and squares with it",
            ),
        ),
        title="mean and rstd in one pass: Welford's update, merged across the warp",
        points=15,
        effort="about 15 lines",
        **STATS,
    ),
    Exercise(
        number="06.3",
        name="groupnorm_block",
        gates=(
            COALESCED_LOADS,
            COALESCED_STORES,
            ALL_LANES,
            NO_CONFLICTS,
            FIVE_READS,
            Gate(
                "blocks",
                1.0,
                "give each group of each row a block of its own",
                ideal=lambda rows, channels, groups: rows * groups,
                at_least=True,
            ),
            Gate(
                "barriers a block",
                5.0,  # so that a tree passes, and a sum in each round of the loop does not
                "take both sums once for the whole group, not again and again in a loop",
                ideal=lambda rows, channels, groups: 4,
            ),
            few_shared_loads(
                lambda rows, channels, groups: rows * channels,
                lambda rows, channels, groups: rows * groups,
            ),
        ),
        # Groups may be halved at the gates; with 2048 values, a sum in each round shows.
        at=replace(AT, gates=size(1, 8192, 2)),
        title="GroupNorm, a block for each group of each row",
        points=15,
        effort="about 14 lines",
        **NORM,
    ),
    Exercise(
        number="06.4",
        name="groupnorm_warp",
        gates=(
            COALESCED_LOADS,
            COALESCED_STORES,
            ALL_LANES,
            FIVE_READS,
            Gate(
                "barriers a block",
                1.0,
                "the lanes of a warp agree by shuffles alone: use warp_sum, and no barrier",
                ideal=lambda rows, channels, groups: 0,
            ),
            Gate(
                "blocks",
                4.0,
                "give a block several warps, and each of them a group",
                ideal=lambda rows, channels, groups: rows * groups / 8,
            ),
        ),
        at=replace(AT, gates=size(4, 1024, 16)),
        title="GroupNorm, a warp for each group, eight warps a block",
        points=15,
        effort="about 20 lines",
        **NORM,
    ),
    Exercise(
        number="06.5",
        name="groupnorm_vectorized",
        gates=(
            COALESCED_LOADS,
            COALESCED_STORES,
            ALL_LANES,
            per_value(
                "load requests to global memory",
                3,
                "load quads of x, weight and bias, each once, and keep them in registers",
                lanes=128,
            ),
            per_value("store requests to global memory", 1, "store quads", lanes=128),
        ),
        at=replace(AT, gates=size(8, 1024, 32)),
        title="GroupNorm, four values a lane, several groups a warp, each value read once",
        points=20,
        effort="about 11 lines",
        **NORM,
    ),
)
