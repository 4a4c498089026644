"""What solutions/models add to chapter 11 for training: the linear layer's result kept by the
forward, and its backward, two products on Hopper."""

import torch

from utils import check
from utils.course import At, Exercise, Precision
from utils.course.answers import as_answer
from utils.cuda import compile_cuda

BACKWARD = """
#include "linear_backward.cuh"
void linear_backward(const float* dy, const float* x, const float* W, float* dx, float* dW, int M,
                     int N, int K) {
    linear_dx(dy, W, dx, M, N, K);
    linear_dW(dy, x, dW, M, N, K);
}
"""
KEPT = """
#include "hopper_epilogue.cuh"
void kept(const float* x, const float* W, const float* b, float* out, float* y, int M, int N,
          int K) {
    start(linear_bias_kernel<Training>, Prepared<Training>(x, W, M, N, K, y), Channels{b}, out);
}
"""


def passes(name, text, shapes, outputs, reference, sizes, drawn, **more):
    """Right at these sizes for values of every kind, and without hazards, on two multiprocessors,
    so that a block owns several tiles."""
    at = At(
        check=tuple({"M": M, "N": N, "K": K} for M, N, K in sizes),
        bench={"M": 1024, "N": 8192, "K": 8192},
        drawn=(drawn,),
    )
    exercise = Exercise(
        name=name,
        title=name,
        number="99.1",
        topic="99_none",
        shapes=shapes,
        outputs=outputs,
        reference=reference,
        flops=lambda M, N, K: 4 * M * N * K,
        at=at,
        precision=Precision.SPLIT_FP16,
        multiprocessors=2,
        **more,
    )
    kernel = compile_cuda(text, name, shapes=shapes, backend="emulator")
    check(as_answer(exercise, kernel))


def passes_backwards(sizes, drawn, **more):
    shapes = {"dy": "M N", "x": "M K", "W": "N K", "dx": "M K", "dW": "N K"}
    reference = lambda dy, x, W: (dy @ W, dy.T @ x)  # noqa: E731
    passes("linear_backward", BACKWARD, shapes, ("dx", "dW"), reference, sizes, drawn, **more)


def test_the_linear_layer_backwards():
    passes_backwards(
        ((1, 1, 1), (3, 66, 5), (70, 33, 130), (129, 4, 257), (65, 300, 36)),
        {"M": (250, 270), "N": (130, 140), "K": (3, 12)},
    )


def with_outliers(sizes, generator):
    """A column of dy is far above the others where W has zeros, and a row where x has. By so much
    that none of the others is just precise enough for halves: of three terms one decides then, and
    19 bits of it are less than a sum of floats keeps."""
    drawn = {
        name: torch.randn([sizes[d] for d in shape], generator=generator, device=generator.device)
        for name, shape in (("dy", "MN"), ("x", "MK"), ("W", "NK"))
    }
    row, col = sizes["M"] // 2, sizes["N"] // 3
    drawn["dy"][:, col] *= 2.0**30
    drawn["W"][col] = 0
    drawn["dy"][row] *= 2.0**36
    drawn["x"][row] = 0
    return drawn


def test_rows_and_columns_whose_range_halves_do_not_hold_go_backwards_in_floats():
    passes_backwards(
        ((1, 1, 1), (3, 66, 5), (70, 33, 130), (129, 4, 257)),
        {"M": (250, 270), "N": (130, 140), "K": (3, 12)},
        inputs=with_outliers,
    )


def test_what_a_backward_needs_is_kept_beside_the_result():
    shapes = {"x": "M K", "W": "N K", "b": "N", "out": "M N", "y": "M N"}
    passes(
        "kept",
        KEPT,
        shapes,
        ("out", "y"),
        lambda x, W, b: (x @ W.T + b, x @ W.T + b),
        ((1, 16, 1), (3, 47, 5), (130, 144, 36), (65, 304, 516)),
        {"M": (250, 270), "N": (250, 260), "K": (3, 12)},
    )
