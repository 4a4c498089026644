"""`workbook emulate prog.cu --diagnose`: what it says of whole programs, in words and as JSON."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from utils.cli import app
from utils.emulator.programs import emulate
from utils.ground.paths import ROOT

PROGRAMS = sorted((ROOT / "tests/programs").glob("*.cu"))

RACE = """\
#include <cstdio>
__global__ void neighbour(float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[63 - threadIdx.x];
}
int main(int argc, char** argv) {
    float* d_out;
    cudaMalloc(&d_out, (argc > 1 ? 32 : 64) * sizeof(float));
    for (int i = 0; i < 3; ++i) neighbour<<<1, 64>>>(d_out);
    printf("done\\n");
    return 5;
}
"""


@pytest.fixture
def diagnose(tmp_path, capfd):
    """Diagnoses a program: its text, or its path. Returns exit code, JSON, stdout and stderr."""

    def diagnose(program: str | Path, *options: str, args: tuple[str, ...] = ()):
        if isinstance(program, str):
            (tmp_path / "prog.cu").write_text(program)
            program = tmp_path / "prog.cu"
        path = tmp_path / "told.json"
        command = ["emulate", str(program), "--diagnose", "--json", str(path), *options]
        done = CliRunner().invoke(app, [*command, "--", *args])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        out, _ = capfd.readouterr()  # the program's own
        return done.exit_code, json.loads(path.read_text()), out, done.output

    return diagnose


def test_a_hazard_is_told_in_words_and_as_json(diagnose, tmp_path):
    code, run, out, err = diagnose(RACE)
    assert (code, run["exit"], out) == (1, 5, "done\n")
    (hazard,) = run["hazards"]
    assert hazard["kind"] == "race" and hazard["space"] == "shared"
    assert (hazard["kernel"], hazard["array"]) == ("neighbour", "s")
    assert hazard["file"] == str(tmp_path / "prog.cu")
    assert (hazard["line"], hazard["other_line"]) == (4, 5)  # the second warp writes too late
    assert hazard["block"] == [0, 0, 0]
    assert hazard["thread"][0] + hazard["other_thread"][0] == 63
    assert hazard["count"] % 3 == 0  # the three launches tell of it once
    assert f"{tmp_path / 'prog.cu'}:4: race between two threads in kernel 'neighbour'" in err
    assert "1 hazard: 1 race" in err and "barrier" not in out


def test_the_launches_come_with_their_counters(diagnose):
    launches = diagnose(RACE)[1]["launches"]
    assert len(launches) == 3
    launch = launches[0]
    assert (launch["kernel"], launch["grid"], launch["block"]) == ("neighbour", [1] * 3, [64, 1, 1])
    assert launch["static_shared"] == 256 and launch["barriers"] == 0
    assert launch["global_store_requests"] == 2 and launch["global_store_sectors"] == 8
    assert launch["shared_load_wavefronts"] == launch["shared_load_wavefronts_ideal"] == 2
    assert launch["shared_load_bank_conflicts"] == 0 and launch["global_load_requests"] == 0
    assert {(t["line"], t["space"], t["access"]) for t in launch["lines"]} == {
        (4, "shared", "store"), (5, "shared", "load"), (5, "global", "store")
    }  # fmt: skip


def test_device_memory_goes_by_the_name_of_its_pointer(diagnose):
    hazards = diagnose(RACE, args=("short",))[1]["hazards"]
    (outside,) = [h for h in hazards if h["kind"] == "out-of-bounds"]
    assert (outside["array"], outside["index"], outside["line"]) == ("d_out", 32, 5)
    assert outside["count"] == 3 * 32


PAGES = """#include <cstdio>
long pages() {
  long all, used; FILE* file = fopen("/proc/self/statm", "r");
  fscanf(file, "%ld %ld", &all, &used); fclose(file); return used;
}
"""


def test_a_word_that_one_thread_uses_takes_16_bytes_of_record(diagnose):
    code, _, out, _ = diagnose(
        PAGES + "__global__ void twice(float* x) {\n"
        "  for (int i = threadIdx.x; i < 4096; i += 256) x[blockIdx.x * 4096 + i] *= 2;\n}\n"
        "int main() {\n  const int n = 1 << 20;\n  float* x; cudaMalloc(&x, 4 * n);\n"
        "  cudaMemset(x, 0, 4 * n);\n  const long before = pages();\n"
        "  for (int i = 0; i < 2; ++i) twice<<<n / 4096, 256>>>(x);\n"
        '  printf("%ld", (pages() - before) * 4096 / n);\n}\n'
    )
    assert code == 0 and 16 <= int(out) < 24  # and what a launch needs besides


@pytest.mark.parametrize("launch", ["1, 1", "1, 64"])
def test_requests_of_a_thread_that_does_all_by_itself_take_no_memory(diagnose, launch):
    """Each took 264 bytes until its warp had ended, and a kernel of one thread gigabytes."""
    code, report, out, _ = diagnose(
        PAGES + "__global__ void sum(const float* x, float* y, int n) {\n"
        "  if (threadIdx.x == 0)\n    for (int i = 0; i < n; ++i) *y += x[i % 1024];\n"
        "  __syncthreads();\n}\n"
        "int main() {\n  const int n = 100000;\n  float *x, *y; cudaMalloc(&x, 4096);\n"
        "  cudaMalloc(&y, 4);\n  cudaMemset(x, 0, 4096);\n  cudaMemset(y, 0, 4);\n"
        f"  const long before = pages();\n  sum<<<{launch}>>>(x, y, n);\n"
        '  printf("%ld", (pages() - before) * 4096 / n);\n}\n'
    )
    assert code == 0 and int(out) < 40
    costs = {(t["access"], t["requests"]) for t in report["launches"][0]["lines"]}
    assert costs == {("load", 200_000), ("store", 100_000)}


def test_a_thousand_hazards_are_no_flood(diagnose):
    lines = [f"out[threadIdx.x / 2 + {i}] = {i};" for i in range(0, 800, 2)]
    lines += [f"out[{i} + threadIdx.x] = 1;" for i in range(10_000, 10_600)]
    code, run, out, err = diagnose(
        "__global__ void all_wrong(int* out) {\n" + "\n".join(lines) + "\n}\n"
        "int main() { int* out; cudaMalloc(&out, 4096); all_wrong<<<1, 64>>>(out); }"
    )
    assert code == 1
    kinds = [h["kind"] for h in run["hazards"]]
    assert 3 < kinds.count("race") <= 30 and 3 < kinds.count("out-of-bounds") <= 30
    assert run["untold"]["out-of-bounds"] > 500 * 64
    text = err[: err.index("all_wrong: 1 launch")]
    assert len(text.splitlines()) <= 26 and len(err.splitlines()) < 60
    assert text.count("more of this kind") == 2


def test_a_wild_pointer_keeps_what_was_found_before(diagnose):
    code, run, *_ = diagnose(
        "__global__ void k(int* x, int* wild) {\n x[0] = threadIdx.x;\n"
        " if (threadIdx.x == 20) wild[7] = 1;\n}\n"
        "int main() { int* x; cudaMalloc(&x, 4); k<<<300, 32>>>(x, (int*)0x40);\n"
        " return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 4 : 0; }"
    )
    assert (code, run["exit"]) == (1, 4)
    hazards = {(h["kind"], h["line"], h["other_line"]) for h in run["hazards"]}
    assert hazards == {("race", 2, 2), ("out-of-bounds", 3, None)}


def test_host_code_must_not_touch_device_memory(diagnose):
    code, run, *_ = diagnose(
        "int main() { int* x; cudaMalloc(&x, 40);\n for (int i = 0; i < 10; ++i)\n  x[i] = i;\n}"
    )
    (hazard,) = run["hazards"]
    assert (code, hazard["kind"], hazard["line"]) == (1, "out-of-bounds", 3)
    assert hazard["kernel"] is None and "cudaMemcpy" in hazard["message"]


def test_a_kernel_in_a_header_is_reported_there(diagnose, tmp_path):
    (tmp_path / "parts").mkdir()
    header = tmp_path / "parts/kernels.cuh"
    header.write_text(
        "template <class T> struct Filler {\n"
        "  T value;\n"
        "  __device__ void put(T* to, int i) const {\n    to[i] = value;\n  }\n};\n"
        "template <class T> __global__ void fill(T* to, Filler<T> filler) {\n"
        "  filler.put(to, threadIdx.x / 2);\n}\n"
        "template <class T> void launch(T* to) { fill<<<2, 32>>>(to, Filler<T>{1}); }\n"
    )
    _, run, *_ = diagnose(
        '#include "parts/kernels.cuh"\n'
        "int main() { float* x; double* y; cudaMalloc(&x, 64); cudaMalloc((void**)&y, 128);\n"
        " launch(x); launch(y); }"
    )
    assert {(h["file"], h["line"], h["array"]) for h in run["hazards"]} == {
        (str(header), 4, "x"), (str(header), 4, "y")
    }  # fmt: skip


@pytest.mark.parametrize("order", ["0", "3"])
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_example_programs_have_no_hazards(path, order, diagnose):
    code, run, out, err = diagnose(path, "--order", order)
    assert run["hazards"] == []
    assert code == run["exit"] == (3 if path.stem == "launch_error" else 0)


GRAPH = "0 1\n1 2\n2 3\n3 4\n1 5\n5 6\n6 0\n" + "".join(f"{i} {i + 1}\n" for i in range(10, 90))


def test_a_graph_from_a_file(diagnose, tmp_path):
    (tmp_path / "graph.txt").write_text(GRAPH)
    program = ROOT / "tests/programs/bfs.cu"
    code, run, out, _ = diagnose(program, args=(str(tmp_path / "graph.txt"), "10"))
    assert (code, out) == (0, "bfs: 91 vertices, 81 launches, 0 wrong\n")
    assert len(run["launches"]) == 81


def test_a_graph_search_without_its_atomics(diagnose, tmp_path):
    # Two vertices of the frontier may find the same neighbour, and both put it in the next one.
    text = (ROOT / "tests/programs/bfs.cu").read_text()
    right = "if (atomicCAS(&distance[w], -1, level) == -1) next[atomicAdd(next_size, 1)] = w;"
    wrong = "if (distance[w] == -1) { distance[w] = level; next[atomicAdd(next_size, 1)] = w; }"
    assert right in text
    check = ROOT / "tests/programs/check.cuh"
    text = text.replace(right, wrong).replace('"check.cuh"', f'"{check}"')
    line = next(n for n, code in enumerate(text.splitlines(), 1) if wrong in code)
    code, run, out, _ = diagnose(text)
    assert "0 wrong" in out  # which is why it takes a diagnosis
    assert code == 1 and {h["kind"] for h in run["hazards"]} == {"race"}
    assert {(h["line"], h["other_line"], h["array"]) for h in run["hazards"]} == {
        (line, line, "device")  # the name in to_device()
    }


def test_the_time_limit_holds_and_says_where(diagnose):
    code, run, _, err = diagnose(
        "__global__ void spin(volatile int* x) {\n"  # 2^32 rounds, each another
        " for (unsigned n = 1; n != 1u << 31; n = 5 * n + 1) *x;\n}\n"
        "int main() { int* x; cudaMalloc(&x, 4); cudaMemset(x, 0, 4); spin<<<1, 1>>>(x); }",
        "--timeout",
        "0.5",
    )
    assert (code, run["exit"]) == (1, 124)
    (hazard,) = run["hazards"]
    assert (hazard["kind"], hazard["line"], hazard["kernel"]) == ("timeout", 2, "spin")


@pytest.mark.parametrize(
    "behind, kind", [("", "invalid-mask"), (" __syncthreads();\n", "deadlock")]
)
def test_shuffles_that_some_lanes_called_more_often_are_both_named(diagnose, behind, kind):
    run, _, err = diagnose(
        "__global__ void sums(float* x) {\n float v = threadIdx.x;\n if (v < 16)\n"
        "  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);\n"
        " for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);\n"
        f"{behind} x[threadIdx.x] = v;\n}}\n"
        "int main() { float* x; cudaMalloc(&x, 128); sums<<<1, 32>>>(x); }"
    )[1:]
    (hazard,) = [h for h in run["hazards"] if h["kind"] == kind]
    assert (hazard["line"], hazard["other_line"]) == (5, 4)
    assert "some lanes called __shfl_down_sync at line 4 and others at line 5" in err


def test_a_shuffle_in_either_branch_is_right(diagnose):
    code, run, _, _ = diagnose(
        "__global__ void sums(int* x) {\n int v = threadIdx.x;\n"
        " if (v < 16) v += __shfl_xor_sync(0xffffffffu, v, 1);\n"
        " else v -= __shfl_xor_sync(0xffffffffu, v, 1);\n x[threadIdx.x] = v;\n}\n"
        "int main() { int* x; cudaMalloc(&x, 128); sums<<<1, 32>>>(x); }"
    )
    assert (code, run["hazards"]) == (0, [])


def test_a_spin_of_a_cooperative_launch_is_of_its_line_and_all_blocks_have_begun(diagnose):
    (hazard,) = diagnose(
        "__global__ void spin(int* x) {\n __syncthreads();\n"
        " while (atomicAdd(x, 0) == 0) __nanosleep(64);\n}\n"
        "int main() {\n int* x;\n cudaMalloc(&x, 4);\n cudaMemset(x, 0, 4);\n"
        " void* arguments[] = {&x};\n"
        " cudaLaunchCooperativeKernel((void*)spin, dim3(2), dim3(32), arguments);\n"
        " cudaDeviceSynchronize();\n}"
    )[1]["hazards"]
    assert (hazard["kind"], hazard["variant"], hazard["line"]) == ("deadlock", "spinning", 3)
    assert "32 threads of this block spin" in hazard["message"]
    assert "have begun" not in hazard["message"]  # "0 of 2", it said


LATE = """\
#include <csignal>
#include <sys/time.h>
#include <ucontext.h>
__global__ void spin(volatile int* x) {
    for (unsigned n = 1; n != 1u << 31; n = 5 * n + 1) *x;
}
void let_it_answer(int, siginfo_t*, void* context) {
    sigdelset(&((ucontext_t*)context)->uc_sigmask, SIGUSR1);
}
int main() {  // does not answer for a second after its time limit, as where it has no core
    struct sigaction action = {};
    action.sa_sigaction = let_it_answer;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGALRM, &action, nullptr);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    itimerval once = {{0, 0}, {1, 500000}};
    setitimer(ITIMER_REAL, &once, nullptr);
    int* x;
    cudaMalloc(&x, 4);
    cudaMemset(x, 0, 4);
    spin<<<1, 1>>>(x);
}
"""


def test_who_is_late_may_also_answer_late(diagnose):
    (hazard,) = diagnose(LATE, "--timeout", "0.3")[1]["hazards"]
    assert (hazard["kind"], hazard["line"], hazard["kernel"]) == ("timeout", 5, "spin")


def test_what_is_sent_to_the_process_is_for_the_host_programs_own_threads(diagnose):
    _, _, out, _ = diagnose(
        "#include <csignal>\n#include <cstdio>\n#include <unistd.h>\n"
        "__global__ void nothing() {}\n"
        "volatile int handled;\n"
        "int main() {\n signal(SIGALRM, [](int) { handled = 1; });\n"
        " nothing<<<1, 1>>>();\n"
        " sigset_t set;\n sigemptyset(&set);\n sigaddset(&set, SIGALRM);\n"
        " sigprocmask(SIG_BLOCK, &set, nullptr);\n kill(getpid(), SIGALRM);\n usleep(100000);\n"
        ' printf("while blocked: %d, ", handled);\n'
        ' sigprocmask(SIG_UNBLOCK, &set, nullptr);\n printf("afterwards: %d", handled);\n}',
        *("--timeout", "20"),
    )
    assert out == "while blocked: 0, afterwards: 1"


def test_the_time_limit_says_where_though_hardly_ever_a_thread_runs(tmp_path, capfd):
    program = tmp_path / "prog.cu"
    program.write_text(
        "__device__ volatile int flag;\n"
        "__global__ void waits() {\n"
        " for (unsigned n = 1; flag == 0 && n != 1u << 31; n = 5 * n + 1)\n"
        "  if (n % 3 == 0) __nanosleep(10);\n}\n"
        "int main() { waits<<<1000, 1>>>(); cudaDeviceSynchronize(); }"
    )
    for _ in range(4):  # the emulator itself runs, nearly half of the time
        assert emulate(program, timeout=0.2) == 124
        err = capfd.readouterr().err
        assert f"{program}:" in err and "stopped at the time limit in kernel 'waits'" in err


def test_options_that_need_diagnose_say_so(tmp_path):
    for option in (["--json", "x.json"], ["--order", "1"], ["--volatile-atomic"]):
        done = CliRunner().invoke(app, ["emulate", "prog.cu", *option])
        assert done.exit_code == 2 and "--diagnose" in done.output
