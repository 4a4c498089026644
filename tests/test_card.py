"""The GPU is timed by one process alone; those that do not time share it, and nobody starves."""

import contextlib
import math
import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from support import toys
from support.fakes import FakeKernel

from utils.cuda import isolation, warmup
from utils.ground.paths import ROOT
from utils.judge import oracle
from utils.judge.plain_calls import PlainCalls
from utils.process import card, pool
from utils.timing import peers, rested

PROGRAM = """
import sys, time
from utils.process import card
with getattr(card, sys.argv[1])(*sys.argv[2:]):
    print("in", flush=True)
    sys.stdin.readline()
print("out", flush=True)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    card._path.cache_clear()
    yield
    card._path.cache_clear()


@pytest.fixture
def start():
    """Starts a process that holds the card until its input ends; says whether it has it yet."""
    begun = []

    def start(*kind: str) -> subprocess.Popen:
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", PROGRAM, *kind]
        process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
        begun.append(process)
        return process

    yield start
    for process in begun:
        process.kill()
        process.wait()


@pytest.fixture
def cell():
    """Within a notebook's cell."""
    card.cell(True)
    yield
    card.cell(False)


def is_in(process: subprocess.Popen, within: float) -> bool:
    ready, _, _ = select.select([process.stdout], [], [], within)
    return bool(ready) and process.stdout.readline() == "in\n"


def let_go(process: subprocess.Popen) -> None:
    process.stdin.close()
    assert process.wait(20) == 0


def test_those_that_do_not_time_share_the_card(start):
    first, second = start("together"), start("together")
    assert is_in(first, 20) and is_in(second, 20)


@pytest.mark.parametrize("kinds", [("alone", "together"), ("together", "alone"), ("alone",) * 2])
def test_who_times_is_alone(start, kinds):
    first = start(kinds[0])
    assert is_in(first, 20)
    second = start(kinds[1])
    assert not is_in(second, 0.7)
    let_go(first)
    assert is_in(second, 20)


def test_who_wants_to_time_is_not_passed_by(start):
    first = start("together")
    assert is_in(first, 20)
    timing = start("alone")
    assert not is_in(timing, 0.7)
    late = start("together")
    assert not is_in(late, 0.7)
    let_go(first)
    assert is_in(timing, 20) and not is_in(late, 0.3)
    let_go(timing)
    assert is_in(late, 20)


def test_a_process_that_dies_lets_go(start):
    first = start("alone")
    assert is_in(first, 20)
    second = start("alone")
    time.sleep(0.3)
    first.kill()
    assert is_in(second, 20)


def test_holding_it_twice_is_holding_it(start):
    with card.alone(), card.alone(), card.together():
        other = start("together")
        assert not is_in(other, 0.7)
    assert is_in(other, 20)
    let_go(other)
    with card.together(), card.together(), pytest.raises(RuntimeError, match="wait forever"):
        with card.alone():
            raise AssertionError


def test_the_same_is_done_by_one_process_at_a_time(start):
    first = start("in_turn", "a product")
    assert is_in(first, 20)
    same, other = start("in_turn", "a product"), start("in_turn", "another one")
    assert is_in(other, 20) and not is_in(same, 0.7)
    with card.alone(), card.in_turn("a product"):  # else two would wait for each other
        assert not is_in(same, 0.3)
    let_go(first)
    assert is_in(same, 20)


@pytest.mark.parametrize(
    ("once", "options", "returned"),
    [
        (peers.LONG, {}, peers.LONG),  # the shorter of two
        (peers.LONG - 1, {}, "PyTorch's"),
        (peers.LONG, {"return_mode": "all"}, "PyTorch's"),
        (peers.LONG, {"quantiles": [0.5]}, "PyTorch's"),
    ],
)
def test_what_pytorch_tries_is_called_twice_where_it_is_long(monkeypatch, once, options, returned):
    class Benchmarker:
        def benchmark_gpu(self, call, rep=0, **options):
            assert rep == 40
            return "PyTorch's"

    times, calls = iter((once, once + 1)), []

    def timed(call, flush):
        assert card._lock == card.ALONE
        call()
        return rested.Timing(next(times), queued=True)

    monkeypatch.setattr(rested, "timed", timed)
    tries = Benchmarker()
    peers._long_tries_twice(tries)
    assert tries.benchmark_gpu(lambda: calls.append(0), rep=40, **options) == returned
    assert len(calls) == (3 if returned == peers.LONG else 2)  # the first of them loads it


