"""What a spec need not say: the bytes of a call, and which kernels climb one ladder."""

import math
from dataclasses import replace

import pytest
from support import toys

from utils.course import catalog
from utils.course.exercise import At, Exercise, dimensions, inputs_of
from utils.cuda.signature import parse_launcher
from utils.ground.errors import WorkbookError


def test_a_call_reads_each_input_and_writes_each_output_once():
    assert toys.GEMM.bytes(M=2, N=3, K=5) == 4 * (2 * 5 + 5 * 3 + 2 * 3)
    assert toys.SUM.bytes(n=10) == 4 * (10 + 1), "a single value has no dimensions"
    assert toys.FUSED.bytes(M=2, N=3, K=5, groups=1) == 4 * (2 * 5 + 3 * 5 + 3 * 3 + 2 * 3)


@pytest.mark.parametrize("topic", catalog.topics())
def test_an_exercise_stands_in_a_notebook_of_its_own_topic(topic):
    """Also one that a spec makes of another topic's."""
    homes = {exercise.notebook for exercise in catalog.topic(topic).values()}
    assert {catalog.topic_of(home) for home in homes} <= {topic}


def test_what_is_read_and_written_counts_twice():
    assert toys.AXPY.bytes(n=10) == 3 * 4 * 10


def test_a_spec_may_say_other_bytes():
    doubles = replace(toys.MISH, traffic=lambda n: 16 * n)
    assert (toys.MISH.bytes(n=10), doubles.bytes(n=10)) == (80, 160)


def test_a_dimension_without_a_size_is_named():
    with pytest.raises(WorkbookError, match="'M K' needs a size that is not given: 'K'"):
        toys.GEMM.bytes(M=1, N=1)


@pytest.mark.parametrize("exercise", catalog.exercises(), ids=lambda exercise: exercise.id)
def test_no_spec_says_what_its_tensors_say(exercise):
    if exercise.traffic is None:
        return
    sizes = exercise.at.bench
    said = exercise.bytes(**sizes)
    assert said != replace(exercise, traffic=None).bytes(**sizes), "it goes without saying"
    parameters = parse_launcher(catalog.solution_text(exercise), exercise.name)
    width = {p.name: p.dtype.itemsize for p in parameters if p.is_tensor}
    shapes = {name: dimensions(exercise.shapes[name], sizes) for name in width}
    needed = [
        name for name in inputs_of(exercise) if exercise.must_read.get(name, 1)
    ]  # more than none
    moved = [*needed, *exercise.outputs]
    derived = sum(width[name] * math.prod(shapes[name]) for name in moved)
    assert abs(said - derived) <= 0.01 * said


def test_rungs_are_the_kernels_of_a_name_in_the_order_of_the_chapters(monkeypatch):
    def rung(name: str, ladder: str) -> Exercise:
        return replace(toys.MISH, name=name, ladder=ladder)

    known = {
        "01_a": {name: rung(name, ladder) for name, ladder in (("slow", "x"), ("other", "y"))},
        "02_b": {name: rung(name, ladder) for name, ladder in (("fast", "x"), ("lone", ""))},
    }
    monkeypatch.setattr(catalog, "topics", lambda: list(known))
    monkeypatch.setattr(catalog, "topic", known.get)
    slow, other, fast, lone = catalog.exercises()
    assert catalog.rungs(slow) == catalog.rungs(fast) == [slow, fast]
    assert catalog.rungs(other) == [other]
    assert catalog.rungs(lone) == [lone], "no name is no ladder"


def test_a_broken_kernel_is_a_rung_of_no_ladder_but_its_own():
    race = catalog.load("02_shared_memory_tiling/gemm_tiled_race")
    tiled = catalog.load("02_shared_memory_tiling/gemm_tiled")
    assert race.faulty and race.ladder == tiled.ladder
    assert tiled in catalog.rungs(tiled) and race not in catalog.rungs(tiled)
    assert race in catalog.rungs(race), "its own bench shows it, below those before it"


def test_rungs_have_the_same_tensors():
    for exercise in catalog.exercises():
        first = catalog.rungs(exercise)[0]
        assert (exercise.shapes, exercise.outputs) == (first.shapes, first.outputs)
        assert exercise.library == first.library


def test_hints_stand_below_their_headings(root):
    twice = catalog.load("01_pairs/twice")
    assert catalog.hints(twice) == ("Add.", "Or multiply.")
    text = "Not a hint.\n\n## First\n\nOne,\n\n### and more\n\n## Second\nTwo.\n"
    catalog.hints_path(twice).write_text(text)
    assert catalog.hints(twice) == ("One,\n\n### and more", "Two.")
    assert catalog.hints(catalog.load("01_pairs/copy")) == ()


def test_a_spec_that_was_written_anew_is_read_anew(root):
    assert catalog.load("01_pairs/twice").title == "y = 2 x"
    path = root / "kernels/01_pairs/spec.py"
    path.write_text(path.read_text().replace("y = 2 x", "y = x + x"))
    assert catalog.load("01_pairs/twice").title == "y = x + x"


def test_sizes_are_shared_and_replaced():
    at = At(check=({"n": 1},), bench={"n": 8})
    assert replace(at, bench={"n": 9}).check is at.check and at.draw == at.gates == {}
