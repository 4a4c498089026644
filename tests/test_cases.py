"""Cases: every kind of value reaches the kernel, fresh from a seed, in the types it takes."""

import math
import random
from dataclasses import replace

import pytest
import torch
from support import toys
from torch import Generator

from utils.course import case_calls, case_changes, case_sizes, case_values, cases, catalog
from utils.course.exercise import dimensions
from utils.ground.errors import WorkbookError

SIZES = {"M": 40, "N": 30, "K": 50}


def draw(family: str, seed: int = 0, exercise=toys.GEMM, sizes=SIZES, **kwargs):
    return cases.sample(exercise, sizes, family, torch.Generator().manual_seed(seed), **kwargs)


def test_a_seed_gives_the_same_values_and_another_one_others():
    first, again, other = draw("uniform"), draw("uniform"), draw("uniform", seed=1)
    assert torch.equal(first.tensors["A"], again.tensors["A"])
    assert not torch.equal(first.tensors["A"], other.tensors["A"])


@pytest.mark.parametrize("family", ["shifted", "small", "constant", "infinite"])
def test_the_odd_kinds_are_of_the_first_tensor_alone(family):
    tensors = draw(family).tensors
    assert abs(float(tensors["B"].std()) - 1) < 0.1 and abs(float(tensors["B"].mean())) < 0.1


def test_each_kind_is_what_it_is_called():
    first = {family: draw(family).tensors["A"] for family in case_values.FAMILIES}
    assert first["shifted"].mean() > 900 and 0.9 < first["shifted"].std() < 1.1
    assert first["below zero"].max() < -900 and 0.5 < first["below zero"].std() < 0.7
    assert 0 < first["small"][0].var() < 1e-5  # GroupNorm's usual eps
    assert (first["constant"] == first["constant"][0, 0]).all() and first["constant"][0, 0] != 0
    infinities = first["infinite"].isinf().sum(dim=1)
    assert infinities.max() == 1 and 10 <= infinities.sum() <= 30  # of 40 rows
    nans = first["NaN"].isnan().sum(dim=1)
    assert nans.max() == 1 and 3 <= nans.sum() <= 20 and not first["NaN"].isinf().any()
    assert first["heavy-tailed"].abs().max() > 10 > 5 > first["standard normal"].abs().max()
    assert 0 <= first["uniform"].min() and first["uniform"].max() < 1
    scales = first["rows of any scale"].abs().amax(dim=1).log10()
    assert scales.max() - scales.min() > 6 and len(set(scales.round().tolist())) > 8


def test_nan_and_infinities_lie_near_the_ends_of_long_rows_too():
    for draw_ in case_values.not_numbers, case_values.infinite:
        x = draw_((400, 5000), Generator().manual_seed(0))
        _, columns = (~x.isfinite()).nonzero(as_tuple=True)
        near = [(columns < 8).float().mean(), (columns >= 4992).float().mean()]
        assert all(0.2 < share < 0.45 for share in near)


def test_kinds_of_rows_come_in_any_order_as_often_as_each_other():
    drawn = [case_values.in_turn(7, 3, Generator().manual_seed(seed), 1) for seed in range(60)]
    assert all(sorted(kinds.tolist()) == [0, 0, 1, 1, 1, 2, 2] for kinds in drawn)
    assert all(len({int(kinds[place]) for kinds in drawn}) == 3 for place in range(7))
    lone = [case_values.in_turn(1, 5, Generator().manual_seed(seed), 3) for seed in range(5)]
    assert [kinds.tolist() for kinds in lone] == [[3]] * 5


def test_scales_keep_to_what_an_exercise_promises():
    x = case_values.of_scales((4000, 1), Generator().manual_seed(0), low=1e-3, high=1e4)
    assert 1e-8 < x.abs().max() < 1e5
    lone = case_values.of_scales((1, 4000), Generator().manual_seed(0), low=1e-30, high=1e30)
    assert lone.abs().min() >= 0.99e-3 and lone.abs().max() <= 1.01e3


def test_every_size_meets_two_kinds_and_the_largest_meets_all():
    plan = list(cases.plan(toys.GEMM, toys.GEMM.at.check))
    assert [size for size, _ in plan] == list(toys.GEMM.at.check)
    assert [len(kinds) for _, kinds in plan] == [2, 2, 2, 18, 9]
    assert all(kinds[0] == "standard normal" for _, kinds in plan)


def twos(sizes, generator):
    return {"A": torch.full((sizes["M"], sizes["K"]), 2.0)}


