"""15: short pieces that beat PyTorch: sums along a row, a histogram, a convolution, a loss."""

from dataclasses import replace

import torch

from utils.course import At, Exercise, Gate
from utils.course.case_values import normal, uniform, whole_number
from utils.course.common_gates import COALESCED_LOADS, COALESCED_STORES, NO_CONFLICTS


def size(rows, channels):
    return {"rows": rows, "channels": channels}


def quads_of_rows(metric, advice):
    """A request of a warp for 32 quads of a row."""
    return Gate(metric, 1.125, advice, ideal=lambda rows, channels: rows * channels / 128)


CUMSUM = Exercise(
    name="cumsum_serial",
    title="running sums of each row, a thread for each row",
    shapes={"x": "rows channels", "out": "rows channels"},
    outputs=("out",),
    reference=lambda x: x.cumsum(dim=1),
    ladder="cumsum",
    flops=lambda rows, channels: rows * channels,
    peers={"PyTorch": lambda x: x.cumsum(dim=1)},
    library="PyTorch",
    at=At(
        check=(
            size(1, 1),
            size(3, 5),
            size(14, 31),
            size(9, 64),
            size(37, 500),
            size(6, 1030),  # quads do not fill a row; one thread of the block has a second one
            size(2, 8193),  # one channel more than a tile
            size(3, 9004),
        ),
        card=(size(70_001, 33), size(4096, 8192), size(15, 1_000_003)),
        bench=size(4096, 8192),
        draw=size(32, 40),
        gates=size(32, 1024),
        drawn=(
            {"rows": (3, 5), "channels": (22_000, 26_000)},
            {"rows": (300, 400), "channels": (170, 220)},
        ),
    ),
)


def histogram(x):
    """How many values lie in each 256th of [0, 1], as `torch.histc(x, 256, 0, 1)` counts them."""
    inside = x[(x >= 0) & (x <= 1)]
    return torch.bincount((inside * 256).long().clamp(max=255), minlength=256).int()


def spread(sizes, generator):
    """Uniform over [0, 1), but one in 64 is 1, the end of the last bin."""
    x = uniform((sizes["n"],), generator)
    return {"x": torch.where(uniform(x.shape, generator) < 1 / 64, 1.0, x)}


def one_bin(sizes, generator):
    """All values are equal: all lanes want one bin."""
    x = torch.full((sizes["n"],), whole_number(0, 257, generator) / 256)
    return {"x": x.to(generator.device)}


def edges(sizes, generator):
    """Where bins begin, the last one's end too; a rounding below and above; -0."""
    x = torch.randint(257, (sizes["n"],), generator=generator, device=generator.device) / 256
    way = torch.randint(-1, 2, x.shape, generator=generator, device=x.device)
    x = torch.where(way == 0, x, torch.nextafter(x, way.to(x.dtype) * 2))
    return {"x": torch.where(x == 0, -x, x)}


def outside(sizes, generator):
    """Most values lie outside, of which some are infinite, some NaN, some far away."""
    x = 8 * normal((sizes["n"],), generator)
    kind = torch.randint(12, x.shape, generator=generator, device=x.device)
    for number, value in enumerate((float("nan"), float("inf"), float("-inf"), 1e30, -1e30)):
        x[kind == number] = value
    return {"x": x}


def crowded(sizes, generator):
    """Most values lie in a few bins, as those of a picture do."""
    return {"x": 0.5 + normal((sizes["n"],), generator) / 256}


def few(n, blocks):
    return {"n": n, "blocks": blocks}


HISTOGRAM = Exercise(
    name="histogram_global",
    title="a histogram of 256 bins, all of them in global memory",
    shapes={"x": "n", "counts": "256"},
    outputs=("counts",),
    reference=histogram,
    exact=True,
    inputs=spread,
    kinds={"one bin": one_bin, "edges": edges, "outside": outside, "crowded": crowded},
    ladder="histogram",
    traffic=lambda n, blocks: 4 * n,
    flops=lambda n, blocks: n,
    peers={"PyTorch": lambda x: torch.histc(x, 256, 0.0, 1.0)},
    library="PyTorch",
    at=At(
        check=(
            few(1, 1),
            few(31, 3),
            few(1000, 2),
            few(8192, 1),  # one whole round
            few(8195, 2),
            few(30_002, 3),
            few(40_001, 5),
        ),
        card=(few(10_000_019, 132), few(1 << 24, 2112)),
        bench=few(1 << 26, 528),
        draw=few(1024, 1),
        gates=few(1 << 17, 16),
        drawn=({"n": (250_000, 400_000), "blocks": (1, 8)},),
    ),
)


EXERCISES = (
    CUMSUM,
    replace(
        CUMSUM,
        number="15.1",
        name="cumsum_rows",
        title="running sums of each row, by a block that reads it once",
        gates=(
            COALESCED_LOADS,
            COALESCED_STORES,
            quads_of_rows(
                "load requests to global memory", "load quads, which stay in registers: once each"
            ),
            quads_of_rows("store requests to global memory", "store quads"),
            NO_CONFLICTS,
            Gate(
                "barriers a block",
                2,
                "scan all 64 sums between two barriers, not those of each quad by themselves",
                ideal=lambda rows, channels: 2 * -(-channels // 8192),
            ),
        ),
        at=replace(CUMSUM.at, draw=size(1, 1024)),
        points=20,
        effort="about 15 lines",
    ),
    HISTOGRAM,
    replace(
        HISTOGRAM,
        number="15.2",
        name="histogram",
        title="a histogram of 256 bins, of which each lane has its own copy",
        gates=(
            COALESCED_LOADS,
            Gate(
                "load requests to global memory",
                1.125,
                "count in shared memory, and let each block add every bin to counts once",
                ideal=lambda n, blocks: n / 128 + 8 * blocks,
            ),
            Gate(
                "wavefronts per shared atomic",
                1.125,
                "give each lane a copy of all bins, in a bank of its own: then no lane waits for "
                "another one of its warp, whatever the values are",
            ),
            NO_CONFLICTS,
        ),
        points=20,
        effort="about 10 lines",
    ),
)
