"""How far off a right kernel may be: its rounding passes, wherever it happens."""

from dataclasses import replace

import pytest
import torch
from torch import Generator

from utils.course.cases import Case
from utils.course.exercise import At, Exercise
from utils.course.models import EPS, bias_hardtanh_mish_gn
from utils.judge import mismatch, oracle, verdict

ROWS, CHANNELS, GROUPS = 64, 64, 4
EXERCISE = Exercise(
    name="tail",
    title="clamp, mish, GroupNorm",
    shapes={
        "y": "rows channels",
        **dict.fromkeys(("weight", "bias", "shift"), "channels"),
        "out": "rows channels",
    },
    outputs=("out",),
    reference=bias_hardtanh_mish_gn,
    at=At(check=(), bench={}),
    flops=lambda **_: 0,
)


def in_float(y, weight, bias, shift, ulps):
    """The tail as a GPU computes it, whose expf() is off by up to two units in the last place."""
    x = (y + shift).clamp(-1, 1)
    n = torch.exp(x) * (1 + ulps * 2.0**-23 * torch.sign(torch.randn(y.shape)))
    m = n * (n + 2)
    v = (x * (m / (m + 2))).reshape(ROWS, GROUPS, -1)
    d = v - v.mean(-1, keepdim=True)
    rstd = torch.rsqrt((d * d).mean(-1, keepdim=True) + EPS)
    return (d * rstd).reshape(ROWS, CHANNELS) * weight + bias


@pytest.mark.parametrize(("ulps", "passes"), [(0, True), (2, True), (400, False)])
def test_what_is_rounded_behind_a_clamp_may_yet_be_normalised(ulps, passes):
    torch.manual_seed(0)
    y, (weight, bias, shift) = torch.randn(ROWS, CHANNELS), torch.randn(3, CHANNELS)
    y[::2, :15] = 9.0  # groups of which all values but one are 1: the inputs hardly matter,
    y[::2, 15] = 1 - shift[15] - 1e-4  # and a rounding of mish(1) is 316 times as large behind
    tensors = {"y": y, "weight": weight, "bias": bias, "shift": shift}
    case = Case({"rows": ROWS, "channels": CHANNELS, "groups": GROUPS}, "clamped", tensors, {})
    dtypes = {name: torch.float32 for name in EXERCISE.shapes}
    right = oracle.expect(EXERCISE, case, dtypes)["out"]
    got = in_float(**tensors, ulps=ulps)
    assert bool(((got.double() - right.value).abs() <= right.bound).all()) == passes


def test_a_sum_may_fall_on_the_other_side_of_a_bend():
    """Large terms that nearly cancel, behind a clamp: a right sum may be off by many times what the
    last place of the result holds, and the clamp's edge may lie between it and the exact one."""
    above = 6e-4
    small, right = cancelling(1.0, above)
    assert (right.value[:32] == 1).all() and small.bound[:32].max() < 1e-4
    error = 8e-4  # 16 units of the last place of the terms' sum, 500
    assert right.bound[0] > error - above  # the sum is 1 - 2e-4 then
    assert (right.bound[1:32] == small.bound[1:32]).all()


def test_a_sum_may_fall_beyond_the_other_edge():
    """Where the rounding of large terms exceeds the clamp's width, a value is at either edge."""
    small, right = cancelling(2.0**20, 500.0)
    assert (right.value[:32] == 1).all() and small.bound[:32].max() < 1e-4
    assert right.bound[0] > 2  # from 1 to -1
    assert (right.bound[1:32] == small.bound[1:32]).all()


def cancelling(size: float, above: float) -> tuple[oracle.Expected, oracle.Expected]:
    """The bounds without and with bends, of sums of terms of this size behind a clamp: half of
    them far beyond its edge, but the first one only this much."""
    K = 1000
    exercise = Exercise(
        name="clamped",
        title="clamped",
        shapes={"a": "n K", "b": "K", "shift": "n", "out": "n"},
        outputs=("out",),
        reference=lambda a, b, shift: (a @ b + shift).clamp(-1, 1),
        at=At(check=(), bench={}),
        flops=lambda **_: 0,
    )
    generator = Generator().manual_seed(0)
    a = 16 + torch.randn(64, K, generator=generator, dtype=torch.float64)
    b = size * torch.randn(K, generator=generator, dtype=torch.float64)
    shift = torch.zeros(64, dtype=torch.float64)
    shift[:32] = 200 * size
    shift[0] = 1 + above
    shift -= a @ b
    tensors = {"a": a, "b": b, "shift": shift}
    case = Case({"n": 64, "K": K}, "cancelling", tensors, {})
    dtypes = dict.fromkeys(exercise.shapes, torch.float32)
    small = oracle.expect(exercise, case, dtypes)["out"]
    return small, bent(exercise, case, dtypes)


