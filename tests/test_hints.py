"""Why values are wrong is said only where it is so: mistakes that look alike at the smallest size
are told apart by a larger call, or not at all."""

import random

import pytest
import torch
from support.mistakes import the_same_kernel
from torch import Generator

from utils.course import cases, catalog
from utils.course.answers import compile_wrong
from utils.ground.errors import CheckFailed
from utils.judge import explain, oracle, reruns
from utils.judge.check import check
from utils.judge.mismatch import wrong
from utils.judge.mistakes import hypotheses
from utils.judge.mistakes.hypotheses import candidates, kind
from utils.judge.mixed import mixed
from utils.judge.reruns import Reruns, Wrong

KINDS = 3  # of an exercise, drawn anew each time
EXERCISES = {  # whose references have all that hints are about: at small sizes, at large ones
    "01_naive_gemm/linear": ({"M": 5, "N": 3, "K": 7}, {"M": 33, "N": 40, "K": 64}),
    "04_reductions/row_argmin": ({"rows": 3, "channels": 9}, {"rows": 33, "channels": 96}),
    "06_groupnorm/groupnorm_warp": (
        {"rows": 3, "channels": 12, "groups": 3},
        {"rows": 33, "channels": 192, "groups": 3},
    ),
    "07_pointwise_fusion/swish_multiply_swish": (
        {"rows": 3, "channels": 5},
        {"rows": 33, "channels": 96},
    ),
    "09_fused_linear/linear_groupnorm": (
        {"M": 5, "N": 12, "K": 7, "groups": 3},
        {"M": 33, "N": 192, "K": 64, "groups": 3},
    ),
    "12_ship_it/groupnorm_dx": (
        {"rows": 3, "channels": 12, "groups": 3},
        {"rows": 33, "channels": 192, "groups": 3},
    ),
}


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """What is cut off after a while is not here, however busy the machine is."""
    monkeypatch.setattr(hypotheses, "SECONDS", 60.0)
    monkeypatch.setattr(explain, "SECONDS", 60.0)


def situation(id: str, sizes: dict[str, int]):
    exercise = catalog.load(id)
    case = cases.sample(exercise, sizes, cases.usual(exercise), Generator().manual_seed(3))
    name = exercise.outputs[0]
    dtypes = dict.fromkeys(exercise.shapes, torch.float32)
    return exercise, case, name, oracle.expect(exercise, case, dtypes)[name]


def outcomes(exercise, case, name, expected) -> dict[str, list[torch.Tensor]]:
    """What each kind of mistake gives, where that is wrong and not the same all over: in each place
    where it can be made, such as each swish of two."""
    values = {}
    for words, value in candidates(exercise, case, name, expected.value):
        if value is None or value.shape != expected.value.shape or not value.isfinite().all():
            continue
        got = value.to(expected.value.dtype)
        got = got.float() if got.is_floating_point() else got
        if wrong(got, expected).any() and got.any():
            values.setdefault(kind(words), []).append(got)
    return values


