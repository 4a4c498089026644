"""Calls are made ahead of their turn while a check waits; what is told does not hang on that."""

import itertools
import time

import pytest
import torch

from utils.course import catalog
from utils.course.answers import Answer, compile_answer, compile_wrong
from utils.cuda import instrumented
from utils.errors import CheckFailed, KernelCrash, KernelTimeout, Reason
from utils.judge import ahead, explain, judging
from utils.judge.ahead import Ahead
from utils.judge.called import Called
from utils.judge.check import check
from utils.judge.watched import Watched
from utils.process import child, pool

SWISH = catalog.load("00_start_here/swish")
TEXT = catalog.solution_text(SWISH)
GUARD, WRITE = "if (i < n)", "out[i] = "
LATE = (WRITE, "out[i] = (n > 30000 ? 1.5f : 1.0f) * ")  # no array so long is watched
WRONG = (WRITE, "out[i] = 2.0f * ")
ENDLESS = (
    "for (volatile int j = 0; n == 1 && j < 1;) {{}}\n    if (i {} n)"  # 1 is not watched first
)


def text_of(*changes: tuple[str, str], edit: str = "") -> str:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return f"{text}\n// {edit}\n"


def kernel_of(*changes: tuple[str, str], edit: str = "") -> Answer:
    return compile_answer(SWISH, text_of(*changes, edit=edit), backend="emulator")


def failing(kernel: Answer, seed: int) -> CheckFailed:
    with pytest.raises(CheckFailed) as caught:
        check(kernel, seed=seed)
    return caught.value


@pytest.fixture
def never(monkeypatch):
    """From here on nothing is done ahead."""
    return lambda: monkeypatch.setattr(Ahead, "take", lambda self, until: None)


@pytest.fixture
def met(monkeypatch):
    """The calls that are made, in order: by which half, whether in its turn, and with what."""
    calls, genuine = [], judging.Judging.case

    def case(self, sizes, family=""):
        drawn = genuine(self, sizes, family)
        values = [v.reshape(-1)[:3].tolist() for v in drawn.tensors.values()]
        kind = "watched" if isinstance(self, Watched) else "called"
        calls.append((kind, getattr(self, "its_turn", True), f"{drawn} {values}"))
        return drawn

    monkeypatch.setattr(judging.Judging, "case", case)
    return calls


def test_calls_ahead_have_the_values_that_the_seed_gives(met, never):
    kernel = kernel_of()
    check(kernel, seed=7)
    early = met[:]
    met.clear()
    never()
    check(kernel, seed=7)
    assert not all(in_turn for _, in_turn, _ in early) and all(in_turn for _, in_turn, _ in met)
    for kind in ("watched", "called"):
        assert [c for k, _, c in early if k == kind] == [c for k, _, c in met if k == kind]


def test_watched_calls_and_others_draw_values_of_their_own():
    kernel = kernel_of()
    halves = Watched(kernel, 7).generator, Called(kernel, 7).generator
    assert len({generator.initial_seed() for generator in halves}) == 2


def test_calls_are_made_while_the_diagnosing_build_is_waited_for(met, monkeypatch):
    monkeypatch.setattr(instrumented, "begin", lambda kernel: lambda: len(met) >= 20)
    check(kernel_of(), seed=1)
    first = [kind for kind, _, _ in met].index("watched")
    assert first >= 20 and not any(in_turn for _, in_turn, _ in met[:first])


def test_calls_are_made_while_a_watched_one_runs(met, monkeypatch):
    monkeypatch.setattr(instrumented, "begin", lambda kernel: lambda: True)
    answers = itertools.cycle([False, False, True])
    monkeypatch.setattr(child.Worker, "_answered", lambda self: next(answers))
    check(kernel_of(), seed=1)
    kinds = "".join(kind[0] for kind, in_turn, _ in met if kind == "watched" or not in_turn)
    assert kinds.startswith("wc") and kinds.count("cw") >= 3


