"""Task 88 of KernelBench, level 2: a linear layer, and what follows it. (N, K) -> (N, C).

A `ModelNew` takes the arguments of `Model`, has its parameters under the same names and in the same
order, computes what it computes, and trains. `workbook judge` compares the two.
"""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """swish(swish(GroupNorm(linear(x))) * multiply_weight)."""

    def __init__(self, in_features, out_features, num_groups, multiply_weight_shape):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.multiply_weight = nn.Parameter(torch.randn(multiply_weight_shape))

    def forward(self, x: Tensor) -> Tensor:
        x = self.group_norm(self.gemm(x))
        x = x * torch.sigmoid(x)
        x = x * self.multiply_weight
        return x * torch.sigmoid(x)


batch_size = 1024
in_features = 8192
out_features = 8192
num_groups = 256
multiply_weight_shape = (out_features,)


def get_inputs() -> list[Tensor]:
    return [torch.rand(batch_size, in_features)]


def get_init_inputs() -> list:
    return [in_features, out_features, num_groups, multiply_weight_shape]


# Other sizes that a judge tries: arguments of Model, and the shape of each input.
SIZES = [
    ((40, 64, 2, (64,)), [(6, 40)]),
    ((37, 120, 5, (120,)), [(3, 37)]),
    ((50, 60, 12, (60,)), [(1, 50)]),
]
