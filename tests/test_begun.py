"""A check that is begun while nvcc compiles says what it says where it is not."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from support import toys

from utils.course import answers
from utils.course.answers import Answer, compile_answer
from utils.ground.errors import CheckFailed, CompileError, KernelTimeout, ToolError
from utils.judge import check as checking
from utils.judge.check import begin, check
from utils.judge.diagnosed_calls import DiagnosedCalls
from utils.judge.schedule import SOON
from utils.judge.verdict import TIMEOUT

MISH = toys.tried_at(toys.MISH, {"n": 5}, {"n": 33})
TEXT = """__global__ void mish_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) out[i] = VALUE;
}
void mish(const float* x, float* out, int n) { mish_kernel<<<(n + 31) / 32, 32>>>(x, out, n); }
"""
RIGHT = "x[i] * tanhf(log1pf(expf(x[i])))"
BEYOND = f"x[i + n * (n == 33)] + {RIGHT}"  # of which only the second call tells


def compiled(value: str) -> Answer:
    return compile_answer(MISH, TEXT.replace("VALUE", value), backend="emulator")


class Steps:
    """Is so after so many steps."""

    def __init__(self, most: int) -> None:
        self.left = most

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.fixture
def calls(monkeypatch):
    """The time limits of all calls that are watched; `trouble` may raise, given one."""
    plain, made = DiagnosedCalls.diagnosis_of, []

    def diagnosis_of(self, arguments, **more):
        made.append(self.timeout)
        made.trouble(self.timeout)
        return plain(self, arguments, **more)

    made = type("Calls", (list,), {"trouble": staticmethod(lambda timeout: None)})()
    monkeypatch.setattr(DiagnosedCalls, "diagnosis_of", diagnosis_of)
    monkeypatch.setattr(checking, "_seed", lambda exercise: 7)
    return made


def verdict(kernel: Answer, seed: int | None = None) -> str:
    try:
        check(kernel, seed=seed)
    except CheckFailed as failure:
        return f"{failure.reason}: {failure}"
    return "passed"


@pytest.mark.parametrize("value", [RIGHT, BEYOND, "x[i]"])
@pytest.mark.parametrize("most", [20, 2000, 10**9])
def test_a_check_that_was_begun_says_the_same_and_watches_no_call_twice(calls, value, most):
    kernel = compiled(value)
    whole = verdict(kernel, seed=7)
    at_once = len(calls)
    calls.clear()
    begin(kernel, Steps(most))
    assert kernel.begun and set(calls) <= {SOON}
    before = len(calls)
    assert verdict(kernel) == whole and len(calls) == at_once
    assert set(calls[before:]) <= {TIMEOUT} and (before == at_once if most == 10**9 else True)
    assert not kernel.begun  # the next one has values of its own


def test_what_was_begun_has_a_seed_of_its_own(calls):
    kernel = compiled(RIGHT)
    begin(kernel, Steps(10**9))
    calls.clear()
    assert verdict(kernel, seed=8) == "passed" and set(calls) == {TIMEOUT}


def test_a_call_that_was_late_where_little_time_was_is_made_anew(calls):
    def late(timeout):
        if timeout == SOON:
            raise KernelTimeout("on a busy machine")

    calls.trouble = late
    kernel = compiled(RIGHT)
    begin(kernel, Steps(10**9))
    assert calls == [SOON] and not kernel.begun
    assert verdict(kernel) == "passed"


def test_a_lack_of_memory_is_no_matter_of_the_cell_that_compiles(calls):
    def no_memory(timeout):
        if timeout == SOON:
            raise RuntimeError("CUDA out of memory")

    kernel = compiled(RIGHT)
    calls.trouble = no_memory
    begin(kernel, Steps(10**9))
    assert calls == [SOON] and not kernel.begun and verdict(kernel) == "passed"


def test_what_cannot_be_watched_is_told_by_the_check(calls, monkeypatch):
    def missing(timeout):
        if len(calls) <= 2:  # one of them begun
            raise ToolError("no g++")

    kernel = compiled(RIGHT)
    calls.trouble = missing
    begin(kernel, Steps(10**9))
    assert calls == [SOON] and not kernel.begun
    passed = []
    monkeypatch.setattr(checking, "tell", lambda kernel, result: passed.append(result.details))
    assert verdict(kernel) == "passed" and "not diagnosed: no g++" in passed[0]


def test_of_several_kernels_the_last_alone_is_begun(calls):
    first, second = compiled(RIGHT), compiled(BEYOND)
    begin(first, Steps(10**9))
    begin(second, Steps(10**9))
    assert second.begun and not first.begun
    calls.clear()
    assert verdict(first) == "passed" and set(calls) == {TIMEOUT}


def test_nothing_is_begun_of_a_starter(calls):
    kernel = compiled(RIGHT)
    kernel.untouched = True
    begin(kernel, Steps(10**9))
    assert not calls and not kernel.begun


class FakeBuild:
    """nvcc's, which takes until somebody says so."""

    def __init__(self, kernel: Answer, error: Exception | None = None) -> None:
        self.made, self.ended, self.error = kernel, threading.Event(), error
        self.library = Path("not there yet")

    def kernel(self) -> Answer:
        assert self.ended.wait(20)
        if self.error:
            raise self.error
        return self.made

    def kernel_of(self, library: Path) -> Answer:
        return replace(self.made, library=library)


@pytest.fixture
def built(monkeypatch):
    """Stands for nvcc, as on a machine with a card."""

    def stand(error: Exception | None = None) -> FakeBuild:
        build = FakeBuild(compiled(RIGHT), error)
        monkeypatch.setattr(answers.compiler, "plan", lambda *all, **more: build)
        monkeypatch.setattr(answers.instrumented, "prepare", lambda *all, **more: None)
        return build

    return stand


def test_while_nvcc_compiles_something_else_is_done_with_the_answer(built):
    build, seen = built(), []

    def meanwhile(answer, until):
        seen.append((answer, until(), answer.built))
        build.ended.set()

    answer = compile_answer(MISH, TEXT, backend="cuda", meanwhile=meanwhile)
    assert seen == [(answer, False, False)]
    assert answer.built and answer.library == build.made.library


def test_what_nvcc_objects_to_is_told_where_the_cell_waits_for_it(built):
    build = built(CompileError("line 3"))
    with pytest.raises(CompileError, match="line 3"):
        compile_answer(MISH, TEXT, backend="cuda", meanwhile=lambda *all: build.ended.set())


def test_what_was_compiled_before_needs_no_meanwhile(built):
    build = built()
    build.library = build.made.library
    build.ended.set()
    answer = compile_answer(MISH, TEXT, backend="cuda", meanwhile=lambda *all: 1 / 0)
    assert answer.library == build.made.library