def test_a_call_has_its_whole_time_limit_in_its_turn(monkeypatch):
    genuine, limits = Called._isolated, set()

    def isolated(self, *given):
        limits.add((self.its_turn, self.timeout))
        return genuine(self, *given)

    monkeypatch.setattr(Called, "_isolated", isolated)
    answers = itertools.cycle([False] * 5 + [True])  # before all are made
    monkeypatch.setattr(instrumented, "begin", lambda kernel: lambda: next(answers))
    monkeypatch.setattr(child.Worker, "_answered", lambda self: True)
    check(kernel_of(), seed=1)
    assert limits == {(False, ahead.SOON), (True, judging.TIMEOUT)}


@pytest.mark.parametrize("where", ["on a card", "not built"])
def test_nothing_is_called_before_it_is_watched_where_that_would_be_wrong(where, monkeypatch):
    taken = []
    monkeypatch.setattr(Ahead, "take", lambda self, until: taken.append(1))
    kernel = compile_wrong(SWISH, text_of(WRONG), "wrong") if where == "not built" else kernel_of()
    if where == "on a card":
        kernel.backend = "cuda"
        monkeypatch.setattr(Watched, "all", lambda self: self.ahead(lambda: True) or "no hazards")
        monkeypatch.setattr(Ahead, "finish", lambda self, remarks: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            check(kernel, seed=1)
    else:
        assert failing(kernel, 1).reason == "wrong values"
        assert not kernel.built
    assert not taken


def test_a_call_that_fails_ahead_says_what_it_says_in_its_turn(met, never, monkeypatch):
    kernel = kernel_of(LATE)
    monkeypatch.setattr(instrumented, "begin", lambda kernel: lambda: False)  # until it has failed
    early = failing(kernel, seed=5)
    assert not any(in_turn for kind, in_turn, _ in met if kind == "called")
    never()
    assert early.reason == "wrong values" and "seed=5" in str(early)
    assert str(early) == str(failing(kernel, seed=5))


def test_what_watched_calls_remark_is_told_with_a_call_that_has_failed_before(monkeypatch):
    genuine = Watched.all

    def all(self):
        seen = genuine(self)
        self.remarks = judging.Remarks(("the values are odd",), "so is the launch")
        return seen

    monkeypatch.setattr(Watched, "all", all)
    monkeypatch.setattr(instrumented, "begin", lambda kernel: lambda: False)
    assert "\nthe values are odd\nso is the launch\n" in str(failing(kernel_of(LATE), seed=5))


def test_of_two_failures_the_watched_one_is_told_and_it_alone_is_explained(monkeypatch):
    explained, genuine = [], explain.wrong_values

    def wrong_values(kernel, case, *given):
        explained.append(case)
        return genuine(kernel, case, *given)

    monkeypatch.setattr(instrumented, "begin", lambda kernel: lambda: False)  # until one fails
    monkeypatch.setattr(explain, "wrong_values", wrong_values)
    failure = failing(kernel_of(WRONG), seed=3)
    assert failure.reason == "wrong values" and len(explained) == 1
    assert str(explained[0]) in str(failure) and "n=1," not in str(explained[0])


def test_a_crash_ahead_is_told_in_its_turn(monkeypatch):
    crash = "    if (n > 30000) *(volatile int*)nullptr = n;\n    int threads = 256;"
    watched, genuine = [], Watched.all
    monkeypatch.setattr(Watched, "all", lambda self: (genuine(self), watched.append(1))[0])
    monkeypatch.setattr(instrumented, "begin", lambda kernel: lambda: False)
    failure = failing(kernel_of(("    int threads = 256;", crash)), seed=5)
    assert failure.reason == "crashed" and watched


def test_a_call_that_never_ends_does_not_keep_a_watched_one_from_being_told():
    start = time.monotonic()
    failure = failing(kernel_of((GUARD, ENDLESS.format("<="))), seed=3)
    assert failure.reason == "out of bounds", failure
    assert time.monotonic() - start < judging.TIMEOUT - 3


def test_a_call_that_was_given_up_is_made_anew_in_its_turn(monkeypatch):
    monkeypatch.setattr(ahead, "SOON", 0.3)
    monkeypatch.setattr(judging, "TIMEOUT", 1.5)
    failure = failing(kernel_of((GUARD, ENDLESS.format("<"))), seed=3)
    assert failure.reason == "timeout" and "1.5 seconds" in str(failure)


def test_what_was_given_up_may_pass_in_its_turn(met, monkeypatch):
    genuine, made = Called._isolated, []

    def isolated(self, *given):
        made.append(self.timeout)
        if self.timeout == ahead.SOON and len(made) == 9:
            raise CheckFailed(Reason.TIMEOUT, "late") from KernelTimeout("on a busy machine")
        return genuine(self, *given)

    monkeypatch.setattr(Called, "_isolated", isolated)
    monkeypatch.setattr(instrumented, "begin", lambda kernel: lambda: False)
    check(kernel_of(), seed=3)
    called = [(in_turn, case) for kind, in_turn, case in met if kind == "called"]
    early = [case for in_turn, case in called if not in_turn]
    assert made[:9] == [ahead.SOON] * 9 and set(made[9:]) == {judging.TIMEOUT}
    assert early and early == [case for in_turn, case in called if in_turn][: len(early)]


def test_what_waits_for_itself_once_has_failed(met, monkeypatch):
    genuine, made = Called._isolated, []

    def isolated(self, *given):
        made.append(self.its_turn)
        if len(made) == 9:
            cause = KernelTimeout("waits for itself")
            cause.certain = True
            raise CheckFailed(Reason.TIMEOUT, "never ends") from cause
        return genuine(self, *given)

    monkeypatch.setattr(Called, "_isolated", isolated)
    monkeypatch.setattr(instrumented, "begin", lambda kernel: lambda: False)
    failure = failing(kernel_of(), seed=3)
    assert failure.reason == "timeout" and "never ends" in str(failure)
    assert made == [False] * 9 and any(kind == "watched" for kind, _, _ in met)


def test_a_deadlock_is_known_from_a_call_that_was_only_stopped():
    barrier = "if (threadIdx.x < 16) __syncwarp();\n    __syncthreads();\n    if (i < n)"
    endless = (GUARD, ENDLESS.format("<"))
    given = {"x": torch.ones(1), "out": torch.zeros(1), "n": 1}
    for change, certain in (((GUARD, barrier), True), (endless, False)):
        with pytest.raises(KernelTimeout) as caught:
            kernel_of(change).isolated(given, timeout=0.5)
        assert caught.value.certain == certain


def test_an_interrupt_ahead_ends_the_check_and_the_next_one_works(monkeypatch):
    def interrupted(self, *given, **how):
        raise KeyboardInterrupt

    kernel = kernel_of(edit="interrupted")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Called, "call", interrupted)
        check(kernel, seed=1)
    assert not kernel.trusted
    check(kernel, seed=1)
    assert kernel.trusted


