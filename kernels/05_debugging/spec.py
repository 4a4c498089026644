"""05: twelve broken kernels, each with one fault, to be found, named and mended."""

import torch
import torch.nn.functional as F

from utils.course import Exercise, Gate
from utils.course.common_gates import ALL_LANES, COALESCED_LOADS, COALESCED_STORES

FAULTY = dict(faulty=True, library="PyTorch")
ROWS = (
    {"rows": 1, "cols": 1},
    {"rows": 3, "cols": 31},
    {"rows": 5, "cols": 32},
    {"rows": 2, "cols": 100},
    {"rows": 4, "cols": 515},
    {"rows": 37, "cols": 70},
)
ROWS_DRAWN = {"rows": 3, "cols": 70}
ROWS_WHOLE = {"rows": 8, "cols": 1024}
ROWS_ON_CARD = {"rows": 1000, "cols": 4097}
ROWS_TIMED = {"rows": 8192, "cols": 8192}
GROUPS = (
    {"rows": 1, "channels": 1, "groups": 1},
    {"rows": 3, "channels": 12, "groups": 4},
    {"rows": 5, "channels": 70, "groups": 2},
    {"rows": 2, "channels": 96, "groups": 3},
    {"rows": 6, "channels": 300, "groups": 2},
    {"rows": 7, "channels": 200, "groups": 5},
)
GROUPS_DRAWN = {"rows": 3, "channels": 12, "groups": 2}
GROUPS_WHOLE = {"rows": 4, "channels": 1024, "groups": 4}
GROUPS_ON_CARD = {"rows": 1000, "channels": 4100, "groups": 100}
GROUPS_TIMED = {"rows": 1024, "channels": 8192, "groups": 256}


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
# A tree over 256 sums needs 24 requests, and 9 for what comes before and after; one thread that
# goes over a row in shared memory needs one for each element.
TREE = Gate(
    "load requests to shared memory",
    4,
    "let the whole block look for the largest element: a tree, or shuffles",
    ideal=lambda rows, cols: 33 * rows,
)

