"""Task 37 of KernelBench, level 2: a linear layer, and what follows it. (N, K) -> (N, C).

A `ModelNew` takes the arguments of `Model`, has its parameters under the same names and in the same
order, computes what it computes, and trains. `workbook judge` compares the two.
"""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """GroupNorm(swish(linear(x)) + bias)."""

    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_features)

    def forward(self, x: Tensor) -> Tensor:
        x = self.matmul(x)
        x = torch.sigmoid(x) * x
        return self.group_norm(x + self.bias)


batch_size = 32768
in_features = 1024
out_features = 4096
num_groups = 64
bias_shape = (out_features,)


def get_inputs() -> list[Tensor]:
    return [torch.rand(batch_size, in_features)]


def get_init_inputs() -> list:
    return [in_features, out_features, num_groups, bias_shape]


# Other sizes that a judge tries: arguments of Model, and the shape of each input.
SIZES = [
    ((40, 128, 2, (128,)), [(6, 40)]),
    ((37, 120, 5, (120,)), [(3, 37)]),
    ((50, 60, 12, (60,)), [(1, 50)]),
]
