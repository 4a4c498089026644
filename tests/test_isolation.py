"""Whatever a kernel does, the notebook's process goes on, and the next call works."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
import torch
from support.crashing import FAULTS, call
from support.processes import ended

from utils.cuda import isolation
from utils.cuda.compiler import compile_cuda
from utils.cuda.instrumented import instrumented
from utils.ground.errors import KernelCrash, KernelTimeout, LaunchError
from utils.ground.paths import ROOT
from utils.process import child, pool, proc, workers
from utils.process.guest import lockdown


@pytest.fixture(scope="module")
def kernel():
    return compile_cuda(FAULTS, "run", backend="emulator")


def works(kernel):
    x, run = call(kernel)
    return torch.equal(run.after["out"], 2 * x) and torch.equal(run.after["x"], x)


def pid(backend="emulator"):
    return pool.slot(backend).worker.process.pid


def test_a_call_leaves_the_arguments_alone_and_returns_what_became_of_them(kernel):
    x, run = call(kernel)
    assert torch.equal(run.after["out"], 2 * x) and torch.equal(run.after["x"], x)
    assert run.out_of_bounds == [] and run.stdout == "" and 0 < run.seconds < 20


@pytest.mark.parametrize(
    ("fault", "at", "error", "message"),
    [
        (1, 0, LaunchError, "cudaErrorInvalidValue.*the block is 4,096 along x, where 1,024"),
        (14, 0, LaunchError, "cudaErrorInvalidValue.*the grid is 0 along x"),
        (4, 0, LaunchError, "cudaErrorIllegalAddress.*run.cu:10: illegal memory access.*'wild'"),
        (5, 0, KernelCrash, "run: the process that ran it was killed by SIGSEGV"),
        (6, 0, KernelCrash, "killed by SIGABRT"),
        (7, 0, KernelCrash, "exit status 0 before the launcher returned"),
        (7, 3, KernelCrash, "exit status 3"),
        (8, 0, KernelCrash, "exit status 0"),
    ],
)
def test_a_fault_is_an_error_and_the_next_call_works(kernel, fault, at, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        call(kernel, fault, at)
    assert works(kernel)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (2, "did not end within 0.5 seconds.*run.cu:9.*'forever'.*block.*thread"),
        (3, "did not end within 0.5 seconds"),
    ],
)
def test_what_does_not_end_is_stopped_and_the_next_call_works(kernel, fault, message):
    start = time.monotonic()
    with pytest.raises(KernelTimeout, match=f"(?s){message}"):
        call(kernel, fault, 1, timeout=0.5)
    assert time.monotonic() - start < 0.5 + workers.child.GRACE + 5
    assert works(kernel)


def test_a_time_limit_is_over_when_the_call_is(kernel):
    call(kernel, timeout=0.5)
    first = pid()
    time.sleep(1.0)
    assert works(kernel) and pid() == first


@pytest.fixture
def crowded(kernel):
    """The worker has a twentieth of a core, for two seconds."""
    call(kernel)
    worker, core = pool.slot("emulator").worker, {min(os.sched_getaffinity(0))}
    others = [
        # Each in its own session: Linux shares a core fairly between sessions.
        subprocess.Popen(["sh", "-c", "while :; do :; done"], start_new_session=True)
        for _ in range(20)
    ]
    tasks = map(int, os.listdir(f"/proc/{worker.process.pid}/task"))
    for task in (*tasks, *(other.pid for other in others)):
        os.sched_setaffinity(task, core)

    def leave():
        for other in others:
            other.kill()

    timer = threading.Timer(2.0, leave)
    timer.start()
    yield
    timer.cancel()
    leave()
    for other in others:
        other.wait()
    worker.process.kill()  # the next call begins another one


def test_a_kernel_that_is_given_no_core_is_not_late(kernel, crowded):
    source = """__global__ void k(float* out, long long n) {
    volatile long long i = 0;
    while (i < n) i = i + 1;
    out[0] = i;
}
void busy(float* out, long long n) { k<<<1, 1>>>(out, n); }
"""
    busy = compile_cuda(source, "busy", backend="emulator")
    n, taken = 2**26, 0.0
    while taken <= 1.0:  # by then it has had half of that, at most
        n, start = 2 * n, time.monotonic()
        run = busy.isolated({"out": torch.zeros(1), "n": n}, timeout=1.0)
        taken = time.monotonic() - start
    assert run.after["out"].item() == n
    assert pool.slot("emulator").worker.process.poll() is None  # the same worker


def test_while_the_machine_stands_still_no_time_passes():
    source = """#include <ctime>
