"""04: many values become one: sums of a whole tensor, minima of its rows."""

from dataclasses import replace

import torch
import torch.nn.functional as F

from utils.course import At, Exercise, Gate
from utils.course.case_values import in_turn
from utils.course.common_gates import COALESCED_LOADS, NO_CONFLICTS, OWN_ELEMENTS, without_conflicts

SUM = Exercise(
    name="sum_serial",
    title="the sum of a tensor, one thread adds everything",
    shapes={"x": "n", "out": ""},
    outputs=("out",),
    reference=lambda x: x.sum(),
    magnitudes=(1e-30, 1e33),  # a sum of them stays below the largest float
    ladder="sum",
    at=At(
        check=({"n": 1}, {"n": 31}, {"n": 256}, {"n": 1000}, {"n": 4099}),
        card=({"n": 100_003},),
        bench={"n": 1 << 20},
        draw={"n": 300},
        drawn=({"n": (70_000, 140_000)},),
    ),
    traffic=lambda n: 4 * n,  # without out, which is one float
    flops=lambda n: n,
    peers={"PyTorch": lambda x: torch.sum(x)},
    library="PyTorch",
)
LARGE = At(
    check=({"n": 1}, {"n": 31}, {"n": 256}, {"n": 1000}, {"n": 4099}, {"n": 20_001}),
    card=({"n": 10_000_019},),
    bench={"n": 1 << 28},
    draw={"n": 300},
    gates={"n": 1 << 16},
    drawn=({"n": (70_000, 400_000)},),
)

# Blocks of 64 to 1024 threads pass; a single block that walks over everything does not.
MANY_BLOCKS = Gate(
    "blocks",
    0.25,
    "let many blocks work: give each a stretch of x of its own",
    ideal=lambda n: n / 256,
    at_least=True,
)
WHOLE_WARPS = Gate(
    "load requests to global memory",
    1.125,
    "let all 32 lanes of each warp load: one thread alone asks 32 times as often",
    ideal=lambda n: 2 * n / 32,  # x, and an atomic addition, which reads too
)
ONE_ATOMIC = Gate(
    "atomic operations",
    4,
    "add within the block first, and let one thread add the block's sum to out",
    ideal=lambda n: n / 256,
)


def shared_loads(times, ideal, advice):
    """`ideal` requests to shared memory for each block of 256 threads."""
    return Gate("load requests to shared memory", times, advice, lambda n: n / 256 * ideal)


# 8 warps add in the first 5 steps, then 4, 2 and 1; each sum needs two numbers. A single thread
# that adds up the block sends 256 requests.
TREE = shared_loads(
    1.25, 2 * (5 * 8 + 4 + 2 + 1) + 1, "let half of the threads add two sums each, then a quarter"
)
# 4 warps in the first step, then 2, and one warp in the other 6.
WHOLE_WARPS_ADD = shared_loads(
    1.25,
    2 * (4 + 2 + 6) + 1,
    "let the first threads of the block add: then whole warps rest",
)
LARGEST_FIRST = without_conflicts(
    "let neighbouring lanes read neighbours: begin with the largest stride"
)
ONE_A_WARP = shared_loads(
    8.5, 1, "add up each warp by shuffles, and bring one sum of each through shared memory"
)


def rows_inputs(sizes, generator):
    """Rows of ten kinds, in any order, of which only the first is ordinary."""
    rows, channels, on = sizes["rows"], sizes["channels"], {"device": generator.device}
    x = torch.randn((rows, channels), generator=generator, **on)
    kind = in_turn(rows, 10, generator)[:, None]
    x = torch.where(kind == 1, x.abs() + 1, x)  # all positive
    x = torch.where(kind == 2, (x / 2).round(), x)  # the smallest several times
    some = torch.rand((rows, channels), generator=generator, **on) < 0.1
    place = torch.randint(channels, (rows, 1), generator=generator, **on)
    one = torch.arange(channels, **on) == place
    x[(kind == 3) & one | (kind == 4) & (some | one)] = float("nan")
    x[kind.expand_as(x) == 5] = float("inf")  # nothing is smaller
    x = torch.where(kind == 7, torch.randint(3, 10, (rows, 1), generator=generator, **on), x)
    x = torch.where(kind == 8, x * 1e-40, x)  # denormals, which are not equal, and not zero
    x = torch.where(kind == 9, (x.abs() / 8).clamp(0, 0.9) * 1e37 + 3.3e38, x)  # near the largest
    x[(kind == 6) & (some | one)] = float("-inf")
    return {"x": x}


