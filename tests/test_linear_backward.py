"""The linear layer backwards, of which solutions/models are made: two products on Hopper."""

from utils import check
from utils.course import At, Exercise
from utils.course.answers import as_answer
from utils.cuda import compile_cuda

TEXT = """
#include "linear_backward.cuh"
void linear_backward(const float* dy, const float* x, const float* W, float* dx, float* dW, int M,
                     int N, int K) {
    linear_dx(dy, W, dx, M, N, K);
    linear_dW(dy, x, dW, M, N, K);
}
"""
SIZES = (1, 1, 1), (3, 66, 5), (70, 33, 130), (129, 4, 257), (65, 300, 36)
EXERCISE = Exercise(
    name="linear_backward",
    title="dx = dy * W, dW = dy^T * x",
    number="99.1",
    topic="99_none",
    shapes={"dy": "M N", "x": "M K", "W": "N K", "dx": "M K", "dW": "N K"},
    outputs=("dx", "dW"),
    reference=lambda dy, x, W: (dy @ W, dy.T @ x),
    flops=lambda M, N, K: 4 * M * N * K,
    at=At(
        check=tuple({"M": M, "N": N, "K": K} for M, N, K in SIZES),
        bench={"M": 1024, "N": 8192, "K": 8192},
        drawn=({"M": (250, 270), "N": (130, 140), "K": (3, 12)},),
    ),
    products=3,
    multiprocessors=2,  # of the emulator's card: a block owns several tiles at small sizes
)


def test_it_is_right_at_ragged_sizes_and_has_no_hazards():
    kernel = compile_cuda(TEXT, EXERCISE.name, shapes=EXERCISE.shapes, backend="emulator")
    check(as_answer(EXERCISE, kernel))
