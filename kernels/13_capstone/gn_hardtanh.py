"""Another brief: a linear layer, GroupNorm, and a clamp to [-2, 2].

(N, K) -> (N, C). The groups are long: 512 channels.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    """hardtanh(GroupNorm(linear(x)), -2, 2)."""

    def __init__(self, in_features, out_features, num_groups):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)

    def forward(self, x: Tensor) -> Tensor:
        return F.hardtanh(self.group_norm(self.gemm(x)), -2.0, 2.0)


batch_size = 1024
in_features = 8192
out_features = 8192
num_groups = 16


def get_inputs() -> list[Tensor]:
    return [torch.rand(batch_size, in_features)]


def get_init_inputs() -> list:
    return [in_features, out_features, num_groups]


# Other sizes that a judge tries: arguments of Model, and the shape of each input.
SIZES = [
    ((40, 64, 2), [(6, 40)]),
    ((37, 120, 5), [(3, 37)]),
    ((50, 600, 1), [(1, 50)]),
]
