"""Partial credit is for what a learner's kernels do, and not for looking as if they did."""

import pytest
from support.attacks import attempts, exercise_named

from utils.course import catalog, mutants
from utils.course.answers import compile_wrong
from utils.grading import points
from utils.ground.paths import ROOT
from utils.judge import credit
from utils.judge.credit import Credit

SEED = 12345
ATTACKS = {attempt.id: attempt for attempt in attempts(ROOT / "tests/attacks")}


def share(exercise, text: str) -> float:
    """Of the exercise's points, those that a kernel earns which did not pass its check."""
    got = credit.of_failed(compile_wrong(exercise, text, "credit"), SEED)
    return sum(points.earned(exercise, got).values()) / exercise.points


@pytest.fixture
def swish():
    return exercise_named("swish")


def test_right_values_that_the_host_computed_earn_nothing(swish):
    assert share(swish, ATTACKS["technique/swish__a_kernel_for_show"].text) == 0


def test_what_only_a_large_call_shows_to_be_the_launchers_work_earns_little():
    transpose = exercise_named("transpose")
    text = ATTACKS["technique/transpose__turned_by_copies_of_columns"].text
    assert share(transpose, text) <= 0.1


def test_what_is_right_at_small_sizes_earns_more_than_a_beginning(swish):
    text = catalog.solution_text(swish)
    blocks = "int blocks = (n + threads - 1) / threads;"
    assert blocks in text
    assert share(swish, text.replace(blocks, "int blocks = 1;")) > 0.2


def test_a_constant_earns_nothing(swish):
    (text,) = (m.text for m in mutants.mutants(swish) if m.name == "constant")
    assert share(swish, text) == 0


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("swish", "out[i] = x[i] / (1.0f + expf(-x[i]));", "out[i] = x[i];"),
        ("gemm_naive", "C[row * N + col] = sum;", "C[row * N + col] = 2 * sum;"),
    ],
)
def test_what_is_wrong_everywhere_earns_nothing(name, right, wrong):
    exercise = exercise_named(name)
    solution = catalog.solution_text(exercise)
    assert solution.count(right) == 1
    assert share(exercise, solution.replace(right, wrong)) == 0


def test_what_is_right_but_for_an_edge_earns_something(swish):
    guard = "if (i < n) {"
    text = catalog.solution_text(swish).replace(guard, "if (i < n - 1) {")
    assert 0 < share(swish, text) <= 0.1


def test_what_the_starter_does_earns_nothing():
    exercise = exercise_named("sum_tree")
    text = catalog.starter_text(exercise).replace(
        "if (t == 0) {", 'if (t == 0) {\n        printf("");'
    )
    assert not catalog.is_starter(exercise, text)
    got = credit.of_failed(compile_wrong(exercise, text, "credit"), SEED)
    assert got == Credit(like_starter=True)


def test_a_trick_that_only_many_calls_show_does_not_earn_all(swish):
    assert 0 < share(swish, ATTACKS["state/swish__zero_after_many_calls"].text) <= 0.75
