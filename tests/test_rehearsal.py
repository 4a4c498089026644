"""What a launcher does at sizes that are too large to run is known from its launches."""

import contextlib
import re
from pathlib import Path

import pytest
from support.attacks import exercise_named

from utils.course import case_calls, catalog
from utils.course.answers import Answer, compile_answer
from utils.ground.errors import CheckFailed, Reason
from utils.judge.diagnosed_calls import DiagnosedCalls
from utils.judge.rehearsal import Rehearsals
from utils.process import pool

SWISH = exercise_named("swish")
LAUNCH = "swish_kernel<<<blocks, threads>>>(x, out, n);"


def kernel_of(*changes: tuple[str, str]) -> Answer:
    text = catalog.solution_text(SWISH)
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return compile_answer(SWISH, text, backend="emulator")


def rehearsed(kernel: Answer) -> DiagnosedCalls:
    diagnosed = DiagnosedCalls(kernel, seed=1)
    diagnosed.look({"n": 1000})
    Rehearsals(kernel, 1, diagnosed).judge_all()
    return diagnosed


def failure_of(kernel: Answer) -> CheckFailed:
    with pytest.raises(CheckFailed) as caught:
        rehearsed(kernel)
    return caught.value


def test_a_launcher_that_does_the_same_at_all_sizes_is_watched_no_further():
    assert [sizes for sizes, _ in rehearsed(kernel_of()).launched] == [{"n": 1000}]


def test_kinds_of_values_are_watched_at_known_sizes_and_at_others_by_turns():
    diagnosed = DiagnosedCalls(kernel_of(), seed=1)
    assert "no hazards" in diagnosed.all()
    known = [sizes in SWISH.at.check for sizes, _ in diagnosed.launched]
    assert known[-9:-1] in ([True, False] * 4, [False, True] * 4)


LEAK = "void* lost; cudaMalloc(&lost, 512);"
KEPT = "static void* kept[2]; static int calls = 0;"


@pytest.mark.parametrize("when", ["n > 3000000", "n > 3000000 && ++calls % 2"])
def test_memory_that_is_left_behind_at_a_size_that_no_call_has_is_found(when):
    leaking = kernel_of((LAUNCH, f"static int calls = 0; if ({when}) {{ {LEAK} }}\n{LAUNCH}"))
    failure = failure_of(leaking)
    assert failure.reason == Reason.LEAK
    assert re.search(r"n=\d{7,}.*\neach call leaves 512 bytes", str(failure))


def test_two_buffers_that_a_launcher_keeps_are_no_leak():
    kept = kernel_of(
        (LAUNCH, f"{KEPT} if (calls < 2) cudaMalloc(&kept[calls++], 4 * n);\n{LAUNCH}")
    )
    rehearsed(kept)


def test_launches_of_another_kind_are_watched_where_they_begin():
    wide = kernel_of(
        (LAUNCH, f"if (n >= 40000) blocks = (n + (threads = 512) - 1) / 512;\n{LAUNCH}")
    )
    (_, _), (sizes, launches) = rehearsed(wide).launched
    assert 40_000 <= sizes["n"] < 41_000
    assert launches.kinds == {("swish_kernel", 512)}


def test_a_size_beyond_all_calls_at_which_nothing_is_launched():
    failure = failure_of(kernel_of((LAUNCH, f"if (n < 2000000) {LAUNCH}")))
    assert failure.reason is Reason.NO_KERNEL and "launches no kernel" in str(failure)


def test_a_size_beyond_all_calls_at_which_the_host_computes():
    by_hand = (
        "float v;\n    if (n > 2000000) cudaMemcpy(&v, x, 4, cudaMemcpyDeviceToHost);\n    "
        "if (n > 2000000) cudaMemcpy(out, &v, 4, cudaMemcpyHostToDevice);"
    )
    failure = failure_of(kernel_of((LAUNCH, f"{LAUNCH}\n    {by_hand}")))
    assert failure.reason is Reason.NO_KERNEL and "to the host" in str(failure)


def test_a_size_beyond_all_calls_at_which_fewer_threads_work():
    failure = failure_of(
        kernel_of((LAUNCH, f"if (n > 2000000) blocks = 5, threads = 1;\n{LAUNCH}"))
    )
    assert failure.reason is Reason.GATE
    assert "5 threads for all of it; with n=1000 there were 1,024" in str(failure)


def test_one_block_for_all_sizes():
    grid_stride = [("    if (i < n) {", "    for (; i < n; i += blockDim.x) {")]
    failure = failure_of(kernel_of(*grid_stride, (LAUNCH, f"blocks = 1;\n    {LAUNCH}")))
    assert failure.reason is Reason.GATE and "1 block for all of it" in str(failure)


def test_blocks_of_a_kernel_that_is_launched_for_show_do_not_count():
    """Those of the kernel that reads most do, in the call in which gates are read."""
    kernel = kernel_of(
        ("    if (i < n) {", "    for (; i < n; i += blockDim.x) {"),
        ("void swish(", "__global__ void idle_kernel() {}\n\nvoid swish("),
        (LAUNCH, f"idle_kernel<<<blocks, threads>>>();\n    blocks = 1;\n    {LAUNCH}"),
    )
    diagnosed = DiagnosedCalls(kernel, seed=1)
    for reader, refused in (("", False), ("swish_kernel", True), ("idle_kernel", False)):
        diagnosed.reader = reader
        rehearsals = Rehearsals(kernel, 1, diagnosed)
        with pytest.raises(CheckFailed) if refused else contextlib.nullcontext() as caught:
            rehearsals.judge_all()
        assert not refused or "1 block for all of it" in str(caught.value)


def test_what_a_launcher_allocates_takes_no_memory():
    """To fill what nobody reads took longer than all else that a rehearsal does."""
    scratch = "float* scratch;\n    cudaMalloc(&scratch, size_t(1) << 29);\n    cudaFree(scratch);"
    kernel = kernel_of((LAUNCH, f"{LAUNCH}\n    {scratch}"))
    arguments = case_calls.arguments(kernel, case_calls.nothing(kernel, {"n": 1000}))
    slot = pool.slot("emulator", "rehearsals")
    slot.restart()
    assert kernel.isolated(arguments, timeout=10.0, rehearsal=True).launches
    said = Path(f"/proc/{slot.worker.process.pid}/status").read_text()
    assert int(re.search(r"VmHWM:\s*(\d+) kB", said)[1]) < 100_000
