"""08: all that follows the linear layer of each of the five models, as one kernel."""

from dataclasses import replace

import torch

from utils.course import MODELS, At, Exercise, Gate
from utils.course.case_values import in_turn, sometimes_nan, spread
from utils.course.catalog import topic
from utils.course.common_gates import (
    ALL_LANES,
    COALESCED_LOADS,
    COALESCED_STORES,
    NO_CONFLICTS,
)

ROW_MIN = topic("04_reductions")["row_min"]  # shapes, reference, values and sizes stay


def size(rows, channels, groups):
    return {"rows": rows, "channels": channels, "groups": groups}


def several_kinds(sizes, generator):
    """Where the activation comes first: each row has a kind of its own, and each group of shifts.

    A row is normal, smaller or very small, or far from zero beside its spread; in the larger sizes
    one value may be NaN. No group is far outside of what hardtanh lets through: a group of equal
    values has no digits.
    """
    rows, channels = sizes["rows"], sizes["channels"]

    def draw(*shape):
        return torch.randn(shape, generator=generator, device=generator.device)

    kinds = in_turn(rows, 5, generator)
    y = spread(draw(rows, channels), kinds, generator)
    y = sometimes_nan(y, generator) if channels >= 256 else y
    group = torch.arange(channels, device=generator.device) * sizes["groups"] // channels
    kind_of_group = in_turn(sizes["groups"], 2, generator)
    shift = draw(channels) * torch.where(kind_of_group[group] == 0, 0.5, 1e-3)
    weight = draw(channels)
    if channels == sizes["groups"]:  # a lone value is its mean, but for a rounding, 316 times it
        weight *= 0.05
    return {"y": y, "shift": shift, "weight": weight, "bias": draw(channels)}


def far_from_zero(sizes, generator):
    """For minima: in some calls all values are positive, so a zero that is no value shows."""
    bias = torch.randn(sizes["channels"], generator=generator, device=generator.device)
    return {"bias": bias + 50.0 * (sizes["rows"] % 2)}


SIZES = (
    size(1, 1, 1),
    size(3, 5, 1),
    size(3, 7, 7),  # one channel a group: its variance is zero
    size(2, 12, 3),  # one quad a group
    size(5, 64, 4),
    size(7, 96, 3),
    size(2, 66, 2),  # one more than a warp
    size(9, 40, 5),
    size(6, 192, 16),  # quads, but 3 of them a group
    size(33, 48, 3),
    size(3, 256, 2),
    size(10, 512, 8),
    size(2, 300, 2),
    size(2, 1040, 2),  # groups larger than a block, and no multiple of a warp
)
CARD_SIZES = (
    size(1024, 8192, 256),
    size(37, 4096, 64),
    size(131, 8000, 80),
    size(9, 8192, 1),
    size(1021, 2048, 128),
)

ONE_LAUNCH = Gate(
    "launches",
    1.0,
    "do all of it in one kernel: a second launch has to read what the first one wrote",
    ideal=lambda rows, channels, groups: 1,
)


def loads(quads, times, advice):
    """`quads` of requests for each quad of y, itself among them."""
    return Gate(
        "load requests to global memory",
        times,
        advice,
        ideal=lambda rows, channels, groups: quads * rows * channels / 128,
    )


READ_ONCE = "read y once, four values at a time, and keep it in registers"
ONCE_FOR_SEVERAL = "read the parameters once, keep them in registers, and use them for several rows"

WHOLE_SECTORS = (
    "let one block own 8 rows, and neighbouring threads write a channel of them: in out they are "
    "neighbours, a whole sector"
)
STORES = Gate(
    "store requests to global memory",
    1.125,
    "store four neighbours at once",
    ideal=lambda rows, channels, groups: rows * channels / 128,
)


def tail(name, operations, more_sizes=(), **more):
    """An exercise, from the model itself. `operations` for each element, GroupNorm's 8 aside."""
    model = MODELS[name]
    parameters = ("weight", "bias", *model.extra)
    usual = dict(
        shapes={
            "y": "rows channels",
            **dict.fromkeys(parameters, "channels"),
            "out": model.output.replace("1 ", "").replace(" 1", ""),  # places have two numbers
        },
        outputs=("out",),
        reference=model.tail,
        peers={"PyTorch": model.tail},
        library="PyTorch",
        at=At(
            check=(*SIZES, *more_sizes),
            card=CARD_SIZES,
            bench=model.sizes,
            draw=size(2, 64, 4),
            gates=size(16, 1024, 32),
            drawn=(
                {"rows": (3, 4), "channels": (22_000, 26_000), "groups": (3, 9)},
                {"rows": (300, 400), "channels": (100, 200), "groups": (2, 5)},
            ),
        ),
        follows={"groups": "channels"},
        eps=True,
        flops=lambda rows, channels, groups: (8 + operations) * rows * channels,
        gates=(
            ONE_LAUNCH,
            loads(1 + len(parameters), 1.125, READ_ONCE),
            STORES,
            COALESCED_LOADS,
            COALESCED_STORES,
            ALL_LANES,
        ),
    )
    return Exercise(name=name, **{**usual, **more})


