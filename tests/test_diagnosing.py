"""A watched call tells what went wrong and counts what each line cost; gates judge the counts."""

import re
import subprocess
import threading
from types import SimpleNamespace

import pytest
import torch

from utils.course import catalog
from utils.course.answers import compile_answer
from utils.course.case_calls import example
from utils.course.exercise import Gate
from utils.cuda import compiler, instrumented
from utils.cuda.compiler import compile_cuda
from utils.ground.errors import CompileError
from utils.judge import gates
from utils.watch.diagnosis import diagnose_call

N = 1024
FIRST = 2  # lines are counted as in a cell
SOURCE = """
#include <cooperative_groups.h>
__global__ void copy(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];  // copy
}
__global__ void strided(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i * 32 % n];  // strided load
    y[i] = value;
}
template <int ROW>
__global__ void columns(const float* x, float* y) {
    __shared__ float tile[32 * ROW];
    tile[threadIdx.x * ROW] = x[threadIdx.x];  // column store
    __syncthreads();
    y[threadIdx.x] = tile[threadIdx.x * ROW];
}
__global__ void reverse(const float* x, float* y) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];  // race store
    y[threadIdx.x] = s[63 - threadIdx.x];  // race load
}
__global__ void shifted(const float* x, float* y, int n, int from, int to) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i + from];  // shifted load
    y[i + to] = value;  // shifted store
}
__global__ void add(const float* x, float* y) {
    y[threadIdx.x] += x[threadIdx.x];  // add
}
__global__ void count(float* y) {
    atomicAdd(y + threadIdx.x / 32, 1.0f);  // count
}
__global__ void alone(const float* x, float* y, int n) {
    for (int i = 0; i < n; ++i) y[i] = x[i];
}
__global__ void meet(float* y) {
    __syncthreads();
    float sum = __shfl_xor_sync(~0u, float(threadIdx.x), 1);
    __syncwarp();
    __syncthreads();
    y[threadIdx.x] = sum;
}
__global__ void last(float* y) {
    y[0] = threadIdx.x;
}
__global__ void bins(float* y) {
    __shared__ int counts[64];
    counts[threadIdx.x] = counts[threadIdx.x + 32] = 0;
    __syncwarp();
    atomicAdd(&counts[threadIdx.x], 1);
    atomicAdd(&counts[threadIdx.x / 16 * 32], 1);  // two words of one bank, each for 16 lanes
    __syncwarp();
    y[threadIdx.x] = counts[threadIdx.x];
}
__global__ void quarters(float* y) {
    y[threadIdx.x] = __dp4a(1, 2, int(__dp4a(3u, 4u, threadIdx.x)));
}
__global__ void met(const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i];
    cooperative_groups::this_grid().sync();
    y[i] = value;
}
void run(const float* x, float* y, int n, int what) {
    if (what == 0) copy<<<n / 256, 256>>>(x, y, n);
    if (what == 1) strided<<<n / 256, 256>>>(x, y, n);
    if (what == 2) columns<32><<<1, 32>>>(x, y);
    if (what == 3) columns<33><<<1, 32>>>(x, y);
    if (what == 4) reverse<<<1, 64>>>(x, y);
    if (what == 5) shifted<<<n / 256, 256>>>(x, y, n, 3, 0);
    if (what == 6) shifted<<<n / 256, 256>>>(x, y, n, 0, -1);
    if (what == 7) add<<<1, 32>>>(x, y);
    if (what == 8) count<<<1, 64>>>(y);
    if (what == 9) alone<<<1, 1>>>(x, y, n);
    if (what == 10) meet<<<3, 64>>>(y);
    if (what == 11) copy<<<1, 2048>>>(x, y, n);
    if (what == 12) shifted<<<1, 32>>>(x, y, n, 1 << 30, 0);
    if (what == 13) copy<<<n / 256, 256>>>(x, y, n), add<<<1, 32>>>(x, y);
    if (what == 14) last<<<1, 256>>>(y);
    if (what == 15) copy<<<n / 256, 256>>>(x, y, n), strided<<<n / 256, 256>>>(x, y, n);
    if (what == 16) bins<<<1, 32>>>(y);
    if (what == 17) quarters<<<1, 64>>>(y);
    void* arguments[] = {&x, &y};
    if (what == 18) cudaLaunchCooperativeKernel((void*)met, n / 256, 256, arguments);
}
"""
COPY, STRIDED, COLUMNS, PADDED, REVERSE, AHEAD, BEHIND, ADD, COUNT, ALONE, MEET = range(11)
REFUSED, WILD, TWO, LAST, WORSE, BINS, QUARTERS, MET = range(11, 19)


