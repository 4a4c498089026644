"""14: attention: softmax and RMSNorm of rows, then the product that never stores its scores."""

from dataclasses import replace

import torch

from utils.course import At, Exercise, Gate
from utils.course.case_values import normal, uniform, whole_number
from utils.course.common_gates import COALESCED_LOADS, COALESCED_STORES, NO_CONFLICTS


def size(rows, channels):
    return {"rows": rows, "channels": channels}


def ascending(sizes, generator):
    """Each value is larger than those before it: the running maximum moves all the time."""
    steps = uniform((sizes["rows"], sizes["channels"]), generator)
    return {"x": 4 * steps.cumsum(dim=1) - 100}


def dominant(sizes, generator):
    """One value of each row is 100 above all others; their exponentials are 0 beside its own."""
    x = normal((sizes["rows"], sizes["channels"]), generator)
    place = torch.randint(x.shape[1], (len(x), 1), generator=generator, device=generator.device)
    return {"x": x.scatter_add(1, place, torch.full_like(place, 100, dtype=x.dtype))}


def masked(sizes, generator):
    """-inf before one place of each row, and in a few behind it; not all along a row."""
    x = normal((sizes["rows"], sizes["channels"]), generator)
    at = torch.arange(x.shape[1], device=x.device)
    begin = torch.randint(x.shape[1], (len(x), 1), generator=generator, device=x.device)
    few = uniform(x.shape, generator) < 0.1
    return {"x": x.masked_fill((at < begin) | few & (at != begin), float("-inf"))}


def all_masked(sizes, generator):
    """A row of -inf has no softmax: NaN, as in PyTorch."""
    x = masked(sizes, generator)["x"]
    x[whole_number(0, len(x), generator)] = float("-inf")
    return {"x": x}


ROWS = At(
    check=(
        size(1, 1),
        size(3, 5),
        size(14, 31),
        size(9, 64),
        size(37, 500),  # among the largest, with threads that have nothing
        size(6, 1030),  # quads do not fill a row; one thread of the block has a second one
        size(2, 9001),  # more than 256 threads keep in registers
        size(3, 9004),
    ),
    card=(size(70_001, 33), size(4096, 8192), size(15, 1_000_003)),
    bench=size(4096, 8192),
    draw=size(2, 64),
    gates=size(32, 1024),
    drawn=(
        {"rows": (3, 5), "channels": (22_000, 26_000)},
        {"rows": (300, 400), "channels": (170, 220)},
    ),
)


def softmax(x):
    """Of each row."""
    return torch.softmax(x, dim=1)


SOFTMAX = Exercise(
    name="softmax_three_passes",
    title="softmax of each row, a warp for each row, in three passes over it",
    shapes={"x": "rows channels", "out": "rows channels"},
    outputs=("out",),
    reference=softmax,
    kinds={
        "ascending": ascending,
        "one dominant": dominant,
        "masked": masked,
        "a row of -inf": all_masked,
    },
    ladder="softmax",
    flops=lambda rows, channels: 4 * rows * channels,  # a maximum; subtract, add, divide
    peers={"PyTorch": softmax},
    library="PyTorch",
    at=ROWS,
)


def quads_of_rows(metric, number, advice):
    """`number` requests of a warp for 32 quads of x."""
    return Gate(metric, 1.125, advice, ideal=lambda rows, channels: number * rows * channels / 128)


EXERCISES = (
    SOFTMAX,
    replace(
        SOFTMAX,
        number="14.1",
        name="softmax_rows",
        title="softmax of each row, which is read once: a running maximum and a running sum",
        gates=(
            COALESCED_LOADS,
            COALESCED_STORES,
            quads_of_rows(
                "load requests to global memory",
                1,
                "take maximum and sum in one pass, of the quads that stay in registers",
            ),
            quads_of_rows("store requests to global memory", 1, "store quads"),
            NO_CONFLICTS,
        ),
        points=15,
        effort="about 12 lines",
    ),
    Exercise(
        number="14.2",
        name="rms_norm",
        title="RMSNorm of each row, which stays in registers",
        shapes={"x": "rows channels", "weight": "channels", "out": "rows channels"},
        outputs=("out",),
        reference=lambda x, weight, eps: (
            x * (x.square().mean(dim=1, keepdim=True) + eps).rsqrt() * weight
        ),
        scalars={"eps": (1e-6, 10.0)},
        eps=True,
        flops=lambda rows, channels: 4 * rows * channels,
        peers={
            "PyTorch": lambda x, weight, eps: torch.rms_norm(x, weight.shape, weight, eps),
        },
        library="PyTorch",
        at=ROWS,
        gates=(
            COALESCED_LOADS,
            COALESCED_STORES,
            quads_of_rows(
                "load requests to global memory",
                2,
                "load quads: those of x once, to stay in registers, and one of weight for each",
            ),
            quads_of_rows("store requests to global memory", 1, "store quads"),
        ),
        points=15,
        effort="about 20 lines",
    ),
)
