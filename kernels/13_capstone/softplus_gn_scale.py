"""Another brief: a linear layer, softplus, GroupNorm, and a scale.

(N, K) -> (N, C). Here the activation comes first, and log(1 + exp(y)) overflows where y is large.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    """GroupNorm(softplus(linear(x))) * scale."""

    def __init__(self, in_features, out_features, num_groups, scale_shape):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x: Tensor) -> Tensor:
        return self.group_norm(F.softplus(self.gemm(x))) * self.scale


batch_size = 1024
in_features = 8192
out_features = 8192
num_groups = 256
scale_shape = (out_features,)


def get_inputs() -> list[Tensor]:
    return [torch.rand(batch_size, in_features)]


def get_init_inputs() -> list:
    return [in_features, out_features, num_groups, scale_shape]


# Other sizes that a judge tries: arguments of Model, and the shape of each input.
SIZES = [
    ((40, 64, 2, (64,)), [(6, 40)]),
    ((37, 120, 5, (120,)), [(3, 37)]),
    ((50, 60, 12, (60,)), [(1, 50)]),
]