def line(mark: str) -> int:
    """The number of the line that ends with a comment."""
    lines = SOURCE.splitlines()
    (number,) = (i for i, text in enumerate(lines) if text.endswith(f"// {mark}"))
    return FIRST + number


@pytest.fixture(scope="module")
def kernel():
    kernel = compile_cuda(SOURCE, "run", backend="emulator", first_line=FIRST, filename="run.cu")
    instrumented.instrumented(kernel)
    return kernel


@pytest.fixture(scope="module")
def diagnose(kernel):
    """Diagnoses a call; x holds 0, 1, 2, ... and y is all NaN."""

    def diagnose(what: int, n: int = N, **options):
        x, y = torch.arange(float(n)), torch.full((n,), torch.nan)
        return diagnose_call(kernel, {"x": x, "y": y, "n": n, "what": what}, **options)

    return diagnose


def costs(launch, mark: str, space: str, access: str):
    (entry,) = (
        t for t in launch.traffic if (t.line, t.space, t.access) == (line(mark), space, access)
    )
    return entry.requests, entry.lanes, entry.moved, entry.ideal


# --- hazards


def test_a_clean_call_has_no_hazards_and_leaves_what_the_kernel_wrote(diagnose):
    seen = diagnose(COPY, unwritten={"y"})
    assert seen.hazards == () and seen.error is None
    assert torch.equal(seen.after["y"], torch.arange(float(N)))


@pytest.mark.parametrize("order", [1, 2])
def test_the_order_of_threads_changes_nothing_in_a_clean_call(diagnose, order):
    usual, other = diagnose(PADDED, unwritten={"y"}), diagnose(PADDED, unwritten={"y"}, order=order)
    assert other.hazards == () and other.launches == usual.launches
    assert torch.equal(other.after["y"][:32], usual.after["y"][:32])


def test_another_order_shows_that_a_racing_call_depends_on_it(diagnose):
    assert len({diagnose(LAST, order=order).after["y"][0].item() for order in range(4)}) > 1


def test_a_race_names_both_lines_both_threads_and_the_element(diagnose):
    (race,) = diagnose(REVERSE).hazards
    assert (race.kind, race.space, race.array, race.kernel) == ("race", "shared", "s", "reverse")
    assert {race.line, race.other_line} == {line("race store"), line("race load")}
    assert {race.access, race.other_access} == {"load", "store"}
    writer, reader = (race.thread, race.other_thread)[:: 1 if race.access == "store" else -1]
    assert race.index == writer[0] == 63 - reader[0]
    assert race.file == "run.cu" and race.block == race.other_block == (0, 0, 0)


@pytest.mark.parametrize(
    ("what", "mark", "access", "array", "indices", "times"),
    [
        (AHEAD, "shifted load", "load", "x", {N, N + 1, N + 2}, 3),
        (BEHIND, "shifted store", "store", "y", {-1}, 1),
    ],
)
def test_an_access_outside_names_the_parameter_and_the_index(
    diagnose, what, mark, access, array, indices, times
):
    (hazard,) = diagnose(what).hazards
    assert (hazard.kind, hazard.space, hazard.access) == ("out-of-bounds", "global", access)
    assert hazard.array == array and hazard.index in indices and hazard.count == times
    assert hazard.line == line(mark) and hazard.file == "run.cu"


def test_reading_an_output_before_it_is_written_is_a_hazard(diagnose):
    (hazard,) = diagnose(ADD, unwritten={"y"}).hazards
    assert (hazard.kind, hazard.array, hazard.access) == ("uninitialized", "y", "load")
    assert hazard.line == line("add") and hazard.count == 32
    assert diagnose(ADD).hazards == ()
    assert diagnose(TWO, unwritten={"y"}).hazards == (), "an earlier launch has written it"


