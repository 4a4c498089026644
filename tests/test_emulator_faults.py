"""Each fault of tests/faults.cu ends as on a GPU, with a report of kernel, thread and line."""

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass

import pytest

from utils.emulator.programs import TIMED_OUT, build_program
from utils.emulator.reports import Report, read
from utils.ground.paths import ROOT

SOURCE = ROOT / "tests/faults.cu"
LINES = SOURCE.read_text().splitlines()


def line(comment: str) -> int:
    """The number of the line that ends in a comment."""
    (number,) = [n for n, text in enumerate(LINES, 1) if text.endswith(f"// {comment}")]
    return number


@dataclass
class Run:
    status: int
    printed: list[str]
    stderr: str
    reports: list[Report]

    @property
    def report(self) -> Report:
        assert len(self.reports) == 1, self.reports
        return self.reports[0]


@pytest.fixture(scope="module")
def program():
    return build_program(SOURCE)


@pytest.fixture
def run(program):
    def run(fault: str, limit: float = 20, **variables) -> Run:
        with tempfile.TemporaryFile() as log:
            environment = os.environ | {"EMU_REPORT_FD": str(log.fileno()), **variables}
            environment["EMU_PROGRAM"] = str(limit)
            done = subprocess.run(
                [program, fault],
                env=environment,
                pass_fds=[log.fileno()],
                capture_output=True,
                text=True,
                timeout=60,
            )
            log.seek(0)
            reports = read(log.read().decode())
        return Run(done.returncode, done.stdout.splitlines(), done.stderr, reports)

    return run


# fault: (kind, kernel, block, thread, error after the launch)
FAULTS = {
    "deadlock-warp": ("deadlock", "lane_never_comes", 0, (0, 0, 0), "cudaErrorLaunchFailure"),
    "invalid-mask": ("invalid-mask", "not_in_mask", 0, (3, 0, 0), "cudaErrorLaunchFailure"),
    "masks-differ": ("invalid-mask", "masks_differ", 0, (0, 0, 0), "cudaErrorLaunchFailure"),
    "illegal-address": (
        "illegal-address", "store_to_nothing", 2, (0, 5, 0), "cudaErrorIllegalAddress"
    ),
    "stack-overflow": (
        "stack-overflow", "endless_recursion", 0, (1, 0, 0), "cudaErrorHardwareStackError"
    ),
    "division": ("crash", "divide", 0, (9, 0, 0), "cudaErrorLaunchFailure"),
    "assert": ("assert", "failed_assertion", 0, (20, 0, 0), "cudaErrorAssert"),
    "trap": ("trap", "trapped", 0, (1, 0, 0), "cudaErrorLaunchFailure"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("cores", ["1", "4"])
def test_a_fault_ends_the_launch_and_names_its_place(run, fault, cores):
    kind, kernel, block, thread, error = FAULTS[fault]
    done = run(fault, EMU_THREADS=cores)
    report = done.report
    assert (report.kind, report.kernel) == (kind, kernel)
    assert (report.block, report.thread) == ((block, 0, 0), thread)
    assert report.file == str(SOURCE)
    if fault == "stack-overflow":  # anywhere in the function that calls itself
        assert line("stack-overflow") - 4 <= report.line <= line("stack-overflow") + 1
    else:
        assert report.line == line(fault)
    # The error stays, and no later launch runs: the device is lost to this process.
    assert done.status == 0
    assert done.printed == ["before", error, error, error]


def test_a_deadlock_says_who_waits_where(run):
    report = run("deadlock").report
    assert (report.kind, report.kernel) == ("deadlock", "half_at_barrier")
    first, second = line("deadlock, first place"), line("deadlock, second place")
    assert report.line == second
    assert f"16 threads from (0, 0, 0) wait at line {first}, __syncthreads" in report.message
    assert f"16 threads from (16, 0, 0) wait at line {second}, __syncwarp" in report.message
    assert "lane 0 never comes" in report.message


def test_a_missing_lane_is_named(run):
    message = run("deadlock-warp").report.message
    assert "__shfl_sync of lanes 0xffffffff, and lane 7 never comes" in message
    assert f"1 thread from (7, 0, 0) waits at line {line('deadlock-warp') - 1}" in message


def test_a_wrong_mask_is_shown(run):
    assert "lane 3 called __shfl_sync with mask 0x00000007" in run("invalid-mask").report.message
    assert "lanes disagree about mask" in run("masks-differ").report.message


def test_a_shuffle_from_a_lane_that_takes_no_part_shows_in_the_result(run):
    printed = run("absent-source").printed
    assert sorted(printed[1:5]) == ["lane 0: 1", "lane 1: NaN", "lane 2: 1", "lane 3: 1"]


def test_a_failed_assertion_is_printed_as_a_gpu_prints_it(run):
    stderr = run("assert").stderr
    where = rf"{re.escape(str(SOURCE))}:{line('assert')}: .*failed_assertion.*"
    assert re.search(where + r": block: \[0,0,0\], thread: \[20,0,0\] Assertion", stderr)


def test_a_fault_in_a_library_is_of_the_call_not_of_what_lies_on_the_stack(run):
    report = run("in-library").report
    assert (report.kind, report.kernel) == ("illegal-address", "print_nothing")
    assert (report.file, report.line) == (str(SOURCE), line("in-library"))


def test_an_endless_loop_is_stopped_at_the_time_limit(run):
    done = run("timeout", limit=0.5)
    assert done.status == TIMED_OUT
    assert done.printed == ["before"]  # what was printed is not lost
    report = done.report
    assert (report.kind, report.kernel, report.thread) == ("timeout", "endless", (2, 0, 0))
    assert (report.file, report.line) == (str(SOURCE), line("timeout"))


def test_an_endless_loop_on_the_host_is_stopped_too(run):
    done = run("host-loop", limit=0.5)
    assert done.status == TIMED_OUT
    assert (done.report.kind, done.report.kernel) == ("timeout", None)
    assert done.report.line == line("host-loop")


# What nvcc or a GPU would refuse from the start leaves the device as it was.
@pytest.mark.parametrize(
    "fault, kernel, thread, error",
    [
        ("shared-memory", "too_much_shared", (0, 0, 0), "cudaErrorInvalidValue"),
        ("not-supported", "parent", (4, 0, 0), "cudaErrorNotSupported"),
    ],
)
def test_what_cannot_be_run_is_refused(run, fault, kernel, thread, error):
    done = run(fault)
    report = done.report
    assert (report.kind, report.kernel, report.thread) == (fault, kernel, thread)
    assert (report.file, report.line) == (str(SOURCE), line(fault))
    assert done.printed[-2:] == [error, "cudaSuccess"]


def test_a_crash_of_host_code_is_reported_and_ends_the_program(run):
    done = run("host-crash")
    assert done.status == -11  # SIGSEGV
    assert done.printed == ["before"]
    assert (done.report.kind, done.report.kernel) == ("crash", None)
    assert done.report.line == line("host-crash")
    assert run("host-abort").status == -6  # SIGABRT


def test_a_program_without_a_fault_reports_nothing(run):
    done = run("none")
    assert done.reports == []
    assert done.printed == ["before", *["cudaSuccess"] * 3]
