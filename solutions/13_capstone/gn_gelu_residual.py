"""The capstone, solved: GroupNorm, GELU and the residual in one kernel behind the linear layer."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

__device__ float warp_sum(float value) {
    for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(~0u, value, d);
    return value;
}

// y, out: (rows, channels), weight, bias: (channels). out = y + gelu(GroupNorm(y)).
// One warp owns a group of one row. It reads y three times, and the last two come from caches.
__global__ void gn_gelu_residual_kernel(const float* y, const float* weight, const float* bias,
                                        float* out, int channels, int size) {
    int group = blockIdx.x, row = blockIdx.y, lane = threadIdx.x;
    size_t first = size_t(row) * channels + group * size;
    float sum = 0.0f, square = 0.0f;
    for (int i = lane; i < size; i += 32) sum += y[first + i];
    float mean = warp_sum(sum) / size;
    for (int i = lane; i < size; i += 32) {
        float away = y[first + i] - mean;
        square += away * away;
    }
    float rstd = rsqrtf(warp_sum(square) / size + 1e-5f);
    for (int i = lane; i < size; i += 32) {
        int c = group * size + i;
        float value = y[first + i];
        float z = (value - mean) * rstd * weight[c] + bias[c];
        out[first + i] = value + 0.5f * z * (1.0f + erff(z * 0.70710678f));  // z / sqrt(2)
    }
}

void checked(const torch::Tensor& t, int64_t count, const char* name) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), "; move it with .cuda()");
    TORCH_CHECK(t.scalar_type() == torch::kFloat32, name, " is ", t.scalar_type(), ", not float32");
    TORCH_CHECK(t.is_contiguous(), name, " is not contiguous");
    TORCH_CHECK(t.numel() == count, name, " has ", t.numel(), " elements, not ", count);
}

torch::Tensor tail(torch::Tensor y, torch::Tensor weight, torch::Tensor bias, int64_t groups) {
    TORCH_CHECK(y.dim() == 2 && groups > 0 && y.size(1) % groups == 0,
                "y cannot be cut into groups");
    int64_t rows = y.size(0), channels = y.size(1);
    TORCH_CHECK(rows < 65536, "a grid has at most 65535 rows of blocks");
    checked(y, rows * channels, "y");
    checked(weight, channels, "weight");
    checked(bias, channels, "bias");
    at::cuda::CUDAGuard guard(y.device());
    auto out = torch::empty_like(y);
    if (rows == 0) return out;
    gn_gelu_residual_kernel<<<dim3(groups, rows), 32, 0, at::cuda::getCurrentCUDAStream()>>>(
        y.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
        out.data_ptr<float>(), channels, channels / groups);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
}
"""
CPP = """
torch::Tensor tail(torch::Tensor y, torch::Tensor weight, torch::Tensor bias, int64_t groups);
"""
ext = load_inline(
    name="gn_gelu_residual",
    cpp_sources=CPP,
    cuda_sources=CUDA,
    functions=["tail"],
)


class Tail(torch.autograd.Function):
    """Forward by the kernel. Backward by PyTorch, from y alone."""

    @staticmethod
    def forward(ctx, y, weight, bias, groups):
        y = y.contiguous()
        ctx.save_for_backward(y, weight, bias)
        ctx.groups = groups
        return ext.tail(y, weight, bias, groups)

    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad():
            leaves = [tensor.detach().requires_grad_() for tensor in ctx.saved_tensors]
            y, weight, bias = leaves
            out = y + F.gelu(F.group_norm(y, ctx.groups, weight, bias))
        return *torch.autograd.grad(out, leaves, grad), None


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, num_groups):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)

    def forward(self, x):
        norm = self.group_norm
        return Tail.apply(self.gemm(x), norm.weight, norm.bias, norm.num_groups)
