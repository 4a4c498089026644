"""Small exercises of every kind, for tests that must not depend on the workbook's own."""

from dataclasses import replace

import torch
import torch.nn.functional as F

from utils.course.exercise import At, Exercise


def _exercise(name: str, **fields) -> Exercise:
    sizes = fields.pop("sizes")
    fields.setdefault("flops", lambda **sizes: 2)
    at = At(check=sizes, bench=sizes[-1])
    return Exercise(at=at, name=name, title=name, number="99.1", topic="99_toys", **fields)


def tried_at(exercise: Exercise, *sizes: dict[str, int]) -> Exercise:
    """The same exercise, checked at other sizes."""
    return replace(exercise, at=replace(exercise.at, check=sizes))


def drawn_at(exercise: Exercise, **sizes: int) -> Exercise:
    """The same exercise, drawn at another size."""
    return replace(exercise, at=replace(exercise.at, draw=sizes))


GEMM = _exercise(
    "gemm",
    shapes={"A": "M K", "B": "K N", "C": "M N"},
    outputs=("C",),
    reference=lambda A, B: A @ B,
    sizes=(
        {"M": 1, "N": 1, "K": 1},
        {"M": 5, "N": 7, "K": 3},
        {"M": 32, "N": 32, "K": 32},
        {"M": 33, "N": 50, "K": 65},
        {"M": 64, "N": 17, "K": 40},
    ),
    flops=lambda M, N, K: 2 * M * N * K,
    peers={"library": lambda A, B: A @ B},
    library="library",
    effort="about 7 lines",
)


def gemm(A, B, C, M, N, K):
    """What solves GEMM, as a launcher in Python."""
    torch.mm(A, B, out=C)


SUM = _exercise(
    "total",
    shapes={"x": "n", "out": ""},
    outputs=("out",),
    reference=lambda x: x.sum(),
    sizes=({"n": 1}, {"n": 31}, {"n": 1000}, {"n": 8192}),
)
GROUPNORM = _exercise(
    "groupnorm",
    follows={"groups": "channels"},
    shapes={"x": "rows channels", "weight": "channels", "bias": "channels", "out": "rows channels"},
    outputs=("out",),
    reference=lambda x, weight, bias, groups, eps: torch.group_norm(x, groups, weight, bias, eps),
    sizes=(
        {"rows": 2, "channels": 4, "groups": 2},
        {"rows": 3, "channels": 6, "groups": 1},
        {"rows": 5, "channels": 96, "groups": 3},
        {"rows": 2, "channels": 2048, "groups": 2},
    ),
    scalars={"eps": (1e-6, 1e-3)},
    eps=True,
)
MISH = _exercise(
    "mish",
    shapes={"x": "n", "out": "n"},
    outputs=("out",),
    reference=lambda x: F.mish(x),
    sizes=({"n": 1}, {"n": 37}, {"n": 1000}),
)
SWISH = replace(MISH, name="swish", reference=lambda x: x * torch.sigmoid(x))
ARGMIN = _exercise(
    "argmin",
    shapes={"x": "rows n", "low": "rows", "where": "rows"},
    outputs=("low", "where"),
    reference=lambda x: x.min(dim=1),
    sizes=({"rows": 1, "n": 1}, {"rows": 3, "n": 33}, {"rows": 5, "n": 200}),
)
AXPY = _exercise(
    "axpy",
    shapes={"x": "n", "y": "n"},
    outputs=("y",),
    reference=lambda a, x, y: a * x + y,
    scalars={"a": (-2.0, 2.0)},
    sizes=({"n": 1}, {"n": 37}, {"n": 1000}),
)
FUSED = _exercise(
    "fused",
    follows={"groups": "N"},
    shapes={"x": "M K", "W": "N K", "b": "N", "weight": "N", "bias": "N", "out": "M N"},
    outputs=("out",),
    reference=lambda x, W, b, weight, bias, groups, eps: F.hardtanh(
        torch.group_norm(F.linear(x, W, b), groups, weight, bias, eps), -1.5, 1.5
    ),
    sizes=(
        {"M": 1, "N": 8, "K": 1, "groups": 2},
        {"M": 5, "N": 32, "K": 65, "groups": 4},
        {"M": 17, "N": 64, "K": 100, "groups": 4},
    ),
    scalars={"eps": (1e-5, 1e-5)},
    eps=True,
)