def test_a_refused_launch_is_kept_as_the_error(diagnose):
    seen = diagnose(REFUSED)
    assert seen.error.name == "cudaErrorInvalidValue" and "2,048 along x" in str(seen.error)
    assert seen.launches == ()
    assert diagnose(COPY).error is None, "and is over with the call"


def test_a_wild_address_ends_the_launch_and_is_told(diagnose):
    seen = diagnose(WILD)
    assert seen.error.name == "cudaErrorIllegalAddress"
    assert line("shifted load") in {hazard.line for hazard in seen.hazards}


# --- counters


def test_neighbours_cost_the_sectors_that_their_bytes_fill(diagnose):
    (launch,) = diagnose(COPY).launches
    assert (launch.kernel, launch.grid, launch.block) == ("copy", (4, 1, 1), (256, 1, 1))
    warps = N // 32
    assert costs(launch, "copy", "global", "load") == (warps, N, 4 * warps, 4 * warps)
    assert costs(launch, "copy", "global", "store") == (warps, N, 4 * warps, 4 * warps)
    assert (launch.distinct_read, launch.distinct_written) == (4 * N, 4 * N)


def test_a_stride_costs_a_sector_for_each_lane(diagnose):
    (launch,) = diagnose(STRIDED).launches
    warps = N // 32
    assert costs(launch, "strided load", "global", "load") == (warps, N, 32 * warps, 4 * warps)
    assert launch.distinct_read == 4 * 32, "every warp reads the same 32 elements"
    assert launch.total("moved", "global", "load") == 32 * warps


@pytest.mark.parametrize(("what", "wavefronts", "row"), [(COLUMNS, 32, 32), (PADDED, 1, 33)])
def test_a_column_conflicts_unless_its_rows_are_padded(diagnose, what, wavefronts, row):
    (launch,) = diagnose(what).launches
    assert costs(launch, "column store", "shared", "store") == (1, 32, wavefronts, 1)
    shared = launch.counters["static_shared"], launch.counters["dynamic_shared"]
    assert shared == (4 * 32 * row, 0)


def test_lanes_that_update_one_element_wait_for_each_other(diagnose):
    (launch,) = diagnose(COUNT).launches
    (atomics,) = launch.traffic
    assert (atomics.access, atomics.line) == ("atomic", line("count"))
    assert (atomics.requests, atomics.lanes, atomics.contended) == (2, 64, 62)


def test_meetings_are_counted_by_block_and_by_warp(diagnose):
    (launch,) = diagnose(MEET).launches
    meetings = [launch.counters[name] for name in ("barriers", "shuffles", "syncwarps")]
    assert meetings == [3 * 2, 3 * 2, 3 * 2] and launch.barriers == 3 * 2


def test_every_launch_is_told_in_its_order(diagnose):
    seen = diagnose(TWO)
    assert [launch.kernel for launch in seen.launches] == ["copy", "add"]
    assert seen.total("lanes", "global", "load") == N + 2 * 32


# --- the build


@pytest.fixture
def builds(monkeypatch):
    """What was compiled since the test's beginning; each build waits until `go_on` is set."""
    compile_build, built = compiler.Build.kernel, []
    go_on = threading.Event()

    def build(self):
        built.append(self)
        assert go_on.wait(20)
        return compile_build(self)

    monkeypatch.setattr(compiler.Build, "kernel", build)
    monkeypatch.setattr(instrumented, "_builds", {})
    yield SimpleNamespace(begun=built, go_on=go_on)
    go_on.set()


def test_the_instrumented_build_is_begun_in_the_background_and_made_once(kernel, builds):
    place = {"first_line": FIRST, "filename": "run.cu"}
    instrumented.prepare(SOURCE, "run", **place)  # returns although the build waits
    instrumented.prepare(SOURCE, "run", **place)
    builds.go_on.set()
    assert instrumented.instrumented(kernel) is instrumented.instrumented(kernel)
    assert len(builds.begun) == 1


def test_a_build_that_failed_is_tried_again(kernel, builds, monkeypatch):
    """A full disk or a killed compiler must not cost the whole session its diagnosis."""
    builds.go_on.set()
    monkeypatch.setattr(compiler, "_build", lambda *_: (_ for _ in ()).throw(CompileError("full")))
    with pytest.raises(CompileError, match="full"):
        diagnose_call(kernel, {})
    monkeypatch.undo()
    assert instrumented.instrumented(kernel).library.exists()


