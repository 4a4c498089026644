"""Task 75 of KernelBench, level 2: a linear layer, and what follows it. (N, K) -> (1, C, N, 1).

A `ModelNew` takes the arguments of `Model`, has its parameters under the same names and in the same
order, computes what it computes, and trains. `workbook judge` compares the two.
"""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """The minimum of each row of GroupNorm(linear(x)), plus each channel's bias."""

    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x: Tensor) -> Tensor:
        x = self.group_norm(self.gemm(x))
        return torch.min(x, dim=1, keepdim=True)[0] + self.bias


batch_size = 1024
in_features = 8192
out_features = 8192
num_groups = 512
bias_shape = (1, out_features, 1, 1)


def get_inputs() -> list[Tensor]:
    return [torch.rand(batch_size, in_features)]


def get_init_inputs() -> list:
    return [in_features, out_features, num_groups, bias_shape]


# Other sizes that a judge tries: arguments of Model, and the shape of each input.
SIZES = [
    ((40, 32, 2, (1, 32, 1, 1)), [(6, 40)]),
    ((37, 120, 5, (1, 120, 1, 1)), [(3, 37)]),
    ((50, 60, 12, (1, 60, 1, 1)), [(1, 50)]),
]
