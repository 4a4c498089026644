"""Times on a GPU: of right results only, and of the whole work. Needs a GPU."""

import subprocess
import sys

import pytest
import torch
from support import toys
from support.fakes import FakeKernel

from utils.ground.errors import CheckFailed, WorkbookError
from utils.ground.paths import ROOT
from utils.timing import measure, rested, sustained

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")

SIZES = {"M": 512, "N": 256, "K": 1024}


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(rested, "BUDGET", 0.02)
    monkeypatch.setattr(sustained, "SECONDS", 0.05)
    monkeypatch.setattr(measure.peers, "of", lambda exercise, sizes: iter(PEERS))


PEERS = [measure.Peer("library", "library", lambda A, B: A @ B)]


def gemm(A, B, C, M, N, K):
    torch.mm(A, B, out=C)


def measured(function, exercise=toys.GEMM, sizes=SIZES):
    return measure.measure(FakeKernel(function, exercise, backend="cuda"), sizes)


def test_a_right_kernel_is_timed_beside_the_library():
    entry, notes = measured(gemm)
    ours, library = entry.rows
    assert not notes and entry.sizes == SIZES and entry.flops == 2 * 512 * 256 * 1024
    assert ours.p20_ms <= ours.median_ms <= ours.p80_ms
    assert 0.3 < ours.median_ms / library.median_ms < 3  # it is the same function
    assert entry.torch == torch.__version__ and entry.date


def test_tf32_in_the_notebook_does_not_reach_the_peers():
    torch.set_float32_matmul_precision("high")
    try:
        measured(gemm)  # would be off by more than its bound
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("right_calls", [3, 12])
def test_a_kernel_that_stops_working_while_it_is_timed_is_refused(right_calls):
    calls = []

    def kernel(A, B, C, M, N, K):
        calls.append(1)
        if len(calls) <= right_calls:
            gemm(A, B, C, M, N, K)

    with pytest.raises(CheckFailed, match="a timed call gave a wrong result"):
        measured(kernel)


def test_a_kernel_that_repeats_an_old_result_is_refused():
    kept = []

    def kernel(A, B, C, M, N, K):
        kept.append(A @ B) if not kept else None
        C.copy_(kept[0])

    with pytest.raises(CheckFailed, match="wrong"):
        measured(kernel)


def test_work_on_another_stream_is_timed_too():
    side = torch.cuda.Stream()

    def kernel(A, B, C, M, N, K):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(50):
                gemm(A, B, C, M, N, K)

    hidden, _ = measured(kernel)
    honest, _ = measured(gemm)
    assert hidden.rows[0].median_ms > 10 * honest.rows[0].median_ms


def test_a_peer_that_fails_is_named(monkeypatch):
    def broken(A, B):
        raise RuntimeError("no compiler\nlong trace")

    failing = [measure.Peer("torch.compile", "compile", broken), *PEERS]
    monkeypatch.setattr(measure.peers, "of", lambda exercise, sizes: iter(failing))
    entry, notes = measured(gemm)
    assert notes == ["torch.compile failed here: RuntimeError: no compiler"]
    assert [row.kind for row in entry.rows] == ["ours", "library"]


def test_too_little_memory_is_said():
    with pytest.raises(WorkbookError, match="too little memory"):
        measured(gemm, sizes={"M": 1 << 21, "N": 1 << 21, "K": 4})


def test_an_output_that_is_read_too_starts_from_its_own_values():
    entry, _ = measured(lambda a, x, y, n: y.add_(a * x), toys.AXPY, {"n": 100_000})
    assert entry.ours().median_ms > 0


def test_a_copy_is_as_fast_as_memory():
    assert 1e11 < measure.copy_bandwidth() < 2e13


LARGE = {"M": 2048, "N": 2048, "K": 2048}


def test_rows_say_how_exact_they_are_and_how_fast_under_load():
    ours, library = measured(gemm, sizes=LARGE)[0].rows
    for row in (ours, library):
        assert row.precision == "fp32" and 0 < row.error < 1e-5
        assert 0.5 < row.sustained_ms / row.median_ms < 2
        assert row.clock_mhz is None or 300 < row.clock_mhz < 4000


def test_a_kernel_that_stops_working_under_load_is_refused(monkeypatch):
    rests = []
    looking = measure.looking
    monkeypatch.setattr(measure, "looking", lambda: rests.append(1) or looking())

    def kernel(A, B, C, M, N, K):
        gemm(A, B, C, M, N, K)
        if rests:
            C.mul_(2)

    with pytest.raises(CheckFailed, match="a timed call gave a wrong result"):
        measured(kernel, sizes=LARGE)


CHECKING = """
import contextlib, io
from utils.course import catalog
from utils.course.answers import compile_answer
from utils.judge.check import check

exercise = catalog.load("03_register_tiles/gemm_1d")
kernel = compile_answer(exercise, catalog.solution_text(exercise), backend="cuda")
while True:
    with contextlib.redirect_stdout(io.StringIO()):
        check(kernel)
    print("checked", flush=True)
"""


def test_a_check_in_another_process_does_not_change_the_time(monkeypatch):
    monkeypatch.setattr(rested, "BUDGET", 0.3)
    sizes = {"M": 4096, "N": 4096, "K": 4096}
    alone = measured(gemm, sizes=sizes)[0].ours().median_ms
    program = [sys.executable, "-c", CHECKING]
    other = subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "checked\n"
        beside = [measured(gemm, sizes=sizes)[0].ours().median_ms for _ in range(3)]
        assert other.stdout.readline() == "checked\n"  # it still does
    finally:
        other.kill()
        other.wait()
    assert all(abs(ms / alone - 1) < 0.05 for ms in beside), (alone, beside)
