"""Task 94 of KernelBench, level 2: a linear layer, and what follows it. (N, K) -> (N, C).

A `ModelNew` takes the arguments of `Model`, has its parameters under the same names and in the same
order, computes what it computes, and trains. `workbook judge` compares the two.
"""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """GroupNorm(mish(hardtanh(linear(x) + bias)))."""

    def __init__(self, in_features, out_features, bias_shape, num_groups):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.hardtanh = nn.Hardtanh()
        self.mish = nn.Mish()
        self.groupnorm = nn.GroupNorm(num_groups=num_groups, num_channels=out_features)

    def forward(self, x: Tensor) -> Tensor:
        x = self.gemm(x) + self.bias
        return self.groupnorm(self.mish(self.hardtanh(x)))


batch_size = 1024
in_features = 8192
out_features = 8192
bias_shape = (out_features,)
num_groups = 256


def get_inputs() -> list[Tensor]:
    return [torch.rand(batch_size, in_features)]


def get_init_inputs() -> list:
    return [in_features, out_features, bias_shape, num_groups]


# Other sizes that a judge tries: arguments of Model, and the shape of each input.
SIZES = [
    ((40, 64, (64,), 2), [(6, 40)]),
    ((37, 120, (120,), 5), [(3, 37)]),
    ((50, 60, (60,), 12), [(1, 50)]),
]