ROWS = dict(
    inputs=rows_inputs,
    exact=True,
    must_read={"x": 0.5},  # what comes behind a NaN, or -inf, decides nothing
    at=At(
        check=(
            {"rows": 1, "channels": 1},
            {"rows": 9, "channels": 31},
            {"rows": 14, "channels": 256},
            {"rows": 8, "channels": 1000},
            {"rows": 14, "channels": 4099},
        ),
        card=({"rows": 70_001, "channels": 33}, {"rows": 15, "channels": 1_000_003}),
        bench={"rows": 1024, "channels": 8192},
        draw={"rows": 2, "channels": 300},
        gates={"rows": 16, "channels": 4096},
        drawn=(
            {"rows": (10, 14), "channels": (150_000, 200_000)},
            {"rows": (300, 400), "channels": (20, 70)},
        ),
    ),
    flops=lambda rows, channels: rows * channels,  # comparisons
    library="PyTorch",
    gates=(
        Gate(
            "load requests to global memory",
            1.125,
            "let all 32 lanes of each warp load: one thread alone asks 32 times as often",
            ideal=lambda rows, channels: rows * channels / 32,
        ),
        COALESCED_LOADS,
        Gate(
            "blocks",
            0.125,
            "let many blocks work: one for each row, or for a few rows",
            ideal=lambda rows, channels: rows,
            at_least=True,
        ),
        Gate(
            "load requests to shared memory",
            20,
            "reduce each warp by shuffles, and bring one value of each through shared memory",
            ideal=lambda rows, channels: rows,
        ),
        NO_CONFLICTS,
    ),
)