static double had() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
void busy(float* out) {
    for (const double start = had(); had() < start + 0.3;) {}
    out[0] = 1;
}
"""
    busy = compile_cuda(source, "busy", backend="emulator")
    busy.isolated({"out": torch.zeros(1)})  # the worker is there
    timers = [
        threading.Timer(seconds, os.kill, (pid(), number))
        for seconds, number in ((0.1, signal.SIGSTOP), (2.1, signal.SIGCONT))
    ]
    start = time.monotonic()
    for timer in timers:
        timer.start()
    run = busy.isolated({"out": torch.zeros(1)}, timeout=1.5)
    assert run.after["out"].item() == 1 and time.monotonic() - start > 1.9


def test_threads_that_wait_for_each_other_are_found_before_the_time_limit():
    source = """__global__ void k() {
    if (threadIdx.x < 16) __syncthreads();
    else __syncwarp();
}
void stuck() { k<<<1, 32>>>(); }
"""
    kernel = compile_cuda(source, "stuck", backend="emulator")
    start = time.monotonic()
    with pytest.raises(KernelTimeout, match=r"(?s)stuck.cu:[23].*block \(0, 0, 0\), thread"):
        kernel.isolated({}, timeout=30.0)
    assert time.monotonic() - start < 10


@pytest.mark.parametrize(
    ("at", "side", "offset"), [(100, "after", 0), (107, "after", 7), (-2, "before", -2)]
)
def test_a_write_outside_a_tensor_is_reported(kernel, at, side, offset):
    _, run = call(kernel, 9, at)
    (write,) = run.out_of_bounds
    assert (write.parameter, write.side, write.offset) == ("out", side, offset)


def test_what_the_kernel_prints_is_returned(kernel):
    assert call(kernel, 10, n=7)[1].stdout == "thread 0 of 7\nthread 1 of 7\n"
    assert call(kernel)[1].stdout == ""
    assert call(kernel, 15, n=7)[1].stdout == "no new line"


def test_a_kernel_that_prints_for_ever_does_not_fill_the_memory(kernel):
    with pytest.raises(KernelTimeout):
        call(kernel, 13, timeout=0.5)
    assert works(kernel)
    assert resource.prlimit(pid(), resource.RLIMIT_FSIZE)[0] == lockdown.MAX_OUTPUT


@pytest.mark.parametrize("fault", [11, 16])
def test_what_was_printed_before_a_crash_is_a_note_of_the_error(kernel, fault):
    with pytest.raises(KernelCrash) as error:
        call(kernel, fault, n=7)
    assert "thread 0 of 7" in error.value.__notes__[0]


def test_tensors_that_share_memory_share_it_in_the_worker(kernel):
    x = torch.randn(100)
    run = kernel.isolated({"x": x, "out": x, "n": 100, "fault": 0, "at": 0})
    assert torch.equal(run.after["x"], run.after["out"]) and torch.equal(run.after["x"], 2 * x)


FILLS = r"""
__global__ void add(const float* x, float* out, int n) {
    if (threadIdx.x < n) atomicAdd(out, x[threadIdx.x]);
}
void fill(const float* x, float* out, int n, int bytes, cudaStream_t stream) {
    cudaMemsetAsync(out, 0, bytes, stream);
    add<<<1, 32, 0, stream>>>(x, out, n);
}
"""


def test_a_launcher_may_set_and_copy_the_tensors_that_it_is_given():
    kernel = compile_cuda(FILLS, "fill", backend="emulator")
    for n in (3, 7, 2):  # the memory of one call is not taken for that of the next
        x, out = torch.arange(1.0, n + 1), torch.full((), float("nan"))
        run = kernel.isolated({"x": x, "out": out, "n": n, "bytes": 4})
        assert run.after["out"] == x.sum() and not run.out_of_bounds
        kernel(x, out, n, 4)
        assert out == x.sum()
        with pytest.raises(LaunchError, match="does a cudaMemset reach beyond its array"):
            kernel(x, out, n, 8)


COUNTS = """__global__ void add(float* x, float* out, int call) { x[0] += 1; out[0] = call; }
void count(float* x, float* out, int last) {
    static int call = 0;
    add<<<1, ++call == last ? 5000 : 1>>>(x, out, call);
}"""


def test_of_several_calls_each_has_fresh_values_and_the_last_is_told_of():
    kernel = compile_cuda(COUNTS, "count", backend="emulator")
    arguments = {"x": torch.tensor([3.0]), "out": torch.zeros(1), "last": 12}
    run = kernel.isolated(arguments, calls=7)
    assert run.after["x"] == 4 and run.after["out"] == 7
    with pytest.raises(LaunchError):  # the fifth of them
        kernel.isolated(arguments, calls=7)


def test_of_several_calls_the_last_alone_has_values_of_its_own():
    source = """__device__ float before = 0;
    __global__ void show(float* x, float* out) { out[0] = before; before = x[0]; }
    void shown(float* x, float* out) { show<<<1, 1>>>(x, out); }"""
    kernel = compile_cuda(source, "shown", backend="emulator")
    arguments = {"x": torch.tensor([3.0]), "out": torch.zeros(1)}
    run = kernel.isolated(arguments, calls=5, earlier={"x": torch.tensor([8.0])})
    assert run.after["out"] == 8 and run.after["x"] == 3
    assert kernel.isolated(arguments).after["out"] == 3


SLOW = """#include <unistd.h>
__global__ void spin(float* out) { while (*out >= 0) *out = *out < 1000 ? *out + 1 : 0; }
__global__ void add(float* out) { *out += 1; }
void slow(float* out, int sleep, int last) {
    static int call = 0;
    usleep(sleep * 1000);
    if (++call == last) spin<<<1, 1>>>(out);
    else add<<<1, 1>>>(out);
}"""


def test_each_of_several_calls_has_the_whole_time_limit_and_none_has_more():
    kernel = compile_cuda(SLOW, "slow", backend="emulator")
    arguments = {"out": torch.zeros(1), "sleep": 300, "last": 0}
    assert kernel.isolated(arguments, timeout=0.5, calls=4).after["out"] == 1  # 1.2 s altogether
    endless = {**arguments, "sleep": 0, "last": 7}
    with pytest.raises(KernelTimeout, match=r"(?s)did not end within 0.5 seconds.*'spin'"):
        kernel.isolated(endless, timeout=0.5, calls=9)


def test_many_slow_calls_are_bounded_altogether():
    kernel = compile_cuda(SLOW, "slow", backend="emulator")
    arguments = {"out": torch.zeros(1), "sleep": 250, "last": 0}
    with pytest.raises(KernelTimeout, match=r"calls of slow took more than 1.8 seconds, of 60"):
        kernel.isolated(arguments, timeout=0.3, calls=60)


def test_empty_tensors_are_fine(kernel):
    empty = torch.empty(0)
    run = kernel.isolated({"x": empty, "out": empty, "n": 1, "fault": 10, "at": 0})
    assert run.after["x"].shape == (0,) and "thread 1" in run.stdout


def test_large_and_small_calls_follow_each_other(kernel, monkeypatch):
    monkeypatch.setattr(isolation, "KEEP", 1 << 20)
    for n in (10, 1 << 20, 100, 1 << 20, 3):
        x, run = call(kernel, n=n)
        assert torch.equal(run.after["out"], 2 * x)


def test_one_worker_serves_many_calls(kernel):
    assert works(kernel)
    first = pid()
    assert works(kernel) and pid() == first


def test_a_worker_that_died_between_calls_is_replaced(kernel):
    assert works(kernel)
    os.kill(pid(), signal.SIGKILL)
    pool.slot("emulator").worker.process.wait()
    assert works(kernel)


def test_a_crash_in_a_worker_that_another_kernel_damaged_is_tried_again_in_a_fresh_one(kernel):
    source = """#include <thread>
