"""Points for speed are for an answer's time, which whoever wrote it can neither tell nor forge.

On the emulator, where times are worth nothing and the protocol is the same.
"""

import os
import time
from contextlib import closing
from pathlib import Path

import pytest
import torch
from support.attacks import exercise_named
from support.box import needs_box
from support.hijacked import CHEATS, ON_A_GPU, hijacked

from utils.cuda import arrays, stopwatch
from utils.ground.errors import CheckFailed, KernelCrash, KernelTimeout, LaunchError, Reason
from utils.process import pool, proc
from utils.timing import speed

SIZES, CALLS = {"n": 700}, 5
GO = "def cheat(self, command):\n"


@pytest.fixture(scope="module")
def swish():
    return speed.solution(exercise_named("swish"), "emulator")


@pytest.fixture(scope="module")
def bounds(swish):
    return speed.bounds(swish, SIZES)


@pytest.fixture
def run(swish):
    with closing(speed.filled(swish, SIZES, list(range(CALLS)), None)) as run:
        yield run


# --- the clock


def test_what_is_right_is_timed(swish, bounds):
    assert 0 < speed.clocked(swish, SIZES, CALLS, bounds) < 20


def test_a_run_that_calls_nothing_writes_nothing(swish, run):
    with stopwatch.process(swish, None) as worker:
        assert 0 < run.clock(worker, 5, idle=True) < 20
    assert run.tensor(0, "out").isnan().all() and not run.changed_since()


@needs_box
def test_what_is_right_is_timed_in_a_box(swish, bounds, monkeypatch):
    monkeypatch.setenv("WORKBOOK_BOX", "1")
    assert 0 < speed.clocked(swish, SIZES, CALLS, bounds) < 20


@pytest.mark.parametrize("cheat", CHEATS)
def test_who_owns_the_process_gains_nothing(swish, bounds, cheat):
    with hijacked(CHEATS[cheat]), pytest.raises(CheckFailed):
        speed.clocked(swish, SIZES, CALLS, bounds)


def test_what_comes_after_the_word_is_found(swish, run):
    with stopwatch.process(swish, None) as worker:
        run.clock(worker, 5)
    assert not run.changed_since()
    run.tensor(CALLS - 1, "out")[-1] += 1
    assert run.changed_since()


def test_right_values_that_came_too_late_do_not_count(swish, bounds, monkeypatch):
    monkeypatch.setattr(stopwatch.Run, "changed_since", lambda run: True)
    with pytest.raises(CheckFailed, match="it was not"):
        speed.clocked(swish, SIZES, CALLS, bounds)


def test_a_word_that_nobody_was_asked_for_is_none(swish):
    forged = GO + "    say_done('0' * 32)\n    time.sleep(5)\n"
    with hijacked(forged), pytest.raises(KernelCrash, match="answered in the place of"):
        speed.clocked(swish, SIZES, CALLS)


def test_the_workers_own_clock_is_not_asked(swish):
    slow = GO + "    time.sleep(0.3)\n    time.perf_counter = time.monotonic = lambda: 0.0\n"
    slow += '    return {**genuine(self, command), "seconds": 1e-9}\n'
    with hijacked(slow):
        assert speed.clocked(swish, SIZES, CALLS) > 0.3


def test_the_clock_stops_when_the_outputs_have_been_looked_at(swish, run, monkeypatch):
    look = run.look
    monkeypatch.setattr(run, "look", lambda: time.sleep(0.2) or look())
    with stopwatch.process(swish, None) as worker:
        assert run.clock(worker, 5) > 0.2


def test_few_outputs_are_looked_at_as_a_whole(run):
    starts = [4 * run.tensor(call, "out").storage_offset() for call in range(CALLS)]
    all_of_them = {start + i for start in starts for i in range(4 * SIZES["n"])}
    assert set(run.drawn_places().tolist()) == all_of_them


def test_of_many_outputs_places_are_drawn_in_each(swish):
    with closing(speed.filled(swish, {"n": 40_000}, [1, 2], None)) as run:
        places = run.drawn_places()
        assert len(places) == arrays.LOOKED_AT and not (places == run.drawn_places()).all()
        starts = [4 * run.tensor(call, "out").storage_offset() for call in range(2)]
        inside = [(places >= start) & (places < start + 160_000) for start in starts]
        assert (inside[0] | inside[1]).all() and all(part.sum() > 30_000 for part in inside)


def mapped(worker) -> bool:
    """Whether a process could reach lent memory."""
    proc = Path(f"/proc/{worker.process.pid}")
    files = [os.readlink(path) for path in (proc / "fd").iterdir()]
    return any("memfd:lent" in text for text in (*files, (proc / "maps").read_text()))


def test_inputs_are_in_nobodys_reach_before_go(swish, run):
    with stopwatch.process(swish, None) as worker:
        assert not mapped(worker)
        run.clock(worker, 5)
        assert mapped(worker)


def test_where_arrays_are_is_another_each_time(swish):
    runs = [speed.filled(swish, SIZES, [1, 2, 3], None) for _ in range(2)]
    places = [[run.tensor(c, "x").storage_offset() for c in range(3)] for run in runs]
    for run in runs:
        run.close()
    assert places[0] != places[1]


@needs_box
def test_nothing_of_a_process_is_left_to_slow_down_the_next(swish, run, monkeypatch):
    monkeypatch.setenv("WORKBOOK_BOX", "1")
    with stopwatch.process(swish, None) as worker:
        run.clock(worker, 5)
        below = [worker.process.pid, *proc.descendants(worker.process.pid)]
        assert len(below) > 1 and all(map(proc.runs, below))
    assert not any(map(proc.runs, below))