def test_a_header_that_was_edited_is_built_anew(tmp_path, place):
    place(include=tmp_path)
    source = '#include "two.cuh"\nvoid run(float* y) { *y = two; }'
    arguments = {"y": torch.zeros(1)}
    for value in (2, 3):
        (tmp_path / "two.cuh").write_text(f"constexpr int two = {value};\n")
        kernel = compile_cuda(source, "run", backend="emulator")
        assert kernel.isolated(arguments).after["y"].item() == value
        assert diagnose_call(kernel, arguments).after["y"].item() == value


def test_only_so_many_builds_are_remembered(monkeypatch):
    monkeypatch.setattr(instrumented, "_builds", {})
    monkeypatch.setattr(instrumented, "KEEP", 2)
    monkeypatch.setattr(compiler.Build, "kernel", lambda self: self.name)
    for name in "abc":
        instrumented.prepare(f"void {name}() {{}}", name)
    assert [build.result() for build in instrumented._builds.values()] == ["b", "c"]


# --- gates


@pytest.mark.parametrize(
    ("what", "metric", "times", "message"),
    [
        (STRIDED, "sectors per load request", 1.125, "{strided load}: now 32, ideal 4, gate 4.5"),
        (WORSE, "sectors per load request", 1.125, "{strided load}: now 32, ideal 4, gate 4.5"),
        (COLUMNS, "wavefronts per shared request", 1, "{column store}: now 32, ideal 1, gate 1"),
        (STRIDED, "bytes loaded from global memory", 1.5, ": now 32,768, ideal 128, gate 192"),
        (ALONE, "store requests for 32 elements", 1.125, ": now 32, ideal 1, gate 1.125"),
        (MEET, "barriers a block", 1, ": now 2, ideal 0, gate 0"),
        (COPY, "sectors per load request", 1, None),
        (PADDED, "wavefronts per shared request", 1, None),
        (COPY, "sectors per store request", 1, None),
        (COPY, "store requests for 32 elements", 1, None),
        (COPY, "barriers a block", 1, None),
        (MEET, "sectors per load request", 1, None),  # it loads nothing
    ],
)
def test_a_gate_says_what_is_what_should_be_and_what_may_be(diagnose, what, metric, times, message):
    said = gates.failing(Gate(metric, times, "do better"), diagnose(what), {"n": N})
    if message is None:
        assert said is None
    else:
        for mark in ("strided load", "column store"):
            message = message.replace(f"{{{mark}}}", f" at line {line(mark)}")
        assert said == f"{metric}{message}\nhint: do better"


@pytest.mark.parametrize(
    ("what", "metric", "count"),
    [
        (COPY, "bytes moved to and from global memory", 2 * 4 * N),
        (STRIDED, "bytes moved to and from global memory", 32 * N + 4 * N),
        (COPY, "store requests to global memory", N / 32),
        (COLUMNS, "store requests to shared memory", 1),
        (COUNT, "atomic operations", 64),
        (COPY, "atomic operations", 0),
        (COPY, "wavefronts per shared atomic", 0),
        (BINS, "wavefronts per shared atomic", (1 + 2 + 30) / 2),
        (QUARTERS, "products of bytes, four at once", 64 * 2 * 4),
        (COPY, "products of bytes, four at once", 0),
        (ALONE, "load requests of few lanes", N),
        (COPY, "load requests of few lanes", 0),
        (COPY, "blocks", N / 256),
        (TWO, "launches", 2),
    ],
)
def test_what_a_gate_may_count(diagnose, what, metric, count):
    assert gates.METRICS[metric](diagnose(what)).now == count


def test_a_gate_may_be_a_lower_bound(diagnose):
    seen = diagnose(COPY)  # 4 blocks
    ideal = {"ideal": lambda n: 8, "at_least": True}
    assert gates.failing(Gate("blocks", 0.5, "more", **ideal), seen, {"n": N}) is None
    said = gates.failing(Gate("blocks", 0.75, "start more", **ideal), seen, {"n": N})
    assert said == "blocks: now 4, ideal 8, gate at least 6\nhint: start more"


