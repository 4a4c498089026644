"""The bound on rounding, made in steps: it is that of the formula, and no step before is larger."""

import itertools
from dataclasses import replace

import pytest
import torch
from support import toys
from torch import Generator, Tensor

from utils.course import case_sizes, cases, catalog
from utils.course.cases import Case
from utils.course.exercise import Exercise
from utils.judge import mismatch, oracle
from utils.judge.changes import STEP, changes
from utils.judge.oracle import Expected

ALL = catalog.exercises()
SMALL = 4000  # elements: enough for several rows, and for what is drawn once


def floats(exercise: Exercise) -> dict[str, torch.dtype]:
    return dict.fromkeys(exercise.shapes, torch.float32)


def some_case(exercise: Exercise, family: str = "") -> Case:
    """Of a known size, the largest of the small ones."""
    sizes = sorted(exercise.at.check, key=lambda s: case_sizes.elements(exercise, s))
    small = [s for s in sizes if case_sizes.elements(exercise, s) <= SMALL] or sizes[:1]
    return cases.sample(
        exercise, small[-1], family or cases.usual(exercise), Generator().manual_seed(3)
    )


@oracle.one_thread()
def plain(exercise: Exercise, case: Case, name: str, probes: int) -> Tensor:
    """The bound of an output by the formula that heads utils/judge/oracle.py, all of it at once."""
    wide = oracle.values_of(case)
    values = {n: tensor.detach() for n, tensor in oracle.outputs(exercise, case, wide).items()}
    inexact = [n for n, tensor in values.items() if tensor.is_floating_point()]
    value, square = values[name], torch.zeros_like(values[name])
    steps = replace(exercise, reference=exercise.in_operations or exercise.reference)
    run = lambda changed: oracle.outputs(steps, case, changed)  # noqa: E731
    for change in itertools.islice(changes(run, wide, values, inexact, STEP), probes):
        square += change[name] ** 2 / probes
    of_few = square.sum() / (square > 0).sum().clamp(min=1)  # where it changes at all
    response = (square if probes == oracle.PROBES else of_few.expand_as(square)).sqrt()
    scale = value.abs().nan_to_num(0, 0) + response
    with oracle.full_precision():
        path = oracle.evaluate(exercise, case, torch.float32, "cpu")[name].double()
    tiny = torch.finfo(torch.float32).tiny * 2.0**24
    err = float(((path - value).abs() / (scale + tiny)).nan_to_num(0, 0).max())
    fan = oracle.fan_in(exercise, case, wide, inexact)[name]
    others = oracle._others(exercise, case, values, inexact)[name]
    scales = torch.cat([scale[value.isfinite()], others[others.isfinite()]])
    median = float(scales.median()) if len(scales) else 0.0
    u = 2.0**-24
    relative = oracle.ORDER * fan**0.5 * u + oracle.PATH * err
    bound = relative * scale + oracle.TYPICAL * u * median
    bound = exercise.share * bound + oracle.LEAST
    return bound + oracle.BETWEEN * exercise.between * response


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.id)
def test_the_last_step_is_the_formulas_bound_and_none_is_larger(exercise):
    families = cases.families(exercise)
    for family, probes in ((families[0], oracle.PROBES), (families[-1], 2)):
        case = some_case(exercise, family)
        expected = oracle.expect(exercise, case, floats(exercise), probes=probes)
        for name, right in expected.items():
            steps = [step() for step in right.bounds]
            assert right.bound is steps[-1]
            if exercise.exact or not right.value.is_floating_point():
                assert len(steps) == 1 and not right.bound.any()
                continue
            assert torch.equal(right.bound, plain(exercise, case, name, probes))
            assert len(steps) == len(oracle.STEPS)
            assert all((a <= b).all() for a, b in itertools.pairwise(steps))


def test_steps_are_the_same_whichever_is_asked_for_first():
    """Of two outputs one may need a later step than the other."""
    exercise = catalog.load("12_ship_it/groupnorm_backward")
    case = some_case(exercise)
    one, other = (oracle.expect(exercise, case, floats(exercise)) for _ in range(2))
    for name in one:
        bound = other[name].bound
        assert torch.equal(bound, one[name].bound)
        assert all((step() <= bound).all() for step in other[name].bounds)


def test_what_is_wrong_does_not_hang_on_the_steps():
    exercise, case = toys.GEMM, some_case(toys.GEMM)
    right = oracle.expect(exercise, case, floats(exercise))["C"]
    whole = Expected.known(right.value, right.bound)
    sides = torch.randn(right.value.shape, generator=Generator().manual_seed(1)).sign()
    for share in (0.0, 0.01, 0.1, 0.9, 0.999, 1.001, 2.0, 1e6):
        for step in right.bounds:
            got = right.value + share * step() * sides
            got.view(-1)[0] = float("nan") if share == 0.9 else got.view(-1)[0]
            assert torch.equal(mismatch.wrong(got, right), mismatch.wrong(got, whole))


def counting(exercise: Exercise, calls: list[int]) -> Exercise:
    def reference(**values):
        calls.append(1)
        return exercise.reference(**values)

    names = [name for name in exercise.shapes if name not in exercise.outputs]
    reference.takes = frozenset(names)
    return replace(exercise, reference=reference)


def test_a_right_value_needs_one_evaluation_and_a_wrong_one_all():
    calls: list[int] = []
    exercise, case = counting(toys.GEMM, calls), some_case(toys.GEMM)
    right = oracle.expect(exercise, case, floats(exercise))["C"]
    got = case.tensors["A"] @ case.tensors["B"]
    assert not mismatch.wrong(got, right).any() and len(calls) == 1
    assert mismatch.wrong(got + 1, right).all()
    assert len(calls) == 1 + oracle.PROBES + 2  # the fp32 path, the derivatives
    assert not mismatch.wrong(got, right).any() and len(calls) == 1 + oracle.PROBES + 2


def test_an_output_that_is_0_but_for_one_element_has_no_narrower_bound_from_few_probes():
    exercise = catalog.load("12_ship_it/gn_min_bias_backward")
    sizes = {"rows": 1, "channels": 4576, "groups": 8}
    for seed in range(3):
        case = cases.sample(exercise, sizes, cases.usual(exercise), Generator().manual_seed(seed))
        few, many = (
            oracle.expect(exercise, case, floats(exercise), probes=probes)["dweight"]
            for probes in (2, oracle.PROBES)
        )
        chosen = int(few.value.abs().argmax())
        assert few.value.count_nonzero() == 1
        assert few.bound[chosen] > 0.2 * many.bound[chosen]
        # A sum of 4,576 gradients of both signs, one after the other, keeps to it.
        grad, factor = case.tensors["grad_out"][:, 0], few.value[chosen]
        total = torch.zeros(())
        for one in grad:
            total += one
        off = abs(float(total) / float(grad.double().sum()) - 1) * abs(float(factor))
        assert off <= few.bound[chosen]
