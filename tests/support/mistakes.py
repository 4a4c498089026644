"""Kernels that compute something else, without a compiler."""

from types import SimpleNamespace

import torch

from utils.course import catalog
from utils.course.exercise import reads
from utils.judge import oracle
from utils.judge.mismatch import wrong
from utils.judge.reruns import Reruns, Wrong


def the_same_kernel(monkeypatch, exercise, compute):
    """A kernel of an exercise with one output that computes the same whenever it is called."""
    dtypes = dict.fromkeys(exercise.shapes, torch.float32)

    (name,) = exercise.outputs

    def computed(_, case):
        return {name: compute(**reads(compute, case.values)).to(torch.float32)}

    def call(reruns, case):
        expected = oracle.expect(exercise, case, dtypes)[name]
        got = computed(reruns, case)[name]
        bad = wrong(got, expected)
        return {name: Wrong(case, got, expected, bad)} if bad.any() else {}

    monkeypatch.setattr(Reruns, "call", call)
    monkeypatch.setattr(Reruns, "computed", computed)
    source = catalog.solution_text(exercise)
    return SimpleNamespace(exercise=exercise, source=source, dtypes=dtypes)