MINIMA = replace(
    ROW_MIN,
    number="08.5",
    name="row_minima",
    title="the smallest element of each row, 8 rows a block",
    gates=(
        Gate(
            "load requests to global memory",
            1.125,
            "read each element once, 32 neighbours at a time",
            ideal=lambda rows, channels: rows * channels / 32,
        ),
        COALESCED_LOADS,
        Gate(
            "barriers a block",
            1.5,
            "bring what all warps found in all 8 rows to shared memory, then wait once for all",
            ideal=lambda rows, channels: 2,
        ),
        Gate(
            "load requests to shared memory",
            4,  # warp_min() has all lanes read: once for each row, and the minima
            "reduce each warp by shuffles, and bring one value of each through shared memory",
            ideal=lambda rows, channels: rows,
        ),
        NO_CONFLICTS,
    ),
    listed=False,
    points=10,
    effort="about 9 lines",
)

TRANSPOSED = Exercise(
    number="08.6",
    name="add_transposed",
    title="out[c, b] = minima[b] + shift[c], written in whole sectors",
    shapes={"minima": "rows", "shift": "channels", "out": "channels rows"},
    outputs=("out",),
    reference=lambda minima, shift: minima + shift[:, None],
    at=At(
        check=tuple(
            {"rows": rows, "channels": channels}
            for rows, channels in (
                (1, 1),
                (3, 5),
                (8, 1),
                (8, 600),  # more channels than pairs of threads
                (12, 40),  # the last block has half of its rows
                (9, 36),  # rows that begin between multiples of 16 bytes
                (26, 7),
                (40, 520),
            )
        ),
        card=({"rows": 1024, "channels": 8192}, {"rows": 1021, "channels": 4099}),
        bench={"rows": 1024, "channels": 8192},
        draw={"rows": 16, "channels": 16},
        gates={"rows": 32, "channels": 1024},
        drawn=(
            {"rows": (3, 20), "channels": (22_000, 26_000)},
            {"rows": (300, 400), "channels": (200, 300)},
        ),
    ),
    flops=lambda rows, channels: rows * channels,
    peers={"PyTorch": lambda minima, shift: minima + shift[:, None]},
    library="PyTorch",
    gates=(
        replace(STORES, ideal=lambda rows, channels: rows * channels / 128),
        replace(COALESCED_STORES, advice=WHOLE_SECTORS),
        Gate(
            "load requests to global memory",
            1.5,
            "read a shift once for all rows of the block",
            # 16 channels a warp; one request of the first warp brings the block's minima
            ideal=lambda rows, channels: rows / 8 * (channels / 16 + 1),
        ),
        ALL_LANES,
    ),
    listed=False,
    points=10,
    effort="about 7 lines",
)


EXERCISES = (
    tail(
        "gn_leaky_relu_double",
        3,
        number="08.1",
        listed=False,
        title="Task 62: GroupNorm, LeakyReLU, x + x",
        points=10,
        effort="about 6 lines",
    ),
    tail(
        "gn_swish_multiply_swish",
        9,
        number="08.2",
        listed=False,
        title="Task 88: GroupNorm, swish, times a scale, swish",
        points=15,
        effort="about 7 lines",
    ),
    tail(
        "bias_hardtanh_mish_gn",
        12,
        number="08.3",
        listed=False,
        title="Task 94: plus a shift, hardtanh, mish, then GroupNorm",
        inputs=several_kinds,
        points=15,
        effort="about 9 lines",
    ),
    tail(
        "swish_bias_gn",
        5,
        number="08.4",
        title="Task 37: swish, plus a shift, then GroupNorm, several rows a thread",
        inputs=several_kinds,
        gates=(
            ONE_LAUNCH,
            loads(1 + 3 / 4, 1.5, ONCE_FOR_SEVERAL),
            STORES,
            COALESCED_LOADS,
            COALESCED_STORES,
            ALL_LANES,
        ),
        points=20,
        effort="about 11 lines",
    ),
    MINIMA,
    TRANSPOSED,
    tail(
        "gn_min_bias",
        2,
        number="08.7",
        title="Task 75: GroupNorm, minimum of each row, plus a shift for each channel",
        inputs=far_from_zero,
        more_sizes=(size(3, 8192, 512),),  # more quads than a block has threads
        gates=(
            replace(ONE_LAUNCH, times=2.0),
            loads(4, 1.125, "read y once, four at a time, and a shift once for several rows"),
            replace(STORES, times=1.25),
            COALESCED_LOADS,
            replace(COALESCED_STORES, advice=WHOLE_SECTORS),
            ALL_LANES,
        ),
        points=10,
        effort="about 14 lines",
    ),
)
