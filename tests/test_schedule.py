"""Plain calls are made early while a check waits; what it says does not depend on that."""

import contextlib
import time
from dataclasses import dataclass, field, replace

import pytest
import torch
from support import toys
from support.fakes import FakeKernel
from torch import Tensor

from utils.course import case_sizes, catalog
from utils.course.answers import Answer, compile_answer, compile_wrong
from utils.cuda import instrumented, isolation
from utils.ground.errors import CheckFailed, KernelCrash, KernelTimeout, Reason
from utils.judge import (
    diagnosed_calls,
    explain,
    mismatch,
    oracle,
    plain_calls,
    schedule,
    verdict,
)
from utils.judge.check import check
from utils.judge.diagnosed_calls import DiagnosedCalls
from utils.judge.schedule import Schedule
from utils.judge.verdict import Remarks
from utils.process import pool, workers

SWISH = catalog.load("00_start_here/swish")
TEXT = catalog.solution_text(SWISH)
GUARD, WRITE = "if (i < n)", "out[i] = "
LATE = (WRITE, "out[i] = (n > 30000 ? 1.5f : 1.0f) * ")  # no array so long is diagnosed
WRONG = (WRITE, "out[i] = 2.0f * ")
LINE = "    int threads = 256;"  # of the launcher
SLOW = (LINE, f"    for (volatile int j = 0; j < 10000000; j++) {{}}\n{LINE}")
ENDLESS = (
    "for (volatile int j = 0; n == 1 && j < 1;) {{}}\n    if (i {} n)"  # 1 is not diagnosed first
)


def never() -> bool:
    return False


# --- the schedule alone: a kernel in Python


@dataclass
class Recorded(FakeKernel):
    """Keeps what it was called with; `trouble` may raise, given the number of the call."""

    calls: list = field(default_factory=list)  # (seconds it had, the values)
    trouble: object = lambda number, timeout: None

    def isolated(self, args, *, timeout=10.0, rehearsal=False, **more):
        if not rehearsal:
            values = {n: v.tolist() if isinstance(v, Tensor) else v for n, v in args.items()}
            self.calls.append((timeout, f"{values}"))
            self.trouble(len(self.calls), timeout)
        return super().isolated(args, timeout=timeout, rehearsal=rehearsal, **more)

    @property
    def values(self) -> list[str]:
        return [values for _, values in self.calls]

    @property
    def limits(self) -> list[float]:
        return [timeout for timeout, _ in self.calls]


def right(x, out, n):
    out.copy_(torch.nn.functional.mish(x))


def wrong_above_30(x, out, n):
    out.copy_(torch.nn.functional.mish(x) * (1.5 if n > 30 else 1))


def failure_of(kernel, early: int = 0, remarks: Remarks | None = None) -> CheckFailed:
    """What is wrong with a kernel, of whose calls so many are made early."""
    plan = Schedule(kernel, seed=5)
    plan.make_early(lambda: len(kernel.calls) >= early)
    with pytest.raises(CheckFailed) as caught:
        plan.judge(remarks or Remarks())
    return caught.value


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    monkeypatch.setattr(explain, "THOROUGH", False)


def test_calls_are_the_same_early_and_in_their_turn():
    kernels = [Recorded(right, toys.MISH) for _ in range(3)]
    tried = []
    for kernel, early in zip(kernels, (0, 7, 10_000), strict=True):
        plan = Schedule(kernel, seed=7)
        plan.make_early(lambda k=kernel, early=early: len(k.calls) >= early)
        assert len(kernel.calls) == early or early == 10_000
        tried.append(plan.judge(Remarks()))
    assert kernels[0].values == kernels[1].values == kernels[2].values
    assert len(kernels[0].values) > 10 and tried[0] == tried[1] == tried[2]


def test_calls_are_the_same_where_their_values_were_drawn_before():
    kernels = [Recorded(right, toys.MISH) for _ in range(3)]
    tried = []
    for kernel, most in zip(kernels, (0, 5, 10_000), strict=True):
        plan, seen = Schedule(kernel, seed=7), []
        plan.prepare(lambda seen=seen, most=most: len(seen) >= most or seen.append(1))
        assert not kernel.calls
        tried.append(plan.judge(Remarks()))
    assert kernels[0].values == kernels[1].values == kernels[2].values
    assert len(kernels[0].values) > 10 and tried[0] == tried[1] == tried[2]


