"""A check refuses every kernel that is wrong, each for its own reason, and none that is right."""

import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from support import toys
from support.fakes import FakeKernel, beyond
from support.toys import gemm

from utils.course import catalog
from utils.course.cases import Case
from utils.course.exercise import reads
from utils.cuda.isolation import Covered
from utils.emulator.traffic import LaunchTraffic
from utils.ground.errors import (
    CheckFailed,
    DeclarationError,
    KernelCrash,
    KernelTimeout,
    LaunchError,
    ToolError,
    WorkbookError,
)
from utils.judge import explain, mismatch, oracle
from utils.judge.check import check
from utils.judge.diagnosed_calls import DiagnosedCalls
from utils.watch import diagnosis


@pytest.fixture(autouse=True)
def undiagnosed(monkeypatch):
    """Fakes have no CUDA text to watch: their diagnosis comes out clean, their results right."""

    def diagnose_call(kernel, arguments, **options):
        reference, outputs = kernel.exercise.reference, kernel.exercise.outputs
        result = reference(**reads(reference, arguments))
        right = dict(
            zip(outputs, (result,) if isinstance(result, torch.Tensor) else result, strict=True)
        )
        after = {name: value.to(arguments[name].dtype) for name, value in right.items()}
        launch = LaunchTraffic("fake", (1, 1, 1), (1, 1, 1), {}, ())
        return diagnosis.Diagnosis((), (launch,), None, {**arguments, **after})

    monkeypatch.setattr(diagnosis, "diagnose_call", diagnose_call)
    monkeypatch.setattr(explain, "THOROUGH", False)


def rejected(function, exercise=toys.GEMM, reason="wrong values", seeds=range(3), **fields) -> str:
    """The message of the last of a few seeds; each must be refused for the same reason."""
    for seed in seeds:
        kernel = FakeKernel(function, exercise, **fields)
        with pytest.raises(CheckFailed) as caught:
            check(kernel, seed=seed)
        assert caught.value.reason == reason, str(caught.value)
        assert not kernel.trusted
    return str(caught.value)


def accepted(function, exercise=toys.GEMM, seeds=range(8), **fields) -> None:
    for seed in seeds:
        kernel = FakeKernel(function, exercise, **fields)
        check(kernel, seed=seed)
        assert kernel.trusted


# --- right kernels


def in_order(x):
    """The sum over the last dimension, one term after the other; torch would add in double."""
    with np.errstate(invalid="ignore"):  # inf - inf
        return torch.from_numpy(x.numpy().cumsum(-1, dtype="float32"))[..., -1]


def gemm_serial(A, B, C, M, N, K):
    C.copy_(in_order(A[:, None] * B.T))


def gemm_backwards(A, B, C, M, N, K):
    gemm_serial(A.flip(1), B.flip(0), C, M, N, K)


def gemm_fma(A, B, C, M, N, K):
    C.zero_()
    for k in range(K):
        C.copy_(C.double() + A[:, k : k + 1].double() * B[k : k + 1].double())


def gemm_kahan(A, B, C, M, N, K):
    C.zero_()
    lost = torch.zeros_like(C)
    for k in range(K):
        term = A[:, k : k + 1] * B[k : k + 1] - lost
        total = C + term
        lost = torch.where(total.isfinite(), (total - C) - term, 0)
        C.copy_(total)


def gemm_tiles(A, B, C, M, N, K):
    C.zero_()
    for k in range(0, K, 16):
        tile = torch.empty_like(C)
        gemm_serial(A[:, k : k + 16], B[k : k + 16], tile, M, N, min(16, K - k))
        C.add_(tile)


def pairwise(terms):
    while len(terms) > 1:
        if len(terms) % 2:
            terms = torch.cat([terms, torch.zeros_like(terms[:1])])
        terms = terms[0::2] + terms[1::2]
    return terms[0]


def gemm_pairwise(A, B, C, M, N, K):
    C.copy_(pairwise(A.T[:, :, None] * B[:, None, :]))


GEMMS = (gemm, gemm_serial, gemm_backwards, gemm_fma, gemm_kahan, gemm_tiles, gemm_pairwise)


@pytest.mark.parametrize("function", GEMMS)
def test_every_order_of_summation_passes(function):
    accepted(function, seeds=range(5))


@pytest.mark.parametrize("function", [gemm, gemm_serial, gemm_backwards, gemm_tiles])
def test_a_long_dot_product_passes_in_any_order_and_tf32_does_not(function):
    long = toys.tried_at(toys.GEMM, {"M": 3, "N": 5, "K": 8192})
    accepted(function, long, seeds=range(2))
    rejected(lambda A, B, C, M, N, K: function(tf32(A), tf32(B), C, M, N, K), long, seeds=range(2))


