"""CUB's operations on whole arrays, for `bench` to time: its headers come with nvcc."""

import functools

import torch
from torch import Tensor

from utils.cuda.compiler import compile_cuda
from utils.cuda.kernel import Kernel
from utils.process import card

_TEXT = """\
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_scan.cuh>

#include "scratch.cuh"

// x, out: (n). out[i] = x[0] + ... + x[i]
void cub_inclusive_sum(const float* x, float* out, int n) {
    size_t bytes = 0;
    cub::DeviceScan::InclusiveSum(nullptr, bytes, x, out, n);  // tells how much it needs
    Scratch<char> memory(bytes);
    cub::DeviceScan::InclusiveSum(memory.data, bytes, x, out, n);
}

// x: (n), counts: (256). counts[b] = how many values lie in bin b of [0, 1), cut into 256 parts
void cub_histogram(const float* x, int* counts, int n) {
    size_t bytes = 0;
    cub::DeviceHistogram::HistogramEven(nullptr, bytes, x, counts, 257, 0.0f, 1.0f, n);
    Scratch<char> memory(bytes);
    cub::DeviceHistogram::HistogramEven(memory.data, bytes, x, counts, 257, 0.0f, 1.0f, n);
}
"""


def inclusive_sum(x: Tensor) -> Tensor:
    """x, out: (n), float32, on a CUDA card. The sums up to each element.

    Compiles for some 20 seconds when first called. Raises ToolError without nvcc, CompileError
    where its headers are missing.
    """
    out = torch.empty_like(x)
    _launcher("cub_inclusive_sum")(x=x, out=out, n=x.numel())
    return out


def histogram(x: Tensor) -> Tensor:
    """x: (n), float32, on a CUDA card. How many values lie in each of 256 equal parts of [0, 1),
    int32: a value of 1 in none of them. Compiles and raises as `inclusive_sum`."""
    counts = torch.empty(256, dtype=torch.int32, device=x.device)
    _launcher("cub_histogram")(x=x, counts=counts, n=x.numel())
    return counts


@functools.cache
def _launcher(name: str) -> Kernel:
    with card.released():
        kernel = compile_cuda(_TEXT, name, backend="cuda")
    kernel.trusted = True  # called in this process, and not on copies in another one
    return kernel
