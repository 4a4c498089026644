"""Task 62 of KernelBench, level 2: a linear layer, and what follows it. (N, K) -> (N, C).

A `ModelNew` takes the arguments of `Model`, has its parameters under the same names and in the same
order, computes what it computes, and trains. `workbook judge` compares the two.
"""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """Twice the LeakyReLU of GroupNorm(linear(x))."""

    def __init__(self, input_size, hidden_size, num_groups, eps=1e-5, negative_slope=0.01):
        super().__init__()
        self.fc = nn.Linear(input_size, hidden_size)
        self.gn = nn.GroupNorm(num_groups, hidden_size, eps=eps)
        self.leaky_relu = nn.LeakyReLU(negative_slope=negative_slope)

    def forward(self, x: Tensor) -> Tensor:
        x = self.leaky_relu(self.gn(self.fc(x)))
        return x + x


batch_size = 1024
input_size = 8192
hidden_size = 8192
num_groups = 512


def get_inputs() -> list[Tensor]:
    return [torch.rand(batch_size, input_size)]


def get_init_inputs() -> list:
    return [input_size, hidden_size, num_groups]


# Other sizes that a judge tries: arguments of Model, and the shape of each input.
SIZES = [
    ((40, 32, 2), [(6, 40)]),
    ((37, 120, 5), [(3, 37)]),
    ((50, 60, 12), [(1, 50)]),
]