#include <unistd.h>
void %s(float* out, int n) {
    if (n) std::thread([] { usleep(300000); abort(); }).detach();
    else usleep(600000);
    out[0] = 5;
}"""
    bomb = compile_cuda(source % "bomb", "bomb", backend="emulator")
    victim = compile_cuda(source % "victim", "victim", backend="emulator")
    assert works(kernel)
    bomb.isolated({"out": torch.zeros(1), "n": 1})
    assert victim.isolated({"out": torch.zeros(1), "n": 0}).after["out"].item() == 5


def test_a_launcher_that_closes_everything_and_stays_is_stopped():
    source = """#include <unistd.h>
void closes(float* out) {
    for (int i = 3; i < 100; ++i) close(i);
    volatile bool wait = true;
    while (wait) { }
}"""
    closes = compile_cuda(source, "closes", backend="emulator")
    start = time.monotonic()
    with pytest.raises(KernelCrash, match="closed the channel"):
        closes.isolated({"out": torch.zeros(1)}, timeout=40.0)
    assert time.monotonic() - start < 30


def test_a_worker_whose_reports_were_closed_before_anyone_looked_goes_on():
    text = """import os
from utils.process.guest.kernel import leave_with
os.close(reports := os.pipe()[1])
leave_with(reports)
print("goes on")"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "goes on\n", done.stderr