def sum_serial(x, out, n):
    out.copy_(in_order(x))


def sum_shuffled(x, out, n):
    sum_serial(x[torch.randperm(n)], out, n)


def sum_pairwise(x, out, n):
    out.copy_(pairwise(x))


@pytest.mark.parametrize("function", [sum_serial, sum_shuffled, sum_pairwise])
def test_every_order_of_a_single_sum_passes(function):
    accepted(function, toys.SUM, seeds=range(15))


def test_a_million_terms_pass_one_after_the_other():
    accepted(sum_serial, toys.tried_at(toys.SUM, {"n": 1_000_000}), seeds=[0])


def groupnorm(x, weight, bias, out, rows, channels, groups, eps):
    grouped = x.view(rows, groups, -1)
    width = channels // groups
    mean = in_order(grouped)[..., None] / width
    var = in_order((grouped - mean) ** 2)[..., None] / width
    out.copy_(((grouped - mean) / (var + eps).sqrt()).view(rows, channels) * weight + bias)


def groupnorm_welford(x, weight, bias, out, rows, channels, groups, eps):
    grouped = x.view(rows, groups, -1)
    mean, squares = torch.zeros(rows, groups), torch.zeros(rows, groups)
    for i in range(channels // groups):
        delta = grouped[..., i] - mean
        mean = mean + delta / (i + 1)
        squares = squares + delta * (grouped[..., i] - mean)
    rstd = (squares / (channels // groups) + eps).rsqrt()
    scaled = (grouped - mean[..., None]) * rstd[..., None]
    out.copy_(scaled.view(rows, channels) * weight + bias)


@pytest.mark.parametrize("function", [groupnorm, groupnorm_welford])
def test_correct_variances_pass(function):
    accepted(function, toys.GROUPNORM)


def fused(x, W, b, weight, bias, out, M, N, K, groups, eps):
    product = torch.empty(M, N)
    gemm_serial(x, W.T, product, M, N, K)
    groupnorm(product + b, weight, bias, out, M, N, groups, eps)
    out.clamp_(-1.5, 1.5)


def test_a_whole_fused_layer_passes():
    accepted(fused, toys.FUSED)


@pytest.mark.parametrize(
    "softplus", [lambda x: (1 + x.exp()).log(), lambda x: x.exp().log1p()], ids=["log", "log1p"]
)
def test_both_ways_to_write_softplus_pass(softplus):
    accepted(lambda x, out, n: out.copy_(x * softplus(x.clamp(max=80)).tanh()), shallow(toys.MISH))


def shallow(exercise):
    """Without the shifted values, on which exp overflows unless it is guarded."""
    return replace(
        exercise,
        inputs=lambda sizes, generator: {"x": 5 * torch.randn(sizes["n"], generator=generator)},
    )


def test_fast_exponentials_of_a_few_ulps_pass():
    accepted(lambda x, out, n: out.copy_(x / (1 + (-x).exp() * (1 + 2**-22))), toys.SWISH)


def argmin(x, low, where, rows, n):
    values, places = x.min(dim=1)
    low.copy_(values)
    where.copy_(places)


def test_integer_outputs_are_compared_exactly():
    whole = {"where": torch.int32}
    accepted(argmin, toys.ARGMIN, types=whole)

    def off_by_one(x, low, where, rows, n):
        argmin(x, low, where, rows, n)
        where[-1] += 1

    assert "expected" in rejected(off_by_one, toys.ARGMIN, types=whole)


def amin(x, low, rows, n):
    low.copy_(x.amin(dim=1))


def nan_and_infinite(sizes, generator):
    """A NaN in every other row, nothing but infinities in the row after the first."""
    x = torch.randn((sizes["rows"], sizes["n"]), generator=generator)
    x[::2, -1] = float("nan")
    x[1:2] = float("inf")
    return {"x": x}


LOWEST = replace(
    toys.ARGMIN,
    name="lowest",
    shapes={"x": "rows n", "low": "rows"},
    outputs=("low",),
    reference=lambda x: x.amin(dim=1),
    inputs=nan_and_infinite,
    exact=True,
)


def number_for_nan(x, low, rows, n):
    low.copy_(x.nan_to_num(1.0, posinf=float("inf")).amin(dim=1))


def test_where_nothing_is_rounded_every_value_must_be_that_of_the_reference():
    accepted(amin, LOWEST)
    assert "expected nan" in rejected(number_for_nan, LOWEST)

    def nearly(x, low, rows, n):
        low.copy_(x.amin(dim=1) * (1 + 1e-6))

    assert "allowed" not in rejected(nearly, LOWEST)


@pytest.mark.parametrize("exact", [True, False])
def test_a_lost_nan_is_named(exact):
    lowest = toys.tried_at(LOWEST, *LOWEST.at.check[1:])
    message = rejected(number_for_nan, replace(lowest, exact=exact))
    assert "expected nan\n" in message and "infinite)" not in message
    assert f"hint: {mismatch.LOST}" in message and "nearly right" not in message


def test_the_exercise_s_own_values_are_called_so_from_the_first_run_on(monkeypatch):
    clean = diagnosis.diagnose_call

    def diagnose_call(kernel, arguments, **options):
        seen = clean(kernel, arguments, **options)
        return replace(seen, after={**seen.after, "low": torch.full_like(seen.after["low"], 7.0)})

    monkeypatch.setattr(diagnosis, "diagnose_call", diagnose_call)
    assert "the exercise's own values" in rejected(amin, LOWEST)


def test_an_output_may_be_an_input_too():
    accepted(lambda a, x, y, n: y.add_(a * x), toys.AXPY)
    rejected(lambda a, x, y, n: y.copy_(a * x), toys.AXPY)
    rejected(lambda a, x, y, n: None, toys.AXPY, "not written")


def test_a_summary_never_changes(capsys):
    check(FakeKernel(gemm, toys.GEMM))
    first = capsys.readouterr().out
    check(FakeKernel(gemm, toys.GEMM))
    assert capsys.readouterr().out == first
    assert first.startswith("✓ 99.1 gemm passed (34 cases, no hazards)\n")


# --- wrong kernels


def tf32(x):
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


LOW = {
    "tf32": tf32,
    "fp16": lambda x: x.half().float(),
    "bf16": lambda x: x.bfloat16().float(),
}


@pytest.mark.parametrize("rounding", LOW.values(), ids=LOW)
def test_products_of_low_precision_are_refused(rounding):
    rejected(lambda A, B, C, M, N, K: gemm(rounding(A), rounding(B), C, M, N, K), seeds=range(10))


def test_sums_of_low_precision_are_refused():
    def kernel(A, B, C, M, N, K):
        C.copy_(pairwise((A.T[:, :, None] * B[:, None, :]).bfloat16()))

    rejected(kernel)
    rejected(lambda x, out, n: out.copy_(x.half().sum()), toys.SUM)


def test_constants_are_refused():
    rejected(lambda A, B, C, M, N, K: C.fill_(1.0))
    rejected(lambda x, out, n: out.fill_(0.5), toys.SUM)


def test_zeros_are_refused_with_a_hint():
    assert "what comes out is 0: is what is computed stored" in rejected(
        lambda A, B, C, M, N, K: C.zero_(), seeds=[0], exercise=WIDE
    )


WIDE = toys.tried_at(toys.GEMM, {"M": 9, "N": 6, "K": 5})


def test_a_copy_of_the_input_is_refused():
    rejected(lambda A, B, C, M, N, K: C.view(-1).copy_(A.reshape(-1)[:1].expand(M * N)))


@pytest.mark.parametrize("factor", [2.0, 0.5, -1.0, 1.01])
def test_a_constant_factor_is_named(factor):
    assert "times what was expected" in rejected(
        lambda A, B, C, M, N, K: C.copy_(factor * (A @ B)), WIDE
    )


def test_a_constant_offset_is_named():
    assert "off by the same" in rejected(lambda A, B, C, M, N, K: C.copy_(A @ B + 3), WIDE)


@pytest.mark.parametrize("missing", [0, 5, -1])
def test_a_dropped_term_is_refused(missing):
    def kernel(A, B, C, M, N, K):
        A = A.clone()
        A[:, min(missing, K - 1)] = 0
        gemm(A, B, C, M, N, K)

    rejected(kernel, seeds=range(10))
    short = lambda x, out, n: out.copy_(x.sum() - x[min(missing, n - 1)])  # noqa: E731
    rejected(short, toys.SUM, seeds=range(10))


def test_a_wrong_or_missing_eps_is_refused():
    for eps in (0.0, 1e-8, 1e-2):

        def kernel(x, weight, bias, out, rows, channels, groups, eps, wrong=eps):
            groupnorm(x, weight, bias, out, rows, channels, groups, wrong)

        with pytest.raises(CheckFailed) as caught:
            check(FakeKernel(kernel, toys.GROUPNORM))
        assert caught.value.reason in ("wrong values", "nan")


def test_an_eps_that_shows_in_small_values_alone_is_refused():
    def kernel(x, weight, bias, out, rows, channels, groups, eps):
        groupnorm(x, weight, bias, out, rows, channels, groups, 0.9 * eps)

    exercise = replace(
        toys.tried_at(toys.GROUPNORM, toys.GROUPNORM.at.check[-1]), scalars={"eps": (1e-5, 1e-5)}
    )
    assert "small values" in rejected(kernel, exercise)


def test_eps_outside_of_the_root_is_refused():
    def kernel(x, weight, bias, out, rows, channels, groups, eps):
        grouped = x.view(rows, groups, -1)
        var, mean = torch.var_mean(grouped, 2, correction=0, keepdim=True)
        out.copy_(((grouped - mean) / (var.sqrt() + eps)).view(rows, channels) * weight + bias)

    rejected(kernel, toys.GROUPNORM)


def test_an_unstable_variance_is_refused():
    def kernel(x, weight, bias, out, rows, channels, groups, eps):
        grouped = x.view(rows, groups, -1)
        mean = grouped.mean(2, keepdim=True)
        var = ((grouped**2).mean(2, keepdim=True) - mean**2).clamp(min=0)
        out.copy_(((grouped - mean) / (var + eps).sqrt()).view(rows, channels) * weight + bias)

    reasons = [rejected(kernel, toys.GROUPNORM, seeds=[seed]) for seed in range(10)]
    assert any(mismatch.NEAR_EPS in message for message in reasons)


def test_the_sample_variance_is_refused():
    def kernel(x, weight, bias, out, rows, channels, groups, eps):
        grouped = x.view(rows, groups, -1)
        var, mean = torch.var_mean(grouped, 2, keepdim=True)
        out.copy_(((grouped - mean) / (var + eps).sqrt()).view(rows, channels) * weight + bias)

    rejected(kernel, toys.GROUPNORM)


def test_the_weight_of_another_channel_is_refused():
    def kernel(x, weight, bias, out, rows, channels, groups, eps):
        groupnorm(x, weight.roll(1), bias, out, rows, channels, groups, eps)

    rejected(kernel, toys.GROUPNORM)


def test_nan_is_refused():
    rejected(lambda A, B, C, M, N, K: C.fill_(float("nan")), reason="nan")

    def kernel(A, B, C, M, N, K):
        gemm(A, B, C, M, N, K)
        C[-1, -1] = float("nan")

    message = rejected(kernel, reason="nan")
    assert "1 NaN" in message


def test_who_reads_another_row_also_reads_the_nan_that_it_holds():
    def kernel(A, B, C, M, N, K):
        gemm(A.roll(int(A.isnan().any()), 0), B, C, M, N, K)

    assert re.search("wrong \\(\\d+ NaN", rejected(kernel, reason="wrong values"))


def test_infinity_is_refused():
    rejected(lambda A, B, C, M, N, K: C.fill_(float("inf")))


def multiplied_out(of=lambda w: w, else_=None):
    """A GroupNorm that is right, if of infinities other formulas make other values."""

    def kernel(x, weight, bias, out, rows, channels, groups, eps):
        grouped = x.view(rows, groups, -1)
        mean, rstd = grouped.mean(2, True), (grouped.var(2, False, True) + eps).rsqrt()
        weight, bias = (of(w).view(1, groups, -1) for w in (weight, bias))
        scale = weight * rstd  # where it is infinite, so is the shift, and their sum is NaN
        out.copy_((grouped * scale + (bias - mean * scale)).view(rows, channels))
        if else_ is not None and (weight.isinf() | bias.isinf()).any():
            out.fill_(else_)

    return kernel


def test_an_infinite_parameter_leaves_open_which_formula_but_no_finite_value():
    exercise = toys.GROUPNORM
    assert not exercise.may_be_infinite
    accepted(multiplied_out(), exercise)
    for wrong in (
        multiplied_out(lambda w: w.where(~w.isinf(), 0)),
        multiplied_out(lambda w: w.clamp(-1e30, 1e30)),
        multiplied_out(else_=float("nan")),  # of other channels, too
    ):
        with pytest.raises(CheckFailed, match="infinite elsewhere values"):
            check(FakeKernel(wrong, exercise), seed=0)


def test_an_overflow_that_the_reference_does_not_have_is_refused():
    overflow = lambda x, out, n: out.copy_(x * (1 + x.exp()).log().tanh())  # noqa: E731
    accepted(overflow, shallow(toys.MISH))
    infinite = lambda x, out, n: out.copy_(x * (x.exp() / (1 + x.exp())))  # noqa: E731
    rejected(infinite, toys.SWISH, "nan")


def test_a_kernel_that_writes_nothing_is_refused():
    message = rejected(lambda A, B, C, M, N, K: None, reason="not written")
    assert "none of the values of C" in message


@pytest.mark.parametrize(
    "part, where",
    [
        ("half", "on are missing"),
        ("last column", "only the last column, "),
        ("last row", "only the last row, "),
    ],
)
def test_a_part_that_is_not_written_is_named(part, where):
    def kernel(A, B, C, M, N, K):
        rows = max(M // 2, 1) if part == "half" else M - 1 if part == "last row" else M
        cols = N - 1 if part == "last column" else N
        C[:rows, :cols] = (A @ B)[:rows, :cols]

    big = toys.tried_at(toys.GEMM, *toys.GEMM.at.check[1:])
    assert where in rejected(kernel, big, "not written")


def test_adding_to_what_was_there_is_told_from_not_writing():
    assert "adds to what C held" in rejected(lambda A, B, C, M, N, K: C.add_(A @ B), reason="nan")


def test_only_square_is_refused():
    def kernel(A, B, C, M, N, K):
        if M == N == K:
            gemm(A, B, C, M, N, K)
        else:
            C.view(-1).copy_((A @ B).T.reshape(-1))

    rejected(kernel)


def test_only_multiples_of_16_are_refused():
    def kernel(A, B, C, M, N, K):
        whole = K - K % 16
        gemm(A[:, :whole], B[:whole], C, M, N, whole)

    rejected(kernel)


def test_a_wrong_tail_is_named():
    def kernel(A, B, C, M, N, K):
        gemm(A, B, C, M, N, K)
        C[:, N - N % 4 :] += 1

    message = rejected(kernel, toys.tried_at(toys.GEMM, *toys.GEMM.at.check[3:]))
    assert "all columns from 48 on are wrong, those before are right" in message


def test_all_but_the_first_column_is_another_pattern():
    def kernel(A, B, C, M, N, K):
        gemm(A, B, C, M, N, K)
        C[:, 1:] += 1

    message = rejected(kernel, toys.tried_at(toys.GEMM, {"M": 5, "N": 7, "K": 3}))
    assert "only column 0 is right" in message


def test_a_lone_wrong_value_in_the_last_row_is_no_tail():
    def kernel(A, B, C, M, N, K):
        gemm(A, B, C, M, N, K)
        C[-1, -1] += 100

    message = rejected(kernel, toys.tried_at(toys.GEMM, {"M": 7, "N": 96, "K": 3}))
    assert "1 of 672 values of C is wrong" in message and "hint" not in message


def test_values_that_are_nearly_right_are_all_finite():
    want = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    expected = oracle.Expected.known(want, torch.full_like(want, 1e-6))
    near = torch.tensor([1.0, 2.001, 3.0, 4.0])
    for got, right in ((near, True), (near.clamp(max=3.0) / (near < 4), False)):
        hint = mismatch.hint(got, expected, mismatch.wrong(got, expected))
        assert (hint == mismatch.NEAR + mismatch.NEAR_ELSE) == right


def test_writes_outside_are_refused():
    for offset, side in ((-1, "before its beginning"), (0, "after its end")):

        def kernel(A, B, C, M, N, K, offset=offset):
            gemm(A, B, C, M, N, K)
            beyond(C, offset if offset < 0 else C.numel()).fill_(0)

        assert f"wrote outside of C: 1 element {side}" in rejected(kernel, reason="out of bounds")


def test_an_input_that_was_changed_is_refused():
    def kernel(A, B, C, M, N, K):
        """So that a reference on the same buffers would agree."""
        A.zero_()
        C.zero_()

    assert "A is an input" in rejected(kernel, reason="input modified")

    def sign(A, B, C, M, N, K):
        gemm(A, B, C, M, N, K)
        B[0, 0] = -0.0 if B[0, 0] == 0 else B[0, 0].nextafter(torch.tensor(9.0))

    assert "B[0, 0]" in rejected(sign, reason="input modified")


def watched_as(monkeypatch, **fields):
    """What every diagnosing run of a fake says from now on, beside its right values."""
    clean = diagnosis.diagnose_call

    def diagnose_call(kernel, arguments, **options):
        return replace(clean(kernel, arguments, **options), **fields)

    monkeypatch.setattr(diagnosis, "diagnose_call", diagnose_call)


ALL = Covered(64, 64, 0, by_kernels=False, by_launcher=False)  # of an input: read, not written


@pytest.mark.parametrize(
    ("fields", "reason", "words"),
    [
        ({"launches": ()}, "no kernel", "launched no kernel"),
        ({"detour": True}, "no kernel", "brings values to the host"),
        ({"scattered": 17}, "no kernel", "17 copies of a few values"),
        ({"covered": {"A": replace(ALL, read=60)}}, "no kernel", "60 of the 64 bytes of A were"),
        ({"covered": {"B": replace(ALL, read=0)}}, "no kernel", "none of the 64 bytes of B was"),
        ({"covered": {"C": replace(ALL, written=63)}}, "no kernel", "63 of the 64 bytes of C"),
        ({"covered": {"A": replace(ALL, by_kernels=True)}}, "input modified", "a kernel wrote"),
        ({"covered": {"A": replace(ALL, by_launcher=True)}}, "input modified", "the launcher"),
    ],
)
def test_right_values_that_are_not_the_kernels_own_work_are_refused(
    monkeypatch, fields, reason, words
):
    watched_as(monkeypatch, **fields)
    assert words in rejected(gemm, reason=reason, seeds=[0])


def test_a_tensor_need_be_read_as_far_as_the_exercise_says(monkeypatch):
    watched_as(monkeypatch, covered={"A": replace(ALL, read=33)})
    accepted(gemm, replace(toys.GEMM, must_read={"A": 0.5}), seeds=[0])
    rejected(gemm, replace(toys.GEMM, must_read={"A": 0.6}), reason="no kernel", seeds=[0])


def test_a_nan_that_nobody_wrote_is_not_the_nan_that_is_expected():
    def skips(x, low, rows, n):
        values = x.amin(dim=1)
        low[~values.isnan()] = values[~values.isnan()]

    rejected(skips, LOWEST, reason="not written")


def test_memory_that_every_call_leaves_behind_is_refused(monkeypatch):
    held = []

    def leaking(self, *args, **how):
        held.append(1)
        return replace(isolated(self, *args, **how), live=100 * len(held))

    isolated = FakeKernel.isolated
    monkeypatch.setattr(FakeKernel, "isolated", leaking)
    assert "each call leaves 100 bytes" in rejected(gemm, reason="leak", seeds=[0])


def test_memory_that_every_second_call_leaves_behind_is_refused(monkeypatch):
    isolated, calls = FakeKernel.isolated, []

    def leaking(self, *args, **how):
        calls.append(1)
        return replace(isolated(self, *args, **how), live=100 * (len(calls) // 2))

    monkeypatch.setattr(FakeKernel, "isolated", leaking)
    assert "each call leaves 100 bytes" in rejected(gemm, reason="leak", seeds=[0])


def test_two_buffers_that_take_turns_are_no_leak(monkeypatch):
    isolated, calls = FakeKernel.isolated, {}

    def keeping(self, args, **how):
        size = args["A"].numel(), args["B"].numel()
        calls[size] = calls.get(size, 0) + 1
        return replace(isolated(self, args, **how), live=sum(min(n, 2) for n in calls.values()))

    monkeypatch.setattr(FakeKernel, "isolated", keeping)
    accepted(gemm, seeds=[0])


def test_memory_that_is_kept_for_the_next_call_is_no_leak(monkeypatch):
    isolated, most = FakeKernel.isolated, []

    def keeping(self, args, **how):
        most.append(args["A"].numel())
        return replace(isolated(self, args, **how), live=max(most))

    monkeypatch.setattr(FakeKernel, "isolated", keeping)
    accepted(gemm, seeds=[0])


def test_a_kernel_is_tried_at_sizes_that_nobody_knows():
    met = set()

    def short(A, B, C, M, N, K):
        met.add((M, N, K))
        gemm(A, B, C, M, N, K)
        C[min(M, 100) :] = 0.0

    spans = {"M": (101, 200), "N": (2, 4), "K": (2, 4)}
    drawn = replace(toys.GEMM, at=replace(toys.GEMM.at, drawn=(spans,)))
    accepted(gemm, drawn, seeds=[0])
    rejected(short, drawn, seeds=range(4))
    assert len([size for size in met if size[0] > 100]) > 1


def test_more_rounds_meet_more_sizes(monkeypatch):
    met = []

    def total(x, out, n):
        met.append(n)
        out.copy_(x.sum())

    accepted(total, toys.SUM, seeds=[0])
    once = len(met)
    met.clear()
    monkeypatch.setenv("WORKBOOK_ROUNDS", "4")
    accepted(total, toys.SUM, seeds=[0])
    assert len(met) >= once + 3 * 3
    monkeypatch.setenv("WORKBOOK_ROUNDS", "none")
    with pytest.raises(ToolError, match="WORKBOOK_ROUNDS is 'none'; it can be 1 to 100"):
        accepted(total, toys.SUM, seeds=[0])


def test_gates_are_read_at_edges_in_every_second_check_and_where_it_grades(monkeypatch):
    kernel = FakeKernel(lambda **_: None, toys.GEMM)
    ways = Counter(DiagnosedCalls(kernel, seed)._edges() for seed in range(100))
    assert set(ways) == {(False,), (True,)} and min(ways.values()) > 30
    monkeypatch.setenv("WORKBOOK_ROUNDS", "2")
    assert DiagnosedCalls(kernel, 0)._edges() == (False, True)
    whole = replace(toys.GEMM, at=replace(toys.GEMM.at, edges=False))
    assert DiagnosedCalls(FakeKernel(lambda **_: None, whole), 0)._edges() == (False,)
    monkeypatch.delenv("WORKBOOK_ROUNDS")
    both = replace(toys.GEMM, at=replace(toys.GEMM.at, both=True))
    assert DiagnosedCalls(FakeKernel(lambda **_: None, both), 0)._edges() == (False, True)


def test_a_size_that_is_kept_in_16_bits_is_refused():
    def total(x, out, n):
        out.copy_(x.sum())

    def short(x, out, n):
        out.copy_(x[: n % 65_536].sum())

    accepted(total, toys.SUM, seeds=[0])
    rejected(short, toys.SUM, seeds=range(20))


def test_a_call_so_long_that_it_would_not_end_soon_is_not_made():
    met = []

    def total(x, out, n):
        met.append(n)
        out.copy_(x.sum())

    accepted(total, toys.SUM, seeds=[0], seconds=0.1)
    assert max(met) > 2**15
    met.clear()
    accepted(total, toys.SUM, seeds=[0], seconds=0.5)  # even 8 times as long is too long
    assert max(met) < 2**15


def test_gradients_that_a_notebook_has_switched_off_change_nothing():
    with torch.no_grad():
        accepted(sum_serial, toys.SUM, seeds=[0])
    with torch.inference_mode():
        accepted(sum_serial, toys.SUM, seeds=[0])


def test_a_result_of_the_call_before_is_refused():
    kept = {}

    def by_pointer(A, B, C, M, N, K):
        key = (A.data_ptr(), B.data_ptr(), M, N, K)
        kept.setdefault(key, A @ B)
        C.copy_(kept[key])

    rejected(by_pointer, reason="stale output", seeds=[0])

    sizes = {}

    def by_size(A, B, C, M, N, K):
        sizes.setdefault((M, N, K), A @ B)
        C.copy_(sizes[M, N, K])

    rejected(by_size, reason="stale output", seeds=[0])


def test_a_result_for_the_same_elements_in_another_order_is_refused():
    kept = {}

    def by_elements(A, B, C, M, N, K):
        key = (*(tuple(x.flatten().sort().values.tolist()) for x in (A, B)), M, N, K)
        kept.setdefault(key, A @ B)
        C.copy_(kept[key])

    rejected(by_elements, reason="stale output", seeds=range(3))


def test_a_small_call_behind_a_large_one_is_tried():
    """Often: how large a large one is, and the tiny one behind it, is drawn."""
    seen = 0
    for seed in range(10):
        last = [0]

        def after_a_large_one(A, B, C, M, N, K, last=last):
            gemm(A, B, C, M, N, K)
            if C.numel() < 2000 and last[0] > 5000:
                C.fill_(3e5)
            last[0] = C.numel()

        try:
            check(FakeKernel(after_a_large_one, toys.GEMM), seed=seed)
        except CheckFailed as failure:
            seen += failure.reason == "wrong values"
    assert seen >= 5


def test_a_limit_that_many_values_have_is_no_result_of_the_call_before():
    clamp = replace(toys.MISH, name="clamp", reference=lambda x: x.clamp(-0.1, 0.1))

    def drops_nan(x, out, n):
        out.copy_(x.nan_to_num(nan=-9.0).clamp(-0.1, 0.1))

    rejected(drops_nan, clamp, reason="wrong values", seeds=range(20))


def test_only_the_first_call_is_refused():
    for reason, later in (
        ("not written", lambda C: None),
        ("wrong values", lambda C: C.zero_()),
    ):
        calls = []

        def kernel(A, B, C, M, N, K, calls=calls, later=later):
            calls.append(1)
            gemm(A, B, C, M, N, K) if len(calls) == 1 else later(C)

        rejected(kernel, reason=reason, seeds=[0])


def test_an_answer_that_changes_is_refused():
    seen = {}

    def kernel(A, B, C, M, N, K):
        gemm(A, B, C, M, N, K)
        if seen.setdefault("last", None) is not None and torch.equal(seen["last"], A):
            C[0, 0] += 1
        seen["last"] = A.clone()

    assert "a race?" in rejected(kernel, seeds=[0])


def test_the_last_output_in_freed_memory_is_refused():
    """What PyTorch freed last may be the reference's result: there is none before the call."""

    def kernel(A, B, C, M, N, K):
        C.copy_(torch.empty_like(C))

    with pytest.raises(CheckFailed):
        check(FakeKernel(kernel, toys.GEMM))


def test_a_narrower_output_type_does_not_loosen_the_bound(monkeypatch):
    kernel = FakeKernel(gemm, toys.GEMM, types={"C": torch.float16})
    declared = FakeKernel(gemm, toys.GEMM).parameters
    monkeypatch.setattr("utils.judge.check._declared", lambda exercise: declared)
    with pytest.raises(DeclarationError, match="leave it so"):
        check(kernel)


# --- faults, set-up, log


@pytest.mark.parametrize(
    "error, reason",
    [
        (LaunchError("cudaErrorInvalidConfiguration", "2048 threads"), "launch error"),
        (KernelCrash("signal 11"), "crashed"),
        (KernelTimeout("stopped after 10 s"), "timeout"),
    ],
)
def test_faults_keep_their_message(error, reason):
    def kernel(A, B, C, M, N, K):
        raise error

    assert str(error) in rejected(kernel, reason=reason)


def test_the_starter_is_not_attempted_and_is_never_run():
    def kernel(A, B, C, M, N, K):
        raise AssertionError

    message = rejected(kernel, reason="not attempted", untouched=True)
    assert "about 7 lines" in message


def test_a_failure_can_be_repeated():
    kernel = FakeKernel(lambda A, B, C, M, N, K: C.zero_(), toys.GEMM)
    with pytest.raises(CheckFailed, match="seed=") as first:
        check(kernel)
    seed = int(str(first.value).rpartition("seed=")[2].rstrip(")"))
    with pytest.raises(CheckFailed) as second:
        check(kernel, seed=seed)
    assert str(second.value) == str(first.value)


def test_values_are_fresh_each_time():
    seen = []

    def kernel(A, B, C, M, N, K):
        seen.append(float(A.reshape(-1)[0]))
        gemm(A, B, C, M, N, K)

    check(FakeKernel(kernel, toys.GEMM))
    first = seen.copy()
    seen.clear()
    check(FakeKernel(kernel, toys.GEMM))
    assert first[0] != seen[0]


def test_a_kernel_of_no_exercise_cannot_be_checked():
    with pytest.raises(WorkbookError, match="%%cuda NN_topic/name"):
        check(FakeKernel(gemm, None))


def test_parameters_that_the_exercise_does_not_know_are_named():
    with pytest.raises(DeclarationError, match="'int P'"):
        check(FakeKernel(lambda A, B, C, M, N, K, P: None, toys.GEMM))
    with pytest.raises(DeclarationError, match="no parameter 'B'"):
        check(FakeKernel(lambda A, C, M, N, K: None, toys.GEMM))


def test_a_later_failure_takes_trust_away():
    kernel = FakeKernel(gemm, toys.GEMM)
    check(kernel)
    kernel.function = lambda A, B, C, M, N, K: None
    with pytest.raises(CheckFailed):
        check(kernel)
    assert not kernel.trusted


def test_verdicts_are_logged(tmp_path, monkeypatch):
    path = tmp_path / "log.jsonl"
    monkeypatch.setenv("WORKBOOK_LOG", str(path))
    check(FakeKernel(gemm, toys.GEMM))
    rejected(lambda A, B, C, M, N, K: None, reason="not written", seeds=[0])
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert [event["verdict"] for event in events] == ["passed", "not written"]
    assert events[0]["id"] == "99_toys/gemm" and events[0]["number"] == "99.1"
    assert events[0]["event"] == "check" and events[0]["seconds"] > 0


def test_values_that_underflow_loosen_no_bound():
    """x * sigmoid(x) at -100 is 0 or a denormal: the float path is far off there, relatively."""
    exercise = catalog.load("00_start_here/swish")
    x = torch.tensor([-100.0, -95.0, 87.0, 1.0])
    case = Case({"n": 4}, "its own", {"x": x}, {})
    expected = oracle.expect(exercise, case, {"x": torch.float32, "out": torch.float32})["out"]
    assert float((expected.bound / expected.value.abs())[2]) < 1e-5
