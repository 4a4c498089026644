"""00: one thread for each element, then a fixed grid that strides over all of them."""

import torch
import torch.nn.functional as F

from utils.course import Exercise
from utils.course.common_gates import ALL_LANES, COALESCED_LOADS, COALESCED_STORES


def swish_inputs(sizes, generator):
    """Ordinary values, and every seventh so large that e^x or e^-x overflows."""
    x = torch.randn(sizes["n"], generator=generator, device=generator.device)
    x[::7] *= 100
    return {"x": x}


EXERCISES = (
    Exercise(
        name="axpy",
        title="a * x + y, one thread for each element",
        shapes={"x": "n", "y": "n", "out": "n"},
        outputs=("out",),
        scalars={"a": (-2.0, 2.0)},
        reference=lambda a, x, y: a * x + y,
        sizes=({"n": 1}, {"n": 31}, {"n": 256}, {"n": 1000}),
        card_sizes=({"n": 10_000_019},),
        bench={"n": 1 << 27},
        bytes=lambda n: 3 * 4 * n,  # x and y are read, out is written, 4 bytes a float
        flops=lambda n: 2 * n,
        peers={"PyTorch": lambda a, x, y: torch.add(y, x, alpha=a)},
        library="PyTorch",
        draw={"n": 300},
    ),
    Exercise(
        number="00.1",
        name="swish",
        gates=(ALL_LANES, COALESCED_LOADS, COALESCED_STORES),
        gate_sizes={"n": 1024},
        title="swish, x * sigmoid(x), one thread for each element",
        shapes={"x": "n", "out": "n"},
        outputs=("out",),
        inputs=swish_inputs,
        reference=lambda x: F.silu(x),
        sizes=({"n": 1}, {"n": 31}, {"n": 256}, {"n": 1000}),
        card_sizes=({"n": 10_000_019},),
        bench={"n": 1 << 27},
        bytes=lambda n: 2 * 4 * n,
        flops=lambda n: 4 * n,  # negate, exponential, add, divide
        peers={"PyTorch": lambda x: F.silu(x)},
        library="PyTorch",
        draw={"n": 300},
        points=5,
        effort="about 4 lines",
        hints=(
            "The shape of the kernel is that of `axpy`: work out `i`, guard it, write `out[i]`.",
            "The exponential of a `float` is `expf`. Write `1.0f`, not `1.0`: without the `f` the "
            "number is a double, and the sum becomes slow double arithmetic.",
            "`out[i] = x[i] / (1.0f + expf(-x[i]));` Think about x = -100: `expf(100.0f)` is "
            "infinity, and -100 / infinity is -0. That is the right answer.",
        ),
    ),
    Exercise(
        number="00.2",
        name="swish_grid_stride",
        gates=(ALL_LANES, COALESCED_LOADS, COALESCED_STORES),
        gate_sizes={"n": 4096, "blocks": 4},
        title="swish with a fixed number of blocks: the grid-stride loop",
        shapes={"x": "n", "out": "n"},
        outputs=("out",),
        inputs=swish_inputs,
        reference=lambda x: F.silu(x),
        sizes=(
            {"n": 1, "blocks": 1},
            {"n": 31, "blocks": 3},
            {"n": 1000, "blocks": 1},
            {"n": 1537, "blocks": 2},
            {"n": 5000, "blocks": 7},
        ),
        card_sizes=({"n": 10_000_019, "blocks": 132},),
        bench={"n": 1 << 27, "blocks": 1056},
        bytes=lambda n, blocks: 2 * 4 * n,
        flops=lambda n, blocks: 4 * n,
        peers={"PyTorch": lambda x: F.silu(x)},
        library="PyTorch",
        draw={"n": 1100, "blocks": 2},
        points=5,
        effort="about 4 lines",
        hints=(
            "A thread starts at its own number in the grid, the same `i` as before. How far is it "
            "to its next element? `gridDim.x` is the number of blocks.",
            "All threads of the grid take one step together, so the step is the number of threads "
            "in the grid: `gridDim.x * blockDim.x`.",
            "`for (int i = ...; i < n; i += stride) { ... }` The condition of the loop is the "
            "guard: no `if` is needed.",
        ),
    ),
)