def test_a_try_that_cannot_be_launched_is_pytorchs_matter():
    class Benchmarker:
        def benchmark_gpu(self, call):
            with contextlib.suppress(RuntimeError):
                call()
            return math.inf

    def call():
        raise RuntimeError("CUDA error: invalid configuration argument")

    tries = Benchmarker()
    peers._long_tries_twice(tries)
    assert tries.benchmark_gpu(call) == math.inf


def test_pytorch_tries_the_kernels_of_a_product_in_turn(monkeypatch):
    tries = pytest.importorskip("torch._inductor.select_algorithm").AlgorithmSelectorCache
    assert callable(tries.lookup)  # a PyTorch without it tries in each process
    turns = []

    @contextlib.contextmanager
    def in_turn(what):
        turns.append(what)
        yield

    monkeypatch.setattr(card, "in_turn", in_turn)
    monkeypatch.setattr(tries, "lookup", lambda self, choices, *rest, hint_override: (turns, rest))
    peers._tries_once.__wrapped__()
    assert tries.lookup(None, [], "mm", "8 x 8", None, hint_override=3) == (
        ["mm 8 x 8"],
        ("mm", "8 x 8", None),
    )


def test_a_thread_joins_in_what_its_process_holds():
    """PyTorch may time from another thread than the one that compiles."""
    done = []

    def use():
        with card.alone():
            done.append(True)

    with card.alone():
        thread = threading.Thread(target=use)
        thread.start()
        thread.join(20)
    assert done


def test_the_emulator_needs_no_card(start):
    other = start("alone")
    assert is_in(other, 20)
    with card.together("emulator"):  # would wait
        pass


def test_a_cell_shares_the_card_and_gives_way_to_what_is_timed(start, cell):
    first = start("alone")
    assert not is_in(first, 0.7)
    with card.apart():  # the workbook compiles, say
        assert is_in(first, 20)
        second = start("together")
        assert not is_in(second, 0.3)
        let_go(first)
        assert is_in(second, 20)
        let_go(second)
        with card.alone():  # and times
            third = start("together")
            assert not is_in(third, 0.7)
        assert is_in(third, 20)
        let_go(third)
    assert not is_in(start("alone"), 0.7)


def test_what_is_checked_in_a_cell_holds_the_card_though_the_cell_does_not(start, cell):
    with card.apart():
        with card.together():
            timing = start("alone")
            assert not is_in(timing, 0.7)
            with pytest.raises(RuntimeError, match="wait forever"), card.apart(), card.alone():
                raise AssertionError
        assert is_in(timing, 20)
        let_go(timing)


def test_a_build_that_ends_beside_it_does_not_end_what_another_thread_holds(start):
    building = card.apart()
    building.__enter__()  # by a thread that compiles
    with card.together():
        building.__exit__(None, None, None)
        timing = start("alone")
        assert not is_in(timing, 0.7)
    assert is_in(timing, 20)


def test_who_compiles_between_two_tries_gives_the_card_away(start):
    with card.alone():
        timing = start("alone")
        assert not is_in(timing, 0.7)
        with card.released():
            assert is_in(timing, 20)
            let_go(timing)
        other = start("alone")
        assert not is_in(other, 0.7)
    assert is_in(other, 20)
    with card.released():  # where nothing is held, nothing changes
        pass
    assert card._lock == 0


def test_who_gave_the_card_away_takes_it_for_what_needs_it_alone():
    with card.together():
        with card.released():
            with card.apart():  # a build, of which each step asks again
                assert card._lock == 0
            with card.together():
                assert card._lock == card.TOGETHER
            assert card._lock == 0
        assert card._lock == card.TOGETHER