def test_kinds_of_an_exercise_s_own_stand_beside_the_usual_ones():
    exercise = replace(toys.GEMM, kinds={"twos": twos})
    plan = list(cases.plan(exercise, exercise.at.check))
    usual = list(cases.plan(toys.GEMM, toys.GEMM.at.check))
    for (_, kinds), (_, before) in zip(plan, usual, strict=True):
        assert [kind for kind in kinds if kind != "twos"] == before
    assert ["twos" in kinds for _, kinds in plan] == [False] * 3 + [True] * 2
    tensors = draw("twos", exercise=exercise).tensors
    assert (tensors["A"] == 2).all() and tensors["B"].std() > 0.9
    assert draw("uniform", exercise=exercise).tensors["A"].max() < 1


def test_kinds_stand_beside_inputs_too_that_give_all():
    exercise = replace(toys.GEMM, shapes={"A": "M K", "C": "M N"}, inputs=twos)
    assert cases.families(exercise) == [case_values.OWN]
    exercise = replace(exercise, kinds={"threes": lambda *_: {"A": torch.full((1, 1), 3.0)}})
    assert cases.families(exercise) == [case_values.OWN, "threes"]
    assert all(kinds[-1] == "threes" for _, kinds in cases.plan(exercise, exercise.at.check))


def test_a_kind_with_a_corner_of_its_own_is_met_there_alone():
    at = replace(toys.GEMM.at, corners={"twos": {"M": 2, "N": 3, "K": 70_000}})
    exercise = replace(toys.GEMM, kinds={"twos": twos}, at=at)
    assert "twos" not in cases.families(exercise)
    assert not any("twos" in kinds for _, kinds in cases.plan(exercise, at.check))
    generator = Generator().manual_seed(0)
    assert {cases.any_family(exercise, generator) for _ in range(100)}.isdisjoint({"twos"})


def test_corners_are_of_kinds_that_their_exercises_have():
    cornered = [exercise for exercise in catalog.exercises() if exercise.at.corners]
    assert cornered
    for exercise in cornered:
        assert set(exercise.at.corners) <= set(exercise.kinds), exercise.id
        for sizes in exercise.at.corners.values():
            assert set(sizes) == set(exercise.at.check[0]), exercise.id


@pytest.mark.parametrize(
    ("family", "nans"), [("NaN", (True, False)), ("NaN elsewhere", (False, True))]
)
def test_nan_is_in_the_first_tensor_or_in_each_of_the_others_whatever_the_seed(family, nans):
    for seed in range(20):
        got = [bool(x.isnan().any()) for x in draw(family, seed).tensors.values()]
        assert tuple(got) == nans


def test_a_zero_meets_an_infinity_on_either_side_where_products_are_added():
    exercise = replace(toys.GEMM, products=True)
    assert case_values.ZERO_TIMES_INFINITY in cases.families(exercise)
    assert case_values.ZERO_TIMES_INFINITY not in cases.families(toys.GEMM)
    met = [draw(case_values.ZERO_TIMES_INFINITY, seed, exercise).tensors for seed in range(20)]
    for zeros, infinite in (("A", "B"), ("B", "A")):
        assert any((t[zeros] == 0).any() and t[infinite].isinf().any() for t in met)


def test_outliers_meet_zeros_and_ones():
    exercise = replace(toys.GEMM, shapes={"A": "M K", "B": "N K", "C": "M N"}, outliers=("A", "B"))
    assert cases.families(exercise)[-1] == case_values.OUTLIERS not in cases.families(toys.GEMM)
    holders = set()
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        sizes = {"M": 24, "N": 28, "K": 50}
        tensors = cases.sample(exercise, sizes, case_values.OUTLIERS, generator).tensors
        a, b = tensors["A"], tensors["B"]
        holder, wide, other = ("A", a, b) if a.abs().max() > 100 else ("B", b, a)
        holders.add(holder)
        column = int(wide.abs().amax(dim=0).argmax())
        exponents = wide[:, column].abs().log2()
        for shift in (0, 10, 20, 30):  # a quarter of the rows each
            assert ((exponents - shift).abs() < 9).sum() >= len(wide) // 5
        assert sorted(set(other[:, column].tolist())) == [0, 1]
        rest = torch.cat((wide[:, :column], wide[:, column + 1 :]), dim=1)
        assert rest.abs().max() < 6
    assert holders == {"A", "B"}


def test_an_exercise_of_one_tensor_has_no_other_to_hold_a_nan():
    alone = replace(toys.GEMM, shapes={"A": "M K", "C": "M N"})
    assert "NaN" in cases.families(alone)
    assert case_values.NAN_ELSEWHERE not in cases.families(alone)