@pytest.mark.parametrize(
    ("cheat", "error"),
    [
        ("    os._exit(0)\n", KernelCrash),
        ("    time.sleep(60)\n", KernelTimeout),
        ('    return {"error": 1, "name": "cudaErrorX", "text": "x"}\n', LaunchError),
    ],
)
def test_a_process_that_fails_is_told_from_one_that_is_slow(swish, run, cheat, error):
    with hijacked(GO + cheat), pytest.raises(error), stopwatch.process(swish, None) as worker:
        run.clock(worker, 0.3)


# --- who is timed, how often, and what follows


@pytest.mark.parametrize(
    ("ratio", "tenths"),
    [(0.3, 10), (1.2, 10), (1.21, 7 / 1.21), (2, 3.5), (7, 1), (9.99, 7 / 9.99), (10, 0), (99, 0)],
)
def test_points_follow_the_rule_of_cs149(ratio, tenths):
    assert speed.tenths(ratio) == pytest.approx(tenths)


@pytest.fixture
def times(swish, monkeypatch):
    """Times in place of clocks: times(answer) with seconds a call, or an exception, of which there
    is one for each run. Returns what was found, and who was timed with how many calls."""
    seen = []

    def clocked(kernel, sizes, calls, bounds=None, within=0.0, idle=False):
        if idle:
            return 0.01
        ours = kernel is not swish
        seen.append(("answer" if ours else "solution", calls, bounds is not None, within))
        taken = next(answers) if ours else next(solutions)
        if isinstance(taken, Exception):
            raise taken
        return 0.01 + taken * calls

    def times(answer, solution=(0.01,) * 20):
        nonlocal answers, solutions
        answers, solutions = iter(answer), iter(solution)
        return speed.beside_the_solution(type(swish)(**vars(swish)), SIZES), seen

    answers = solutions = iter(())
    monkeypatch.setattr(speed, "clocked", clocked)
    monkeypatch.setattr(speed, "solution", lambda exercise, backend: swish)
    return times


def test_the_ratio_is_that_of_medians(times):
    ratio, _ = times([0.02, 0.09, 0.02], [0.01] * 4 + [0.5] + [0.01] * 9)
    assert (ratio.ratio, ratio.tenths) == (pytest.approx(2), pytest.approx(3.5))
    assert (ratio.seconds, ratio.reference) == (pytest.approx(0.02), pytest.approx(0.01))


def test_what_every_run_costs_is_in_neither_time(times):
    ratio, _ = times([0.02] * speed.ROUNDS)
    assert ratio.overhead == 0.01 and ratio.ratio == pytest.approx(2)


def test_at_most_half_of_a_run_is_taken_for_what_every_run_costs(times):
    ratio, _ = times([0.0] * speed.ROUNDS, [0.01] * 20)
    assert ratio.overhead == 0.005 and 0 < ratio.ratio < 0.1


def test_both_run_in_turn_and_every_run_of_the_answer_is_verified(times):
    _, seen = times([0.02] * speed.ROUNDS)
    who = [name for name, *_ in seen]
    assert who[-2 * speed.ROUNDS :] == ["solution", "answer"] * speed.ROUNDS
    assert all(verified for name, _, verified, _ in seen if name == "answer")


def test_how_many_calls_a_run_has_is_not_the_answers_to_say(times):
    """A kernel that sleeps while others are calibrated makes nothing shorter."""
    _, seen = times([5.0, 0.001, 0.001])
    first = [name for name, *_ in seen].index("answer")
    assert first > 0 and {calls for _, calls, *_ in seen[first:]} == {seen[first - 1][1]}


@pytest.mark.parametrize(
    "error", [CheckFailed(Reason.WRONG_VALUES, "x"), KernelTimeout("x"), MemoryError("x")]
)
def test_who_fails_while_he_is_timed_gets_no_points(times, error):
    ratio, _ = times([0.01, error])
    assert ratio.tenths == 0 and "x" in ratio.message


def test_who_spoils_the_solutions_time_gets_no_points(times):
    ratio, _ = times([0.01] * speed.ROUNDS, [0.01] * 3 + [KernelTimeout("late")])
    assert ratio.tenths == 0 and "late" in ratio.message


def test_where_the_solution_cannot_be_timed_nothing_is(times):
    ratio, _ = times([0.01] * speed.ROUNDS, [OSError("no memory can be lent")])
    assert ratio.tenths is None and "no memory can be lent" in ratio.message


def test_an_answer_is_stopped_where_it_can_earn_nothing_any_more(times):
    _, seen = times([0.01] * speed.ROUNDS)
    limits = [within for name, *_, within in seen if name == "answer"]
    assert all(speed.NOTHING * 0.1 < limit < 10 for limit in limits)


def test_processes_of_the_check_are_ended_before(times):
    pool.slot("emulator").prestart()
    before = pool.slot("emulator").worker
    times([0.01] * speed.ROUNDS)
    assert before.process.poll() is not None


# --- on a GPU

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
LARGE = {"M": 2048, "N": 2048, "K": 2048}  # milliseconds, beside which a time slice is short


@pytest.fixture(scope="module")
def on_gpu():
    return speed.solution(exercise_named("gemm_coalesced"), "cuda")


@gpu
def test_memory_of_a_gpu_is_lent_and_what_is_right_there_is_timed(on_gpu):
    assert 0 < speed.clocked(on_gpu, LARGE, CALLS, speed.bounds(on_gpu, LARGE)) < 20


@gpu
@pytest.mark.parametrize("cheat", ON_A_GPU)
def test_work_that_a_gpu_has_still_to_do_does_not_count(on_gpu, cheat):
    bounds = speed.bounds(on_gpu, LARGE)
    with hijacked(ON_A_GPU[cheat]), pytest.raises(CheckFailed):
        speed.clocked(on_gpu, LARGE, 4 * CALLS, bounds)