def test_who_gives_the_card_away_leaves_what_other_threads_hold():
    held = []

    def gives_it_away():
        with card.together(), card.released():
            held.append(card._lock)

    with card.alone():
        thread = threading.Thread(target=gives_it_away)
        thread.start()
        thread.join()
        assert held == [card.ALONE] == [card._lock]


def test_a_cell_is_not_waited_for_without_end(start, monkeypatch):
    monkeypatch.setattr(card, "CELL", 0.5)
    card.cell(True)
    timing = start("alone")
    assert is_in(timing, 20)  # such as one that the cell itself waits for


def test_a_fork_does_not_hold_what_its_parent_does(start):
    reading, writing = os.pipe()
    with card.alone():
        if not (child := os.fork()):
            os.read(reading, 1)
            os._exit(bool(card._requests or card._lock))
    try:
        assert is_in(start("alone"), 20)  # while the child lives
    finally:
        os.write(writing, b".")
        status = os.waitpid(child, 0)[1]
    assert status == 0


# --- who takes it


@pytest.mark.parametrize("backend, held", [("cuda", card.TOGETHER), ("emulator", 0)])
def test_a_call_in_a_worker_on_the_card_waits_while_somebody_times(monkeypatch, backend, held):
    class Called(Exception):
        pass

    class Worker:
        libraries = {"k.so"}

        def memory(self, size):
            assert card._lock == 0  # what it is called with is filled beside others
            return torch.zeros(size, dtype=torch.uint8)

        def ask(self, within, **command):
            raise Called(card._lock)

    class Slot:
        def safely(self, library, action):
            return action(Worker())

    monkeypatch.setattr(isolation.pool, "slot", lambda *which: Slot())
    with pytest.raises(Called) as called:
        isolation.Call("k", Path("k.so"), backend, (), {}, 1.0).run()
    assert called.value.args == (held,)


def test_a_process_is_made_ready_on_a_card_while_nobody_times(monkeypatch):
    locks = []
    monkeypatch.setattr(pool, "Worker", lambda backend, folders: locks.append(card._lock))
    pool.Slot("cuda")._made("k.so", lambda worker: locks.append(card._lock))
    assert locks == [0, card.TOGETHER]


def test_a_notebook_makes_its_context_while_nobody_times(monkeypatch):
    locks = []
    monkeypatch.setattr(warmup.torch.cuda, "synchronize", lambda: locks.append(card._lock))
    warmup._context()
    assert (locks, card._lock) == ([card.TOGETHER], 0)


def test_a_build_of_pytorchs_lets_others_time(start, cell, monkeypatch):
    """A cell with load_inline takes a minute, and none of it on the GPU."""
    from torch.utils import cpp_extension

    monkeypatch.setenv("WORKBOOK_BACKEND", "cuda")
    monkeypatch.setattr(warmup.toolchain, "prepare", lambda backend: None)
    monkeypatch.setattr(cpp_extension, "_jit_compile", lambda: card._lock)
    warmup._import_compiler()
    assert (cpp_extension._jit_compile(), card._lock) == (0, card.TOGETHER)


@pytest.mark.parametrize(
    "backend, where, held",
    [("cuda", "cuda", card.TOGETHER), ("cuda", "cpu", 0), ("emulator", "cpu", 0)],
)
def test_what_a_card_works_out_for_a_check_it_does_while_nobody_times(
    monkeypatch, backend, where, held
):
    locks = []
    monkeypatch.setattr(oracle, "expect", lambda *arguments: locks.append(card._lock) or {})
    calls = PlainCalls(FakeKernel(lambda x, y, n: None, toys.AXPY, backend=backend), seed=1)
    monkeypatch.setattr(calls, "_device", lambda sizes: where)
    calls.call(calls.case(toys.AXPY.at.bench))
    assert locks == [held]


def test_what_is_compiled_for_comparison_runs_alone_the_first_time(monkeypatch):
    from torch._inductor import output_code

    graph = output_code.CompiledFxGraph
    monkeypatch.setattr(graph, "__call__", lambda self, inputs: card._lock)
    with peers.compiling():
        assert graph.__call__(None, []) == card.ALONE
    assert graph.__call__(None, []) == 0
