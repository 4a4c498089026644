"""Chapter 14: its reference in parts, and how exact attention by three products of halves is."""

import pytest
import torch

from utils.course import catalog
from utils.course.answers import compile_answer, compile_wrong
from utils.ground.errors import CheckFailed
from utils.ground.paths import ROOT, workspace
from utils.judge.check import check
from utils.notebooks import documents

FLASH = catalog.load("14_attention/flash_attention")
MMA = catalog.load("14_attention/flash_attention_mma")
HOPPER = catalog.load("14_attention/flash_attention_hopper")
BF16 = catalog.load("14_attention/flash_attention_bf16")
FORWARD = catalog.load("14_attention/flash_attention_forward")
BACKWARD = catalog.load("14_attention/flash_attention_backward")
WINDOW = catalog.load("14_attention/window_attention")


@pytest.fixture(scope="module")
def hopper():
    return compile_answer(HOPPER, catalog.solution_text(HOPPER), backend="emulator")


@pytest.fixture(scope="module")
def mma():
    return compile_answer(MMA, catalog.solution_text(MMA), backend="emulator")


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


def brief() -> type[torch.nn.Module]:
    """Model, as the notebook of the capstone gives it."""
    notebook = documents.read(ROOT / "notebooks/14_attention_4_capstone.ipynb")
    (text,) = [cell.source for cell in notebook.cells if cell.source.startswith("class Model")]
    names = {"torch": torch, "nn": torch.nn}
    exec(text, names)
    return names["Model"]


@pytest.mark.parametrize("window", [1, 2, 63, 64, 65, 66, 128, 130, 1000])
def test_the_reference_by_tiles_is_the_model_of_the_brief(window):
    for S in (1, 5, 64, 65, 200):
        qkv = [10 * one.double() for one in drawn(2, S, 64)]
        expected = brief()(window, 7.0)(*qkv)
        torch.testing.assert_close(WINDOW.reference(*qkv, 64, window, 7.0), expected)


@pytest.mark.parametrize(("S", "window"), [(1, 1), (64, 64), (200, 65), (200, 66), (150, 400)])
def test_loads_and_operations_are_those_of_tiles_with_a_key_that_is_seen(S, window):
    at = torch.arange(S)
    behind = at[:, None] - at
    seen = (behind >= 0) & (behind < window)
    tiles = [tile.any() for rows in seen.split(64) for tile in rows.split(64, dim=1)]
    (gate,) = [one for one in WINDOW.gates if one.metric.startswith("load requests")]
    assert gate.ideal(heads=3, S=S, D=64, window=window) == 3 * (S + 128 * sum(tiles)) * 64 / 128
    assert WINDOW.flops(heads=3, S=S, D=64, window=window) == 4 * 3 * 64 * 64**2 * sum(tiles)


@pytest.mark.parametrize("D", [64, 128])
@pytest.mark.parametrize("kernel", ["hopper", "mma"])
def test_attention_on_tensor_cores_is_as_exact_as_floats(request, kernel, D):
    q, k, v = drawn(1, 700, D)
    right = pytorch(q.double(), k.double(), v.double())
    ours = run(request.getfixturevalue(kernel), q, k, v) - right
    assert ours.norm() <= 2 * (pytorch(q, k, v) - right).norm()


@pytest.mark.parametrize("tensor", [0, 1, 2])
def test_a_range_too_wide_gives_nan_to_what_needs_it_alone(mma, tensor):
    """A query, a key, or a tile of values: those that a causal mask hides from a query do no harm
    to it, as far as they lie in other tiles."""
    qkv = drawn(1, 140, 64)
    qkv[tensor][0, 70, :2] = torch.tensor([2.0**30, 2.0**-30])
    out, right = run(mma, *qkv, causal=1), [one.double() for one in qkv]
    right = torch.nn.functional.scaled_dot_product_attention(*right, is_causal=True)
    lost = slice(70, 71) if tensor == 0 else slice(70, 140) if tensor == 1 else slice(64, 140)
    assert out[:, lost].isnan().all()
    good = torch.ones(140, dtype=torch.bool)
    good[lost] = False
    torch.testing.assert_close(out[:, good], right[:, good], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("atomicMax(&tiles.v_most[parity], most)", "tiles.v_most[parity] = most", "race"),
        (
            "    __syncthreads();  // all have read the last tile, and say how large this one is\n",
            "",
            "race",
        ),
        ("first > last) continue", "first > last - 16) continue", "nan"),
        (
            "mma_f16(small, q.of[d + j][1], {high",
            "mma_f16(small, q.of[d + j][0], {high",
            "wrong values",
        ),
        ("sum * (e / 2 % 2 ? shrink.y : shrink.x)", "sum * shrink.x", "wrong values"),
        ("min(mine.row(2 * h), S - 1)", "mine.row(2 * h)", "out of bounds"),
        ("causal && key > mine.row(i)", "causal && key >= mine.row(i)", "nan"),
        (
            "8 * n + row][chunk]);\n            load_matrices(low",
            "row][chunk]);\n            load_matrices(low",
            "wrong values",
        ),
    ],
)
def test_a_wrong_kernel_on_mma_is_refused(old, new, reason):
    text = catalog.solution_text(MMA)
    assert text.count(old) == 1
    with pytest.raises(CheckFailed) as refused:
        check(compile_wrong(MMA, text.replace(old, new), "wrong"), seed=14)
    assert refused.value.reason == reason


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


