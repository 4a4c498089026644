"""Self-attention between its projections, as in a transformer's block. (N, S, C) -> (N, S, C).

No task of KernelBench's, but a file of its format. A `ModelNew` takes the arguments of `Model`, has
its parameters under the same names and in the same order, computes what it computes, and trains.
`workbook judge` compares the two.
"""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """Projects x to q, k and v, attends head by head, projects back. x: (batch, S, width)

    causal: whether a position sees only itself and those in front of it."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.by_heads(self.qkv(x))
        out = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(self.side_by_side(out))

    def by_heads(self, qkv: Tensor) -> Tensor:
        """(batch, S, 3 * width) -> (3, batch, heads, S, D)"""
        return qkv.unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)

    def side_by_side(self, out: Tensor) -> Tensor:
        """(batch, heads, S, D) -> (batch, S, width)"""
        return out.transpose(1, 2).flatten(2)


batch_size = 4
positions = 2048
width = 2048
heads = 16
causal = True


def get_inputs() -> list[Tensor]:
    return [torch.randn(batch_size, positions, width)]


def get_init_inputs() -> list:
    return [width, heads, causal]


# Other sizes that a judge tries: arguments of Model, and the shape of each input.
SIZES = [((64, 1, True), [(1, 9, 64)]), ((24, 2, False), [(2, 70, 24)])]


def may_draw(arguments, shapes) -> bool:
    """Whether a judge may try it, too: a head takes the emulator a second, both ways."""
    ((batch, *_),) = shapes
    return batch * arguments[1] <= 3
