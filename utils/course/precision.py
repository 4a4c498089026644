"""How exact the products of a kernel are: without that, a ratio of times says nothing."""

import functools
from collections.abc import Callable
from enum import StrEnum
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Precision(StrEnum):
    """Of the factors of products, by the name that tables and results files have for it."""

    FP32 = "fp32"
    TF32 = "TF32"
    FP16 = "fp16"
    BF16 = "bf16"
    SPLIT_FP16 = "three fp16"
    INT8 = "int8"

    @property
    def halves(self) -> int:
        """So many products of halves take as long on tensor cores as one of these; 0: it takes
        none."""
        return {"TF32": 2, "FP16": 1, "BF16": 1, "SPLIT_FP16": 3}.get(self.name, 0)

    @property
    def peer(self) -> "Precision":
        """That of the PyTorch to compare it with."""
        return Precision.FP32 if self is Precision.SPLIT_FP16 else self

    def explained(self) -> str:
        """In words: of the factors, and of the sums."""
        factors = {
            "FP32": "factors are floats",
            "TF32": "factors keep 10 bits of a float's fraction",
            "FP16": "factors are fp16",
            "BF16": "factors are bf16",
            "SPLIT_FP16": "factors are floats as two fp16 each, in three products",
            "INT8": "factors are whole numbers of 8 bits",
        }
        sums = "int32" if self is Precision.INT8 else "fp32"
        return f"{self}: {factors[self.name]}; sums are {sums}"


def alike(one: Precision | None, other: Precision | None) -> bool:
    """Whether times of both may be compared. What is not known is like nothing."""
    return one is not None and other is not None and one.peer == other.peer


def under(precision: Precision, function: Callable[P, R]) -> Callable[P, R]:
    """The same function, known to be of that precision; for TF32 with PyTorch's switch on."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if precision is not Precision.TF32:
            return function(*args, **kwargs)
        import torch

        matmul = torch.backends.cuda.matmul
        before = torch.get_float32_matmul_precision(), matmul.fp32_precision
        matmul.allow_tf32 = True  # of both of PyTorch's switches: torch.compile reads either
        try:
            return function(*args, **kwargs)
        finally:
            torch.set_float32_matmul_precision(before[0])
            matmul.fp32_precision = before[1]

    call.__dict__.update(precision=precision, plain=function)
    return call


def precision_of(function: Callable[..., object]) -> Precision:
    """Of a peer: fp32, unless it is said."""
    said: Precision = getattr(function, "precision", Precision.FP32)
    return said


def plain(function: Callable[..., R]) -> Callable[..., R]:
    """The function that `under` was given, for what compiles it."""
    inner: Callable[..., R] = getattr(function, "plain", function)
    return inner