@pytest.mark.parametrize("kernel", ["hopper", "mma"])
@pytest.mark.parametrize("S", [3, 10, 40])
def test_a_short_column_may_hold_a_value_near_0_by_chance(kernel, S, request):
    """Of 11,520 normal values, one is below 2^-20 of the largest in a sixtieth of all calls."""
    q, k, v = drawn(2, S, 128)
    v[1, 0, 9] = 3e-7
    out = run(request.getfixturevalue(kernel), q, k, v)
    torch.testing.assert_close(
        out, pytorch(q.double(), k.double(), v.double()), atol=1e-5, rtol=1e-4
    )


def test_a_short_column_with_an_outlier_gives_nan(hopper):
    q, k, v = drawn(1, 10, 64)
    v[0, 3, 9] = 2.0**30
    out = run(hopper, q, k, v, causal=1)
    assert out[:, :, 9].isnan().all()
    assert out[:, :, :9].isfinite().all() and out[:, :, 10:].isfinite().all()


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


@pytest.fixture(scope="module")
def both_ways():
    """(q, k, v, grad_out, causal) -> out, dq, dk, dv of the two kernels."""
    pair = [
        compile_answer(one, catalog.solution_text(one), backend="emulator")
        for one in (FORWARD, BACKWARD)
    ]

    def call(q, k, v, grad_out, causal=0):
        heads, S, D = q.shape
        sizes = {"heads": heads, "S": S, "D": D, "causal": causal}
        inputs, nan = {"q": q, "k": k, "v": v}, float("nan")
        outputs = {name: torch.full((heads, S), nan) for name in ("row_max", "row_sum")}
        outputs["out"] = torch.full_like(q, nan)
        ahead = pair[0].isolated(inputs | outputs | sizes).after
        saved = {name: ahead[name] for name in outputs}
        gradients = {name: torch.full_like(q, nan) for name in ("dq", "dk", "dv")}
        back = pair[1].isolated(inputs | saved | {"grad_out": grad_out} | gradients | sizes).after
        return [ahead["out"].double(), *(back[name].double() for name in gradients)]

    return call


def autograd(q, k, v, grad_out, causal=0) -> list[torch.Tensor]:
    leaves = [one.clone().requires_grad_() for one in (q, k, v)]
    call = torch.nn.functional.scaled_dot_product_attention
    out = call(*leaves, is_causal=bool(causal))
    return [one.detach().double() for one in (out, *torch.autograd.grad(out, leaves, grad_out))]


@pytest.mark.parametrize(("S", "D", "causal"), [(500, 64, 0), (300, 128, 1)])
@pytest.mark.parametrize("mean", [0.0, 2.0])  # 2: a truncated sum is off in one direction
def test_gradients_on_tensor_cores_are_as_exact_as_floats(both_ways, S, D, causal, mean):
    q, k, v, grad_out = torch.randn(4, 3, S, D) + mean  # of one head a few keys may decide
    right = autograd(*(one.double() for one in (q, k, v, grad_out)), causal)
    ours, theirs = (call(q, k, v, grad_out, causal) for call in (both_ways, autograd))
    for mine, other, exact in zip(ours, theirs, right, strict=True):
        assert (mine - exact).norm() <= 2 * (other - exact).norm()


@pytest.mark.parametrize("exponents", [(0, 0, 0, -90), (0, 0, 60, 20), (30, -30, 0, 0)])
def test_gradients_of_any_size_keep_their_digits(both_ways, exponents):
    """Gradients of scores have no bound as weights do: each row of sums has a scale of its own."""
    drawn = torch.randn(4, 1, 140, 64)
    inputs = [one * 2.0**e for one, e in zip(drawn, exponents, strict=True)]
    right = autograd(*(one.double() for one in inputs))
    for mine, exact in zip(both_ways(*inputs), right, strict=True):
        assert (mine - exact).norm() <= 2e-6 * exact.norm()


def test_a_row_that_is_far_smaller_than_others_is_as_exact(both_ways):
    q, k, v, grad_out = torch.randn(4, 1, 150, 64)
    grad_out[:, ::2] *= 2.0**-40
    right = autograd(*(one.double() for one in (q, k, v, grad_out)))
    dq, exact = both_ways(q, k, v, grad_out)[1][:, ::2], right[1][:, ::2]
    assert (dq - exact).norm() <= 2e-6 * exact.norm()


