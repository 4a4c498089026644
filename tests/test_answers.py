"""A wrong kernel is built once where its fault shows at once, and twice where it does not."""

from contextlib import closing
from dataclasses import replace

import pytest
import torch
from support import toys

from utils.course import answers
from utils.course.answers import compile_answer, compile_wrong
from utils.cuda import stopwatch
from utils.cuda.instrumented import instrumented
from utils.ground.errors import CheckFailed
from utils.judge.check import check

MISH = """__global__ void mish_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * 32 + threadIdx.x;
    FAULT
}
void mish(const float* x, float* out, int n) { mish_kernel<<<(n + 31) / 32, 32>>>(x, out, n); }
"""


@pytest.fixture
def builds(monkeypatch):
    """What was compiled: whether it was the instrumented build."""
    made = []

    def compile_cuda(*args, instrumented=False, compiled=answers.compile_cuda, **more):
        made.append(instrumented)
        return compiled(*args, instrumented=instrumented, **more)

    monkeypatch.setattr(answers, "compile_cuda", compile_cuda)
    return made


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("out[i] = x[i];", "out of bounds"),
        ("if (i < n) out[i] = x[i];", "wrong values"),
    ],
)
def test_a_fault_that_shows_at_once_needs_one_build(builds, fault, reason):
    wrong = compile_wrong(toys.MISH, MISH.replace("FAULT", fault), "some")
    with pytest.raises(CheckFailed) as failure:
        check(wrong)
    assert failure.value.reason == reason
    assert wrong.filename == "mish__some.cu" and builds == [True]


def test_a_right_kernel_is_built_twice(builds):
    right = "float e = expf(x[i < n ? i : 0]); if (i < n) out[i] = x[i] * tanhf(log1pf(e));"
    check(compile_wrong(toys.tried_at(toys.MISH, {"n": 33}), MISH.replace("FAULT", right), "none"))
    assert builds == [True, False]


def test_what_the_card_has_no_instructions_for_runs_on_the_emulator(monkeypatch):
    monkeypatch.setattr(answers.settings, "backend", lambda: "cuda")
    monkeypatch.setattr(answers.toolchain, "card_has", lambda needs: not needs)
    text = MISH.replace("FAULT", "if (i < n) out[i] = x[i];")
    kernel = compile_answer(replace(toys.MISH, needs="sm_90a"), text)
    assert kernel.backend == "emulator"


@pytest.mark.parametrize(("wanted", "count"), [(0, 16), (3, 3)])
def test_the_emulators_card_has_as_many_multiprocessors_as_an_exercise_asks_for(wanted, count):
    text = """__global__ void mish_kernel(float* out, int count, int most) {
        out[threadIdx.x] = threadIdx.x ? most : count;
    }
    void mish(const float* x, float* out, int n) {
        int count, most;
        cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0);
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&most, mish_kernel, 1024, 0);
        mish_kernel<<<1, 2>>>(out, count, most);
    }"""
    kernel = compile_answer(replace(toys.MISH, multiprocessors=wanted), text, backend="emulator")
    arguments = {"x": torch.zeros(2), "out": torch.zeros(2), "n": 2}
    for after in (kernel.isolated(arguments).after, instrumented(kernel).watched(arguments).after):
        assert after["out"].tolist() == [count, 2]
    with closing(stopwatch.Run(kernel, arguments, 1, None)) as run:
        run.fill(0, arguments)
        with stopwatch.process(kernel, None) as worker:
            run.clock(worker, 5)
        assert run.tensor(0, "out").tolist() == [count, 2]