def test_no_more_is_drawn_before_its_turn_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(plain_calls, "AHEAD", 2000)
    drawn = []
    monkeypatch.setattr(oracle, "expect", lambda e, case, *more: drawn.append(case) or {})
    calls = plain_calls.PlainCalls(Recorded(right, toys.MISH), seed=7)
    calls.prepare(never)
    *before, _ = (case_sizes.elements(toys.MISH, case.sizes) for case in drawn)
    assert before and sum(before) < 2000 + max(before)
    assert next(calls.outcomes()).case is drawn[0]


def test_where_nothing_is_left_to_draw_bounds_are_made_that_some_calls_will_need(monkeypatch):
    made, plain = [], oracle._Bounds.made
    monkeypatch.setattr(
        oracle._Bounds,
        "made",
        lambda self, name, *parts: made.append(parts) or plain(self, name, *parts),
    )
    kernel = Recorded(right, toys.MISH)
    plan = Schedule(kernel, seed=7)
    plan.prepare(never)
    first, *later, last = oracle.STEPS
    assert not kernel.calls and set(made) == set(later) and made.count(later[0]) > 10
    assert made == sorted(made), "those that most calls need come first"
    plan.prepare(never)
    plan.judge(Remarks())
    assert made.count(last) == 0 and made.count(later[1]) < 2 * made.count(later[0])