EXERCISES = (
    SUM,
    replace(
        SUM,
        number="04.1",
        name="sum_atomic",
        title="a sum, every thread adds its element to one place",
        gates=(COALESCED_LOADS, WHOLE_WARPS, MANY_BLOCKS),
        # Above 2^21 elements one sum in float can be wrong for values that are all alike.
        at=replace(LARGE, card=({"n": 1_000_003},)),
        points=5,
        effort="about 4 lines",
    ),
    replace(
        SUM,
        number="04.2",
        name="sum_tree",
        title="a sum, each block adds in a tree: neighbours first",
        gates=(TREE, ONE_ATOMIC, COALESCED_LOADS, OWN_ELEMENTS, MANY_BLOCKS),
        at=LARGE,
        points=10,
        effort="about 6 lines",
    ),
    replace(
        SUM,
        number="04.3",
        name="sum_sequential",
        title="a sum, each block adds in a tree: the first half takes in the second",
        gates=(
            WHOLE_WARPS_ADD,
            LARGEST_FIRST,
            ONE_ATOMIC,
            COALESCED_LOADS,
            OWN_ELEMENTS,
            MANY_BLOCKS,
        ),
        at=LARGE,
        points=10,
        effort="about 6 lines",
    ),
    replace(
        SUM,
        number="04.4",
        name="sum_warp",
        title="a sum, each warp adds by shuffles, without shared memory",
        gates=(
            ONE_A_WARP,
            Gate(
                "barriers a block",
                2,
                "a warp needs no barrier for its shuffles; one, between the warps, is enough",
                ideal=lambda n: 1,
            ),
            NO_CONFLICTS,
            ONE_ATOMIC,
            COALESCED_LOADS,
            OWN_ELEMENTS,
            MANY_BLOCKS,
        ),
        at=LARGE,
        points=15,
        effort="about 10 lines",
    ),
    replace(
        SUM,
        number="04.5",
        name="sum_grid",
        title="a sum at the speed of memory: quads, a fixed grid, loads in flight together",
        traffic=lambda n, blocks: 4 * n,
        flops=lambda n, blocks: n,
        at=At(
            check=(
                {"n": 1, "blocks": 1},
                {"n": 31, "blocks": 3},
                {"n": 1000, "blocks": 2},
                {"n": 8192, "blocks": 1},  # two whole rounds
                {"n": 8195, "blocks": 2},  # one, and 3 elements
                {"n": 30_002, "blocks": 2},  # three, and less than a round
                {"n": 40_001, "blocks": 7},
            ),
            card=({"n": 10_000_019, "blocks": 132}, {"n": 1 << 24, "blocks": 2112}),
            bench={"n": 1 << 28, "blocks": 1056},
            draw={"n": 5000, "blocks": 1},
            gates={"n": 1 << 17, "blocks": 16},
            gated={"blocks": (9, 24)},
            drawn=({"n": (250_000, 400_000), "blocks": (1, 8)},),
        ),
        gates=(
            Gate(
                "load requests to global memory",
                1.125,
                "load a float4: a quarter of the requests",
                ideal=lambda n, blocks: n / 128,
            ),
            COALESCED_LOADS,
            Gate(
                "blocks",
                0.9,
                "let all blocks that were asked for work",
                ideal=lambda n, blocks: blocks,
                at_least=True,
            ),
            Gate(
                "atomic operations",
                1,
                "add within the block first, and let one thread add the block's sum to out",
                ideal=lambda n, blocks: blocks,
            ),
            NO_CONFLICTS,
        ),
        points=20,
        effort="about 15 lines",
    ),
    Exercise(
        name="sum_two_pass",
        notebook="04_reductions_2_rows",
        title="a sum in two launches, the same bits every time",
        shapes={"x": "n", "partials": "blocks", "out": ""},
        outputs=("partials", "out"),
        reference=lambda x, blocks: (
            F.pad(x, (0, -len(x) % (256 * blocks))).reshape(-1, blocks, 256).sum(dim=(0, 2)),
            x.sum(),
        ),
        at=At(
            check=(
                {"n": 1, "blocks": 1},
                {"n": 31, "blocks": 3},
                {"n": 1000, "blocks": 2},
                {"n": 8195, "blocks": 300},
                {"n": 40_001, "blocks": 7},
            ),
            card=({"n": 10_000_019, "blocks": 132},),
            bench={"n": 1 << 28, "blocks": 1056},
            draw={"n": 3000, "blocks": 4},
            drawn=({"n": (70_000, 140_000), "blocks": (2, 300)},),
        ),
        traffic=lambda n, blocks: 4 * n,  # without partials: they need not leave the cache
        flops=lambda n, blocks: n,
        peers={"PyTorch": lambda x: torch.sum(x)},
        library="PyTorch",
    ),
    Exercise(
        number="04.6",
        name="row_min",
        notebook="04_reductions_2_rows",
        title="the smallest element of each row; NaN wins, as in PyTorch",
        shapes={"x": "rows channels", "out": "rows"},
        outputs=("out",),
        reference=lambda x: x.amin(dim=1),
        peers={"torch.min": lambda x: torch.min(x, dim=1), "PyTorch": lambda x: x.amin(dim=1)},
        **ROWS,
        points=15,
        effort="about 15 lines",
    ),
    Exercise(
        number="04.7",
        name="row_argmin",
        notebook="04_reductions_2_rows",
        listed=False,
        title="where the smallest element of each row is: the first one, NaN before all others",
        shapes={"x": "rows channels", "out": "rows"},
        outputs=("out",),
        reference=lambda x: x.argmin(dim=1),
        traffic=lambda rows, channels: 4 * rows * channels + 8 * rows,  # out: int64
        peers={"PyTorch": lambda x: torch.argmin(x, dim=1)},
        **ROWS,
        points=15,
        effort="about 28 lines",
    ),
)
