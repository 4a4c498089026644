"""00: one thread for each element, then a fixed grid that strides over all of them."""

import torch
import torch.nn.functional as F

from utils.course import At, Exercise, Gate
from utils.course.common_gates import (
    ALL_LANES,
    COALESCED_LOADS,
    COALESCED_STORES,
    LANES_LOAD,
    OWN_ELEMENTS,
)

AT = At(
    check=({"n": 1}, {"n": 31}, {"n": 256}, {"n": 1000}),
    card=({"n": 10_000_019},),
    bench={"n": 1 << 27},
    draw={"n": 300},
    gates={"n": 1024},
    drawn=({"n": (66_000, 100_000)}, {"n": (2_000, 9_000)}),
)
MEMORY = (ALL_LANES, LANES_LOAD, COALESCED_LOADS, COALESCED_STORES, OWN_ELEMENTS)
_SAID = "the caller says how many blocks there are: launch so many, and let threads go on in steps"
AS_SAID = (
    Gate("blocks", 1, _SAID, ideal=lambda n, blocks: blocks),
    Gate("blocks", 1, _SAID, ideal=lambda n, blocks: blocks, at_least=True),
)
MAGNITUDES = (1e-30, 1e38)  # e^x overflows, and e^-x

EXERCISES = (
    Exercise(
        name="axpy",
        title="a * x + y, one thread for each element",
        shapes={"x": "n", "y": "n", "out": "n"},
        outputs=("out",),
        scalars={"a": (-2.0, 2.0)},
        reference=lambda a, x, y: a * x + y,
        at=AT,
        flops=lambda n: 2 * n,
        peers={"PyTorch": lambda a, x, y: torch.add(y, x, alpha=a)},
        library="PyTorch",
    ),
    Exercise(
        number="00.1",
        name="swish",
        gates=MEMORY,
        title="swish, x * sigmoid(x), one thread for each element",
        shapes={"x": "n", "out": "n"},
        outputs=("out",),
        reference=lambda x: F.silu(x),
        magnitudes=MAGNITUDES,
        ladder="swish",
        listed=True,
        at=AT,
        flops=lambda n: 4 * n,  # negate, exponential, add, divide
        peers={"PyTorch": lambda x: F.silu(x)},
        library="PyTorch",
        points=5,
        effort="about 4 lines",
    ),
    Exercise(
        number="00.2",
        name="swish_grid_stride",
        gates=(*MEMORY, *AS_SAID),
        title="swish with a fixed number of blocks: the grid-stride loop",
        shapes={"x": "n", "out": "n"},
        outputs=("out",),
        reference=lambda x: F.silu(x),
        magnitudes=MAGNITUDES,
        ladder="swish",
        at=At(
            check=(
                {"n": 1, "blocks": 1},
                {"n": 31, "blocks": 3},
                {"n": 1000, "blocks": 1},
                {"n": 1537, "blocks": 2},
                {"n": 5000, "blocks": 7},
            ),
            card=({"n": 10_000_019, "blocks": 132},),
            bench={"n": 1 << 27, "blocks": 1056},
            draw={"n": 1100, "blocks": 2},
            gates={"n": 4096, "blocks": 4},
            gated={"blocks": (3, 9)},
            drawn=(
                {"n": (66_000, 100_000), "blocks": (1, 40)},
                {"n": (2_000, 9_000), "blocks": (1, 9)},
            ),
        ),
        flops=lambda n, blocks: 4 * n,
        peers={"PyTorch": lambda x: F.silu(x)},
        library="PyTorch",
        points=5,
        effort="about 4 lines",
    ),
)
