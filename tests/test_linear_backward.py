"""What solutions/models add to chapter 11 for training: the linear layer's result kept by the
forward, and its backward, two products on Hopper."""

from utils import check
from utils.course import At, Exercise
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


def passes(name, text, shapes, outputs, reference, sizes, drawn):
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
        products=3,
        multiprocessors=2,
    )
    kernel = compile_cuda(text, name, shapes=shapes, backend="emulator")
    check(as_answer(exercise, kernel))


def test_the_linear_layer_backwards():
    shapes = {"dy": "M N", "x": "M K", "W": "N K", "dx": "M K", "dW": "N K"}
    passes(
        "linear_backward",
        BACKWARD,
        shapes,
        ("dx", "dW"),
        lambda dy, x, W: (dy @ W, dy.T @ x),
        ((1, 1, 1), (3, 66, 5), (70, 33, 130), (129, 4, 257), (65, 300, 36)),
        {"M": (250, 270), "N": (130, 140), "K": (3, 12)},
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
