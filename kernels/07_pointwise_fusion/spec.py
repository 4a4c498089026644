"""07: what follows a linear layer, in one kernel: each element is read once and written once."""

from dataclasses import replace

import torch

from utils.course import Exercise, Gate, models
from utils.course.common_gates import ALL_LANES, COALESCED_LOADS, COALESCED_STORES

# A thread's four channels may end within a quad, a block's within a row, a row's anywhere.
SIZES = (
    {"rows": 1, "channels": 1},
    {"rows": 3, "channels": 5},
    {"rows": 7, "channels": 31},
    {"rows": 33, "channels": 12},
    {"rows": 9, "channels": 1024},
    {"rows": 2, "channels": 1030},
    {"rows": 5, "channels": 2052},
)


def scales(sizes, generator):
    """Two positive ones for each negative one. Were most of them negative, most results could be
    all but zero (swish of -90 is -1e-37), and the bound on errors would be, too."""
    scale = torch.randn(sizes["channels"], generator=generator, device=generator.device).abs()
    scale[2::3] *= -1
    return {"scale": scale}


CHAPTER = dict(
    slices=True,
    outputs=("out",),
    sizes=SIZES,
    # the second has more groups of rows than a grid can count along y
    card_sizes=({"rows": 1000, "channels": 4097}, {"rows": 300_000, "channels": 12}),
    bench={"rows": 32768, "channels": 4096},
    library="PyTorch",
    draw={"rows": 5, "channels": 48},
    gate_sizes={"rows": 16, "channels": 2048},
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
MEMORY = (ALL_LANES, COALESCED_LOADS, COALESCED_STORES)

SWISH = Exercise(
    number="07.1",
    name="swish_multiply_swish",
    gates=(ONE_LAUNCH, ONCE, QUADS, *MEMORY),
    title="swish, times a scale for each channel, swish: one kernel",
    shapes={"y": "rows channels", "scale": "channels", "out": "rows channels"},
    inputs=scales,
    reference=models.swish_multiply_swish,
    bytes=lambda rows, channels: 4 * (2 * rows * channels + channels),
    flops=lambda rows, channels: 9 * rows * channels,  # four for each swish, and a product
    peers={"PyTorch": models.swish_multiply_swish},
    points=15,
    effort="about 14 lines",
    hints=(
        "One element goes through the whole chain in a variable: `activate` needs no memory. "
        "Around it: ROWS quads of `y`, then `scale`, once for all of them, then ROWS quads of "
        "`out`.",
        "`load4` counts its index in `int`. Give it the address where the row begins, and let it "
        "see one row: `load4(y + size_t(row) * channels, 1, channels, 0, col, whole)`. `store4` in "
        "the same way. The last group may have fewer than ROWS rows.",
        "`float4 v[ROWS];` and a loop that fills `v[i]` where `row0 + i < rows`; then "
        "`float4 s = load4(scale, 1, channels, 0, col, whole);` and a loop that stores "
        "`make_float4(activate(v[i].x, s.x), ...)`. And `__fdividef(y, 1.0f + __expf(-y))` is a "
        "fast swish.",
    ),
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
        hints=(),
    ),
    SWISH,
    Exercise(
        number="07.2",
        name="bias_hardtanh_mish",
        gates=(ONE_LAUNCH, ONCE, QUADS, *MEMORY),
        title="plus a shift for each channel, clamp to [-1, 1], mish: one kernel, one exponential",
        shapes={"y": "rows channels", "shift": "channels", "out": "rows channels"},
        reference=models.bias_hardtanh_mish,
        bytes=lambda rows, channels: 4 * (2 * rows * channels + channels),
        # add, two comparisons, exponential; for m a sum and a product; product, sum, division
        flops=lambda rows, channels: 9 * rows * channels,
        peers={"PyTorch": models.bias_hardtanh_mish},
        points=15,
        effort="about 5 new lines",
        hints=(
            "All but `activate` is as in 07.1, with `shift` in place of `scale`. Clamp with two "
            "comparisons: `x < -1.0f ? -1.0f : …`. With a NaN both are false, and it stays.",
            "With n = e^x, the hyperbolic tangent of log(1 + n) is (n^2 + 2n) / (n^2 + 2n + 2). "
            "Compute m = n^2 + 2n once: n * (n + 2).",
            "`float x = y + shift;` `x = x < -1.0f ? -1.0f : x > 1.0f ? 1.0f : x;` `float n = "
            "__expf(x);` `float m = n * (n + 2.0f);` `return __fdividef(x * m, m + 2.0f);`",
        ),
        **CHAPTER,
    ),
    Exercise(
        number="07.3",
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
        bytes=lambda rows, channels: 2 * 4 * rows * channels,
        flops=lambda rows, channels: 2 * rows * channels,
        peers={"PyTorch": models.leaky_relu_double},
        points=10,
        effort="about 8 lines",
        hints=(
            "x + x is 2x, nothing is summed over anything. The slope for negative values is 0.01.",
            "The thread's first float is 4 * (its number in the grid), as a `size_t`. Where all "
            "four exist, use `quad(y + i)` and `quad(out + i)`; else go one by one up to `n`.",
            "`size_t i = 4 * (size_t(blockIdx.x) * THREADS + threadIdx.x);` Then "
            "`if (i + 4 <= n && aligned(y) && aligned(out)) { ... } else { ... }` with a loop over "
            "at most four floats in the second branch. One float: "
            "`2.0f * (y > 0.0f ? y : 0.01f * y)`.",
        ),
        **CHAPTER,
    ),
)