@pytest.mark.parametrize(
    ("at", "below", "passes"),
    [(-100, 0.0, True), (-100, 2.0**-126, True), (-83, 0.0, True), (-83, 2.0**-120, False)],
)
def test_a_weight_may_underflow_before_it_meets_a_large_gradient(at, below, passes):
    """float32 keeps few digits of e^-100, or none where subnormal numbers are taken for 0."""
    exercise = Exercise(
        name="weighted",
        title="weighted",
        shapes={"x": "n m", "grad": "m", "out": "n"},
        outputs=("out",),
        reference=lambda x, grad: x.exp() @ grad,
        at=At(check=(), bench={}),
        flops=lambda **_: 0,
    )
    torch.manual_seed(0)
    tensors = {"x": at - 4 * torch.rand(64, 8), "grad": 1e11 * torch.randn(8)}
    case = Case({"n": 64, "m": 8}, "far down", tensors, {})
    dtypes = dict.fromkeys(exercise.shapes, torch.float32)
    exact = tensors["x"].exp()
    got = torch.where(exact > below, exact, 0.0) @ tensors["grad"]
    plain = oracle.expect(exercise, case, dtypes)["out"]
    assert bool(mismatch.wrong(got, plain).any()) == (below > 0)  # changes of u do not see it
    assert bool(mismatch.wrong(got, bent(exercise, case, dtypes)).any()) != passes


def test_what_vanishes_is_asked_about_again_however_many_values_it_is():
    expected = oracle.Expected.known(
        torch.tensor([2.0**-101] * 500 + [1.0] * 1500), torch.tensor(0)
    )
    assert asked_again(expected, slice(0, 500)) and asked_again(expected, slice(500, 502))
    assert not asked_again(expected, slice(0, 501)) and not asked_again(expected, slice(0))


def asked_again(expected: oracle.Expected, wrong: slice) -> bool:
    bad = torch.zeros(expected.value.shape, dtype=torch.bool)
    bad[wrong] = True
    return verdict.asked_again(bad, expected)


def bent(exercise: Exercise, case: Case, dtypes: dict[str, torch.dtype]) -> oracle.Expected:
    return oracle.expect(exercise, case, dtypes, bends=True)["out"]


def test_a_product_in_tf32_is_refused():
    K = 4096
    exercise = Exercise(
        name="dot",
        title="dot",
        shapes={"a": "n K", "b": "K", "out": "n"},
        outputs=("out",),
        reference=lambda a, b: a @ b,
        at=At(check=(), bench={}),
        flops=lambda **_: 0,
    )
    generator = Generator().manual_seed(0)
    a, b = torch.randn(64, K, generator=generator), torch.randn(K, generator=generator)
    case = Case({"n": 64, "K": K}, "normal", {"a": a, "b": b}, {})
    right = oracle.expect(exercise, case, {name: torch.float32 for name in exercise.shapes})["out"]

    def tf32(x):  # 10 bits behind the point, rounded to nearest
        return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)

    def far(got):
        return ((got.double() - right.value).abs() > right.bound).any()

    assert not far(a @ b) and far(tf32(a) @ tf32(b))


def test_an_exercise_may_be_held_to_a_share_of_the_bound():
    case = Case({"n": 64}, "normal", {"x": torch.randn(64)}, {})
    whole = Exercise(
        name="triple",
        title="triple",
        shapes={"x": "n", "out": "n"},
        outputs=("out",),
        reference=lambda x: x * 3,
        at=At(check=(), bench={}),
        flops=lambda **_: 0,
    )
    bounds = [
        oracle.expect(exercise, case, {"out": torch.float32})["out"].bound
        for exercise in (whole, replace(whole, share=0.25))
    ]
    assert torch.allclose(bounds[1], bounds[0] / 4)