def test_a_worker_is_replaced_when_it_has_loaded_many_libraries(kernel, monkeypatch):
    assert works(kernel)
    first = pid()
    monkeypatch.setattr(pool, "MAX_LIBRARIES", 1)
    assert works(kernel) and pid() != first


@pytest.fixture
def interruptible():
    """Ctrl-C raises KeyboardInterrupt here, as in a notebook: a process that a shell script has
    started in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_ends_the_call_and_the_next_one_works(kernel, interruptible):
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        call(kernel, 3, 1)
    timer.join()
    assert works(kernel)


def test_calls_from_several_threads_take_turns(kernel):
    good = []
    threads = [threading.Thread(target=lambda: good.append(works(kernel))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert good == [True] * 4


def test_prestart_starts_the_workers_that_the_first_call_and_the_first_check_use(
    kernel, monkeypatch
):
    monkeypatch.setattr("utils.ground.settings.backend", lambda: "emulator")
    pool.discard("emulator")
    pool.prestart()
    first, watching = pid(), pool.slot("emulator", "watched").worker.process.pid
    assert works(kernel) and pid() == first
    arguments = {"x": torch.ones(5), "out": torch.zeros(5), "n": 5, "fault": 0, "at": 0}
    assert instrumented(kernel).watched(arguments).after["out"].tolist() == [2.0] * 5
    assert pool.slot("emulator", "watched").worker.process.pid == watching != first


def loaded(kernel, into):
    """What makes a worker ready, and notes its process."""

    def ready(worker):
        isolation.load(worker, str(kernel.library), None, timeout=5.0)
        into.append(worker.process.pid)

    return ready


def test_a_restart_takes_the_worker_that_was_made_ready_and_ends_the_one_before(kernel):
    slot, made = pool.slot("emulator"), []
    assert works(kernel)
    before = pid()
    with slot.with_another(str(kernel.library), loaded(kernel, made)):
        assert works(kernel) and pid() == before
        slot.restart()
        assert [pid()] == made
        assert works(kernel) and [pid()] == made
    assert ended(before) and proc.runs(made[0])
    slot.restart()  # a fresh one, as ever
    assert works(kernel) and pid() not in (before, *made)


def test_a_worker_that_was_made_ready_for_nothing_is_ended(kernel):
    slot, made = pool.slot("emulator"), []
    assert works(kernel)
    before = pid()
    another = slot.with_another(str(kernel.library), loaded(kernel, made))
    with pytest.raises(ValueError, match="no"), another:
        raise ValueError("no")
    assert pid() == before and ended(made[0])


def test_where_another_worker_cannot_be_made_ready_a_restart_makes_one(kernel):
    def fails(worker):
        raise OSError("no context")

    slot = pool.slot("emulator")
    assert works(kernel)
    before = pid()
    with slot.with_another(str(kernel.library), fails):
        slot.restart()
        assert works(kernel) and pid() != before


def test_the_worker_that_was_made_ready_goes_on_with_other_kernels(kernel):
    other = compile_cuda(FAULTS + "// another", "run", backend="emulator")
    slot, made, elsewhere = pool.slot("emulator"), [], set(pool._elsewhere)
    with slot.with_another(str(kernel.library), loaded(kernel, made)):
        slot.restart()
    assert works(other) and [pid()] == made and pool._elsewhere == elsewhere


def test_what_is_interrupted_while_another_worker_is_waited_for_leaves_none(kernel):
    def interrupted(worker):
        raise KeyboardInterrupt

    slot = pool.slot("emulator")
    assert works(kernel)
    before = pid()
    another = slot.with_another(str(kernel.library), interrupted)
    with pytest.raises(KeyboardInterrupt), another:
        slot.restart()
    assert slot.worker is None and ended(before)
    slot.restart()
    assert works(kernel)


def test_a_worker_in_which_a_library_is_refused_is_not_ready():
    refused = {"error": 2, "name": "cudaErrorMemoryAllocation", "text": "out of memory"}
    worker = SimpleNamespace(libraries=set(), ask=lambda *_, **__: (refused, []))
    with pytest.raises(LaunchError, match="out of memory"):
        isolation.make_ready(worker, "some.so", 0, timeout=1.0)


def test_the_worker_has_loaded_no_torch(kernel):
    assert works(kernel)
    with open(f"/proc/{pid()}/maps") as maps:
        assert "torch" not in maps.read()


def test_the_worker_starts_with_few_modules():
    """`json`, `threading` or `functools` would be a third of its start."""
    here = str(child.GUEST.parent)
    program = f"import sys; sys.path.insert(0, {here!r}); import guest.kernel; print(*sys.modules)"
    words = [sys.executable, "-I", "-S", "-c", program]
    loaded = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert "guest.kernel" in loaded
    assert not {"re", "typing", "collections", "collections.abc", "functools"} & set(loaded)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_gets_a_worker_of_its_own(kernel):
    assert works(kernel)
    first = pid()
    held = threading.Event()

    def hold():
        with pool.slot("emulator").lock:
            held.set()
            time.sleep(0.5)

    threading.Thread(target=hold).start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if works(kernel) and pid() != first else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert works(kernel) and pid() == first


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("end", ["sys.exit()", "os.kill(os.getpid(), 9)"])
def test_the_worker_ends_with_its_parent_even_when_it_is_busy(kernel, busy, end):
    program = f"""