@pytest.mark.parametrize(
    ("blocks", "busiest", "shared"),
    [(1712, 12_983, True), (1712, 14_600, False), (4, 12_800, True), (4, 12_983, False)],
)
def test_the_block_that_finishes_for_all_has_a_step_more_for_each(blocks, busiest, shared):
    """Of a block that takes 6412 steps; the first is a right sum of 438,272 numbers."""
    counters = {"steps": 6412 * blocks, "block_steps": busiest}
    seen = seen_of(launch_of(blocks, 256 * blocks, **counters))
    assert shares_work(seen, "steps of the busiest block") == shared


def launch_of(blocks, read, **counters):
    """A launch that reads so many floats, each once, by blocks of 256 threads."""
    return SimpleNamespace(
        grid=(blocks, 1, 1), block=(256, 1, 1), counters=counters, distinct_read=4 * read
    )


def seen_of(*launches):
    return SimpleNamespace(launches=list(launches), covered={})


def shares_work(seen, metric):
    """Whether a run passes the gate of that metric which every exercise with gates has."""
    every = gates.of_every(catalog.load("04_reductions/sum_tree"))
    (gate,) = (gate for gate in every if gate.metric == metric)
    return gates.passes(gate, gates.read(gate, seen, {}))


@pytest.mark.parametrize(
    ("blocks", "busiest", "shared"),
    [(1000, 4 * 256, True), (1000, 4 * 256 + 16 * 1000, True), (1000, 4 * 256 * 1000, False)],
)
def test_a_block_may_load_its_tile_and_a_part_of_each_other_block(blocks, busiest, shared):
    counters = {"steps": 9000 * blocks, "block_steps": 9000, "block_loaded": busiest}
    seen = seen_of(launch_of(blocks, 256 * blocks, loaded=4 * 256 * blocks, **counters))
    assert shares_work(seen, "bytes loaded by the busiest block") == shared


def test_many_small_blocks_do_not_raise_what_one_of_them_may_do():
    counters = {"steps": 20_000, "block_steps": 10_000}  # of 10,000 blocks, each of a step
    seen = seen_of(launch_of(10_000, 10_000, **counters))
    assert not shares_work(seen, "steps of the busiest block")


def test_steps_of_a_launch_that_reads_nothing_hide_no_other_launch():
    uneven = launch_of(4, 4096, steps=4000, thread_steps=3000, block_steps=3900)
    busy = launch_of(4, 0, steps=40_000, thread_steps=40, block_steps=10_000)
    for metric in ("steps of the busiest thread", "steps of the busiest block"):
        assert not shares_work(seen_of(uneven), metric)
        assert not shares_work(seen_of(uneven, busy), metric)
        assert shares_work(seen_of(busy), metric)


def test_blocks_that_do_next_to_nothing_are_not_those_that_are_asked_for():
    one = launch_of(1, 4096, steps=4000)
    many = launch_of(64, 16, steps=40_000)
    for at_least, count in ((True, 1), (False, 65)):
        gate = Gate("blocks", 1, "more", lambda n: n, at_least)
        assert gates.read(gate, seen_of(one, many), {"n": N}).now == count


def test_blocks_that_meet_have_steps_and_loads_of_their_own(diagnose):
    (met,), (alone,) = (diagnose(what).launches for what in (MET, COPY))
    assert met.counters["steps"] == 4 * met.counters["block_steps"] > 0
    assert met.counters["block_steps"] == 256 * met.counters["thread_steps"]
    assert met.counters["loaded"] == alone.counters["loaded"] == 4 * N
    assert met.counters["block_loaded"] == alone.counters["block_loaded"] == N


def test_a_spec_may_name_the_ideal_itself(diagnose):
    seen = diagnose(COPY)
    loaded = Gate("bytes loaded from global memory", 2, "read once", lambda n: n)
    assert gates.failing(loaded, seen, {"n": N}).startswith(
        f"{loaded.metric}: now 4096, ideal 1024"
    )
    assert gates.failing(loaded, seen, {"n": 2 * N}) is None


def test_where_a_thread_waited_in_another_launch_is_forgotten():
    """A lane that never met anybody has no line, whatever its fibre did in the kernel before."""
    hazards = []
    for name in ("center_rows", "row_max"):  # the first has barriers, the second a lane that left
        exercise = catalog.load(f"05_debugging/{name}")
        text = catalog.starter_text(exercise)
        kernel = compile_answer(exercise, text, backend="emulator")
        hazards = diagnose_call(kernel, example(kernel, exercise.at.draw).arguments).hazards
    assert (hazards[0].kind, hazards[0].other_line) == ("invalid-mask", None)


