"""What is said of wrong values: which, from what, in which pattern, and what gives the same."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from support import toys
from torch import Generator

from utils.course import cases, catalog
from utils.course.answers import compile_wrong
from utils.course.cases import Case
from utils.cuda import suspicions
from utils.ground.errors import CheckFailed
from utils.judge import explain, mismatch, oracle, reruns
from utils.judge.check import check
from utils.judge.cue import cue
from utils.judge.mistakes import hopper, hypotheses, unowned, wrong_derivatives, wrong_products
from utils.judge.mistakes.displaced import displaced
from utils.judge.mistakes.hypotheses import mistakes
from utils.judge.pattern import CAUSE, region
from utils.judge.smallest import shrink

LINEAR = "01_naive_gemm/linear"
NORM = "06_groupnorm/groupnorm_warp"


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """A search for the mistake is cut off after a while; not here, however busy the machine is."""
    monkeypatch.setattr(hypotheses, "SECONDS", 60.0)


def explanation(id: str, sizes: dict[str, int], compute, name: str = "out") -> str:
    """What is told of an exercise's output that `compute` makes of the case's values."""
    exercise = catalog.load(id)
    case = cases.sample(exercise, sizes, cases.usual(exercise), Generator().manual_seed(3))
    dtypes = {k: torch.float32 for k in exercise.shapes}
    expected = oracle.expect(exercise, case, dtypes)[name]
    got = compute(**case.values)
    got = got if id.endswith("argmin") else got.float()
    return next(mistakes(exercise, case, name, got, expected), "")


SIZES = {"M": 6, "N": 5, "K": 70}


def tile(matrix: torch.Tensor) -> torch.Tensor:
    """As it lies in a tile of 32 x 32, with zeros at the edges."""
    rows, columns = matrix.shape
    return torch.nn.functional.pad(matrix, (0, 32 - columns, 0, 32 - rows))


@pytest.mark.parametrize(
    ("compute", "words"),
    [
        (lambda x, W, b, **_: x @ W.T, "b is left out (0 in its place)"),
        (lambda x, W, b, K, N, **_: x @ W.reshape(K, N) + b, "W is read as if it were (K, N)"),
        (lambda x, W, b, **_: x[:, :32] @ W[:, :32].T + b, "only the first 32 of K = 70 count"),
        (lambda x, W, b, **_: x[:, :-1] @ W[:, :-1].T + b, "the last of K = 70 does not count"),
        (lambda x, W, b, **_: x[:, :64] @ W[:, :64].T + b, "from 64 on of K = 70 do not count"),
        (lambda x, W, b, **_: x @ W.T + b[0], "b is looked up at 0 every time"),
        (lambda x, W, b, **_: x @ W.T - b, "b has the other sign"),
        (lambda x, W, b, K, **_: x @ W.T + K * b, "b counts K = 70 times"),
        (lambda x, W, b, **_: x @ W.T + 2 * b, "b counts twice"),
        (lambda x, W, b, **_: x @ W.T * b, "the bias is multiplied, not added"),
        (
            lambda x, W, b, **_: x @ W[:, torch.arange(70) % 32].T + b,
            "the first 32 of W along K = 70 are read again",
        ),
        (
            lambda x, W, b, **_: x @ W.T + x[:, 32:] @ W[:, 32:].T + b,
            "from 32 on of K = 70 count twice",
        ),
    ],
)
def test_a_mistake_that_gives_the_wrong_values_is_told(compute, words):
    assert words in explanation(LINEAR, SIZES, compute)


@pytest.mark.parametrize(
    ("compute", "words"),
    [
        (lambda x, W, **_: tile(x) @ tile(W), "swapped in an index of W, or of its tile"),
        (lambda x, W, **_: tile(x).T @ tile(W), "of x and W, or of their tiles"),
        (lambda x, W, **_: tile(W) @ tile(x).T, "swapped within each tile"),
        (lambda x, W, **_: (tile(x) @ tile(W).T).diagonal()[:5].expand(6, 5), "the column is used"),
        (lambda x, W, **_: x @ W[:, [0, 2, 1, 3]].T, "y and z of every quad of"),
    ],
)
def test_an_index_into_a_tile_that_is_taken_otherwise_is_told(compute, words):
    sizes = {"M": 6, "N": 5, "K": 4}
    assert words in explanation(LINEAR, sizes, lambda b, **v: compute(**v)[:6, :5] + b)


@pytest.mark.parametrize(
    ("compute", "words"),
    [
        (lambda x: x / (1 + torch.exp(x)), "e^x where e^-x belongs"),
        (lambda x: x / 1 + torch.exp(-x), "divides before it adds"),
        (lambda x: x / (1 - torch.exp(-x)), "with - for +"),
        (lambda x: x / (2 + torch.exp(-x)), "with 2 for 1"),
        (lambda x: 1 / (1 + torch.exp(-x)), "the sigmoid alone"),
        (lambda x: x * torch.tanh(x), "tanh where the sigmoid belongs"),
        (lambda x: x * torch.erf(x), ""),
    ],
)
def test_a_formula_that_is_written_wrong_is_told(compute, words):
    said = explanation("00_start_here/swish", {"n": 31}, lambda x, **_: compute(x))
    assert words in said and bool(said) == bool(words)


def test_swapped_branches_and_another_constant_are_told():
    sizes, id = {"rows": 3, "channels": 5}, "07_pointwise_fusion/leaky_relu_double"
    leaky = torch.nn.functional.leaky_relu
    assert "the negative slope is 0.1" in explanation(id, sizes, lambda y, **_: 2 * leaky(y, 0.1))
    assert "the two branches of leaky_relu change places" in explanation(
        id, sizes, lambda y, **_: -2 * leaky(-y)
    )


def test_a_part_of_a_minimum_and_of_its_place_is_told():
    sizes = {"rows": 9, "channels": 90}
    assert "only the first 32 of channels = 90 count" in explanation(
        "04_reductions/row_min", sizes, lambda x, **_: x[:, :32].amin(dim=1)
    )
    place = "04_reductions/row_argmin"
    assert "only the first 32 of" in explanation(
        place, sizes, lambda x, **_: x[:, :32].argmin(dim=1)
    )
    assert "right modulo 8:" in explanation(place, sizes, lambda x, **_: x.argmin(dim=1) % 8)
    assert "these are values of x" in explanation(place, sizes, lambda x, **_: x.amin(dim=1).long())


def test_values_that_no_known_mistake_gives_are_left_without_a_cause():
    assert explanation(LINEAR, SIZES, lambda x, W, b, **_: x @ W.T + b + 0.5 * x[:, :5]) == ""
    assert explanation(LINEAR, SIZES, lambda x, W, b, **_: x @ W.T + b) == "", "these are right"


def norm(x, weight, bias, groups, eps, at=lambda c, size: c, **_):
    index = at(torch.arange(x.shape[1]), x.shape[1] // groups)
    return torch.group_norm(x, groups, weight[index], bias[index], eps)


def test_what_is_looked_up_by_group_is_told():
    sizes = {"rows": 3, "channels": 12, "groups": 3}
    by_place = explanation(NORM, sizes, lambda **v: norm(**v, at=lambda c, size: c % size))
    assert "weight and bias are looked up by the place within the group" in by_place
    by_group = explanation(NORM, sizes, lambda **v: norm(**v, at=lambda c, size: c // size))
    assert "weight and bias are looked up by the number of the group" in by_group
    swapped = explanation(
        NORM, sizes, lambda weight, bias, **v: norm(weight=bias, bias=weight, **v)
    )
    assert "weight and bias change places" in swapped


def test_a_step_that_is_left_out_is_told():
    sizes = {"rows": 3, "channels": 5}
    chain = "07_pointwise_fusion/swish_multiply_swish"
    once = explanation(chain, sizes, lambda y, scale, **_: torch.nn.functional.silu(y) * scale)
    assert "without swish (silu), in silu(silu(y) * scale)" in once
    assert "the values of y" in explanation(chain, sizes, lambda y, **_: y)


def test_a_start_value_of_zero_is_told():
    sizes = {"rows": 9, "channels": 31}
    words = explanation("04_reductions/row_min", sizes, lambda x, **_: x.amin(dim=1).clamp(max=0))
    assert "does a minimum begin there?" in words


STATS, CHAIN = "06_groupnorm/stats_two_pass", "07_pointwise_fusion/"
GROUPS, ROWS = {"rows": 3, "channels": 24, "groups": 2}, {"rows": 3, "channels": 5}


def stats(x, rows, groups, **_):
    return torch.var_mean(x.reshape(rows, groups, -1), dim=2, correction=0)


@pytest.mark.parametrize(
    ("compute", "words"),
    [
        (lambda eps, **v: 1 / (stats(**v)[0] + eps), "the root is left out"),
        (lambda eps, **v: (stats(**v)[0] * 12 / 11 + eps).rsqrt(), "divided by n - 1"),
        (lambda eps, **v: 1 / (stats(**v)[0].sqrt() + eps), "outside of the root"),
        (lambda eps, **v: (stats(**v)[0] + 1e-5).rsqrt(), "eps is always 1e-05"),
        (lambda eps, **v: (0 * stats(**v)[0] + eps).rsqrt(), "the variance is 0"),
        (lambda eps, x, **v: (stats(x[:, ::2], **v)[0] + eps).rsqrt(), "only one value in 2"),
    ],
)
def test_a_statistic_in_a_wrong_form_is_told(compute, words):
    assert words in explanation(STATS, GROUPS, compute, "rstd")


def test_a_wrong_statistic_is_told_behind_weight_and_bias_too():
    def norm(x, weight, bias, rows, groups, eps, **_):
        variance, mean = torch.var_mean(x.reshape(rows, groups, -1), 2, keepdim=True)
        normalised = (x.reshape(rows, groups, -1) - mean) * (variance + eps).rsqrt()
        return normalised.reshape(x.shape) * weight + bias

    assert "divided by n - 1" in explanation(NORM, GROUPS, norm)


@pytest.mark.parametrize(
    ("name", "compute", "words"),
    [
        ("leaky_relu_double", lambda y, **_: 2 * torch.where(y > 0, 0.01 * y, y), "change places"),
        (
            "swish_multiply_swish",
            lambda y, scale, **_: F.silu(F.silu(y * scale)),
            "* scale comes before swish",
        ),
        (
            "swish_multiply_swish",
            lambda y, scale, **_: F.silu(y.sigmoid() * scale),
            "swish is the sigmoid alone",
        ),
        (
            "bias_hardtanh_mish",
            lambda y, shift, **_: F.mish(F.hardtanh(y) + shift),
            "+ shift comes after hardtanh",
        ),
    ],
)
def test_a_step_in_a_wrong_form_or_place_is_told(name, compute, words):
    assert words in explanation(CHAIN + name, ROWS, compute)


def test_a_tree_that_ends_one_step_early_is_told():
    total = explanation("04_reductions/sum_tree", {"n": 1000}, lambda x, **_: x[::2].sum(), "out")
    assert "only one value in 2, 0, 2, ..., gets into the sum" in total
    sizes = {"rows": 9, "channels": 31}
    least = explanation("04_reductions/row_min", sizes, lambda x, **_: x[:, ::2].amin(dim=1))
    assert "only one value in 2, 0, 2, ..., gets there" in least


def test_rows_that_hold_what_belongs_to_others_are_told():
    right = torch.arange(12.0).reshape(4, 3) ** 2
    expected = oracle.Expected.known(right.double(), torch.full((4, 3), 1e-3, dtype=torch.float64))

    def said(got):
        return displaced(got, expected, mismatch.wrong(got, expected))

    assert said(right[[0, 0, 2, 2]]) == "row 1 holds what belongs to row 0, and so on"
    assert said(right[[0, 0, 0, 0]]) == "each row that is wrong holds what belongs to row 0"
    assert said(right[:, [0, 0, 2]]) == "column 1 holds what belongs to column 0"
    assert said(right + 0.5) == ""


def test_the_least_of_several_rows_is_not_told_as_another_place():
    least = torch.tensor([3.0, 1.0, 4.0, 2.0, 7.0, 6.0])
    shift = torch.tensor([[0.5], [0.25], [2.0]])
    right = least + shift
    expected = oracle.Expected.known(right.double(), torch.full((3, 6), 1e-5, dtype=torch.float64))

    def said(got):
        return displaced(got, expected, mismatch.wrong(got, expected))

    assert said(least.reshape(2, 3).amin(1).repeat_interleave(3) + shift) == ""
    assert (
        said(right[:, [1, 0, 2, 3, 4, 5]]) == "column 0 holds what belongs to column 1, and so on"
    )


def test_a_fault_that_the_learner_is_to_name_is_told_once_it_is_named(monkeypatch):
    exercise = catalog.load("05_debugging/row_norm")
    case = cases.sample(exercise, {"rows": 3, "cols": 31}, "standard normal", Generator())
    expected = oracle.expect(exercise, case, {"x": torch.float32, "out": torch.float32})["out"]
    got = expected.value.square().float()
    output = reruns.Wrong(case, got, expected, mismatch.wrong(got, expected))
    monkeypatch.setattr(reruns.Reruns, "larger", lambda *_: output)
    named = catalog.solution_text(exercise)
    for text, words in (
        (named, "the root is left out"),
        (named.replace("never written", "?"), None),
    ):
        kernel = SimpleNamespace(exercise=exercise, source=text)
        said = explain.cause(kernel, case, "out", *output[1:])
        assert words in said if words else said == ""


def wrong(shape, *places) -> torch.Tensor:
    bad = torch.zeros(shape, dtype=torch.bool)
    for place in places:
        bad[place] = True
    return bad


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (wrong((5, 9), (slice(None), slice(4, None))), "all columns from 4 on are wrong"),
        (wrong((5, 9), (slice(None), 8)), "only the last column, 8, is wrong"),
        (wrong((5, 9), (slice(1, None),)), "only row 0 is right"),
        (wrong((5, 9), (0,)), "only row 0 is wrong"),
        (wrong((3, 5), (2, slice(2, None))), "only the last 3 of all 15 elements are wrong"),
        (wrong((100,), slice(3, None, 4)), "only values 3, 7, 11, ... are wrong"),
        (~wrong((4, 40), (slice(None), slice(0, None, 8))), "only columns 0, 8, 16, ... are right"),
        (wrong((4, 40), (slice(None), slice(32, None))), CAUSE["wrong"]),
    ],
)
def test_the_pattern_of_what_is_wrong_is_stated(bad, said):
    assert said in region(bad)


def test_a_cause_is_named_only_where_a_block_may_begin():
    for first, named in ((256, True), (32, True), (250, False), (36, False)):
        bad = wrong((300,), slice(first, None))
        assert (CAUSE["wrong"] in region(bad)) == named
        assert (CAUSE["missing"] in region(bad, "missing")) == named


def test_missing_tiles_may_have_been_given_a_wrong_place():
    tiles = "is a tile's number made the right row and column?"
    assert tiles in region(wrong((300, 9), (slice(64, None),)), "missing")
    assert tiles not in region(wrong((300,), slice(64, None)), "missing")
    assert tiles not in region(wrong((300, 9), (slice(64, None),)))


EVERY_SECOND = (slice(None), slice(1, None, 2))  # of few


@pytest.mark.parametrize(
    "places", [(), (slice(None),), ((3, 4),), ((0, 1), (4, 2), (2, 7)), (EVERY_SECOND,)]
)
def test_what_has_no_pattern_is_given_none(places):
    assert region(wrong((5, 9), *places)) == ""


def test_the_smallest_failing_size_stands_beside_the_largest_that_passes():
    sizes = {"M": 33, "N": 31, "K": 65}
    tried = []

    def fails(at):
        tried.append(dict(at))
        return at["K"] > 32

    assert shrink(fails, sizes, ()) == ({"M": 1, "N": 1, "K": 33}, {"K": 32})
    assert len(tried) < 12
    assert shrink(lambda at: None, sizes, ()) == (sizes, {}), "nothing can be told"
    assert shrink(fails, sizes, ("K", "M"))[0] == {"M": 33, "N": 1, "K": 65}, "they hang together"


def test_a_size_of_one_comes_after_one_of_several_values():
    one, more, most = {"n": 1}, {"n": 31}, {"n": 300}
    assert explain.several_first((one, more, most)) == (more, one, most)
    assert explain.several_first((more, one)) == (more, one)
    assert explain.several_first((one,)) == (one,)


def test_groups_of_one_value_come_after_those_of_several():
    alone, several = {"channels": 7, "groups": 7}, {"channels": 12, "groups": 3}
    follows = {"groups": "channels"}
    assert explain.several_first((alone, several), follows) == (several, alone)


def test_a_pointwise_value_stands_beside_its_inputs_and_a_sum_does_not():
    sizes = {"rows": 2, "channels": 3}
    y, scale = torch.arange(6.0).reshape(2, 3), torch.tensor([7.0, 8.0, 9.0])
    chain = catalog.load("07_pointwise_fusion/swish_multiply_swish")
    case = Case(sizes, "own", {"y": y, "scale": scale}, {})
    assert cue(chain, case, "out", y)((1, 2), 0.0, 1.0) == ", from y = 5, scale = 9"
    product = cases.sample(toys.GEMM, {"M": 2, "N": 3, "K": 4}, "uniform", Generator())
    assert cue(toys.GEMM, product, "C", torch.ones(2, 3)) is None


def test_a_wrong_index_stands_beside_what_it_points_at():
    exercise = catalog.load("04_reductions/row_argmin")
    case = Case({"rows": 1, "channels": 3}, "own", {"x": torch.tensor([[5.0, 2.0, 2.0]])}, {})
    tell = cue(exercise, case, "out", torch.tensor([2]))
    assert tell((0,), 2, 1) == ", where x[0, 2] = 2 and x[0, 1] = 2"
    assert tell((0,), 3, 1) == ", where there is no x[0, 3] and x[0, 1] = 2"


def test_a_variable_without_a_value_is_the_cause_where_the_warning_names_it(monkeypatch):
    got, expected = torch.full((3,), -1.69e38), oracle.Expected.known(torch.ones(3), torch.zeros(3))
    warned = {"set": "", "unset": f"k.cu:3: warning: sum is read here and {suspicions.NO_VALUE}"}
    monkeypatch.setattr(explain.instrumented, "warnings", warned.get)
    assert explain._unset("unset", got, expected) == explain.UNSET_NAMED
    assert explain._unset("set", got, expected) == explain.UNSET
    assert explain._unset("unset", torch.zeros(3), expected) == ""


def hint(got: list[float], want: list[float]) -> str:
    expected = oracle.Expected.known(torch.tensor(want).double(), torch.full((len(want),), 1e-5))
    got = torch.tensor(got)
    return mismatch.hint(got, expected, mismatch.wrong(got, expected))


WANT = [1.0, -2.0, 0.5, -0.25, 3.0, -1.5, 4.0, -0.75]


def test_one_factor_of_all_that_is_wrong_is_told_and_whether_it_is_of_one_sign():
    below = [x if x > 0 else 10 * x for x in WANT]
    assert hint(below, WANT) == (
        "all values below 0 are wrong, and all others are right; "
        "what is wrong is 10 times what was expected"
    )
    assert hint([1.5 * x for x in WANT], WANT) == "what is wrong is 1.5 times what was expected"
    assert "times" not in hint([x + 7 * x * x for x in WANT], WANT)


def test_a_lost_nan_is_told_where_all_that_stands_there_is_the_same():
    nan = float("nan")
    assert hint([1.0, -1.0, -1.0, -1.0, -1.0], [1.0, nan, nan, nan, -2.0]) == mismatch.LOST


@pytest.mark.parametrize("times", [2, 31, 256])
def test_a_single_value_that_many_threads_add_is_so_many_times_too_large(times):
    assert hint([times * 0.7], [0.7]) == f"what comes out is {times} times what was expected"


@pytest.mark.parametrize("times", [1.5, 100, 255])
def test_any_other_factor_of_a_single_value_is_one_by_chance(times):
    assert hint([times * 0.7], [0.7]) == ""


def differentiated(x: torch.Tensor, g: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        return torch.autograd.grad(F.silu(F.silu(x) * scale), x, g)[0]


def test_a_step_with_a_wrong_derivative_keeps_its_value():
    x, g, scale = torch.randn(3, 7, generator=Generator().manual_seed(1)).double()
    s = x.sigmoid()
    inner, z = s * (1 + x * (1 - s)), F.silu(x) * scale
    outer = z.sigmoid() * (1 + z * (1 - z.sigmoid()))
    known = dict(
        wrong_derivatives.outcomes(
            lambda: differentiated(x, g, scale), {"x": x, "g": g, "scale": scale}
        )
    )
    for words, value in {
        "the derivative of silu(silu(x) * scale) is left out (1 in its place)": inner * scale,
        "the derivative of silu(x) is left out (1 in its place)": outer * scale,
        "on the way back the left of silu(x) * scale gets all, without the other factor": (
            outer * inner
        ),
        "on the way back the left of silu(x) * scale gets all times itself, not times the other "
        "factor": outer * F.silu(x) * inner,
        "on the way back the left of silu(x) * scale gets all times the product, not times the "
        "other factor": outer * z * inner,
        "silu(silu(x) * scale) stands where its derivative should": F.silu(z) * inner * scale,
    }.items():
        torch.testing.assert_close(known[f"this is what comes out if {words}"], g * value)


def outer_and_added(x: torch.Tensor, g: torch.Tensor, shift: torch.Tensor):
    """The gradients of mish(hardtanh(x)) and, of silu(x) + shift, that of shift."""
    with torch.enable_grad():
        x, shift = (v.detach().requires_grad_() for v in (x, shift))
        (inner,) = torch.autograd.grad(F.mish(F.hardtanh(x)), x, g)
        (added,) = torch.autograd.grad(F.silu(x) + shift, shift, g)
    return torch.stack([inner, added])


def test_a_step_that_the_way_back_forgets_and_one_that_comes_too_early_are_told():
    x, g, shift = 2 * torch.randn(3, 7, generator=Generator().manual_seed(1)).double()
    known = dict(
        wrong_derivatives.outcomes(
            lambda: outer_and_added(x, g, shift), {"x": x, "g": g, "shift": shift}
        )
    )
    z = x.clone().requires_grad_()
    mish, silu = (torch.autograd.grad(f(z).sum(), z)[0] for f in (F.mish, F.silu))
    words = "the way back leaves out hardtanh(x), and takes the derivative of mish at its argument"
    torch.testing.assert_close(known[f"this is what comes out if {words}"][0], g * mish)
    words = "shift gets its gradient after the derivative of silu(x), not before it"
    torch.testing.assert_close(known[f"this is what comes out if {words}"][1], g * silu)


def test_what_the_way_back_forgets_around_the_normalising_is_told():
    x, g = torch.randn(2, 3, 6, generator=Generator().manual_seed(1)).double()
    weight, bias = torch.randn(2, 6, generator=Generator().manual_seed(2)).double()

    def gradients(activation):
        with torch.enable_grad():
            leaves = [v.detach().requires_grad_() for v in (x, weight)]
            out = activation(torch.group_norm(leaves[0], 2, leaves[1], bias, 1e-5))
            return torch.cat([v.reshape(-1) for v in torch.autograd.grad(out, leaves, g)])

    inputs = {"x": x, "weight": weight, "bias": bias}
    known = dict(wrong_derivatives.outcomes(lambda: gradients(F.silu), inputs))
    n = torch.group_norm(x, 2, eps=1e-5)
    at_n, at_z = (z.sigmoid() * (1 + z * (1 - z.sigmoid())) for z in (n, n * weight + bias))
    unweighted = gradients(lambda z: z * at_z / weight)[: x.numel()]
    norm = "group_norm(x, weight, bias)"
    for words, value in {
        f"the way back leaves out all that comes after {norm}": gradients(lambda z: z),
        "on the way back through the normalising, (u - mean of u - n * mean of u n) * rstd, u is "
        "not multiplied by weight": torch.cat([unweighted, (g * at_z * n).sum(dim=0)]),
        f"the derivative of silu({norm}) is taken at the normalised values, without weight and "
        "bias": gradients(lambda z: z * at_n),
    }.items():
        torch.testing.assert_close(known[f"this is what comes out if {words}"], value)


def test_without_gradients_no_derivative_is_tried():
    assert not list(wrong_derivatives.outcomes(lambda: F.silu(torch.ones(3)), {}))


def test_a_lone_column_is_told_and_a_lone_value_is_not():
    bad = torch.zeros(3, 5, dtype=torch.bool)
    bad[:, 1] = True
    assert region(bad) == "only column 1 is wrong"
    assert region(bad[0]) == ""


@pytest.mark.parametrize(
    ("divided", "said"),
    [
        ("sum not rescaled", "the sum is not rescaled where the maximum moves"),
        ("values not rescaled", "what is summed up with the weights is not rescaled"),
        ("nothing", "nothing is divided by the sum"),
        ("base", "powers of e are taken where the values are exponents of 2"),
        ("sum overwritten", "only the last value gets into the sum"),
        ("threads not rescaled", "each counts from the thread's own maximum"),
    ],
)
def test_a_wrong_step_of_a_running_softmax_is_named(divided, said):
    def attention(q, k, v, S, D, **_):
        scores = q @ k.transpose(1, 2) / D**0.5
        running = scores.cummax(-1).values
        whole, walked = (scores - running[..., -1:]).exp(), (scores - running).exp()
        top = walked if divided == "values not rescaled" else whole
        quads = F.pad(scores, (0, -S % 4), value=-torch.inf).unflatten(-1, (-1, 4))
        terms = {
            "sum not rescaled": walked,
            "sum overwritten": whole[..., -1:],
            "threads not rescaled": (quads - quads.amax(-1, keepdim=True)).exp().flatten(-2),
        }
        below = terms.get(divided, whole).sum(-1, keepdim=True)
        weights = {
            "nothing": whole,
            "base": torch.softmax(scores * 1.4426950408889634, -1),
        }.get(divided, top / below)
        return weights @ v

    sizes = {"heads": 2, "S": 33, "D": 64, "causal": 0}
    assert said in explanation("14_attention/attention_rows", sizes, attention)


def test_a_step_that_leaves_no_tensor_ends_no_search():
    """Dividing the scores by a number, one of the two alone is a number."""

    def sevens(v, **_):
        return torch.full_like(v, 7.0)

    sizes = {"heads": 1, "S": 5, "D": 64, "causal": 1}
    assert explanation("14_attention/attention_rows", sizes, sevens) == ""


def test_three_products_make_nearly_all_of_one_and_each_can_be_missing():
    generator = Generator().manual_seed(3)
    x, W = (torch.randn(rows, 20, generator=generator).double() for rows in (3, 4))
    (x_high, x_low), (W_high, W_low) = map(wrong_products.halves, (x, W))
    torch.testing.assert_close(x_high + x_low, x, rtol=2**-21, atol=0)
    known = dict(wrong_products.outcomes(lambda: F.linear(x, W)))
    parts = {"low halves of x": x_low @ W_high.T, "low halves of W": x_high @ W_low.T}
    for words, part in parts.items():
        (value,) = (v for k, v in known.items() if words in k)
        torch.testing.assert_close(value, x @ W.T - part)
    (both,) = (v for k, v in known.items() if "both" in k)
    torch.testing.assert_close(both, x_high @ W_high.T, rtol=1e-5, atol=1e-5)


def test_columns_that_no_block_owns_are_those_behind_its_whole_groups():
    y = torch.arange(240.0).reshape(1, 240)
    parameters = torch.ones(240), torch.zeros(240), 0.25
    got = unowned.others(y, 10, *parameters)  # groups of 24: a block owns 120 of 128 columns
    assert got.tolist() == [[2.0 * c for c in range(120, 128)] + [0.0]]
    assert unowned.others(y[:, :128], 8, *parameters).shape == (1, 0), "whole groups, a whole tile"


def test_a_tile_from_the_other_place_is_zeros_where_there_is_none():
    right = torch.arange(70.0 * 40).reshape(70, 40) + 1
    got = hopper.mirrored(right)
    assert torch.equal(got[:64, :32], right[:64, :32])
    assert got[3, 32] == right[32 + 3, 0], "column 32 is taken for row 32"
    assert (got[64:, :32] == 0).all(), "there is no column 64"


def test_rows_that_are_mixed_up_have_every_second_column_of_each_other():
    values, beyond = torch.arange(1.0, 37).reshape(9, 4), torch.full((1, 4), 100.0)
    got = hopper.exchanged(values, beyond)
    assert got[0][got[0].isfinite()].tolist() == [1, 3, 33, 35], "rows 0 and 8"
    assert got[8][got[8].isfinite()].tolist() == [34, 36, 2, 4]
    assert got[1][got[1].isfinite()].tolist() == [5, 7, 100, 100], "there is no row 9"


def test_a_search_that_fails_does_not_cost_the_verdict(monkeypatch):
    exercise = catalog.load("00_start_here/swish")
    text = catalog.solution_text(exercise).replace("= x[i] /", "= 2 * x[i] /")

    def fails(*_):
        raise RuntimeError("as it were")

    monkeypatch.setattr(explain, "cause", fails)
    warned = pytest.warns(explain.HintFailed, match="no hint: RuntimeError: as it were")
    with warned, pytest.raises(CheckFailed, match="^wrong values: swish"):
        check(compile_wrong(exercise, text, "wrong"))