import os, sys, threading, time
from utils.process import pool
from utils.cuda.compiler import compile_cuda
from utils.cuda.instrumented import instrumented
from tests.support.crashing import FAULTS, call
kernel = compile_cuda(FAULTS, "run", backend="emulator")
call(kernel)
if {busy}:
    threading.Thread(target=call, args=(kernel, 3, 1, 100, 100.0), daemon=True).start()
    time.sleep(0.5)
print(pool.slot("emulator").worker.process.pid, flush=True)
{end}
"""
    command = [sys.executable, "-c", program]
    worker = int(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout)
    assert ended(worker)


def test_meanwhile_something_is_done_beside_each_call_but_beside_none_that_is_made_in_it(kernel):
    done = []
    assert works(kernel)  # the worker has answered, so that what is in force is known
    slot = pool.slot("emulator")

    def action(answered):
        done.append(slot.worker.process.pid)
        assert works(kernel)

    with workers.meanwhile(action):
        assert works(kernel) and works(kernel)
    assert works(kernel) and done == [pid()] * 2


def test_what_is_called_meanwhile_has_a_worker_of_its_own(kernel):
    assert works(kernel)
    first, others = pid(), []
    with workers.meanwhile(lambda answered: others.append(works(kernel) and pid())):
        assert works(kernel)
    assert others and others != [first] and pid() == first


def test_meanwhile_nothing_is_done_where_the_kernel_could_look_on(kernel, monkeypatch):
    done = []
    for in_force in ([], ["seccomp"], ["landlock 7"]):
        understand = workers.Worker._understand

        def noted(self, *arguments, in_force=in_force, understand=understand):
            understand(self, *arguments)
            self.in_force = in_force

        monkeypatch.setattr(workers.Worker, "_understand", noted)
        assert works(kernel)
        with workers.meanwhile(lambda answered: done.append(1)):
            assert works(kernel)
    assert done == []
    pool.discard("emulator")


def test_what_fails_meanwhile_is_told_and_the_next_call_works(kernel):
    def fails(answered):
        raise ValueError("the reference is wrong")

    assert works(kernel)
    with pytest.raises(ValueError, match="the reference"), workers.meanwhile(fails):
        works(kernel)
    assert works(kernel)


REPORTING = """
__global__ void add_kernel(float* out) { out[threadIdx.x] += 1.0f; }
void run(float* out, int times) {
    for (int i = 0; i < times; i++) add_kernel<<<1, 32>>>(out);
}
"""


def test_who_reports_much_does_not_wait_for_one_who_does_something_else(kernel):
    """Thrice a pipe of 64 KB, and as much as one of 1 MB takes, with another worker waited for."""
    reporting = instrumented(compile_cuda(REPORTING, "run", backend="emulator"))

    def watch(times, action):
        with workers.meanwhile(action):
            return reporting.watched({"out": torch.zeros(32), "times": times}, timeout=2.0)

    seen = watch(200, lambda answered: time.sleep(3.0))
    assert seen.events.count("add_kernel") >= 200
    late = []

    def others(answered):
        while not answered() and len(late) < 60:
            late.append(works(kernel))

    assert watch(2000, others).events.count("add_kernel") >= 2000 and late


def test_more_launches_than_reports_are_kept_of_are_refused_and_nothing_is_left_out(
    kernel, monkeypatch
):
    reporting = instrumented(compile_cuda(REPORTING, "run", backend="emulator"))
    monkeypatch.setattr(workers, "MAX_EVENTS", 200_000)
    for times in (500, 1000):  # less than fits into a pipe, too
        with pytest.raises(KernelCrash, match="made more launches than"):
            reporting.watched({"out": torch.zeros(32), "times": times})
    assert works(kernel)


def test_a_kernel_that_crashes_meanwhile_is_told_of(kernel):
    done = []
    assert works(kernel)
    with pytest.raises(KernelCrash), workers.meanwhile(lambda answered: done.append(1)):
        call(kernel, 5)
    assert done == [1] and works(kernel)


VOLUME = """
__global__ void none_kernel() {}
void run(float* out, int times) {
    cudaMemcpy3DParms all = {};
    all.srcPtr = make_cudaPitchedPtr(out, 8, 8, 1);
    all.dstPtr = make_cudaPitchedPtr(out + 64, 8, 8, 1);
    all.extent = make_cudaExtent(8, 1, 20);
    all.kind = cudaMemcpyDeviceToDevice;
    for (int i = 0; i < times; i++) cudaMemcpy3D(&all);
    for (int i = 0; i < times; i++) {
        cudaMemcpy2D(out + 64, 8, out, 8, 4, 20, cudaMemcpyDeviceToDevice);
        cudaMemcpy2D(out + 64, 80, out, 80, 80, 1, cudaMemcpyDeviceToDevice);
    }
    none_kernel<<<1, 1>>>();
}
"""


def test_a_copy_of_short_rows_counts_once_whatever_their_number():
    copying = instrumented(compile_cuda(VOLUME, "run", backend="emulator"))
    seen = copying.watched({"out": torch.arange(128.0), "times": 3})
    assert seen.error is None and seen.scattered == 6
    text = VOLUME.replace("cudaMemcpy2D(", "cudaMemcpy2DAsync(")
    seen = instrumented(compile_cuda(text, "run", backend="emulator")).watched(
        {"out": torch.arange(128.0), "times": 3}
    )
    assert seen.error is None and seen.scattered == 6
