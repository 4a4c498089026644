"""Does the judge work on this card? Asked before any file is judged there.

A model of ours, which is right, is judged as a file is. Where it is rejected, the fault is the
machine's or the judge's: a compiler without headers, a driver that a box does not reach. Files are
then judged on the emulator.
"""

from functools import cache

from utils.cuda.model_box import boxed
from utils.judge.models.evaluation import judge_text
from utils.judge.models.reference_text import ReferenceText
from utils.judge.models.task import Size, Task

TEXT = '''
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

HOST = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

void launch_relu(const float* x, float* y, int n, cudaStream_t stream);

at::Tensor relu_of(at::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == at::kFloat);
    c10::cuda::CUDAGuard guard(x.device());
    auto y = at::empty_like(x);
    launch_relu(x.data_ptr<float>(), y.data_ptr<float>(), x.numel(),
                c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""
KERNELS = r"""
// x, y: (n). A thread owns an element.
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

void launch_relu(const float* x, float* y, int n, cudaStream_t stream) {
    relu_kernel<<<(n + 127) / 128, 128, 0, stream>>>(x, y, n);
}
"""
# nvcc needs a minute for PyTorch's headers, so that it gets none.
ext = load_inline(
    name="probe",
    cpp_sources=HOST,
    cuda_sources=KERNELS,
    functions=["relu_of"],
    no_implicit_headers=True,
)


class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = ext.relu_of(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * (y > 0)


class ModelNew(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.linear = nn.Linear(features, outputs)

    def forward(self, x):
        return Relu.apply(self.linear(x))
'''


REFERENCE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.linear = nn.Linear(features, outputs)

    def forward(self, x):
        return torch.relu(self.linear(x))
"""


def task() -> Task:
    """What the probe should compute: relu(linear(x))."""
    source = ReferenceText(REFERENCE, "probe")
    size = Size((33, 40), ((5, 33),))
    return Task("probe", source.text, source.module({}).Model, size, [size])


@cache
def obstacle(backend: str) -> str:
    """Why files cannot be judged on the card; "" where they can."""
    try:
        with boxed(backend) as box:
            verdict = judge_text(TEXT, task(), box, seed=1)
    except Exception as error:  # whatever it is: no file's fault
        return f"{type(error).__name__}: {error}"
    return "" if verdict.passed else f"{verdict.reason}: {verdict.message}"