def test_queries_whose_result_nobody_uses_have_a_gradient_of_zero(both_ways):
    """Also where columns of all tensors lie far from zero."""
    q, k, v, grad_out = torch.randn(4, 1, 150, 64) + 3
    grad_out[:, ::2] = 0
    dq = both_ways(q, k, v, grad_out)[1]
    assert not dq[:, ::2].any() and dq[:, 1::2].any()


@pytest.mark.parametrize("which", range(4))
def test_a_row_too_wide_gives_nan_to_its_gradients_and_nothing_wrong(both_ways, which):
    inputs = list(torch.randn(4, 2, 140, 64))
    inputs[which][0, 7, 1] = 2.0**40
    results = both_ways(*inputs)
    right = autograd(*(one.double() for one in inputs))
    assert results[1][0].isnan().any()  # dq needs all four
    for mine, exact in zip(results, right, strict=True):
        assert mine[1].isfinite().all()  # the other head
        known = mine.isfinite()
        torch.testing.assert_close(mine[known], exact[known], atol=1e-4, rtol=1e-4)


def test_gradients_have_the_same_bits_every_time(both_ways):
    inputs = torch.randn(4, 2, 200, 64)
    first, again = both_ways(*inputs, 1), both_ways(*inputs, 1)
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))


@pytest.mark.parametrize("kernel", [FORWARD, BACKWARD], ids=["forward", "backward"])
def test_more_heads_than_a_launch_takes(kernel):
    """Heads go in launches of as many as there is room for: three of them here."""
    text = with_tiles(kernel)
    assert text.count("MOST_ROWS = 1 << 18") == 1
    few = text.replace("MOST_ROWS = 1 << 18", "MOST_ROWS = 256")
    check(compile_answer(kernel, few, backend="emulator"), seed=3)


def with_tiles(kernel) -> str:
    """Its text, with the headers in it that both kernels share."""
    text = catalog.solution_text(kernel)
    for name in ("attention_tiles.cuh", "running_softmax.cuh"):
        text = text.replace(f'#include "{name}"', (workspace().include / name).read_text())
    return text


@pytest.mark.parametrize(
    ("kernel", "old", "new", "reason"),
    [
        (FORWARD, "sum[h] *= shrink[h];", "", "wrong values"),
        (FORWARD, "if (key >= S ||", "if (", "wrong values"),
        (FORWARD, "key > query))", "key >= query))", "nan"),
        (FORWARD, "keys + 64 <= S &&", "", "wrong values"),
        (FORWARD, "keys + 63 <= queries", "keys <= queries", "wrong values"),
        (BACKWARD, "keys + 63 <= queries", "keys <= queries", "wrong values"),
        (FORWARD, "rows.centre + head * D", "nullptr", "wrong values"),
        (FORWARD, "shrink.x * more.x", "shrink.x", "wrong values"),
        (FORWARD, "isnan(sums[h]) ? NAN : ", "", "wrong values"),
        (FORWARD, "most[h] + shifts[row]", "most[h]", "wrong values"),
        (BACKWARD, "row_max[from] - rows.shifts[to]", "row_max[from]", "wrong values"),
        (BACKWARD, "- query.z)", ")", "wrong values"),
        (BACKWARD, ") * query.y;", ");", "wrong values"),
        (BACKWARD, "weight * other.y", "weight * other.x", "wrong values"),
        (BACKWARD, "of_score * other.x", "of_score * other.y", "wrong values"),
        (BACKWARD, "sum, shrink, factors", "sum, {1.0f, 1.0f}, factors", "wrong values"),
        (BACKWARD, "sum_v, shrink, factors", "sum_v, {1.0f, 1.0f}, factors", "wrong values"),
        (BACKWARD, "? row0 / BN : 0", "? row0 / BN + 1 : 0", "wrong values"),
        (BACKWARD, "sizeof(b[0][0])", "1024", "wrong values"),
        (BACKWARD, "range.scale({by, by})", "range.scale({1.0f, 1.0f})", "wrong values"),
        (
            BACKWARD,
            "        differentiate<D, OF>(s,",
            "        let_go(&tiles.empty[0]);\n        differentiate<D, OF>(s,",
            "race",
        ),
        (
            BACKWARD,
            "float2 other = tiles.scales[at];",
            "float2 other = {1.0f, 1.0f};",
            "wrong values",
        ),
    ],
)
def test_a_wrong_kernel_of_either_way_is_refused(kernel, old, new, reason):
    text = with_tiles(kernel)
    assert text.count(old) == 1
    with pytest.raises(CheckFailed) as refused:
        check(compile_wrong(kernel, text.replace(old, new), "wrong"), seed=14)
    assert refused.value.reason == reason


def test_an_infinite_value_is_lost_on_queries_that_do_not_see_it(both_ways):
    q, k, v, grad_out = torch.randn(4, 1, 200, 64)
    v[0, 140, 3] = float("inf")
    out = both_ways(q, k, v, grad_out, 1)[0]
    assert out[0, :128].isfinite().all() and not out[0, 140:, 3].isfinite().any()
