"""05: twelve broken kernels, each with one fault, to be found, named and fixed."""

from dataclasses import replace

import torch
import torch.nn.functional as F

from utils.course import At, Exercise, Gate
from utils.course.case_values import in_turn
from utils.course.common_gates import ALL_LANES, COALESCED_LOADS, COALESCED_STORES, LANES_LOAD

FAULTY = dict(faulty=True, library="PyTorch")
ROWS = At(
    check=(
        {"rows": 1, "cols": 1},
        {"rows": 3, "cols": 31},
        {"rows": 5, "cols": 32},
        {"rows": 2, "cols": 100},
        {"rows": 4, "cols": 515},
        {"rows": 37, "cols": 70},
    ),
    card=({"rows": 1000, "cols": 4097},),
    bench={"rows": 8192, "cols": 8192},
    draw={"rows": 3, "cols": 70},
    gates={"rows": 8, "cols": 1024},
    drawn=({"rows": (2, 5), "cols": (66_000, 90_000)}, {"rows": (300, 400), "cols": (9, 70)}),
)
GROUPS = At(
    check=(
        {"rows": 1, "channels": 1, "groups": 1},
        {"rows": 3, "channels": 12, "groups": 4},
        {"rows": 5, "channels": 70, "groups": 2},
        {"rows": 2, "channels": 96, "groups": 3},
        {"rows": 6, "channels": 300, "groups": 2},
        {"rows": 7, "channels": 200, "groups": 5},
    ),
    card=({"rows": 1000, "channels": 4100, "groups": 100},),
    bench={"rows": 1024, "channels": 8192, "groups": 256},
    draw={"rows": 3, "channels": 12, "groups": 2},
    gates={"rows": 4, "channels": 1024, "groups": 4},
    drawn=(
        {"rows": (3, 4), "channels": (22_000, 26_000), "groups": (3, 9)},
        {"rows": (300, 400), "channels": (9, 70), "groups": (2, 5)},
    ),
)


def asked_together(times, ideal):
    """At most so many times the loads of warps of which each lane gets an element of its own."""
    return Gate(
        "load requests to global memory",
        times,
        "let neighbouring threads load neighbouring elements, each of them once",
        ideal=ideal,
    )


ONE_LOAD = asked_together(1.25, lambda rows, cols: rows * cols / 32)
TWO_LOADS = asked_together(1.25, lambda rows, cols: 2 * rows * cols / 32)
# A tree over 256 sums needs 24 requests, and 9 for what comes before and after: four times as many
# are enough for any other. The largest element may be read again for each element of the row, by a
# warp at a time. One thread that goes over a row in shared memory needs a request for each element.
TREE = Gate(
    "load requests to shared memory",
    4,
    "let the whole block look for the largest element, by a tree or shuffles",
    ideal=lambda rows, cols: 33 * rows + rows * cols / 32 / 4,
)

ROW_TO_VALUE = dict(
    shapes={"x": "rows cols", "out": "rows"},
    outputs=("out",),
    at=ROWS,
    gates=(ONE_LOAD, COALESCED_LOADS),
    **FAULTY,
)
ROW_TO_ROW = dict(
    shapes={"x": "rows cols", "out": "rows cols"},
    outputs=("out",),
    at=ROWS,
    **FAULTY,
)
GROUPED = dict(at=GROUPS, follows={"groups": "channels"}, **FAULTY)


def laplace(x):
    """The sum of the four neighbours minus four times the element; zeros beyond the edges."""
    p = F.pad(x, (1, 1, 1, 1))
    return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x


def mean_of_groups(x, groups):
    """(rows, channels) -> (rows, groups)"""
    return x.unflatten(1, (groups, -1)).mean(dim=2)


def variance_of_groups(x, groups):
    """(rows, channels) -> (rows, groups), divided by the number of elements"""
    return x.unflatten(1, (groups, -1)).var(dim=2, unbiased=False)


def rows_of_kinds(sizes, generator):
    """Rows of five kinds, in any order: ordinary, all -inf, near the smallest float, denormal and
    below zero, whole numbers."""
    rows, on = sizes["rows"], {"device": generator.device}
    x = torch.randn((rows, sizes["cols"]), generator=generator, **on)
    kind = in_turn(rows, 5, generator, first=sizes["cols"])[:, None]
    x = torch.where(kind == 1, float("-inf"), x)
    x = torch.where(kind == 2, -3.3e38 - (x.abs() / 8).clamp(0, 0.9) * 1e37, x)
    x = torch.where(kind == 3, -x.abs() * 1e-40, x)
    return {"x": torch.where(kind == 4, (2 * x).round(), x)}