# --- a worker that is called while another one is waited for


@pytest.fixture
def swish():
    given = {"x": torch.linspace(-3, 3, 50), "out": torch.zeros(50), "n": 50}
    kernel = kernel_of()
    other = instrumented.instrumented(kernel)
    pool.discard("emulator")  # none has called another kernel, which it would be put down to
    kernel.isolated(given), other.watched(given)  # both have answered: what is in force is known
    return lambda: kernel.isolated(given).after["out"], lambda: other.watched(given).after["out"]


def test_one_worker_is_called_while_another_one_runs(swish):
    run, watch = swish
    found, told = [], []

    def action(answered):
        told.append(answered())
        found.append(run())
        deadline = time.monotonic() + 20
        while not answered() and time.monotonic() < deadline:
            pass
        told.append(answered())

    with child.meanwhile(action):
        assert torch.equal(watch(), run())
    assert torch.equal(found[0], run()) and told[-1]


def test_who_does_too_much_meanwhile_is_ended_although_another_one_is_waited_for(
    swish, monkeypatch
):
    run, watch = swish
    outer, genuine = [], child.Worker._excess
    ask = child.Worker.ask

    def noted(self, within, **command):
        if command["do"] == "watch":
            outer.append(self)
        return ask(self, within, **command)

    def excess(self, reply):
        return "did too much" if self in outer else genuine(self, reply)

    monkeypatch.setattr(child.Worker, "ask", noted)
    ended = []

    def action(answered):
        monkeypatch.setattr(child.Worker, "_excess", excess)
        run()
        ended.append(outer[0].process.poll())
        monkeypatch.setattr(child.Worker, "_excess", genuine)

    with pytest.raises(KernelCrash, match="did too much"), child.meanwhile(action):
        watch()
    assert ended[0] is not None and torch.equal(watch(), run())
