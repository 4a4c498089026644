"""What the files here share: an honest ModelNew for task 88, and kernels to cheat with."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

CUDA = r"""@CUDA@"""
CPP = """
void tail_into(torch::Tensor y, torch::Tensor w, torch::Tensor b, torch::Tensor s,
               torch::Tensor out, int64_t groups, bool affine);
torch::Tensor tail(torch::Tensor y, torch::Tensor w, torch::Tensor b, torch::Tensor s,
                   int64_t groups);
torch::Tensor tail_twice(torch::Tensor y, torch::Tensor w, torch::Tensor b, torch::Tensor s,
                         torch::Tensor stats, int64_t groups);
torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b, int64_t bits);
void fill(torch::Tensor x, double value, int64_t threads);
void spin(torch::Tensor x);
torch::Tensor on_the_host(torch::Tensor y, torch::Tensor w, torch::Tensor b, torch::Tensor s,
                          int64_t groups);
"""
FUNCTIONS = "tail_into tail tail_twice linear fill spin on_the_host".split()
ext = load_inline(name="judged", cpp_sources=CPP, cuda_sources=CUDA, functions=FUNCTIONS)


def in_torch(y, weight, bias, scale, groups):
    """The tail by PyTorch's own operations."""
    y = F.group_norm(y, groups, weight, bias, 1e-5)
    y = y * torch.sigmoid(y) * scale
    return y * torch.sigmoid(y)


def gradients(ctx, grad):
    """Gradients of the tail, by PyTorch."""
    with torch.enable_grad():
        leaves = [tensor.detach().requires_grad_() for tensor in ctx.saved_tensors]
        out = in_torch(*leaves, ctx.groups)
    return torch.autograd.grad(out, leaves, grad)


class Tail(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y, weight, bias, scale, groups):
        ctx.save_for_backward(y, weight, bias, scale)
        ctx.groups = groups
        return ext.tail(y, weight, bias, scale, groups)

    @staticmethod
    def backward(ctx, grad):
        return *gradients(ctx, grad), None


class Honest(nn.Module):
    def __init__(self, in_features, out_features, num_groups, multiply_weight_shape):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.multiply_weight = nn.Parameter(torch.randn(multiply_weight_shape))

    @property
    def groups(self):
        return self.group_norm.num_groups

    @property
    def rest(self):
        """Of the tail's arguments, all but y."""
        return self.group_norm.weight, self.group_norm.bias, self.multiply_weight, self.groups

    def forward(self, x):
        return Tail.apply(self.gemm(x), *self.rest)
