"""What counts as a task's own work, and what PyTorch may do in a forward that is judged.

It follows from what the reference itself runs, operation by operation:

* Only products, or convolutions: they are the work. PyTorch does none.
* Products, and what products could do as well (sums, means, multiples, powers): PyTorch does as
  many products as the reference, and no sums or multiples of tensors.
* Anything else beside (exp, max, a norm): that is the work. PyTorch does the reference's kind of
  products, and a few sums and multiples of tensors. Few, since of many one makes anything: a root
  by Newton's steps, an exponential by squaring.

Without products in the reference, there are none for PyTorch. Copies and views are always free, and
so are SINGLES operations on single numbers; device.cpp holds forwards to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

Ran = tuple[str, int, bool]
SPARE = 16  # sums and multiples beside as many as the reference has operations
_MATRICES = "mm bmm mv dot".split()
_ADDING = "addmm addmm_ baddbmm addbmm addmv ger addr".split()
_CONVOLUTIONS = (
    "convolution _convolution convolution_overrideable mkldnn_convolution im2col".split()
)
LINEAR = (*_MATRICES, *_ADDING)
# What sums and products of numbers can make.
_POLYNOMIAL = frozenset(
    """sum mean cumsum cumprod prod add add_ sub sub_ rsub mul mul_ neg neg_ square lerp addcmul
    addcmul_ avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d
    adaptive_avg_pool1d mse_loss var trace upsample_nearest1d upsample_nearest2d upsample_bilinear2d
    upsample_nearest3d tril triu tril_ triu_ kron diag diag_embed flip roll cat stack copy_ clone
    fill_ zero_ _to_copy constant_pad_nd repeat_interleave index_select gather zeros ones full
    zeros_like ones_like full_like empty empty_like new_zeros new_ones new_full new_empty arange eye
    scalar_tensor lift_fresh expand_copy _unsafe_view reflection_pad2d linalg_vector_norm var_mean
    replication_pad2d repeat""".split()
)
_SINGLE_AFTERWARDS = ("linalg_vector_norm",)  # polynomial but for a root of what it comes to


@dataclass(frozen=True)
class Work:
    """What PyTorch may do in a forward."""

    products: tuple[str, ...] = LINEAR
    count: int = -1  # of products, at most; -1: as many as are wanted
    sums: int = -1  # of tensors, and multiples of them, at most

    def __str__(self) -> str:
        if not self.products:
            return "what Model computes"
        return "what follows the products"


class Trace(TorchDispatchMode):
    """What runs under it: name, elements of the largest tensor, whether it is polynomial."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ran: list[Ran] = []
        self.elements = 0  # of all of them

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        schema = func._schema
        view = schema.returns and all(
            r.alias_info and not r.alias_info.is_write for r in schema.returns
        )
        name = schema.name.partition("::")[2]
        outputs = [t for t in tree_leaves(made) if isinstance(t, Tensor)]
        inputs = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        most = max((t.numel() for t in (*inputs, *outputs)), default=0)
        self.elements += most
        if not view and name != "detach":
            self.ran.append((name, most, _polynomial(name, args, outputs)))
        return made


def _polynomial(name: str, args: Sequence[Any], outputs: Sequence[Tensor]) -> bool:
    if name in _SINGLE_AFTERWARDS:
        return all(t.numel() == 1 for t in outputs)
    if name in ("pow", "pow_"):
        power = args[1]
        return isinstance(power, int | float) and float(power).is_integer() and 0 < power <= 8
    if name in ("div", "div_"):
        return not isinstance(args[1], Tensor) or args[1].numel() == 1
    if name in ("std", "norm"):
        return all(t.numel() == 1 for t in outputs)
    return name in _POLYNOMIAL


def of(ran: Sequence[Ran]) -> Work:
    """The rule for a reference that has run these operations."""
    products = [name for name, _, _ in ran if name in LINEAR or name in _CONVOLUTIONS]
    others = [r for r in ran if r[0] not in (*LINEAR, *_CONVOLUTIONS) and r[1] > 1]
    more = [name for name, _, polynomial in others if not polynomial]
    arithmetic = [name for name, _, polynomial in others if not polynomial or name not in _MOVING]
    kinds: tuple[str, ...] = ()
    if products and arithmetic:
        adding = more or any(name not in _MATRICES for name in products)
        kinds = tuple(_MATRICES) + (tuple(_ADDING) if adding else ())
        if any(name in _CONVOLUTIONS for name in products):
            kinds += tuple(_CONVOLUTIONS)
    if more:
        return Work(kinds, -1, SPARE + len(ran))
    return Work(kinds, len(products) if kinds else 0, 0)


# Of these a task is not made of arithmetic.
_MOVING = frozenset(
    """copy_ clone fill_ zero_ _to_copy cat stack flip roll zeros ones full zeros_like ones_like
    full_like empty empty_like new_zeros new_ones new_full new_empty arange eye scalar_tensor
    lift_fresh expand_copy _unsafe_view repeat index_select gather constant_pad_nd tril triu
    tril_ triu_ diag diag_embed""".split()
)