def scale_channels(x, mean, rstd, weight, bias):
    """What is left of a GroupNorm once the statistics of the groups are known."""
    size = x.shape[1] // mean.shape[1]
    mean, rstd = mean.repeat_interleave(size, dim=1), rstd.repeat_interleave(size, dim=1)
    return (x - mean) * rstd * weight + bias


EXERCISES = (
    Exercise(
        number="05.1",
        name="laplace",
        title="Find it: the right edge of a stencil",
        reference=laplace,
        peers={"PyTorch": laplace},
        flops=lambda rows, cols: 5 * rows * cols,
        gates=(ALL_LANES, COALESCED_STORES),
        points=10,
        effort="1 line, and the statement",
        **ROW_TO_ROW,
    ),
    Exercise(
        number="05.2",
        name="row_norm",
        title="Find it: the root of a row's sum of squares",
        reference=lambda x: x.square().sum(dim=1).sqrt(),
        peers={"PyTorch": lambda x: torch.linalg.vector_norm(x, dim=1)},
        flops=lambda rows, cols: 2 * rows * cols,
        points=10,
        effort="1 line, and the statement",
        **ROW_TO_VALUE,
    ),
    Exercise(
        number="05.3",
        name="row_share",
        title="Find it: shares that do not add up to 1",
        reference=lambda x: x / x.abs().sum(dim=1, keepdim=True),
        peers={"PyTorch": lambda x: F.normalize(x, p=1, dim=1)},
        flops=lambda rows, cols: 3 * rows * cols,
        gates=(TWO_LOADS, ALL_LANES, COALESCED_LOADS, COALESCED_STORES),
        points=10,
        effort="1 line, and the statement",
        **ROW_TO_ROW,
    ),
    Exercise(
        number="05.4",
        name="center_rows",
        title="Find it: rows minus their mean, or part of them",
        reference=lambda x: x - x.mean(dim=1, keepdim=True),
        peers={"PyTorch": lambda x: x - x.mean(dim=1, keepdim=True)},
        flops=lambda rows, cols: 2 * rows * cols,
        gates=(TWO_LOADS, ALL_LANES, COALESCED_LOADS, COALESCED_STORES),
        points=10,
        effort="2 lines, and the statement",
        **ROW_TO_ROW,
    ),
    Exercise(
        number="05.5",
        name="row_max",
        drops_nan=True,
        title="Find it: maxima that are too small",
        reference=lambda x: x.amax(dim=1),
        inputs=rows_of_kinds,
        exact=True,
        peers={"PyTorch": lambda x: x.amax(dim=1)},
        flops=lambda rows, cols: rows * cols,
        points=10,
        effort="1 line, and the statement",
        **ROW_TO_VALUE,
    ),
    Exercise(
        number="05.6",
        notebook="05_debugging_2_values",
        name="bias_hardtanh",
        drops_nan=True,
        title="Find it: a clamp",
        shapes={"x": "rows channels", "bias": "channels", "out": "rows channels"},
        outputs=("out",),
        reference=lambda x, bias: F.hardtanh(x + bias),
        peers={"PyTorch": lambda x, bias: F.hardtanh(x + bias)},
        at=At(
            check=(
                {"rows": 1, "channels": 1},
                {"rows": 3, "channels": 31},
                {"rows": 7, "channels": 130},
                {"rows": 2, "channels": 256},
            ),
            card=({"rows": 1000, "channels": 4097},),
            bench={"rows": 1024, "channels": 8192},
            draw={"rows": 3, "channels": 8},
            gates={"rows": 4, "channels": 256},
            drawn=(
                {"rows": (3, 4), "channels": (22_000, 26_000)},
                {"rows": (300, 400), "channels": (200, 300)},
            ),
        ),
        flops=lambda rows, channels: 3 * rows * channels,
        gates=(ALL_LANES, LANES_LOAD, COALESCED_LOADS, COALESCED_STORES),
        points=10,
        effort="1 line, and the statement",
        **FAULTY,
    ),
    Exercise(
        number="05.7",
        notebook="05_debugging_2_values",
        name="mish",
        title="Find it: a formula that was made shorter",
        shapes={"x": "n", "out": "n"},
        outputs=("out",),
        reference=lambda x: F.mish(x),
        magnitudes=(1e-30, 1e38),
        peers={"PyTorch": lambda x: F.mish(x)},
        at=At(
            check=({"n": 1}, {"n": 31}, {"n": 1000}, {"n": 4096}),
            card=({"n": 1_000_003},),
            bench={"n": 1 << 24},
            draw={"n": 64},
            gates={"n": 1024},
            drawn=({"n": (66_000, 100_000)},),
        ),
        flops=lambda n: 8 * n,
        gates=(ALL_LANES, LANES_LOAD, COALESCED_LOADS, COALESCED_STORES),
        points=10,
        effort="2 lines, and the statement",
        **FAULTY,
    ),
    Exercise(
        number="05.8",
        notebook="05_debugging_2_values",
        name="matvec",
        title="Find it: right for 64 columns, wrong for 100",
        shapes={"A": "rows cols", "x": "cols", "y": "rows"},
        outputs=("y",),
        reference=lambda A, x: A @ x,
        products=True,
        peers={"PyTorch": lambda A, x: torch.mv(A, x)},
        at=replace(ROWS, draw={"rows": 3, "cols": 7}),
        flops=lambda rows, cols: 2 * rows * cols,
        gates=(TWO_LOADS, COALESCED_LOADS),
        points=15,
        effort="3 lines, and the statement",
        **FAULTY,
    ),
    Exercise(
        number="05.9",
        notebook="05_debugging_2_values",
        name="shift_rows",
        drops_nan=True,
        title="Find it: every value is right",
        reference=lambda x: x - x.amax(dim=1, keepdim=True),
        peers={"PyTorch": lambda x: x - x.amax(dim=1, keepdim=True)},
        flops=lambda rows, cols: 2 * rows * cols,
        gates=(TWO_LOADS, TREE, ALL_LANES, COALESCED_LOADS, COALESCED_STORES),
        points=15,
        effort="about 9 lines, and the statement",
        # Of short rows: in one of 12,000 elements, reading the largest again would cost as much as
        # a thread that looks for it alone among 256. No row of 256, where 257 threads do as well.
        **{**ROW_TO_ROW, "at": replace(ROWS, gates={"rows": 8, "cols": 384})},
    ),
    Exercise(
        number="05.10",
        notebook="05_debugging_2_values",
        name="scale_channels",
        title="Find it: right as long as the model has not been trained",
        shapes={
            "x": "rows channels",
            "mean": "rows groups",
            "rstd": "rows groups",
            "weight": "channels",
            "bias": "channels",
            "out": "rows channels",
        },
        outputs=("out",),
        reference=scale_channels,
        may_be_infinite="bias",
        peers={"PyTorch": scale_channels},
        flops=lambda rows, channels, groups: 4 * rows * channels,
        gates=(ALL_LANES, LANES_LOAD, COALESCED_LOADS, COALESCED_STORES),
        points=10,
        effort="1 line, and the statement",
        **GROUPED,
    ),
    Exercise(
        number="05.11",
        notebook="05_debugging_2_values",
        name="group_mean",
        title="Find it: right for one sample, wrong for two",
        shapes={"x": "rows channels", "mean": "rows groups"},
        outputs=("mean",),
        reference=mean_of_groups,
        peers={"PyTorch": mean_of_groups},
        flops=lambda rows, channels, groups: rows * channels,
        gates=(
            asked_together(1.25, lambda rows, channels, groups: rows * channels / 32),
            COALESCED_LOADS,
        ),
        points=15,
        effort="3 lines, and the statement",
        **GROUPED,
    ),
    Exercise(
        number="05.12",
        notebook="05_debugging_2_values",
        name="group_variance",
        title="Find it: a variance below zero",
        shapes={"x": "rows channels", "variance": "rows groups"},
        outputs=("variance",),
        reference=variance_of_groups,
        peers={"PyTorch": variance_of_groups},
        flops=lambda rows, channels, groups: 4 * rows * channels,
        gates=(
            asked_together(2.5, lambda rows, channels, groups: rows * channels / 32),
            COALESCED_LOADS,
        ),
        points=15,
        effort="about 6 lines, and the statement",
        **GROUPED,
    ),
)
