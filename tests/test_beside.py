"""A kernel is called as it is beside its watched calls, and what is told does not hang on that."""

import threading
import time

import pytest
import torch

from utils.course import catalog
from utils.course.answers import compile_answer
from utils.cuda import posts, workers
from utils.cuda.posts import Role
from utils.errors import CheckFailed
from utils.judge import check as module
from utils.judge import judging
from utils.judge.called import Afresh, Called
from utils.judge.check import check
from utils.judge.watched import Watched

SWISH = catalog.load("00_start_here/swish")
TEXT = catalog.solution_text(SWISH)
GUARD, WRITE = "if (i < n)", "out[i] = "
NEVER_ENDS = "for (volatile int j = 0; {} && j < 1;) {{}}\n    if (i {} n)"


def kernel_of(*changes: tuple[str, str], edit: str = "") -> object:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return compile_answer(SWISH, f"{text}\n// {edit}\n", backend="emulator")


@pytest.fixture
def alone(monkeypatch):
    """Nothing goes on beside anything."""
    monkeypatch.setattr(posts.Post, "locks_in", lambda self: False)


@pytest.fixture
def met(monkeypatch):
    """The calls that are made, in order: which half made it, in which thread, and with what."""
    calls = []
    genuine = judging.Judging.case

    def case(self, sizes, family=""):
        drawn = genuine(self, sizes, family)
        values = tuple(tuple(v.reshape(-1)[:3].tolist()) for v in drawn.tensors.values())
        calls.append((type(self).__name__, threading.current_thread(), str(drawn), values))
        return drawn

    monkeypatch.setattr(judging.Judging, "case", case)
    return calls


def failing(kernel, seed: int) -> CheckFailed:
    with pytest.raises(CheckFailed) as caught:
        check(kernel, seed=seed)
    return caught.value


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("calls")]


def test_calls_are_made_beside_watched_ones_with_the_values_that_the_seed_gives(met, request):
    kernel = kernel_of()
    check(kernel, seed=7)
    beside = met[:]
    met.clear()
    request.getfixturevalue("alone")
    check(kernel, seed=7)
    assert len({thread for _, thread, _, _ in met}) == 1
    for half in ("Watched", "Called", "Afresh"):
        theirs = [(case, str(values)) for name, _, case, values in beside if name == half]
        assert theirs == [(case, str(values)) for name, _, case, values in met if name == half]
        assert len({thread for name, thread, _, _ in beside if name == half}) == 1
    assert len({thread for _, thread, _, _ in beside}) == 2
    assert threads() == []


def test_no_two_of_them_draw_the_same_values():
    kernel = kernel_of()
    halves = [half(kernel, 7).generator for half in (Watched, Called, Afresh)]
    assert len({generator.initial_seed() for generator in halves}) == 3


def test_calls_begin_while_the_watched_ones_still_wait_for_their_build(monkeypatch):
    called, watch, call = threading.Event(), Watched._watch, Called.call
    in_time = []

    def waits(self, *given, **how):
        in_time.append(called.wait(0.0 if in_time else 20.0))
        return watch(self, *given, **how)

    def tells(self, *given, **how):
        called.set()
        return call(self, *given, **how)

    monkeypatch.setattr(Watched, "_watch", waits)
    monkeypatch.setattr(Called, "call", tells)
    check(kernel_of(), seed=1)
    assert in_time[0]


@pytest.mark.parametrize("where", ["no locks", "on a card", "not built"])
def test_nothing_is_called_beside_where_that_might_do_harm(where, monkeypatch, request):
    kernel = kernel_of()
    if where == "no locks":
        request.getfixturevalue("alone")
    elif where == "on a card":
        kernel.backend = "cuda"
    else:
        monkeypatch.setattr(type(kernel), "built", False)
    trial = module.Trial(kernel, 1)
    assert not trial._may_go_beside()


def test_a_watched_call_that_fails_is_told_and_what_goes_on_beside_is_ended():
    """It never returns where n is 1, and strays where it is watched first."""
    kernel = kernel_of((GUARD, NEVER_ENDS.format("n == 1", "<=")))
    check(kernel_of(edit="which has called the worker before"), seed=1)
    start = time.monotonic()
    failure = failing(kernel, seed=3)
    assert failure.reason == "out of bounds", failure
    assert time.monotonic() - start < judging.TIMEOUT - 3
    assert threads() == []
    check(kernel_of(edit="which calls it after"), seed=1)


def test_a_call_that_fails_alone_says_what_it_says_without_the_others():
    """It is wrong only for arrays so long that none of them is watched."""
    kernel = kernel_of((WRITE, "out[i] = (n > 30000 ? 1.5f : 1.0f) * "))
    failure = failing(kernel, seed=5)
    assert failure.reason == "wrong values" and "seed=5" in str(failure)
    assert str(failure) == str(failing_alone(kernel, seed=5))