def in_the_first_block_only(mistaken: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """What looks like a mistake wherever an index is below 32, and is another one."""
    inside = torch.ones(right.shape, dtype=torch.bool)
    for axis, length in enumerate(right.shape):
        shape = [-1 if i == axis else 1 for i in range(right.ndim)]
        inside &= (torch.arange(length) < 32).reshape(shape)
    return torch.where(inside, mistaken, right)


@pytest.mark.parametrize("id", EXERCISES)
def test_no_kind_of_hint_is_given_for_another_mistake_that_looks_alike_where_sizes_are_small(id):
    small, large = (situation(id, sizes) for sizes in EXERCISES[id])
    in_places = outcomes(*large)
    at_small, at_large = (
        {kind: values[0] for kind, values in all_places.items()}
        for all_places in (outcomes(*small), in_places)
    )
    exercise, case, name, expected = small
    kinds = sorted(at_small.keys() & at_large.keys())
    drawn = random.sample(kinds, min(KINDS, len(kinds)))
    assert len(kinds) > 10 and drawn
    for mistake in drawn:
        got = at_small[mistake]
        first = Wrong(case, got, expected, wrong(got, expected))
        right = large[3].value.to(at_large[mistake].dtype)
        others = [k for k in kinds if not torch.equal(at_large[k], at_large[mistake])]
        alike = {
            "itself": at_large[mistake],
            "in the first block only": in_the_first_block_only(at_large[mistake], right),
            "another one": at_large[random.choice(others)],
            "a little of it": at_large[mistake] + (at_large[mistake] - right) // 2 + 1,
        }
        for what, larger in alike.items():
            second = Wrong(large[1], larger, large[3], wrong(larger, large[3]))
            said = explain.confirmed(
                explain.causes(exercise, name, first),
                lambda second=second: explain.causes(exercise, name, second),
            )
            if what == "itself":
                assert said, f"{mistake}: not told"
            if kind(said) in in_places:  # it must be so there, in one of them
                so = [near(gives, larger, large[3].bound) for gives in in_places[kind(said)]]
                assert any(so), f"{mistake}, {what}: {said}"


def near(gives: torch.Tensor, larger: torch.Tensor, bound: torch.Tensor) -> bool:
    allowed = torch.maximum(4 * bound, 1e-4 * gives.abs())
    return bool(((gives - larger).abs() <= allowed).all())


LINEAR, NORM = "01_naive_gemm/linear", "06_groupnorm/groupnorm_warp"


def first(at: torch.Tensor, count: int = 32) -> torch.Tensor:
    return torch.arange(len(at)) < count


def biased(x, W, b, rows=None, columns=None, **_):
    """The bias is missing where these say so."""
    missing = torch.ones(len(x), len(W), dtype=torch.bool)
    missing &= torch.ones(len(x), 1, dtype=torch.bool) if rows is None else rows(x)[:, None]
    missing &= torch.ones(len(W), dtype=torch.bool) if columns is None else columns(W)
    return x @ W.T + torch.where(missing, 0, b)


def summed(count, x, W, b, **_):
    """Of the products along K those count that `count` says, by their places."""
    at = torch.arange(x.shape[1])
    return (x * count(at, len(at))) @ W.T + b


def normed(x, weight, bias, groups, eps, at=lambda c, size: c, **_):
    index = at(torch.arange(x.shape[1]), x.shape[1] // groups)
    return torch.group_norm(x, groups, weight[index], bias[index], eps)


def by_columns(matrix):
    return matrix.T.reshape(matrix.shape)


def partly(function, **how):
    return lambda **values: function(**values, **how)


GEMM_SIZES, GROUPS = {"M": 5, "N": 3, "K": 33}, {"rows": 3, "channels": 12, "groups": 3}
ALIKE = {  # a mistake, its words, and two others that give the same at these sizes
    "left out": (
        LINEAR, GEMM_SIZES, "b is left out (0 in its place)",
        biased, partly(biased, columns=first), partly(biased, rows=first),
    ),
    "the last one": (
        LINEAR, GEMM_SIZES, "the last of K = 33 does not count",
        lambda **v: summed(lambda at, n: at < n - 1, **v),
        lambda **v: summed(lambda at, n: at < 32, **v),
        lambda **v: summed(lambda at, n: at % 33 < 32, **v),
    ),
    "the first half of a tile again": (
        LINEAR, {"M": 5, "N": 3, "K": 20}, "those from 16 on of K = 20 count twice",
        lambda **v: summed(lambda at, n: 1 + (at >= 16), **v),
        lambda **v: summed(lambda at, n: 1 + at // 16, **v),
        lambda **v: summed(lambda at, n: 1 + at // 16 % 2, **v),
    ),
    "by the group": (
        NORM, GROUPS, "weight and bias are looked up by the number of the group",
        partly(normed, at=lambda c, size: c // size),
        partly(normed, at=lambda c, size: c // 4),
        partly(normed, at=lambda c, size: torch.where(c < 12, c // 4, c)),
    ),
    "by the place": (
        NORM, GROUPS, "weight and bias are looked up by the place within the group",
        partly(normed, at=lambda c, size: c % size),
        partly(normed, at=lambda c, size: c % 4),
        partly(normed, at=lambda c, size: c & 3 | c & ~63),
    ),
    "the transpose": (
        "01_naive_gemm/gemm_naive", {"M": 5, "N": 3, "K": 4}, "this is the transpose",
        lambda A, B, **_: by_columns(A @ B),
        lambda A, B, **_: in_the_first_block_only(by_columns(A @ B), A @ B),
        lambda A, B, **_: by_columns(A @ B) if len(A) < 32 else 2 * A @ B,
    ),
    "the input as it was": (
        "07_pointwise_fusion/leaky_relu_double", {"rows": 3, "channels": 5},
        "these are the values of y, as they were",
        lambda y, **_: y,
        lambda y, **_: torch.where(first(y), y.T, 3 * y.T).T,
        lambda y, **_: torch.where(first(y[0]), y, 0.5 * y),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("id", "sizes", "words", "mistake", "other", "another"), ALIKE.values())
def test_of_mistakes_that_look_alike_the_one_is_named_that_it_is(
    monkeypatch, id, sizes, words, mistake, other, another
):
    exercise, case, name, expected = situation(id, sizes)
    said = {}
    for what in (mistake, other, another):
        kernel = the_same_kernel(monkeypatch, exercise, what)
        got = what(**case.values).float()
        bad = wrong(got, expected)
        alike = list(explain.causes(exercise, name, Wrong(case, got, expected, bad)))
        assert any(words in one for one in alike), "they look alike"
        said[what] = explain.cause(kernel, case, name, got, expected, bad)
    assert words in said[mistake]
    assert words not in said[other] and words not in said[another]


def report(id: str, *changes: tuple[str, str], seed: int = 1) -> str:
    exercise = catalog.load(id)
    text = catalog.solution_text(exercise)
    for right, mistaken in changes:
        assert right in text
        text = text.replace(right, mistaken)
    with pytest.raises(CheckFailed) as failure:
        check(compile_wrong(exercise, text, "alike"), seed=seed)
    return str(failure.value)


MEAN = "sum_along_row<LANES>(sum) / SIZE"
SECOND = "b[1] = pair(W, N, K, col0 + row, k + two + 8)"
KERNELS = {  # what stands there, what in its place, and what is said; "": of no cause
    "09_fused_linear/linear_groupnorm": (  # at the first size that fails, four lanes own a row
        ("step < LANES; step *= 2", "step < LANES / 2; step *= 2", "only 1/2 of a group gets into"),
        (MEAN, "sum / EACH", "each 4 neighbours have a mean of their own"),
        (MEAN, "sum_along_row<LANES>(sum)", "the sum is not divided by the number of values"),
    ),
    "10_tensor_cores/linear_mma": (
        (SECOND, "b[1] = pair(W, N, K, col0 + two, k + row + 8)", ""),
        (SECOND, "b[1] = pair(W, N, K, col0 + row, two + 8)", ""),
        (SECOND, "b[1] = b[0]", ""),
    ),
    "10_tensor_cores/split_rows": (
        ("row[i] * up", "row[i]", "without the division, in x /"),
        ("(v - __half2float(near))", "(v)", "these are the values that belong in high"),
        ("= ldexpf(1.0f, exponent)", "= up", "what comes out is 1 over what was expected"),
    ),
    "12_ship_it/groupnorm_dx": (
        ("u - mean - n * along", "u - mean", "nowhere, in mean((grad_out * weight) *"),
        ("u - mean - n * along", "u - n * along", "nowhere, in mean(grad_out * weight)"),
        (
            "total(u * n)) / SIZE",
            "total(u * n))",
            "is not divided by the number of values, in mean",
        ),
    ),
    "12_ship_it/gn_swish_multiply_swish_backward": (
        ("dscale += g * s;", "", "what comes out is 0"),
        ("g *= swish_derivative(s * scale);", "", "the derivative of silu(silu(...) * scale)"),
        ("return g * scale *", "return g *", "on the way back the left of silu(group_norm("),
    ),
}


@pytest.mark.parametrize("id", KERNELS)
def test_of_kernels_that_fail_alike_each_is_told_its_own_mistake_or_none(id):
    every = [words for _, _, words in KERNELS[id] if words]
    for right, mistaken, words in KERNELS[id]:
        said = report(id, (right, mistaken))
        assert [other for other in every if other in said] == ([words] if words else []), said
        assert words or "this is what comes out" not in said


def test_what_is_all_zeros_is_said_to_be_so_and_belongs_to_nobody():
    said = report("12_ship_it/gn_swish_multiply_swish_backward", ("dscale += g * s;", ""))
    assert "what comes out is 0" in said and "belongs to" not in said


def test_nothing_is_said_of_a_kernel_that_is_right_wherever_else_it_is_tried(monkeypatch):
    exercise, case, name, expected = situation(LINEAR, GEMM_SIZES)
    kernel = the_same_kernel(monkeypatch, exercise, exercise.reference)
    got = biased(**case.values).float()
    assert explain.cause(kernel, case, name, got, expected, wrong(got, expected)) == ""


def test_rows_that_follow_another_are_named_unless_the_reference_has_it_so(monkeypatch):
    exercise, case, name, expected = situation(LINEAR, GEMM_SIZES)

    def rolled(x, W, b, **_):
        return exercise.reference(x, W, b) + 0.01 * x.sum(1).square().roll(2)[:, None]

    got = rolled(**case.values).float()
    for compute, says in ((rolled, f"row 2 of {name} changes with row 0 of x"), (biased, "")):
        kernel = the_same_kernel(monkeypatch, exercise, compute)
        said = mixed(Reruns(kernel, 60.0), case, name)
        assert said.startswith(says) and bool(said) == bool(says)
    assert wrong(got, expected).any()
    square, case, name, _ = situation(LINEAR, {**GEMM_SIZES, "M": 1})
    kernel = the_same_kernel(monkeypatch, square, rolled)
    assert mixed(Reruns(kernel, 60.0), case, name) == ""  # there is no other


def test_a_minimum_of_all_rows_may_follow_each_of_them(monkeypatch):
    sizes = {"M": 4, "N": 9, "K": 5, "groups": 3}
    exercise, case, name, _ = situation("09_fused_linear/linear_gn_min_bias", sizes)

    def the_other_end(x, W, b, weight, bias, shift, groups):
        others = {"weight": -weight, "bias": -bias, "shift": -shift}
        out = -exercise.reference(x, W, b, **others, groups=groups)
        return out.reshape(len(W), len(x))

    kernel = the_same_kernel(monkeypatch, exercise, the_other_end)
    assert mixed(Reruns(kernel, 60.0), case, name) == ""


def test_a_larger_call_that_gives_only_nan_says_less_than_another(monkeypatch):
    exercise, case, name, _ = situation(LINEAR, GEMM_SIZES)

    def only_nan_at(M):
        def compute(x, W, b, **_):
            out = exercise.reference(x, W, b)
            return out * float("nan") if len(x) in M else out + 1

        return compute

    first, second = (sizes["M"] for sizes in list(reruns.larger_sizes(exercise, case.sizes))[:2])
    kernel = the_same_kernel(monkeypatch, exercise, only_nan_at([first]))
    assert Reruns(kernel, 60.0).larger(case, name).case.sizes["M"] == second
    kernel = the_same_kernel(monkeypatch, exercise, only_nan_at(range(1 << 20)))
    assert Reruns(kernel, 60.0).larger(case, name).case.sizes["M"] == first  # there is no other


def test_larger_sizes_are_whole_tiles_first_then_ragged_ones():
    exercise = catalog.load(NORM)
    sizes, ragged = list(reruns.larger_sizes(exercise, GROUPS))[:2]
    assert sizes["channels"] % sizes["groups"] == 0 and sizes["groups"] == 3
    assert ragged["rows"] == 9 and ragged["channels"] == 27
    linear = catalog.load(LINEAR)
    assert next(reruns.larger_sizes(linear, GEMM_SIZES)) == {"M": 96, "N": 96, "K": 96}
    large = dict.fromkeys(GEMM_SIZES, 300)  # which on the emulator takes its time, as it is
    assert next(reruns.larger_sizes(linear, large)) == dict.fromkeys(GEMM_SIZES, 301)
