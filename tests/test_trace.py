"""A trace knows the arrays of a kernel by the names, types and extents that it declares."""

import pytest
import torch

from utils.cuda.compiler import compile_cuda
from utils.watch.trace import GLOBAL, SHARED, trace

SOURCE = """
constexpr int T = 4;
#define WIDE (2 * T)  // columns
__shared__ double outside[T][3];
template <class Element, int BM, int BK>
__global__ void tiles(const float* x, float* y) {
    __shared__ Element As[BM][BK + 1], row[WIDE];
    __shared__ __align__(16) float4 cube[2][T - 1][sizeof(Element)];
    __shared__ int total;
    extern __shared__ double partial[];
    As[BM - 1][BK] = row[1] = x[threadIdx.x];
    cube[1][2][0].x = partial[5] = outside[3][2] = total = 1;
    y[threadIdx.x] = As[BM - 1][BK];
}
__global__ void plain(const float* x, float* y) {
    y[threadIdx.x] = x[threadIdx.x];
}
void run(const float* x, float* y, int dynamic, int then) {
    tiles<float, 8, 2 * T><<<1, 1, dynamic>>>(x, y);
    if (then) plain<<<1, 1, then>>>(x, y);
}
"""


@pytest.fixture(scope="module")
def traced():
    """The trace of a call; `dynamic` and `then` are bytes of dynamic shared memory."""
    kernel = compile_cuda(SOURCE, "run", backend="emulator", filename="run.cu")

    def run(dynamic=48, then=0):
        x, y = torch.ones(2), torch.zeros(2)
        return trace(kernel, {"x": x, "y": y, "dynamic": dynamic, "then": then})

    return run


def shapes(seen):
    return {a.name: (a.shape, a.element) for a in seen.arrays if a.space == SHARED}


def test_shared_arrays_have_the_shapes_that_the_compiler_gave_them(traced):
    assert shapes(traced()) == {
        "As": ((8, 9), 4),
        "row": ((8,), 4),
        "cube": ((2, 3, 4), 16),
        "total": ((), 4),
        "outside": ((4, 3), 8),
        "partial": ((6,), 8),
    }


def test_an_access_has_its_element_of_the_declared_array(traced):
    seen = traced()
    accesses = seen.launches[0].accesses
    last = {"As": 71, "row": 1, "cube": 20, "total": 0, "outside": 11, "partial": 5}
    for name, index in last.items():
        mine = accesses[accesses["array"] == seen.array(name)]
        assert set(mine["index"].tolist()) == {index}, name
    assert [a.shape for a in seen.arrays if a.space == GLOBAL] == [(2,), (2,)]


def test_dynamic_shared_memory_has_the_name_of_the_launch_that_declares_it(traced):
    array = traced(then=80).arrays[-1]
    assert (array.name, array.shape) == ("partial", (10,))  # of the launch that asks for most


def test_dynamic_shared_memory_that_nobody_declares_is_called_that():
    text = "__global__ void k(float* y) { y[0] = 1; } void run(float* y) { k<<<1, 1, 64>>>(y); }"
    kernel = compile_cuda(text, "run", backend="emulator")
    assert shapes(trace(kernel, {"y": torch.zeros(1)})) == {"dynamic": ((16,), 4)}