@pytest.mark.parametrize("elements, turns", [(plain_calls.SLIGHT // 2, 0), (plain_calls.SLIGHT, 1)])
def test_what_a_core_works_out_waits_for_nobody_who_times(monkeypatch, elements, turns):
    """The kernel's own call takes the card for itself."""
    seen = []

    @contextlib.contextmanager
    def together(backend="cuda"):
        seen.append(backend)
        yield

    monkeypatch.setattr(plain_calls.card, "together", together)
    kernel = Recorded(right, toys.MISH, backend="cuda")
    calls = plain_calls.PlainCalls(kernel, seed=7)
    calls.device = "cpu"  # there is no card here, but one would be asked
    monkeypatch.setattr(calls, "_device", lambda sizes: "cpu" if sizes["n"] <= 16_384 else "cuda")
    monkeypatch.setattr(
        calls,
        "expecting",
        lambda case, *more: lambda: oracle.expect(toys.MISH, case, kernel.dtypes),
    )
    outcome = calls.call(calls.case({"n": elements}))
    calls.judge_outcome(outcome)
    assert len(seen) == 2 * turns


@pytest.mark.parametrize("elements, where", [(100, "cpu"), (10**6, "cuda")])
def test_a_card_evaluates_the_reference_of_a_large_call(monkeypatch, elements, where):
    seen = []
    monkeypatch.setattr(oracle, "expect", lambda e, case, types, device, *more: seen.append(device))
    kernel = Recorded(right, toys.MISH, backend="cuda")
    calls = plain_calls.PlainCalls(kernel, seed=7)
    calls._planned(calls.case({"n": elements})).expecting()
    assert seen == [where]


def test_what_is_expected_is_worked_out_once_where_a_call_is_repeated(monkeypatch):
    worked, plain = [], oracle.expect
    monkeypatch.setattr(oracle, "expect", lambda *all: worked.append(1) or plain(*all))
    calls = plain_calls.PlainCalls(Recorded(right, toys.MISH), seed=7)
    made = list(calls.of_size({"n": 40}, ["standard normal", "large"]))
    assert [outcome.repeated for outcome in made] == [False, False, True] and len(worked) == 2


def test_a_drawn_size_also_meets_values_that_hide_no_error():
    span = {"n": (70_000, 80_000)}
    exercise = replace(SWISH, at=replace(SWISH.at, drawn=(span,)))
    for seed in range(12):
        plan = plain_calls.PlainCalls(FakeKernel(right, exercise=exercise), seed, timeout=1.0)
        met = [planned.case for group in plan._drawing for planned in group.calls]
        long = [case for case in met if case.sizes["n"] >= span["n"][0]]
        assert long[-1].family == "standard normal" and not long[-1].order
        assert len(long) == (1 if long[0] is long[-1] else 2)
        assert all(case.sizes == long[0].sizes for case in long)


def test_a_second_process_is_tried_on_as_many_sizes_some_of_which_nobody_knows():
    long = replace(toys.MISH, at=replace(toys.MISH.at, bench={"n": 10**6}))
    known = long.at.check
    for unknown in 0, 2:
        calls = plain_calls.PlainCalls(Recorded(right, long), seed=7)
        first = list(calls.in_another_process(known, unknown))[:3]
        assert sum(outcome.case.sizes not in known for outcome in first) == unknown


def test_calls_are_counted_at_sizes_that_the_exercise_names():
    named = {"n": 3}, {"n": 5}
    counted = replace(toys.MISH, at=replace(toys.MISH.at, counted=named))
    calls = plain_calls.PlainCalls(Recorded(right, counted), seed=7)
    made = list(calls.in_another_process(counted.at.check))[plain_calls.AGAIN :]
    *made, last = made  # of another order of blocks, at the largest size
    assert [outcome.case.sizes for outcome in made] == [named[0], named[1], named[0]]
    assert last.case.sizes == {"n": 1000} and "another order" in last.case.note


def test_a_call_has_its_whole_time_limit_in_its_turn_and_less_before():
    kernel = Recorded(right, toys.MISH)
    plan = Schedule(kernel, seed=1)
    plan.make_early(lambda: len(kernel.calls) >= 5)
    plan.judge(Remarks())
    early, late = kernel.limits[:5], kernel.limits[5:]
    assert set(early) == {schedule.SOON} and set(late) == {verdict.TIMEOUT}


def test_wrong_values_are_told_the_same_whenever_they_were_computed():
    late = failure_of(Recorded(wrong_above_30, toys.MISH))
    early = failure_of(Recorded(wrong_above_30, toys.MISH), early=10_000)
    assert late.reason == "wrong values" and "seed=5" in str(late) and str(early) == str(late)


def test_what_diagnosed_calls_remark_is_told_with_a_call_that_was_made_before_them():
    remarks = Remarks(("the values are odd",), "so is the launch")
    failure = failure_of(Recorded(wrong_above_30, toys.MISH), 10_000, remarks)
    assert "\nthe values are odd\nso is the launch\n" in str(failure)


def crashing(number, timeout):
    if number == 4:
        raise KernelCrash("it crashed once")


def test_a_failure_is_kept_and_nothing_is_called_after_it():
    kernel = Recorded(right, toys.MISH, trouble=crashing)
    failure = failure_of(kernel, early=10_000)
    assert failure.reason == "crashed" and len(kernel.calls) == 4


def test_wrong_values_before_a_crash_are_what_is_told():
    def always_wrong(x, out, n):
        out.fill_(123)

    assert failure_of(Recorded(always_wrong, toys.MISH, trouble=crashing), 10_000).reason == (
        "wrong values"
    )


def late_when_early(number, timeout):
    if number == 9 and timeout == schedule.SOON:
        raise KernelTimeout("on a busy machine")


def test_a_call_that_did_not_end_soon_is_made_anew_and_may_pass():
    kernel = Recorded(right, toys.MISH, trouble=late_when_early)
    plan = Schedule(kernel, seed=3)
    plan.make_early(never)
    assert len(kernel.calls) == 9
    plan.make_early(never)  # no more of it
    assert len(kernel.calls) == 9
    plan.judge(Remarks())
    assert set(kernel.limits[:9]) == {schedule.SOON}
    assert set(kernel.limits[9:]) == {verdict.TIMEOUT}
    assert kernel.values[:9] == kernel.values[9:18]


def test_a_call_that_did_not_end_soon_fails_where_it_does_not_end_in_its_turn():
    def endless(number, timeout):
        if number in (9, 18):
            raise KernelTimeout(f"more than {timeout:g} seconds")

    failure = failure_of(Recorded(right, toys.MISH, trouble=endless), early=10_000)
    assert failure.reason == "timeout" and f"{verdict.TIMEOUT:g} seconds" in str(failure)


def test_a_call_that_waits_for_itself_has_failed():
    def deadlock(number, timeout):
        if number == 9:
            error = KernelTimeout("waits for itself")
            error.certain = True
            raise error

    kernel = Recorded(right, toys.MISH, trouble=deadlock)
    failure = failure_of(kernel, early=10_000)
    assert failure.reason == "timeout" and "waits for itself" in str(failure)
    assert len(kernel.calls) == 9


def test_outcomes_that_would_take_much_memory_are_not_collected(monkeypatch):
    monkeypatch.setattr(schedule, "MOST", 100)  # elements
    kernel = Recorded(right, toys.MISH)
    plan = Schedule(kernel, seed=3)
    plan.make_early(never)
    few = len(kernel.calls)
    plan.judge(Remarks())
    assert 0 < few < len(kernel.calls) / 2


# --- a check as a whole, on the emulator


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
def order(monkeypatch):
    """The calls of all kernels in order: p plain, d diagnosed."""
    calls = []
    for name, letter in (("isolated", "p"), ("watched", "d")):
        genuine = getattr(Answer, name)

        def noted(self, args, *, genuine=genuine, letter=letter, **options):
            if not options.get("rehearsal"):
                calls.append(letter)
            return genuine(self, args, **options)

        for kind in {Answer, *Answer.__mro__}:
            if name in vars(kind):
                monkeypatch.setattr(kind, name, noted)
    return calls


def test_calls_are_made_while_the_diagnosing_build_is_waited_for(order, monkeypatch):
    monkeypatch.setattr(instrumented, "begin", lambda kernel: lambda: len(order) >= 20)
    check(kernel_of(), seed=1)
    assert order.index("d") >= 20


def test_calls_are_made_while_a_diagnosed_one_runs(order, monkeypatch):
    monkeypatch.setattr(instrumented, "begin", lambda kernel: lambda: True)
    check(kernel_of(), seed=2)  # both workers have answered: what is in force is known
    order.clear()
    check(kernel_of(SLOW), seed=1)
    text = "".join(order)
    assert text.startswith("dp") and text.count("pd") >= 3


def begun(kernel: Answer, count: int) -> Schedule:
    """A schedule of which so many calls have been made early."""
    plan, looks = Schedule(kernel, seed=1), iter(range(count))
    plan.make_early(lambda: next(looks, None) is None)
    return plan


def test_calls_are_judged_while_others_run(monkeypatch):
    slot, beside, judge = pool.slot("emulator"), [], plain_calls.PlainCalls.judge_outcome

    def noted(self, outcome):
        beside.append(slot.waiting != 0)
        judge(self, outcome)

    monkeypatch.setattr(plain_calls.PlainCalls, "judge_outcome", noted)
    begun(kernel_of(), 5).judge(Remarks())
    assert beside.count(False) <= 1  # the last call


def test_how_large_errors_may_be_is_worked_out_while_early_calls_run(monkeypatch):
    slot, beside, wrong = pool.slot("emulator"), [], mismatch.wrong

    def noted(got, expected):
        beside.append(slot.waiting != 0)
        return wrong(got, expected)

    monkeypatch.setattr(mismatch, "wrong", noted)
    begun(kernel_of(SLOW), 5)
    assert beside and all(beside)


def test_of_wrong_values_that_are_found_while_another_call_runs_the_first_are_told():
    kernel = kernel_of(WRONG)

    def report(count: int) -> str:
        with pytest.raises(CheckFailed) as caught:
            begun(kernel, count).judge(Remarks())
        return str(caught.value)

    assert report(5) == report(0)


def test_a_check_that_fails_ends_what_goes_on_in_the_background(monkeypatch):
    notes = []

    @contextlib.contextmanager
    def noting(calls):
        notes.append("begun")
        try:
            yield
        finally:
            notes.append("ended")

    monkeypatch.setattr(plain_calls.PlainCalls, "_with_another_process", noting)
    kept = []  # as a traceback keeps it: nothing is collected
    monkeypatch.setattr(Schedule, "judge", lambda self, remarks: kept.append(self) or failing(self))

    def failing(plan):
        next(plan._outcomes)
        raise CheckFailed(Reason.WRONG_VALUES, "as it were")

    with pytest.raises(CheckFailed, match="as it were"):
        check(kernel_of(), seed=1)
    assert kept and notes[-2:] == ["begun", "ended"]


@pytest.mark.parametrize("where", ["on a card", "not built"])
def test_nothing_is_called_before_it_is_diagnosed_where_that_would_be_wrong(
    where, order, monkeypatch
):
    monkeypatch.setattr(instrumented, "begin", lambda kernel: never)
    kernel = compile_wrong(SWISH, text_of(WRONG), "wrong") if where == "not built" else None
    if kernel is None:
        kernel = kernel_of(WRONG)
        kernel.backend = "cuda"
        monkeypatch.setattr(plain_calls, "SLIGHT", 1 << 40)  # there is none to evaluate anything
        monkeypatch.setattr(plain_calls, "AHEAD", 1 << 16)
    assert failing(kernel, 1).reason == "wrong values"
    assert set(order) == {"d"}


def diagnosed(kernel, monkeypatch, cores: int) -> tuple[list[object], set[int], str]:
    """The calls in the order in which they are judged, their processes, and what is said of it."""
    judged, processes = [], set()
    watch, plain = isolation.Call._watch, DiagnosedCalls._judge_seen

    def noting(self, worker, *arguments):
        processes.add(worker.process.pid)
        return watch(self, worker, *arguments)

    def judging(self, planned, seen):
        judged.append((planned.case.sizes, planned.case.family, planned.arguments["n"]))
        plain(self, planned, seen)

    monkeypatch.setattr(isolation.Call, "_watch", noting)
    monkeypatch.setattr(DiagnosedCalls, "_judge_seen", judging)
    monkeypatch.setattr(diagnosed_calls, "CORES", cores)
    kernel.backend = "cuda"
    try:
        message = DiagnosedCalls(kernel, seed=4).all()
    except CheckFailed as failure:
        message = str(failure)
    monkeypatch.undo()
    return judged, processes, message


@pytest.mark.parametrize(("cores", "at_once"), [(4, 2), (6, 3), (16, 4)])
def test_beside_a_card_diagnosed_calls_run_at_once_and_are_judged_in_order(
    monkeypatch, cores, at_once
):
    slow = ("    int threads = 256;", "    for (volatile int j = 0; j < 5000000; j++) {}\n"
            "    int threads = 256;")  # fmt: skip
    alone, one, message = diagnosed(kernel_of(slow), monkeypatch, cores=2)
    both, several, message_of_both = diagnosed(kernel_of(slow), monkeypatch, cores=cores)
    assert (
        alone == both
        and len(alone) > 5
        and message == message_of_both == "no hazards, gates passed"
    )
    assert len(one) == 1 and len(several) == at_once


@pytest.mark.parametrize("cores", [4, 16])
@pytest.mark.parametrize("change", [WRONG, (GUARD, "if (i <= n)")])
def test_the_first_failure_of_several_diagnosed_calls_is_told(monkeypatch, change, cores):
    alone, _, message = diagnosed(kernel_of(change), monkeypatch, cores=2)
    both, _, message_of_both = diagnosed(kernel_of(change), monkeypatch, cores=cores)
    assert alone == both and message == message_of_both and "seed=4" in message


def test_beside_a_card_no_call_of_too_many_threads_is_diagnosed(monkeypatch):
    """The emulator takes tens of seconds for a million threads that meet at barriers."""
    monkeypatch.setattr(case_sizes, "anywhere", lambda *_, **more: {"n": 200_000})
    judged, _, message = diagnosed(kernel_of(), monkeypatch, cores=2)
    assert message == "no hazards, gates passed"
    assert max(sizes["n"] for sizes, *_ in judged) < 200_000


def test_of_two_failures_that_of_a_diagnosed_call_is_told_and_it_alone_is_explained(monkeypatch):
    explained, genuine = [], explain.wrong_values

    def wrong_values(kernel, case, *arguments):
        explained.append(case)
        return genuine(kernel, case, *arguments)

    monkeypatch.setattr(instrumented, "begin", lambda kernel: never)  # until all are made
    monkeypatch.setattr(explain, "wrong_values", wrong_values)
    failure = failing(kernel_of(WRONG), seed=3)
    assert failure.reason == "wrong values" and len(explained) == 1
    assert str(explained[0]) in str(failure) and "n=1," not in str(explained[0])


def test_a_crash_of_an_early_call_is_told_once_all_has_been_diagnosed(order, monkeypatch):
    crash = "    if (n > 30000) *(volatile int*)nullptr = n;\n    int threads = 256;"
    monkeypatch.setattr(instrumented, "begin", lambda kernel: never)
    failure = failing(kernel_of(("    int threads = 256;", crash)), seed=5)
    assert failure.reason == "crashed" and order[-1] == "d"


def test_a_call_that_never_ends_does_not_keep_a_diagnosed_one_from_being_told():
    start = time.monotonic()
    failure = failing(kernel_of((GUARD, ENDLESS.format("<="))), seed=3)
    assert failure.reason == "out of bounds", failure
    assert time.monotonic() - start < verdict.TIMEOUT - 3


def test_a_call_that_was_given_up_is_made_anew_in_its_turn(monkeypatch):
    monkeypatch.setattr(schedule, "SOON", 0.3)
    monkeypatch.setattr(verdict, "TIMEOUT", 1.5)
    failure = failing(kernel_of((GUARD, ENDLESS.format("<"))), seed=3)
    assert failure.reason == "timeout" and "1.5 seconds" in str(failure)


def test_a_deadlock_is_known_from_a_call_that_was_only_stopped():
    barrier = "if (threadIdx.x < 16) __syncwarp();\n    __syncthreads();\n    if (i < n)"
    endless = (GUARD, ENDLESS.format("<"))
    arguments = {"x": torch.ones(1), "out": torch.zeros(1), "n": 1}
    for change, certain in (((GUARD, barrier), True), (endless, False)):
        with pytest.raises(KernelTimeout) as caught:
            kernel_of(change).isolated(arguments, timeout=0.5)
        assert caught.value.certain == certain


def test_an_interrupt_in_an_early_call_ends_the_check_and_the_next_one_works(monkeypatch):
    def interrupted(self, *arguments, **how):
        raise KeyboardInterrupt

    kernel = kernel_of(edit="interrupted")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Answer, "isolated", interrupted)
        check(kernel, seed=1)
    assert not kernel.trusted
    check(kernel, seed=1)
    assert kernel.trusted


# --- a worker that is called while another one is waited for


@pytest.fixture
def swish():
    """What calls the kernel, and what has a call diagnosed; each gives the kernel's output."""
    arguments = {"x": torch.linspace(-3, 3, 50), "out": torch.zeros(50), "n": 50}
    kernel = kernel_of()
    other = instrumented.instrumented(kernel)
    pool.discard("emulator")  # none has called another kernel, which it would be put down to

    def run():
        return kernel.isolated(arguments).after["out"]

    def watch():
        return other.watched(arguments).after["out"]

    run(), watch()  # both have answered: what is in force is known
    return run, watch


def test_one_worker_is_called_while_another_one_runs(swish):
    run, watch = swish
    results, said = [], []

    def action(answered):
        said.append(answered())
        results.append(run())
        deadline = time.monotonic() + 20
        while not answered() and time.monotonic() < deadline:
            pass
        said.append(answered())

    with workers.meanwhile(action):
        assert torch.equal(watch(), run())
    assert torch.equal(results[0], run()) and said[-1]


def test_who_does_too_much_meanwhile_is_ended_although_another_one_is_waited_for(
    swish, monkeypatch
):
    run, watch = swish
    outer, genuine = [], workers.Worker._excess
    ask = workers.Worker.ask

    def noted(self, within, do, *arguments, **command):
        if do == "watch":
            outer.append(self)
        return ask(self, within, do, *arguments, **command)

    def excess(self):
        return "did too much" if self in outer else genuine(self)

    monkeypatch.setattr(workers.Worker, "ask", noted)
    ended = []

    def action(answered):
        monkeypatch.setattr(workers.Worker, "_excess", excess)
        deadline = time.monotonic() + 20
        while outer[0].process.poll() is None and time.monotonic() < deadline:
            run()  # who is waited for looks at the others now and then
        ended.append(outer[0].process.poll())
        monkeypatch.setattr(workers.Worker, "_excess", genuine)

    with pytest.raises(KernelCrash, match="did too much"), workers.meanwhile(action):
        watch()
    assert ended[0] is not None and torch.equal(watch(), run())
