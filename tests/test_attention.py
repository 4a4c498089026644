"""Chapter 14: its reference in parts, and how exact attention by three products of halves is."""

import pytest
import torch

from utils.course import catalog
from utils.course.answers import compile_answer, compile_wrong
from utils.ground.errors import CheckFailed
from utils.judge.check import check

FLASH = catalog.load("14_attention/flash_attention")
HOPPER = catalog.load("14_attention/flash_attention_hopper")
BF16 = catalog.load("14_attention/flash_attention_bf16")


@pytest.fixture(scope="module")
def hopper():
    return compile_answer(HOPPER, catalog.solution_text(HOPPER), backend="emulator")


def drawn(heads: int, S: int, D: int) -> list[torch.Tensor]:
    return list(torch.randn(3, heads, S, D))


def run(kernel, q, k, v, causal=0) -> torch.Tensor:
    heads, S, D = q.shape
    sizes = {"heads": heads, "S": S, "D": D, "causal": causal}
    out = torch.full_like(q, float("nan"))
    return kernel.isolated({"q": q, "k": k, "v": v, "out": out, **sizes}).after["out"].double()


def pytorch(q, k, v) -> torch.Tensor:
    return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0].double()


@pytest.mark.parametrize("room", [1, 2000, 1 << 26])  # one head at a time, two, all
def test_the_reference_of_a_few_heads_at_a_time_is_that_of_all(monkeypatch, room):
    q, k, v = drawn(5, 30, 64)
    monkeypatch.setitem(FLASH.reference.__globals__, "ROOM", room)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(FLASH.reference(q, k, v, 64, 1), expected)


@pytest.mark.parametrize("D", [64, 128])
def test_attention_on_tensor_cores_is_as_exact_as_floats(hopper, D):
    q, k, v = drawn(1, 700, D)
    right = pytorch(q.double(), k.double(), v.double())
    ours, theirs = run(hopper, q, k, v) - right, pytorch(q, k, v) - right
    assert ours.norm() <= 2 * theirs.norm()


@pytest.mark.parametrize(
    ("tensor", "place", "lost"),
    [
        (0, (0, 7, 1), (slice(None), 7)),  # a query: its own row
        (2, (0, 9, 9), (slice(None), slice(None), 9)),  # a value: the column
    ],
)
def test_a_range_too_wide_for_halves_gives_nan_and_nothing_wrong(hopper, tensor, place, lost):
    qkv = drawn(1, 140, 64)
    qkv[tensor][place] = 2.0**30
    out = run(hopper, *qkv)
    right = pytorch(*(one.double() for one in qkv))
    assert out[lost].isnan().all()
    good = torch.ones_like(out, dtype=torch.bool)
    good[lost] = False
    torch.testing.assert_close(out[good], right[good], atol=1e-5, rtol=1e-4)


def test_a_column_too_wide_gives_nan_to_queries_that_see_none_of_what_is_small(hopper):
    """The first queries see small values alone, of which only later tiles make too many."""
    q, k, v = drawn(1, 256, 64)
    v[:, :6, 5] *= 1e-12
    v[:, 130:136, 5] *= 1e-12
    out = run(hopper, q, k, v, causal=1)
    assert out[:, :, 5].isnan().all()
    assert out[:, :, :5].isfinite().all() and out[:, :, 6:].isfinite().all()


@pytest.fixture(scope="module")
def bf16():
    return compile_answer(BF16, catalog.solution_text(BF16), backend="emulator")


@pytest.mark.parametrize(("D", "causal"), [(64, 1), (128, 0)])
def test_attention_in_bfloat16_rounds_no_more_than_pytorch_does(bf16, D, causal):
    q, k, v = (one.bfloat16() for one in drawn(1, 300, D))
    call = torch.nn.functional.scaled_dot_product_attention
    right = call(q.double(), k.double(), v.double(), is_causal=bool(causal))
    heads, S, D = q.shape
    out = torch.full((heads, S, D), float("nan"))
    sizes = {"heads": heads, "S": S, "D": D, "causal": causal}
    ours = bf16.isolated({"q": q, "k": k, "v": v, "out": out, **sizes}).after["out"].double()
    theirs = call(q, k, v, is_causal=bool(causal)).double()
    assert (ours - right).norm() <= (theirs - right).norm()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # weights with 5 bits in place of 8
        ("s[i] = exp2_or_0(", "s[i] = coarse("),
        ("sum[h] *= shrink[h];", ""),
        ("if (key >= S ||", "if (key > S ||"),
        ("o[i] *= i / 2 % 2 ? shrink.y : shrink.x", "o[i] *= shrink.x"),
        ("wgmma_wait<1>();", "wgmma_wait<2>();"),
        ("let_go(&tiles.k_empty[Stage(j).at]);\n        hide", "hide"),
    ],
)
def test_a_wrong_kernel_in_bfloat16_is_refused(old, new):
    coarse = (
        "__device__ inline float coarse(float x) {\n"
        "    return __uint_as_float((__float_as_uint(exp2f(x)) + 0x40000u) & 0xfff80000u);\n}\n"
    )
    text = catalog.solution_text(BF16)
    assert text.count(old) == 1
    wrong = text.replace(old, new).replace(
        "template <int D>\nstruct alignas", coarse + "template <int D>\nstruct alignas"
    )
    kernel = compile_wrong(BF16, wrong, "wrong")
    with pytest.raises(CheckFailed):
        check(kernel, seed=14)