def test_of_two_failures_the_watched_one_is_told():
    """Wrong where it is watched, and at once where it is called."""
    for seed in range(5):
        kernel = kernel_of((WRITE, "out[i] = 2.0f * "), edit=str(seed))
        failure = failing(kernel, seed=seed)
        assert failure.reason == "wrong values"
        watched = failing_alone(kernel, seed)
        assert str(failure) == str(watched)


def failing_alone(kernel, seed: int) -> CheckFailed:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(posts.Post, "locks_in", lambda self: False)
        return failing(kernel, seed)


def test_what_watched_calls_remark_is_told_with_a_call_that_fails_before_they_end(monkeypatch):
    genuine = Watched._watch

    def watch(self, *given, **how):
        time.sleep(0.1)
        seen = genuine(self, *given, **how)
        self.remarks = judging.Remarks(("the values are odd",), "so is the launch")
        return seen

    monkeypatch.setattr(Watched, "_watch", watch)
    said = str(failing(kernel_of((WRITE, "out[i] = (n > 30000 ? 1.5f : 1.0f) * ")), seed=5))
    assert "\nthe values are odd\nso is the launch\n" in said


def test_an_interrupt_ends_both_and_the_next_check_works(monkeypatch):
    def interrupted(self, *given, **how):
        time.sleep(0.3)
        raise KeyboardInterrupt

    endless = kernel_of((GUARD, NEVER_ENDS.format("n == 1", "<")))
    start = time.monotonic()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Watched, "_watch", interrupted)
        check(endless, seed=1)
    assert time.monotonic() - start < judging.TIMEOUT - 3
    assert threads() == [] and not endless.trusted
    check(kernel_of(edit="after an interrupt"), seed=1)


def test_precision_that_a_notebook_allows_is_none_of_a_check(monkeypatch):
    """Nor may one half give it back while the other one still reckons."""
    matmul, seen = torch.backends.mkldnn.matmul, set()
    genuine = judging.Judging.case

    def case(self, *given):
        seen.add(matmul.fp32_precision)
        return genuine(self, *given)

    monkeypatch.setattr(judging.Judging, "case", case)
    before, matmul.fp32_precision = matmul.fp32_precision, "bf16"
    try:
        check(kernel_of(edit="precision"), seed=1)
        assert seen == {"ieee"} and matmul.fp32_precision == "bf16"
    finally:
        matmul.fp32_precision = before


# --- the posts


@pytest.fixture
def post():
    post = posts.post("emulator", Role.AFRESH)
    yield post
    post.reopen()
    post.restart()


def test_who_is_dismissed_does_nothing_until_the_post_is_open_again(post):
    kernel = kernel_of()
    given = {"x": torch.ones(5), "out": torch.zeros(5), "n": 5}
    right = kernel.isolated(given, role=Role.AFRESH).after["out"]
    post.dismiss()
    with pytest.raises(Exception, match="since nobody waits for it"):
        kernel.isolated(given, role=Role.AFRESH)
    assert torch.equal(kernel.isolated(given).after["out"], right)  # another post
    post.reopen()
    assert torch.equal(kernel.isolated(given, role=Role.AFRESH).after["out"], right)


def test_a_call_under_way_ends_when_it_is_dismissed(post):
    endless = kernel_of((GUARD, NEVER_ENDS.format("n", "<")))
    given = {"x": torch.ones(5), "out": torch.zeros(5), "n": 5}
    found = []

    def call():
        try:
            endless.isolated(given, role=Role.AFRESH, timeout=30)
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    deadline = time.monotonic() + 20
    while not (post.worker and post.worker.libraries) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)
    start = time.monotonic()
    post.dismiss()
    thread.join(15)
    assert not thread.is_alive() and found and time.monotonic() - start < 5


def test_a_worker_is_asked_once_whether_it_is_locked_in(post, monkeypatch):
    asked = []
    genuine = workers.Worker.ask
    monkeypatch.setattr(
        workers.Worker,
        "ask",
        lambda *given, **what: asked.append(what["do"]) or genuine(*given, **what),
    )
    kernel = kernel_of()
    given = {"x": torch.ones(5), "out": torch.zeros(5), "n": 5}
    kernel.isolated(given, role=Role.AFRESH)
    called = post.worker
    post._locks_in = None
    asked.clear()
    first = post.locks_in()
    assert post.worker is not called, "one that has called a kernel is not believed"
    assert post.locks_in() == first == post.worker.locked_in() and asked == ["greet"]