ROW_TO_VALUE = dict(
    shapes={"x": "rows cols", "out": "rows"},
    outputs=("out",),
    sizes=ROWS,
    card_sizes=(ROWS_ON_CARD,),
    draw=ROWS_DRAWN,
    bench=ROWS_TIMED,
    bytes=lambda rows, cols: 4 * (rows * cols + rows),
    gates=(ONE_LOAD, COALESCED_LOADS),
    gate_sizes=ROWS_WHOLE,
    **FAULTY,
)
ROW_TO_ROW = dict(
    shapes={"x": "rows cols", "out": "rows cols"},
    outputs=("out",),
    sizes=ROWS,
    card_sizes=(ROWS_ON_CARD,),
    draw=ROWS_DRAWN,
    bench=ROWS_TIMED,
    bytes=lambda rows, cols: 8 * rows * cols,
    gate_sizes=ROWS_WHOLE,
    **FAULTY,
)
GROUPED = dict(
    sizes=GROUPS,
    card_sizes=(GROUPS_ON_CARD,),
    draw=GROUPS_DRAWN,
    bench=GROUPS_TIMED,
    gate_sizes=GROUPS_WHOLE,
    **FAULTY,
)


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
        hints=(
            "The report names a line and an element. How many elements has the array, and which "
            "thread asks for one more?",
            "`up`, `down` and `left` ask first whether there is such a neighbour. In the last "
            "column, what is `x[i + 1]`?",
            "`float right = col + 1 < cols ? x[i + 1] : 0.0f;`",
        ),
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
        hints=(
            "Count: how many elements of `partial` does the block write, and how many does the "
            "first warp read?",
            "256 threads are 8 warps, so 8 elements are written. 32 lanes read 32. The lanes that "
            "have no warp to ask must add nothing.",
            "`sum = lane < THREADS / 32 ? partial[lane] : 0.0f;`",
        ),
        **ROW_TO_VALUE,
    ),
    Exercise(
        number="05.3",
        name="row_share",
        title="Find it: shares that add up to another number each time",
        reference=lambda x: x / x.abs().sum(dim=1, keepdim=True),
        peers={"PyTorch": lambda x: F.normalize(x, p=1, dim=1)},
        flops=lambda rows, cols: 3 * rows * cols,
        gates=(TWO_LOADS, ALL_LANES, COALESCED_LOADS, COALESCED_STORES),
        points=10,
        effort="1 line, and the statement",
        hints=(
            "The report names two lines: one thread writes an element, another one reads it. What "
            "makes the reader wait for the writer?",
            "There are eight steps. Each of them reads what other threads wrote in the step "
            "before, and the first one reads what they wrote before the loop.",
            "`__syncthreads();` as the first line of the loop's body, before the `if`.",
        ),
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
        hints=(
            "The report says which threads do not wait with the others. What do they do instead?",
            "A barrier is for the whole block. In the first step `t < 128` holds for half of it.",
            "Close the `if` before the barrier: `if (t < step) sums[t] += sums[t + step];`, then "
            "`__syncthreads();` for everybody.",
        ),
        **ROW_TO_ROW,
    ),
    Exercise(
        number="05.5",
        name="row_max",
        drops_nan=True,
        title="Find it: maxima that are too small",
        reference=lambda x: x.amax(dim=1),
        peers={"PyTorch": lambda x: x.amax(dim=1)},
        flops=lambda rows, cols: rows * cols,
        points=10,
        effort="1 line, and the statement",
        hints=(
            "The mask of a shuffle says who takes part: `0xffffffff` names all 32 lanes. Who "
            "arrives?",
            "A lane can only be read if it takes part itself, even if it has no use for what it "
            "gets.",
            "Take the `if` away: `best = fmaxf(best, __shfl_down_sync(0xffffffff, best, step));` "
            "What the upper lanes get is of no use, and does no harm.",
        ),
        **ROW_TO_VALUE,
    ),
    Exercise(
        number="05.6",
        name="bias_hardtanh",
        drops_nan=True,
        title="Find it: a clamp",
        shapes={"x": "rows channels", "bias": "channels", "out": "rows channels"},
        outputs=("out",),
        reference=lambda x, bias: F.hardtanh(x + bias),
        peers={"PyTorch": lambda x, bias: F.hardtanh(x + bias)},
        sizes=(
            {"rows": 1, "channels": 1},
            {"rows": 3, "channels": 31},
            {"rows": 7, "channels": 130},
            {"rows": 2, "channels": 256},
        ),
        card_sizes=({"rows": 1000, "channels": 4097},),
        draw={"rows": 3, "channels": 8},
        bench={"rows": 1024, "channels": 8192},
        bytes=lambda rows, channels: 4 * (2 * rows * channels + channels),
        flops=lambda rows, channels: 3 * rows * channels,
        gates=(ALL_LANES, COALESCED_LOADS, COALESCED_STORES),
        gate_sizes={"rows": 4, "channels": 256},
        points=10,
        effort="1 line, and the statement",
        hints=(
            "No hazard, so no thread is in the wrong place. Look at the values that `check` "
            "shows: which are right, and which sign have the wrong ones?",
            "What is the largest value that `F.hardtanh` returns, and the smallest?",
            "`fminf(fmaxf(v, -1.0f), 1.0f)`",
        ),
        **FAULTY,
    ),
    Exercise(
        number="05.7",
        name="mish",
        title="Find it: a formula that was made shorter",
        shapes={"x": "n", "out": "n"},
        outputs=("out",),
        reference=lambda x: F.mish(x),
        peers={"PyTorch": lambda x: F.mish(x)},
        sizes=({"n": 1}, {"n": 31}, {"n": 1000}, {"n": 4096}),
        card_sizes=({"n": 1_000_003},),
        draw={"n": 64},
        bench={"n": 1 << 24},
        bytes=lambda n: 8 * n,
        flops=lambda n: 8 * n,
        gates=(ALL_LANES, COALESCED_LOADS, COALESCED_STORES),
        gate_sizes={"n": 1024},
        points=10,
        effort="2 lines, and the statement",
        hints=(
            "Compute one value by hand: x = 0 gives 0 either way, so take x = 1. What are "
            "`torch.tanh(F.softplus(x))` and e / (e + 2)?",
            "With n = 1 + e: tanh(log n) = (n - 1/n) / (n + 1/n) = (n² - 1) / (n² + 1). Now put "
            "1 + e in place of n.",
            "(e² + 2e) / (e² + 2e + 2). So `float both = e * (e + 2.0f);` and "
            "`v * (both / (both + 2.0f))`.",
        ),
        **FAULTY,
    ),
    Exercise(
        number="05.8",
        name="matvec",
        title="Find it: right for 64 columns, wrong for 100",
        shapes={"A": "rows cols", "x": "cols", "y": "rows"},
        outputs=("y",),
        reference=lambda A, x: A @ x,
        peers={"PyTorch": lambda A, x: torch.mv(A, x)},
        sizes=ROWS,
        card_sizes=(ROWS_ON_CARD,),
        draw={"rows": 3, "cols": 7},
        bench=ROWS_TIMED,
        bytes=lambda rows, cols: 4 * (rows * cols + cols + rows),
        flops=lambda rows, cols: 2 * rows * cols,
        gates=(TWO_LOADS, COALESCED_LOADS),
        gate_sizes=ROWS_WHOLE,
        points=15,
        effort="3 lines, and the statement",
        hints=(
            "Take 7 threads and write down, step by step, which elements of `sums` are added to "
            "which. Which of them is nobody's?",
            "7 / 2 is 3: step 3 adds elements 3, 4 and 5 to 0, 1 and 2. Element 6 is left behind. "
            "Round the half up, and let the one in the middle wait.",
            "Keep the number of sums that are left: `for (int count = blockDim.x; count > 1; "
            "count = (count + 1) / 2)`. In it, `int half = (count + 1) / 2;` and "
            "`if (t + half < count) sums[t] += sums[t + half];`",
        ),
        **FAULTY,
    ),
    Exercise(
        number="05.9",
        name="shift_rows",
        drops_nan=True,
        title="Find it: every value is right",
        reference=lambda x: x - x.amax(dim=1, keepdim=True),
        peers={"PyTorch": lambda x: x - x.amax(dim=1, keepdim=True)},
        flops=lambda rows, cols: 2 * rows * cols,
        gates=(TWO_LOADS, TREE, ALL_LANES, COALESCED_LOADS, COALESCED_STORES),
        points=15,
        effort="about 9 lines, and the statement",
        hints=(
            "In the table of `diagnose`, compare the requests of the two lines that load `x`. "
            "Both read each element of the row once.",
            "255 threads wait at the barrier until thread 0 has gone over the whole row. Let each "
            "thread look at every 256th element, as in the last loop, and keep the largest.",
            "Then a tree over `__shared__ float best[THREADS]`, with `fmaxf` where a sum has +, "
            "and a barrier before the first step and after each one.",
        ),
        **ROW_TO_ROW,
    ),
    Exercise(
        number="05.10",
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
        peers={"PyTorch": scale_channels},
        bytes=lambda rows, channels, groups: 4 * (2 * rows * (channels + groups) + 2 * channels),
        flops=lambda rows, channels, groups: 4 * rows * channels,
        gates=(ALL_LANES, COALESCED_LOADS, COALESCED_STORES),
        points=10,
        effort="1 line, and the statement",
        hints=(
            "Which channels are right, and which are not? Compare with the picture: what belongs "
            "to a group, and what to a channel?",
            "How long are `mean`, `rstd`, `weight` and `bias`? Which number looks up which?",
            "`normalised * weight[c] + bias[c]`",
        ),
        **GROUPED,
    ),
    Exercise(
        number="05.11",
        name="group_mean",
        title="Find it: right for one sample, wrong for two",
        shapes={"x": "rows channels", "mean": "rows groups"},
        outputs=("mean",),
        reference=mean_of_groups,
        peers={"PyTorch": mean_of_groups},
        bytes=lambda rows, channels, groups: 4 * (rows * channels + rows * groups),
        flops=lambda rows, channels, groups: rows * channels,
        gates=(
            asked_together(1.25, lambda rows, channels, groups: rows * channels / 32),
            COALESCED_LOADS,
        ),
        points=15,
        effort="3 lines, and the statement",
        hints=(
            "In the toy, all rows get the same mean. Should they?",
            "One block owns the mean of one group of **one** row. Which elements belong to it, "
            "and how many are they?",
            "`for (int i = t; i < size; i += THREADS) sum += x[row * channels + group * size + "
            "i];`, and at the end `sums[0] / size`.",
        ),
        **GROUPED,
    ),
    Exercise(
        number="05.12",
        name="group_variance",
        title="Find it: a variance below zero",
        shapes={"x": "rows channels", "variance": "rows groups"},
        outputs=("variance",),
        reference=variance_of_groups,
        peers={"PyTorch": variance_of_groups},
        bytes=lambda rows, channels, groups: 4 * (rows * channels + rows * groups),
        flops=lambda rows, channels, groups: 4 * rows * channels,
        gates=(
            asked_together(2.5, lambda rows, channels, groups: rows * channels / 32),
            COALESCED_LOADS,
        ),
        points=15,
        effort="about 6 lines, and the statement",
        hints=(
            "With a mean of 1000 and a variance of 1, how large are the two values that are "
            "subtracted at the end? A float has 7 digits.",
            "Subtract the mean from each element, before squaring. For that the mean must be "
            "known first: go over the group twice.",
            "First loop and shuffles: the sum, then the mean. Second loop: `squares += (own[i] - "
            "mean) * (own[i] - mean);`, its shuffles, and `squares / size`.",
        ),
        **GROUPED,
    ),
)