def test_an_exercise_that_drops_nan_is_tried_on_none():
    plan = cases.plan(replace(toys.GEMM, drops_nan=True), toys.GEMM.at.check)
    assert [len(kinds) for _, kinds in plan] == [2, 2, 2, 16, 7]


SPANS = {"rows": (3, 9), "channels": (90, 200), "groups": (2, 7)}
GROUPED = replace(
    toys.GROUPNORM,
    follows={"groups": "channels"},
    at=replace(toys.GROUPNORM.at, drawn=(SPANS,), gates={"rows": 8, "channels": 64, "groups": 4}),
)


def test_sizes_are_drawn_within_their_spans_and_fit_each_other():
    met = [case_sizes.drawn(GROUPED, Generator().manual_seed(seed)) for seed in range(30)]
    assert len({str(sizes) for sizes in met}) > 20
    for (sizes,) in met:
        assert sizes["channels"] % sizes["groups"] == 0
        assert 3 <= sizes["rows"] <= 9 and 84 <= sizes["channels"] <= 200


def test_gates_are_read_at_multiples_of_the_known_sizes_and_at_none_of_these():
    met = [case_sizes.gate_sizes(GROUPED, Generator().manual_seed(seed)) for seed in range(200)]
    known = GROUPED.at.gates
    assert {sizes["channels"] / sizes["groups"] for sizes in met} == {8, 32}  # not 16
    factors = [{name: size // known[name] for name, size in sizes.items()} for sizes in met]
    met = {(f["rows"], f["channels"]) for f in factors}
    assert all(min(both) in (2, 3) for both in met)
    assert {rows for rows, _ in met} >= set(range(2, 8)) <= {channels for _, channels in met}
    assert max(max(both) for both in met) > 10  # where that is cheap


def test_groups_that_a_warp_goes_over_twice_are_not_halved_at_the_gates():
    long = replace(GROUPED, at=replace(GROUPED.at, gates={"rows": 4, "channels": 256, "groups": 4}))
    met = [case_sizes.gate_sizes(long, Generator().manual_seed(seed)) for seed in range(50)]
    assert {sizes["channels"] / sizes["groups"] for sizes in met} == {128}  # not 32


def test_at_the_gates_a_row_is_never_a_single_group():
    two = replace(GROUPED, at=replace(GROUPED.at, gates={"rows": 1, "channels": 256, "groups": 2}))
    for seed in range(200):
        assert case_sizes.gate_sizes(two, Generator().manual_seed(seed), edges=True)["groups"] > 1


def test_gates_are_read_at_no_dear_size_where_a_cost_grows_with_the_square():
    square = replace(toys.GEMM, flops=lambda M, N, K: 1000 * M * M)
    square = replace(square, at=replace(square.at, gates={"M": 100, "N": 1, "K": 1}))
    met = [case_sizes.gate_sizes(square, Generator().manual_seed(seed)) for seed in range(300)]
    assert {sizes["M"] for sizes in met} == {200}  # not 700, at 49 times the cost
    assert {sizes["N"] for sizes in met} == set(range(2, 8))


def test_a_part_of_a_tile_costs_what_a_whole_one_does():
    tiled = replace(toys.GEMM, at=replace(toys.GEMM.at, tiles={"M": 64}))
    whole, part, beyond = (
        case_sizes.cost(tiled, {"M": M, "N": 500, "K": 500}) for M in (64, 1, 65)
    )
    assert 0.9 * whole < part < whole < 0.6 * beyond
    assert case_sizes.cost(toys.GEMM, {"M": 1, "N": 500, "K": 500}) < 0.6 * whole


def test_no_length_is_that_of_the_gates_even_where_each_multiplies_the_cost():
    gates = {"M": 128, "N": 128, "K": 128}
    gemm = replace(toys.GEMM, at=replace(toys.GEMM.at, gates=gates))
    met = [case_sizes.gate_sizes(gemm, Generator().manual_seed(seed)) for seed in range(100)]
    assert all(sizes[name] > known for sizes in met for name, known in gates.items())
    most = 12 * case_sizes.cost(gemm, gates)
    assert all(case_sizes.cost(gemm, sizes) <= most for sizes in met)


def test_at_an_edge_no_size_is_a_multiple_of_a_tile():
    for seed in range(100):
        whole, edge = (
            case_sizes.gate_sizes(GROUPED, Generator().manual_seed(seed), edges)
            for edges in (False, True)
        )
        group = whole["channels"] // whole["groups"]
        assert edge["channels"] == group * edge["groups"]  # a group is as long
        assert edge["groups"] == whole["groups"] - 1 and edge["groups"] % 2
        if whole["rows"] < 32:
            assert edge["rows"] == whole["rows"]
        else:
            assert edge["rows"] % 16 == 8 and 0 < whole["rows"] - edge["rows"] < 24


def test_where_no_size_is_long_enough_for_an_edge_it_is_left_out():
    short = replace(GROUPED, at=replace(GROUPED.at, gates={"rows": 1, "channels": 63, "groups": 1}))
    seen = set()
    for seed in range(100):
        whole, edge = (
            case_sizes.gate_sizes(short, Generator().manual_seed(seed), edges)
            for edges in (False, True)
        )
        able = whole["rows"] >= 32 or whole["groups"] % 2 == 0
        assert (edge != whole) == able
        seen.add(able)
    assert seen == {True, False}


def test_gates_are_read_at_any_of_the_sizes_that_are_left_open():
    at = replace(toys.GROUPNORM.at, gates=GROUPED.at.gates, gated={"groups": (3, 5)})
    open_ = replace(toys.GROUPNORM, shapes={"x": "rows channels"}, follows={}, at=at)
    met = [case_sizes.gate_sizes(open_, Generator().manual_seed(seed)) for seed in range(60)]
    assert {sizes["groups"] for sizes in met} == {3, 4, 5}


def test_a_size_of_few_values_has_one_of_them_wherever_sizes_are_drawn():
    at = replace(toys.GEMM.at, choices={"K": (16, 64)}, gates={"M": 8, "N": 8, "K": 16})
    few = replace(toys.GEMM, at=at)
    assert case_sizes.lengths(few) == ["M", "N"]
    for seed in range(30):
        generator = Generator().manual_seed(seed)
        assert case_sizes.gate_sizes(few, generator)["K"] == 16
        long = case_sizes.long_sizes(few, "M", (100, 200), generator)
        assert long["M"] >= 100 and long["N"] < 4 and long["K"] in (16, 64)


def test_small_rows_have_deviations_from_a_thousandth_to_a_tenth():
    x = case_values.small((400, 64), Generator().manual_seed(0))
    deviations = x.std(dim=1)
    assert 7e-4 < deviations[::2].min() and deviations[::2].max() < 1.4e-3
    spread = deviations[1::2].log10()
    assert spread.min() < -2.8 and spread.max() > -1.2
    assert 0.4 < ((spread > -2.3) & (spread < -1.3)).double().mean() < 0.6


def test_a_flag_is_tried_both_ways_and_no_length_of_a_tensor_is_one():
    at = replace(toys.GEMM.at, choices={"K": (16, 64), "causal": (0, 1)})
    sizes = {"M": 3, "N": 4, "K": 16, "causal": 1}
    both = case_sizes.with_each_flag(replace(toys.GEMM, at=at), sizes)
    assert both == [{**sizes, "causal": 0}, sizes]
    assert case_sizes.with_each_flag(toys.GEMM, sizes) == [sizes]


def test_sizes_are_drawn_from_all_that_is_promised_within_a_cost():
    met = [
        case_sizes.anywhere(toys.GEMM, Generator().manual_seed(seed), 1e6) for seed in range(200)
    ]
    assert all(case_sizes.cost(toys.GEMM, sizes) <= 1e6 for sizes in met)
    for name in "MNK":
        values = sorted(sizes[name] for sizes in met)
        most = case_sizes.promised(toys.GEMM, name)
        assert values[0] == 1 and values[-1] > most / 4 and values[-1] <= most
        far = [
            case_sizes.anywhere(toys.GEMM, Generator().manual_seed(seed), 1e6, far=name)[name]
            for seed in range(50)
        ]
        assert min(far) >= most**0.5 - 1 and sum(size > most / 2 for size in far) > 5


def test_the_dearest_of_several_draws_is_as_good_as_always_large():
    long, most = replace(toys.SUM, at=replace(toys.SUM.at, bench={"n": 10**7})), 1e6
    longest = most / case_sizes.cost(long, {"n": 10**6}) * 10**6
    met = [
        case_sizes.dearest_of(3, long, Generator().manual_seed(seed), most, "n")["n"]
        for seed in range(100)
    ]
    assert max(met) <= longest
    assert sum(n > longest**0.8 for n in met) >= 90


def test_a_matrix_is_large_as_a_whole_in_every_second_draw_of_a_large_size():
    at = replace(toys.GEMM.at, bench={"M": 4096, "N": 4096, "K": 4096})
    exercise, most = replace(toys.GEMM, at=at), 1e6
    met = [
        case_sizes.anywhere(exercise, Generator().manual_seed(seed), most, far="M")
        for seed in range(200)
    ]
    large = [sizes for sizes in met if sizes["M"] * max(sizes["N"], sizes["K"]) > 50_000]
    assert len(large) > 80  # of 100,000 at most; 35 where the size that is far is large alone
    assert len({max("NK", key=sizes.get) for sizes in large}) == 2


def test_a_size_of_no_tensor_is_small_in_every_second_draw():
    blocks = {"n": 1000, "blocks": 1024}
    exercise = replace(toys.MISH, at=replace(toys.MISH.at, check=(blocks,), bench=blocks))
    met = [
        case_sizes.anywhere(exercise, Generator().manual_seed(seed), 1e7)["blocks"]
        for seed in range(200)
    ]
    assert 90 < sum(number <= 6 for number in met) < 150  # 55 where all are as likely
    assert max(met) > 500


def test_sizes_that_follow_another_divide_it_wherever_they_are_drawn():
    for seed in range(100):
        sizes = case_sizes.anywhere(GROUPED, Generator().manual_seed(seed), 1e5)
        assert sizes["channels"] % sizes["groups"] == 0
        narrow = replace(GROUPED, at=replace(GROUPED.at, part=8))
        sizes = case_sizes.anywhere(narrow, Generator().manual_seed(seed), 1e5)
        assert sizes["channels"] <= 8 * sizes["groups"]


def test_one_draw_of_a_few_has_whole_vectors_in_each_size_and_in_each_part():
    """Fast paths want that, and of sizes drawn evenly one draw of 64 has it in M, N and K."""
    draws = [
        case_sizes.anywhere(toys.GEMM, Generator().manual_seed(seed), 1e7) for seed in range(200)
    ]
    long = [sizes for sizes in draws if min(sizes.values()) >= 4]
    whole = sum(all(size % 4 == 0 for size in sizes.values()) for sizes in long)
    assert 0.4 <= whole / len(long) <= 0.65
    for draw in case_sizes.anywhere, case_sizes.all_large:
        drawn = [draw(GROUPED, Generator().manual_seed(seed), 1e6) for seed in range(200)]
        parts = [sizes["channels"] // sizes["groups"] for sizes in drawn if sizes["channels"] >= 4]
        assert all(sizes["channels"] % sizes["groups"] == 0 for sizes in drawn)
        assert sum(part in (4, 8, 16, 32, 64, 128) for part in parts) >= len(parts) / 3


def test_one_draw_of_four_lies_beside_whole_blocks():
    """An error for one element more than a block, or one less, shows in one of 64 even draws."""
    at = replace(toys.GEMM.at, bench={"M": 4096, "N": 4096, "K": 4096})
    exercise = replace(toys.GEMM, at=at)
    draws = [
        case_sizes.anywhere(exercise, Generator().manual_seed(seed), 1e7)["K"]
        for seed in range(400)
    ]
    assert max(draws) <= 4096
    long = [size for size in draws if size > 64]
    beside = [size for size in long if size % 32 in (1, 31)]
    assert 0.15 <= len(beside) / len(long) <= 0.4  # 1/16 where all are as likely
    assert {size % 32 for size in beside} == {1, 31}
    for seed in range(100):
        sizes = case_sizes.anywhere(GROUPED, Generator().manual_seed(seed), 1e6)
        assert sizes["channels"] % sizes["groups"] == 0 and sizes["channels"] > 0


def test_sizes_of_a_span_lie_beside_whole_blocks_every_second_time_if_it_has_some():
    at = replace(toys.MISH.at, drawn=({"n": (300, 500)}, {"n": (70, 80)}))
    exercise = replace(toys.MISH, at=at)
    met = [case_sizes.drawn(exercise, Generator().manual_seed(seed)) for seed in range(200)]
    wide, narrow = ([sizes[i]["n"] for sizes in met] for i in range(2))
    assert min(wide) >= 300 and max(wide) <= 500 and min(narrow) >= 70 and max(narrow) <= 80
    assert sum(n % 32 in (0, 1, 31) for n in wide) > 80  # 19 where all are as likely


def test_sizes_that_were_drawn_meet_other_values_every_second_time():
    own = {"threes": lambda sizes, generator: {"A": torch.full((1, 1), 3.0)}}
    exercise, generator = replace(toys.GEMM, kinds=own), Generator().manual_seed(0)
    met = [cases.any_family(exercise, generator) for _ in range(400)]
    assert 160 < met.count(case_values.NORMAL) < 240 and 70 < met.count("threes") < 140
    assert set(met) == {case_values.NORMAL, "threes", *cases.UNROUNDED} & {
        *cases.families(exercise)
    }
    exact = replace(exercise, exact=True)
    met = [cases.any_family(exact, generator) for _ in range(1000)]
    assert set(met) == set(cases.families(exact))
    alone = replace(toys.MISH, inputs=lambda sizes, generator: {"x": torch.ones(sizes["n"])})
    assert cases.any_family(alone, generator) == case_values.OWN


def test_tensors_but_the_first_are_large_where_there_are_two():
    tensors = draw(case_values.LARGE_ELSEWHERE).tensors
    assert tensors["A"].abs().max() < 10 and tensors["B"].abs().min() >= 100


def test_whole_vectors_leave_each_size_large_where_none_is_to_be_small():
    draws = [
        case_sizes.all_large(toys.GEMM, Generator().manual_seed(seed), 5e6) for seed in range(200)
    ]
    whole = [sizes for sizes in draws if all(size % 4 == 0 for size in sizes.values())]
    longest = max(size for sizes in draws for size in sizes.values())
    least = min(size for sizes in whole for size in sizes.values())
    assert len(whole) > 60
    assert least > 0.8 * longest**case_sizes.NEARLY


def test_some_sizes_are_equal_or_round_as_people_have_them():
    draws = [
        case_sizes.anywhere(toys.GEMM, Generator().manual_seed(seed), 1e6) for seed in range(400)
    ]
    met = [case_sizes.as_met(toys.GEMM, sizes, 1e6) for sizes in draws]
    assert all(case_sizes.cost(toys.GEMM, sizes) <= 1e6 for sizes in met)
    assert met == [case_sizes.as_met(toys.GEMM, sizes, 1e6) for sizes in draws]
    large = [sizes for sizes in met if min(sizes.values()) > 8]
    for one, other in ("MN", "MK", "NK"):
        assert sum(sizes[one] == sizes[other] for sizes in large) > len(large) / 4
    assert sum(len({*sizes.values()}) == 1 for sizes in large) > len(large) / 10
    for shape in (lambda n: n & (n - 1), lambda n: n & (n + 1), lambda n: n % 10):
        assert sum(shape(sizes["K"]) == 0 for sizes in large) > len(large) / 20
    assert case_sizes.as_met(toys.GEMM, {"M": 1, "N": 1, "K": 1}, 1e6)["K"] == 1
    apart = [case_sizes.as_met(toys.GEMM, sizes, 1e6, equal=0) for sizes in draws]
    assert sum(a == b for a, b in zip(apart, draws, strict=True)) > 200


def test_squares_are_as_large_as_a_cost_allows():
    draws = [case_sizes.square(toys.GEMM, Generator().manual_seed(seed), 1e5) for seed in range(99)]
    for sizes in draws:
        assert case_sizes.cost(toys.GEMM, sizes) <= 1e5
        assert len({*sizes.values()}) < 3 and sorted(sizes.values())[1] > 16
    pairs = [("M", "N"), ("M", "K"), ("N", "K")]
    assert all(any(sizes[a] == sizes[b] for sizes in draws) for a, b in pairs)
    for seed in range(99):
        sizes = case_sizes.square(GROUPED, Generator().manual_seed(seed), 1e5)
        assert sizes["rows"] == sizes["channels"] and sizes["channels"] % sizes["groups"] == 0


def test_equal_sizes_keep_what_follows_and_what_there_is_a_choice_of():
    at = replace(toys.GEMM.at, choices={"K": (16, 64)}, bench={"M": 200, "N": 200, "K": 64})
    few = replace(toys.GEMM, at=at)
    for seed in range(100):
        generator = Generator().manual_seed(seed)
        sizes = case_sizes.as_met(few, case_sizes.anywhere(few, generator, 1e6), 1e6)
        assert sizes["K"] in (16, 64) and max(sizes["M"], sizes["N"]) <= 200
        sizes = case_sizes.as_met(GROUPED, case_sizes.all_large(GROUPED, generator, 1e6), 1e6)
        assert sizes["channels"] % sizes["groups"] == 0


def orders(exercise, family=case_values.NORMAL, count=200):
    """The first tensor of cases in all orders, by what is said of them."""
    firsts = {}
    for seed in range(count):
        sizes = SIZES if exercise.name == "gemm" else exercise.at.check[-1]
        case = draw(family, seed, exercise, sizes)
        case = cases.arranged(exercise, case, random.Random(seed))
        firsts.setdefault(case.order, next(iter(case.tensors.values())))
    return firsts


def test_values_are_put_into_orders_that_draws_hardly_ever_have():
    met = orders(toys.GEMM)
    assert {"", "rows equal in pairs"} < {*met} and not any("rising" in note for note in met)
    A = met["rows equal in pairs"]
    assert torch.equal(A[::2], A[1::2]) and not torch.equal(A[0], A[2])
    alternating = next(A for note, A in met.items() if "A of alternating signs" in note)
    assert (alternating[:, ::2] > 0).all() and (alternating[:, 1::2] < 0).all()
    cancels = next(A for note, A in met.items() if "A that cancels" in note)
    assert torch.equal(cancels[:, ::2], -cancels[:, 1::2])
    zeros = next(A for note, A in met.items() if "A with zeros" in note)
    assert 0.3 < (zeros == 0).double().mean() < 0.5
    met = orders(toys.GROUPNORM)
    assert any("weight of one value" in note for note in met)
    assert {*orders(toys.GEMM, "infinite")} == {"", "rows equal in pairs"}
    met = orders(replace(toys.GEMM, exact=True))
    rising = next(A for note, A in met.items() if "A rising" in note)
    assert (rising.diff() >= 0).all() and rising[0, 0] != rising[1, 0]


def test_signs_alternate_in_short_rows_alone(monkeypatch):
    """A kernel that adds every second element apart is right, and not to be refused."""
    width = SIZES["K"]
    for most, alternates in ((width, True), (width - 1, False)):
        monkeypatch.setattr(cases, "LONG_ROW", most)
        met = [order for order in orders(toys.GEMM) if "A " in order]
        assert any("A of alternating signs" in order for order in met) == alternates
        assert any("A that cancels" in order for order in met)


def test_values_that_an_exercise_promises_something_of_stay_in_their_rows():
    own = replace(toys.GEMM, inputs=lambda sizes, generator: twos(sizes, generator))
    assert all((A == 2).all() for A in orders(own).values())
    together = replace(toys.GEMM, hang_together=True)
    assert {*orders(together)} == {""}
    kinds = replace(toys.GEMM, kinds={"twos": twos})
    assert {*orders(kinds, "twos")} == {""}


def test_values_far_from_one_have_the_magnitudes_of_the_exercise():
    exercise = replace(toys.MISH, magnitudes=(1e-30, 1e30))
    large = draw("large", exercise=exercise, sizes={"n": 1000}).tensors["x"].abs()
    tiny = draw("tiny", exercise=exercise, sizes={"n": 1000}).tensors["x"].abs()
    assert 99 <= large.min() and 1e25 < large.max() <= 1.001e30
    assert 0.999e-30 <= tiny.min() < 1e-27 and tiny.max() <= 1.001e-6


def test_what_the_exercise_draws_itself_is_taken_as_it_is():
    ones = lambda sizes, generator: {"A": torch.ones(sizes["M"], sizes["K"])}  # noqa: E731
    exercise = replace(toys.GEMM, inputs=ones)
    tensors = draw("uniform", exercise=exercise).tensors
    assert (tensors["A"] == 1).all() and 0 <= tensors["B"].min()
    whole = replace(toys.MISH, inputs=lambda sizes, generator: {"x": torch.ones(sizes["n"])})
    assert {kind for _, kinds in cases.plan(whole, whole.at.check) for kind in kinds} == {
        case_values.OWN
    }
    assert (cases.usual(exercise), cases.usual(whole)) == (case_values.NORMAL, case_values.OWN)


def test_the_reference_sees_the_values_that_the_kernel_sees():
    tensors = draw("standard normal", dtypes={"A": torch.float16}).tensors
    assert tensors["A"].dtype == torch.float16 and tensors["B"].dtype == torch.float32


def test_scalars_are_floats_from_their_range_over_all_its_magnitudes():
    sizes = toys.GROUPNORM.at.check[0]
    drawn = [draw("uniform", i, toys.GROUPNORM, sizes).scalars["eps"] for i in range(50)]
    assert all(1e-6 <= eps * 1.001 and eps <= 1.001e-3 for eps in drawn)
    assert min(drawn) < 1e-5 and max(drawn) > 1e-4
    assert all(torch.tensor(eps).item() == eps for eps in drawn)  # float32 holds it
    ends = [sum(abs(eps / end - 1) < 1e-6 for eps in drawn) for end in (1e-6, 1e-3)]
    assert all(5 <= number <= 20 for number in ends)  # where a bound on eps shows


def test_a_shape_may_hold_numbers_and_be_empty():
    assert dimensions("M 4", {"M": 3}) == (3, 4)
    assert dimensions("", {}) == ()
    with pytest.raises(WorkbookError, match="'M P' needs a size that is not given: 'P'"):
        dimensions("M P", {"M": 3})


def test_tensors_that_begin_a_quad_late_hold_the_same():
    before = {"x": torch.randn(3, 5), "n": 5, "bytes": torch.ones(7, dtype=torch.int8)}
    late = case_calls.a_quad_late(before, ["x", "bytes"])
    assert late["n"] == 5 and list(late) == list(before)
    assert case_calls.a_quad_late(before, ["x"])["bytes"] is before["bytes"]
    for name in "x", "bytes":
        assert torch.equal(late[name], before[name]) and late[name].is_contiguous()
        assert late[name].data_ptr() % 32 == 16


def test_a_slice_begins_one_element_late_and_holds_the_same():
    x = torch.randn(3, 5)
    cut = case_calls.sliced(x)
    assert torch.equal(cut, x) and cut.is_contiguous()
    assert cut.data_ptr() % 16 == 4 and cut.untyped_storage().nbytes() == 4 * 16


def test_a_tiny_size_is_a_few_of_each_and_keeps_what_follows():
    drawn = [case_sizes.tiny(GROUPED, Generator().manual_seed(seed)) for seed in range(60)]
    largest = {max(sizes.values()) for sizes in drawn}
    assert {3, 5, 7} < largest <= set(range(1, 8))
    assert all(sizes["channels"] % sizes["groups"] == 0 for sizes in drawn)


def test_every_second_draw_has_a_nan_in_the_last_element_of_all():
    drawn = [case_values.not_numbers((40, 100), Generator().manual_seed(s)) for s in range(60)]
    assert 18 < sum(bool(x[-1, -1].isnan()) for x in drawn) < 45
    lone = [case_values.not_numbers((1, 100), Generator().manual_seed(s)) for s in range(60)]
    assert 18 < sum(bool(x[0, -1].isnan()) for x in lone) < 55


def test_the_largest_of_tiny_values_is_of_any_decade():
    exercise = replace(toys.MISH, magnitudes=(1e-30, 1e30))
    largest = [
        float(draw("tiny", seed, exercise, {"n": 1000}).tensors["x"].abs().max())
        for seed in range(40)
    ]
    assert min(largest) < 1e-21 and max(largest) > 1e-10 and max(largest) <= 1.001e-6


def test_an_input_may_be_the_first_row_of_another_where_nothing_is_promised_of_them():
    matvec = replace(toys.GEMM, shapes={"A": "M K", "B": "K", "C": "M"})
    case = cases.sample(matvec, {"M": 3, "N": 1, "K": 4}, "whole", Generator().manual_seed(0))
    assert cases.parts(matvec, case) == [("A", "B")] and cases.alike(matvec, case) == []
    assert cases.parts(replace(matvec, hang_together=True), case) == []
    assert cases.parts(toys.GEMM, draw("whole")) == []


@pytest.mark.parametrize("largest", [1.0, 3.3e38, math.inf])
def test_an_element_that_changes_is_finite_and_no_smaller_than_all_others(largest):
    x = torch.tensor([1.0, 0.0, largest, 2.0, -1.0])
    first = replace(draw("whole"), tensors={"A": x})
    other = replace(first, tensors={"A": torch.tensor([0.0, -0.0, 0.0, math.nan, 0.0])})
    for seed in range(12):
        changed = case_changes.in_one_element(first, other, Generator().manual_seed(seed))
        (place,) = (changed.tensors["A"] != x).nonzero().tolist() or ([2],)
        assert 0 < place[0] < 4  # neither the first nor the last
        element = changed.tensors["A"][place[0]].abs()
        assert element.isfinite() and element >= x.where(x.isfinite(), 0).abs().max()


def test_whole_tiles_of_zeros_meet_infinities():
    met = [case_values.with_gap((48, 64), torch.Generator().manual_seed(seed)) for seed in range(8)]
    gaps = [((x == 0).all(dim=0).sum().item(), (x == 0).all(dim=1).sum().item()) for x in met]
    assert {(32, 0), (0, 24)} == set(gaps)
    assert (case_values.with_gap((1,), torch.Generator()) == 0).all()


def test_an_input_may_be_the_beginning_of_another():
    exercise = replace(toys.GEMM, shapes={"A": "M K", "B": "N K", "C": "M N"})
    sizes = case_sizes.with_fewer_rows(exercise, {"M": 8, "N": 8, "K": 8})
    assert sizes == {"M": 4, "N": 8, "K": 8}
    case = cases.sample(exercise, sizes, "uniform", torch.Generator())
    assert cases.beginnings(exercise, case) == [("B", "A")]
    assert cases.alike(exercise, case) == cases.parts(exercise, case) == []