def test_a_diagnosing_run_meets_the_alignment_of_its_tensors():
    text = (
        "__global__ void kernel(const float* x, float* out) {\n"
        "    reinterpret_cast<float4*>(out)[0] = reinterpret_cast<const float4*>(x)[0];\n}\n"
        "void run(const float* x, float* out) { kernel<<<1, 1>>>(x, out); }\n"
    )
    kernel = compile_cuda(text, "run", backend="emulator")
    arguments = {"x": torch.ones(4), "out": torch.zeros(4)}
    assert not diagnose_call(kernel, arguments).hazards
    (hazard,) = diagnose_call(kernel, arguments | {"x": torch.ones(5)[1:]}).hazards
    assert (hazard.kind, hazard.array, hazard.index) == ("misaligned", "x", 0)
    (hazard,) = diagnose_call(kernel, arguments | {"out": torch.zeros(6)[2:]}).hazards
    assert (hazard.kind, hazard.array, hazard.index) == ("misaligned", "out", 0)


def test_a_kernel_is_compiled_once_and_not_for_its_launch_once_more():
    text = """
__global__ void cubed(const float* x, float* y) { *y = x[1] * x[2] * x[3]; }
void twice(const float* x, float* y) { cubed<<<1, 1>>>(x, y); cubed<<<1, 2>>>(x, y); }
"""
    library = compile_cuda(text, "twice", instrumented=True).library
    listing = subprocess.run(
        ["objdump", "-d", library], capture_output=True, text=True, check=True
    ).stdout
    assert len(re.findall(r"(?:call|bl)\s.*<__tsan_read4", listing)) == 3


STREAMS = """
__global__ void fill(float* out) {{ out[threadIdx.x] = 1.0f; }}
void run(float* out) {{
    cudaStreamSynchronize(0);  // the caller may still be at work in out
    cudaStream_t own;
    cudaStreamCreateWithFlags(&own, {flags});
    fill<<<1, 32, 0, own>>>(out);
    {end}
    cudaStreamDestroy(own);
}}
"""
WAIT = """cudaEvent_t done;
    cudaEventCreate(&done);
    cudaEventRecord(done, own);
    cudaStreamWaitEvent(0, done, 0);
    cudaEventDestroy(done);"""


@pytest.mark.parametrize(
    ("flags", "end", "kinds"),
    [
        ("cudaStreamNonBlocking", "", ["race/left"]),
        ("cudaStreamNonBlocking", "cudaMemsetAsync(out, 0, 4, 0);", ["race/streams", "race/left"]),
        ("cudaStreamNonBlocking", "cudaStreamSynchronize(own);", []),
        ("cudaStreamNonBlocking", WAIT, []),
        ("cudaStreamDefault", "", []),  # the default stream, which reads the result, waits for it
    ],
)
def test_what_a_launcher_leaves_in_a_stream_is_waited_for(flags, end, kinds):
    kernel = compile_cuda(STREAMS.format(flags=flags, end=end), "run", backend="emulator")
    for _ in range(2):  # nothing of the first call is known to the second
        hazards = diagnose_call(kernel, {"out": torch.zeros(32)}).hazards
        assert [f"{hazard.kind}/{hazard.variant}" for hazard in hazards] == kinds
        assert not kinds or "fill" in str(hazards[-1])


def test_a_stream_that_does_not_wait_for_the_callers_work_races_with_it():
    text = STREAMS.replace("cudaStreamSynchronize(0);", "").format
    end = "cudaStreamSynchronize(own);"
    for flags, kinds in (("cudaStreamNonBlocking", ["race/streams"]), ("cudaStreamDefault", [])):
        kernel = compile_cuda(text(flags=flags, end=end), "run", backend="emulator")
        hazards = diagnose_call(kernel, {"out": torch.zeros(32)}).hazards
        assert [f"{hazard.kind}/{hazard.variant}" for hazard in hazards] == kinds
        assert not kinds or "the caller's work" in str(hazards[0])
