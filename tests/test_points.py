"""Points for speed are a part of an answer's points where it was timed, and nobody's loss else."""

import json
from dataclasses import replace

import pytest
from support.attacks import exercise_named

from utils.course.answers import Answer
from utils.cuda.kernel import Kernel
from utils.grading import assess, grade, points
from utils.grading.grade import Terms
from utils.grading.grades import Assessment, Mark, timed
from utils.grading.records import Record
from utils.grading.verdicts import Status
from utils.judge import credit
from utils.judge.credit import Credit
from utils.timing import measure, speed
from utils.timing.speed import Speed

EVERYTHING = Credit(*[True] * 6)
GPU = "NVIDIA H200"


@pytest.fixture(params=["with gates", "without"])
def exercise(request):
    chosen = exercise_named("swish")
    return chosen if request.param == "with gates" else replace(chosen, gates=())


@pytest.mark.parametrize("tenths", [None, 10.0])
def test_the_total_is_the_same_with_a_gpu_and_without(exercise, tenths):
    worth = points.shares(exercise, timed=tenths is not None)
    assert sum(worth.values()) == pytest.approx(1) and min(worth.values()) > 0
    earned = points.earned(exercise, EVERYTHING, tenths)
    assert sum(earned.values()) == pytest.approx(exercise.points)


def test_a_slow_answer_loses_points_for_speed_alone(exercise):
    earned, fast = (points.earned(exercise, EVERYTHING, tenths) for tenths in (3.5, 10.0))
    lost = {part: fast[part] - earned[part] for part in fast if fast[part] != earned[part]}
    assert lost == {"speed": pytest.approx(0.65 * points.SPEED * exercise.points)}


@pytest.mark.parametrize("part", ["works", "small", "all", "clean"])
def test_what_is_fast_and_wrong_earns_none(exercise, part):
    assert points.earned(exercise, replace(EVERYTHING, **{part: False}), 10.0)["speed"] == 0


def test_debugging_is_not_timed():
    exercise = exercise_named("laplace")
    assert "speed" not in points.earned(exercise, EVERYTHING, 10.0)


# --- what the notebook's kernel is asked for


@pytest.fixture
def report(monkeypatch):
    """What is told of an answer to swish: report(passed, backend), with these things made up."""
    monkeypatch.setattr(measure, "gpu", lambda: GPU)
    timing = Speed(GPU, 3.5, seconds=2e-3, reference=1e-3, calls=10)
    monkeypatch.setattr(speed, "beside_the_solution", lambda kernel: timing)

    def report(passed=True, backend="cuda", unknown="", name="swish"):
        outcome = Credit(*[passed] * 6, unknown=unknown)
        for which in ("of_passed", "of_failed"):
            monkeypatch.setattr(credit, which, lambda kernel, seed: outcome)
        monkeypatch.setattr(assess, "_examined", lambda made, kernel: made)
        exercise = exercise_named(name)
        kernel = Kernel(exercise.name, "", backend, None, (), "0", exercise.shapes)
        return json.loads(assess.assess(Answer(**vars(kernel), exercise=exercise), passed))

    return report


def test_a_right_answer_is_timed_on_a_gpu(report):
    assert (report()["speed"]["tenths"], report()["speed"]["ratio"]) == (3.5, 2)


def test_without_a_gpu_nothing_is_timed(report):
    assert "speed" not in report(backend="emulator")


@pytest.mark.parametrize("failing", [{"passed": False}, {"unknown": "wrong values"}])
def test_what_is_wrong_is_not_timed_and_gets_no_points(report, failing):
    speed = report(**failing)["speed"]
    assert speed["tenths"] == 0 and speed["gpu"] == GPU and not speed["seconds"]


def test_a_kernel_to_be_fixed_is_not_timed(report):
    assert "speed" not in report(name="laplace")


# --- what becomes of it in a grade


@pytest.fixture
def graded(monkeypatch, tmp_path):
    """The grade of an answer to swish of which this was told of its speed."""

    def graded(said="", **speed):
        assessed = Assessment(EVERYTHING, Speed(**speed) if speed else None).to_json()
        swish = exercise_named("swish")
        status = Status.FAILED if said else Status.PASSED
        record = Record.of_exercise(swish, status, said, assessed=assessed)
        monkeypatch.setattr(grade, "_judged", lambda *_: {swish.id: record})
        (tmp_path / "swish.cu").write_text("void swish() {}")
        return grade.grade(tmp_path, Terms(("00_start_here",), "s", str(tmp_path), boxed=False))

    return graded


def test_a_grade_has_the_points_for_speed_and_says_where_it_was_timed(graded):
    made = graded(gpu=GPU, tenths=5.0, message="")
    assert made.timed == GPU and made.points == 4.75
    assert made.exercises[0].parts["speed"] == 0.25
    assert made.exercises[0].speed.gpu == GPU


def test_a_grade_of_a_machine_without_a_gpu_is_whole_and_says_so(graded):
    made = graded()
    assert made.timed == "" and made.points == 5
    assert "speed" not in made.exercises[0].parts


def test_what_could_not_be_timed_costs_nothing(graded):
    made = graded(gpu=GPU, tenths=None, message="there is too little memory")
    assert made.timed == "" and made.points == 5


@pytest.mark.parametrize(
    ("reason", "part"),
    [("race", "clean"), ("gate", "gates"), ("wrong values", "all"), ("not written", "all")],
)
def test_what_the_check_has_met_is_not_earned(graded, reason, part):
    """Else a report of a race stands below points for having none."""
    (mark, *_) = graded(f"{reason}: so").exercises
    assert [name for name, earned in mark.parts.items() if not earned] == [part]


def mark(parts: dict[str, float], speed: Speed | None = None) -> Mark:
    return Mark.of_exercise(exercise_named("swish"), parts=parts, speed=speed)


def test_a_grade_of_which_a_part_was_timed_says_so():
    marks = [mark({"works": 1}, Speed(GPU, tenths)) for tenths in (0.0, None)]
    assert timed(marks) == f"{GPU}, partly"
    assert timed(marks[:1]) == GPU and timed(marks[1:]) == ""


def test_a_grade_in_which_nothing_could_have_been_timed_says_nothing():
    assert timed([mark({"named": 4, "fixed": 6}), mark({})]) is None
