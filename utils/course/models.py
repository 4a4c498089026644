"""The five models, level 2 of KernelBench: a linear layer, and what follows it, in PyTorch.

Chapters 07 to 09 write what follows, and then the whole, as CUDA kernels. Names, arguments and
sizes are those of the tasks; `bias` of a model is called `shift` where GroupNorm has a bias, too.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from utils.course.exercise import takes

EPS = 1e-5
SLOPE = 0.01  # of LeakyReLU


@dataclass(frozen=True)
class Model:
    """One task. `tail(y, weight, bias, groups, **extra)` is all that follows the linear layer.

    y is (rows, channels); weight and bias, of GroupNorm, are (channels,), as is each of `extra`.
    The result is (rows, channels), or what `output` says.
    """

    task: int
    name: str
    rows: int  # the batch
    features: int  # of the input
    channels: int  # of the output
    groups: int
    tail: Callable[..., Tensor]
    extra: tuple[str, ...] = ()
    output: str = "rows channels"

    @property
    def sizes(self) -> Mapping[str, int]:
        """Those of the tail."""
        return MappingProxyType(
            {"rows": self.rows, "channels": self.channels, "groups": self.groups}
        )

    @functools.cached_property
    def whole(self) -> Callable[..., Tensor]:
        """The linear layer and the tail: of x (M, K), W (N, K), b (N), and by name what the tail
        takes."""

        @takes("x", "W", "b", "weight", "bias", *self.extra, "groups")
        def whole(x: Tensor, W: Tensor, b: Tensor, **others: Tensor | int) -> Tensor:
            return self.tail(F.linear(x, W, b), **others)

        return whole


def leaky_relu_double(y: Tensor) -> Tensor:
    """Any shape; twice the LeakyReLU."""
    y = F.leaky_relu(y, SLOPE)
    return y + y


def swish_multiply_swish(y: Tensor, scale: Tensor) -> Tensor:
    """(rows, channels), scale (channels)."""
    return F.silu(F.silu(y) * scale)


def bias_hardtanh_mish(y: Tensor, shift: Tensor) -> Tensor:
    """(rows, channels), shift (channels)."""
    return F.mish(F.hardtanh(y + shift))


def swish_bias(y: Tensor, shift: Tensor) -> Tensor:
    """(rows, channels), shift (channels)."""
    return F.silu(y) + shift


def min_bias(y: Tensor, shift: Tensor) -> Tensor:
    """(rows, channels) -> (1, channels, rows, 1): the row's minimum plus each channel's shift."""
    return y.min(dim=1, keepdim=True).values + shift.reshape(1, -1, 1, 1)


def gn_leaky_relu_double(y: Tensor, weight: Tensor, bias: Tensor, groups: int) -> Tensor:
    """(rows, channels), the others (channels): the same behind a GroupNorm."""
    return leaky_relu_double(torch.group_norm(y, groups, weight, bias, EPS))


def gn_swish_multiply_swish(
    y: Tensor, weight: Tensor, bias: Tensor, scale: Tensor, groups: int
) -> Tensor:
    """(rows, channels), the others (channels): the same behind a GroupNorm."""
    return swish_multiply_swish(torch.group_norm(y, groups, weight, bias, EPS), scale)


def gn_min_bias(y: Tensor, weight: Tensor, bias: Tensor, shift: Tensor, groups: int) -> Tensor:
    """(rows, channels) -> (1, channels, rows, 1), as min_bias, behind a GroupNorm."""
    return min_bias(torch.group_norm(y, groups, weight, bias, EPS), shift)


def bias_hardtanh_mish_gn(
    y: Tensor, weight: Tensor, bias: Tensor, shift: Tensor, groups: int
) -> Tensor:
    """(rows, channels), the others (channels): the GroupNorm comes last."""
    return torch.group_norm(bias_hardtanh_mish(y, shift), groups, weight, bias, EPS)


def swish_bias_gn(y: Tensor, weight: Tensor, bias: Tensor, shift: Tensor, groups: int) -> Tensor:
    """(rows, channels), the others (channels): the GroupNorm comes last."""
    return torch.group_norm(swish_bias(y, shift), groups, weight, bias, EPS)


# In the order of the chapters; by the name of the tail, which is that of its kernel.
MODELS = {
    model.tail.__name__: model
    for model in (
        Model(
            task=62,
            name="Matmul_GroupNorm_LeakyReLU_Sum",
            rows=1024,
            features=8192,
            channels=8192,
            groups=512,
            tail=gn_leaky_relu_double,
        ),
        Model(
            task=88,
            name="Gemm_GroupNorm_Swish_Multiply_Swish",
            rows=1024,
            features=8192,
            channels=8192,
            groups=256,
            tail=gn_swish_multiply_swish,
            extra=("scale",),
        ),
        Model(
            task=94,
            name="Gemm_BiasAdd_Hardtanh_Mish_GroupNorm",
            rows=1024,
            features=8192,
            channels=8192,
            groups=256,
            tail=bias_hardtanh_mish_gn,
            extra=("shift",),
        ),
        Model(
            task=37,
            name="Matmul_Swish_Sum_GroupNorm",
            rows=32768,
            features=1024,
            channels=4096,
            groups=64,
            tail=swish_bias_gn,
            extra=("shift",),
        ),
        Model(
            task=75,
            name="Gemm_GroupNorm_Min_BiasAdd",
            rows=1024,
            features=8192,
            channels=8192,
            groups=512,
            tail=gn_min_bias,
            extra=("shift",),
            output="1 channels rows 1",
        ),
    )
}


def kinds_of_groups(sizes: Mapping[str, int], generator: Generator) -> dict[str, Tensor]:
    """Groups far from zero beside their spread, where E[x²] - E[x]² fails, and groups with a
    spread so small that eps decides; ordinary ones between them."""
    N, K = sizes["N"], sizes["K"]
    kinds = torch.arange(N, device=generator.device) * sizes["groups"] // N % 4
    spread = torch.where(kinds == 2, 1e-3, 1.0)
    b = torch.randn(N, generator=generator, device=generator.device) * spread
    W = torch.randn(N, K, generator=generator, device=generator.device) * spread[:, None]
    return {"W": W, "b": b + torch.where(kinds == 1, 500.0, 0.0)}


def large_scales(sizes: Mapping[str, int], generator: Generator) -> dict[str, Tensor]:
    """Groups of all kinds; scales that bring values which e^x does not hold, beside small ones:
    inf / inf is NaN."""
    N = sizes["N"]
    large = torch.arange(N, device=generator.device) % 4 == 3
    scale = torch.randn(N, generator=generator, device=generator.device)
    kinds = kinds_of_groups(sizes, generator)
    return {**kinds, "scale": torch.where(large, 300 * scale, scale)}
