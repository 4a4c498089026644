"""07: what follows a linear layer, in one kernel: each element is read once and written once."""

from dataclasses import replace

import torch

from utils.course import At, Exercise, Gate, models
from utils.course.case_values import in_turn, whole_number
from utils.course.common_gates import ALL_LANES, COALESCED_LOADS, COALESCED_STORES, LANES_LOAD

# A thread's four channels may end within a quad, a block's within a row, a row's anywhere.
AT = At(
    check=(
        {"rows": 1, "channels": 1},
        {"rows": 3, "channels": 5},
        {"rows": 7, "channels": 31},
        {"rows": 33, "channels": 12},
        {"rows": 9, "channels": 1024},
        {"rows": 4, "channels": 1030},
        {"rows": 5, "channels": 2052},
    ),
    # the second has more groups of rows than a grid can count along y
    card=({"rows": 1000, "channels": 4097}, {"rows": 140_000, "channels": 12}),
    bench={"rows": 32768, "channels": 4096},
    draw={"rows": 5, "channels": 48},
    gates={"rows": 16, "channels": 2048},
    drawn=(
        {"rows": (5, 7), "channels": (13_500, 15_000)},
        {"rows": (600, 900), "channels": (20, 70)},
    ),
)


def scales(sizes, generator):
    """Two positive ones for each negative one. Were most of them negative, most results could be
    all but zero (swish of -90 is -1e-37), and the bound on errors would be, too. One time of four
    all are equal."""
    scale = torch.randn(sizes["channels"], generator=generator, device=generator.device).abs()
    scale *= torch.where(in_turn(len(scale), 3, generator) == 2, -1, 1)
    if not whole_number(0, 4, generator):
        scale = scale[:1].expand(scale.shape).clone()
    return {"scale": scale}


CHAPTER = dict(
    slices=True,
    magnitudes=(1e-30, 1e37),  # times a scale of 5, and twice, they are still floats
    outputs=("out",),
    at=AT,
    library="PyTorch",
)

ONE_LAUNCH = Gate(
    "launches",
    1.0,
    "do all operations of the chain on an element before you write it: one kernel, one launch",
    ideal=lambda rows, channels: 1,
)
# y and the parameter are read once, out is written once. The gate lets a kernel through that reads
# the parameter once for two rows; once for each row is 1.45 times the ideal.
ONCE = Gate(
    "bytes moved to and from global memory",
    1.3,
    "keep what lies between two operations in a variable, and read a channel's parameter once for "
    "several rows",
    ideal=lambda rows, channels: 4 * (2 * rows * channels + channels),
)
QUADS = Gate(
    "load requests to global memory",
    1.75,  # with the parameter, read once for two rows: 1.5; for each row: 2
    "read four neighbours at once: load4() gives a float4",
    ideal=lambda rows, channels: rows * channels / 128,
)
MEMORY = (ALL_LANES, LANES_LOAD, COALESCED_LOADS, COALESCED_STORES)

SWISH = Exercise(
    number="07.1",
    name="swish_multiply_swish",
    gates=(ONE_LAUNCH, ONCE, QUADS, *MEMORY),
    title="swish, times a scale for each channel, swish: one kernel",
    shapes={"y": "rows channels", "scale": "channels", "out": "rows channels"},
    inputs=scales,
    reference=models.swish_multiply_swish,
    ladder="swish_multiply_swish",
    flops=lambda rows, channels: 9 * rows * channels,  # four for each swish, and a product
    peers={"PyTorch": models.swish_multiply_swish},
    points=15,
    effort="about 14 lines",
    **CHAPTER,
)

EXERCISES = (
    replace(
        SWISH,
        number=None,
        name="chain_unfused",
        slices=False,
        gates=(),
        title="the same chain, one kernel for each operation",
        points=0,
        effort="",
    ),
    SWISH,
    Exercise(
        number="07.2",
        listed=False,
        name="bias_hardtanh_mish",
        gates=(ONE_LAUNCH, ONCE, QUADS, *MEMORY),
        title="plus a shift for each channel, clamp to [-1, 1], mish: one kernel, one exponential",
        shapes={"y": "rows channels", "shift": "channels", "out": "rows channels"},
        reference=models.bias_hardtanh_mish,
        # add, two comparisons, exponential; for m a sum and a product; product, sum, division
        flops=lambda rows, channels: 9 * rows * channels,
        peers={"PyTorch": models.bias_hardtanh_mish},
        points=15,
        effort="about 5 new lines",
        **CHAPTER,
    ),
    Exercise(
        number="07.3",
        listed=False,
        name="leaky_relu_double",
        # no parameter here, so nothing may be read or moved twice
        gates=(
            ONE_LAUNCH,
            replace(QUADS, times=1.125),
            replace(ONCE, times=1.125, ideal=lambda rows, channels: 2 * 4 * rows * channels),
            *MEMORY,
        ),
        title="leaky_relu(y) + leaky_relu(y): a matrix as one long row",
        shapes={"y": "rows channels", "out": "rows channels"},
        reference=models.leaky_relu_double,
        flops=lambda rows, channels: 2 * rows * channels,
        peers={"PyTorch": models.leaky_relu_double},
        points=10,
        effort="about 8 lines",
        **CHAPTER,
    ),
)
