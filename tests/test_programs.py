"""Complete CUDA programs run on the CPU as they do on a GPU, and say where they went wrong."""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.nvcc import in_one_file

from utils.cuda import toolchain
from utils.emulator import programs
from utils.emulator.nvcc_options import translated
from utils.emulator.programs import (
    Watch,
    build_program,
    diagnose_program,
    emulate,
    run_program,
)
from utils.ground.errors import ToolError
from utils.ground.paths import ROOT

PROGRAMS = sorted((ROOT / "tests/programs").glob("*.cu"))


@pytest.fixture
def write(tmp_path):
    """Writes a source file and returns its path."""

    def write(text: str, name: str | Path = "program.cu") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


@pytest.fixture(scope="module")
def built(request):
    """The executable of each program that the chosen tests ask for, as a future: two at a time."""
    params = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    jobs = {(test["path"], "watch" in test) for test in params if test.get("path") in PROGRAMS}
    with ThreadPoolExecutor(2) as pool:
        yield {
            (path, watched): pool.submit(build_program, path, watch=Watch() if watched else None)
            for path, watched in sorted(jobs)
        }
        pool.shutdown(cancel_futures=True)


EXPECTED = {  # where a program does not end with "name, 0 wrong"
    "launch_error": (3, "cudaErrorInvalidValue: invalid argument\n"),
    "grid_reduction": (0, "n = 300001, sum 2399993, expected 2399993\n"),
    "runtime_features": (0, "block 0 of 8: y[0] = 2.25\nruntime_features: 0 wrong\n"),
    "unusual_launches": (0, "x = 123, touched 3 times, 0 wrong\n"),
    "bfs": (0, ""),
}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_examples_verify_themselves(path, built, capfd):
    status, text = EXPECTED.get(path.stem, (0, "0 wrong\n"))
    result = run_program(built[path, False].result(), timeout=60)
    out, err = capfd.readouterr()
    assert (result, err) == (status, "")
    assert text in out


# What NVIDIA's own tool has nothing against: barriers of every kind, atomics, copies.
CLEAN = """arrive_and_wait copy_pipeline producers_and_consumers group_copies grid_sync_sum
    grid_sync_jacobi tiles_of_two_warps partitions group_reduction vector_aggregates spin_locks
    last_block host_threads device_objects memory_pools launches_by_pointer half_dot_product
    texture_wraps block_scan bitonic_sort wmma_products blocks_that_wait
    cub_primitives pinned_copies""".split()


@pytest.mark.parametrize("watch", ["watched"])
@pytest.mark.parametrize(
    "path", [path for path in PROGRAMS if path.stem in CLEAN], ids=lambda path: path.stem
)
def test_the_examples_are_found_to_be_clean(path, watch, built, tmp_path, capfd):
    report = tmp_path / "told.json"
    result = diagnose_program(built[path, True].result(), Watch(json=report), timeout=120)
    out = capfd.readouterr().out
    assert json.loads(report.read_text())["hazards"] == []
    assert result == 0 and ", 0 wrong\n" in out


def test_who_looks_at_pinned_memory_before_a_wait_finds_what_was_there(write, capfd):
    text = """#include <cstdio>
    __global__ void fill(int* x) { x[threadIdx.x] = 7; }
    int main() {
        int *x, *host;
        cudaMalloc(&x, 4 * sizeof(int));
        cudaMallocHost(&host, 4 * sizeof(int));
        host[3] = 1;
        fill<<<1, 4>>>(x);
        cudaMemcpyAsync(host, x, 4 * sizeof(int), cudaMemcpyDeviceToHost);
        printf("%d ", host[3]);
        cudaStreamSynchronize(0);
        printf("%d", host[3]);
    }"""
    assert emulate([str(write(text))]) == 0
    assert capfd.readouterr().out == "1 7"


@pytest.mark.nvcc
def test_nvcc_compiles_the_same_files(tmp_path):
    try:
        nvcc = toolchain.cuda_home() / "bin/nvcc"
    except ToolError:
        pytest.skip("no nvcc on this machine")
    texts = {path.name: path.read_text() for path in PROGRAMS}
    source = in_one_file(texts, tmp_path, "#define main program")
    quick = ["-Xcicc", "-O1", "-arch=sm_80", "-ptx"]  # nothing runs
    command = [nvcc, "-std=c++17", *quick, f"-I{ROOT / 'tests/programs'}", source]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = re.findall(r"^#line 1 \"(.*)\"$", source.read_text(), re.MULTILINE)
    assert names == [path.name for path in PROGRAMS]


def test_arguments_and_standard_streams_pass_through(write):
    path = write(
        "#include <cstdio>\n"
        "int main(int argc, char** argv) {\n"
        "    int n; scanf(\"%d\", &n);\n"
        "    printf(\"%d %s\\n\", 2 * n, argv[argc - 1]); fprintf(stderr, \"err\\n\");\n"
        "    return 40 + argc;\n"
        "}\n"
    )  # fmt: skip
    code = "import sys; from pathlib import Path; from utils.emulator.programs import emulate;"
    code += "sys.exit(emulate(Path(sys.argv[1]), args=['a b', '-x']))"
    done = subprocess.run(
        [sys.executable, "-c", code, path], input="21", text=True, capture_output=True, cwd=ROOT
    )
    assert (done.returncode, done.stdout, done.stderr) == (43, "42 -x\n", "err\n")


def test_compiler_options_are_those_of_nvcc(write):
    write("template <int N> __global__ void k(int* x) { x[threadIdx.x] = N; }", "lib/k.cuh")
    path = write(
        "#include <k.cuh>\n#include <cassert>\n"
        "static_assert(__cplusplus == 202002L);\n"
        "#ifdef __OPTIMIZE__\n#error -O0 was asked for\n#endif\n"
        "int main() { int* x; assert(false); cudaMalloc(&x, 4); k<T + A><<<1, 1>>>(x);\n"
        "    int y; cudaMemcpy(&y, x, 4, cudaMemcpyDeviceToHost); return y; }\n"
    )
    options = {"include": [str(path.parent / "lib")], "define": ["T=40", "A", "NDEBUG"], "opt": "0"}
    assert emulate(path, std="c++20", **options) == 41


FAULTS = {
    # what: the program, with the fault in the line that is marked; its status; what is said
    "an index far outside": (
        "__global__ void far(int* x) {\n x[1ll << 44] = 1;  // HERE\n}\n"
        "int main() { int* x; cudaMalloc(&x, 4); far<<<1, 1>>>(x);\n"
        "return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 5 : 1; }",
        5,
        "illegal memory access in kernel 'far'\n     2 | x[1ll << 44] = 1;  // HERE\n"
        "  block (0, 0, 0), thread (0, 0, 0)",
    ),
    "an index outside in a header's function": (
        "__global__ void add(int* x) {\n if (threadIdx.x == 7)\n atomicAdd(x, 1);  // HERE\n}\n"
        "int main() { add<<<1, 32>>>(nullptr); return cudaDeviceSynchronize() != cudaSuccess; }",
        1,
        "illegal memory access in kernel 'add'\n     3 | atomicAdd(x, 1);  // HERE\n"
        "  block (0, 0, 0), thread (7, 0, 0)",
    ),
    "a barrier that some never reach": (
        "__global__ void half(int* x) {\n"
        "if (threadIdx.x < 16) __syncthreads();\nelse\n __shfl_sync(~0u, 1, 0);  // HERE\n}\n"
        "int main() { half<<<1, 32>>>(nullptr); return cudaDeviceSynchronize() != cudaSuccess; }",
        1,
        "the threads wait for each other forever in kernel 'half'",
    ),
    "an assertion in a kernel": (
        "#include <cassert>\n__global__ void never(int n) {\n assert(n > 3);  // HERE\n}\n"
        "int main() { never<<<1, 1>>>(2); return cudaDeviceSynchronize() == cudaErrorAssert; }",
        1,
        "an assertion failed in kernel 'never'",
    ),
    "a loop without end in a kernel": (
        "__global__ void spin(volatile int* x) {\n"
        "for (int i = 0; *x == 0; i++) x[1] = i;  // HERE\n}\n"
        "int main() { int* x; cudaMalloc(&x, 8); cudaMemset(x, 0, 8); spin<<<1, 1>>>(x); }",
        124,
        "stopped at the time limit in kernel 'spin'",
    ),
    "a loop without end in host code": (
        "int main() { volatile int x = 0;\n while (x == 0) {}  // HERE\n}",
        124,
        "stopped at the time limit\n",
    ),
    "a crash in host code": (
        "int main(int argc, char** argv) { int* x = argc == 9 ? &argc : nullptr;\n"
        " return *(volatile int*)x;  // HERE\n}",
        128 + 11,
        "the host code crashed\n",
    ),
    "an abort in host code": (
        "#include <cstdlib>\nint main() {\n std::abort();  // HERE\n}",
        128 + 6,
        "the program was ended by SIGABRT\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_what_goes_wrong_is_reported_with_its_line(fault, write, capfd):
    source, status, report = FAULTS[fault]
    path = write(source)
    line = next(n for n, text in enumerate(source.splitlines(), 1) if "HERE" in text)
    result = emulate(path, timeout=2 if status == 124 else 60)
    err = capfd.readouterr().err
    assert result == status, err
    assert report in err
    if "SIGABRT" not in report:
        assert f"{path}:{line}: " in err


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("\nint main() { return x; }", ":2: error: ‘x’ was not declared"),
        ("\n\nint main() { k<<<1, 2; }", ":3: error: this '<<<' has no '>>>('"),
        ('__global__ void k(int n) {}\nint main() {\nk<<<1,\n 2>>>(\n""); }', ":4: error: inv"),
    ],
)
def test_a_program_that_does_not_compile(source, said, write, capfd):
    path = write(source)
    assert emulate(path) == 1
    err = capfd.readouterr().err
    assert re.sub("['‘’]", "'", f"{path}{said}") in re.sub("['‘’]", "'", err)
    assert "required from" not in err and err.endswith(f"{path} does not compile\n")


def test_a_file_that_is_not_there(tmp_path, capfd):
    assert emulate(tmp_path / "absent.cu") == 2
    assert emulate(tmp_path) == 2
    absent, folder = capfd.readouterr().err.splitlines()
    assert absent == f"cannot read {tmp_path}/absent.cu: No such file or directory"
    assert folder == f"cannot read {tmp_path}: Is a directory"


def test_without_a_compiler_it_says_what_to_install(write, monkeypatch, capfd):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert emulate(write("int main() {}")) == 2
    assert "apt install g++" in capfd.readouterr().err


def test_bytes_that_are_not_utf8_stay_as_they_are(tmp_path, capfdbinary):
    path = tmp_path / "latin.cu"
    path.write_bytes(b'#include <cstdio>\n#include "x.h"\nint main() { puts("\xe9" X); }\n')
    (tmp_path / "x.h").write_bytes(b'#define X "\xe8"\n')
    assert emulate(path) == 0
    assert capfdbinary.readouterr().out == b"\xe9\xe8\n"


def test_a_program_is_built_once_and_again_when_anything_changes(write, tmp_path, monkeypatch):
    path, header = write('#include "n.h"\nint main() { return N; }'), write("#define N 1", "n.h")
    cache = tmp_path / "cache"
    first = build_program(path, cache=cache)
    with monkeypatch.context() as context:
        context.setattr(programs, "_compile", None)
        assert build_program(path, cache=cache) == first
    others = {
        build_program(path, defines=["A"], cache=cache),
        build_program(path, opt="0", cache=cache),
    }
    header.write_text("#define N 2")
    others.add(build_program(path, cache=cache))
    path.write_text('#include "n.h"\nint main() { return N + 1; }')
    others.add(build_program(path, cache=cache))
    assert len(others | {first}) == 5
    assert sorted(subprocess.run([program]).returncode for program in others) == [1, 1, 2, 3]


# --- several sources

COOPERATE = (
    "#include <cooperative_groups.h>\n"
    "__global__ void k(int* x) {\n"
    " auto grid = cooperative_groups::this_grid();\n"
    " x[grid.thread_rank()] = 1;\n"
    " LINE\n"
    " x[grid.thread_rank()] += x[(grid.thread_rank() + 32) % 64];\n"
    "}\n"
)


def test_several_sources_are_one_program(write, capfd):
    """Device functions and constants of another file, host code in a .cpp, a header for both."""
    write("float host_sum(const float* x, int n);\nstruct Pair { float a, b; };", "both.h")
    write(
        '#include "both.h"\n#ifdef __CUDACC__\n#error this is host code\n#endif\n'
        "static float weights[2] = {100, 100};\n"
        "float host_sum(const float* x, int n) {\n"
        "float s = 0 * weights[0]; for (int i = 0; i < n; ++i) s += x[i]; return s; }\n",
        "host.cpp",
    )
    write(
        "__constant__ float weights[2] = {2, 3};\n"
        "__device__ float helped(float x) { return x * weights[1]; }\n",
        "device.cu",
    )
    main = write(
        '#include "both.h"\nextern __constant__ float weights[2];\n'
        "__device__ float helped(float x);\n"
        "__global__ void k(float* x) { x[0] = helped(weights[0]); x[1] = N; }\n"
        "int main() { float* x; cudaMalloc(&x, 8); k<<<1, 1>>>(x); float y[2];\n"
        "cudaMemcpy(y, x, 8, cudaMemcpyDeviceToHost); return int(host_sum(y, 2)); }\n"
    )
    sources = [main, *(main.parent / name for name in ("host.cpp", "device.cu"))]
    assert emulate(sources, define=["N=4"]) == 10
    assert emulate(sources, define=["N=4"], watch=Watch()) == 10
    assert capfd.readouterr().err.endswith("no hazards in 1 launch\n")


def test_constants_of_one_name_are_each_files_own(write):
    one = write(
        "__constant__ int c[1] = {1};\nint two();\n"
        "__global__ void k(int* x) { *x = c[0]; }\n"
        "int main() { int *x, y; cudaMalloc(&x, 4); k<<<1, 1>>>(x);\n"
        "cudaMemcpy(&y, x, 4, cudaMemcpyDeviceToHost); return 10 * y + two(); }\n",
        "one.cu",
    )
    two = write(
        "__constant__ int c[1] = {2};\n__global__ void k2(int* x) { *x = c[0]; }\n"
        "int two() { int *x, y; cudaMalloc(&x, 4); k2<<<1, 1>>>(x);\n"
        "cudaMemcpy(&y, x, 4, cudaMemcpyDeviceToHost); return y; }\n",
        "two.cu",
    )
    assert emulate([one, two]) == 12


def test_nvccs_spelling_of_options_is_understood():
    words = (
        "-std=c++14 -O3 -arch=sm_80 -gencode arch=compute_80,code=sm_80 -Xcompiler -fopenmp,-Wall"
    )
    words += " -rdc=true -lineinfo -o out --use_fast_math -I inc -DN=3 -lcudart -lm a.cu b.cpp"
    expected = "--std c++14 -O3 --flag=-fopenmp --flag=-Wall -I inc -DN=3 --flag=-lm a.cu b.cpp"
    assert translated(words.split()) == expected.split()


def test_a_host_function_like_a_built_in_is_for_kernels_too(write, capfd):
    """As with nvcc, which takes a definition with a built-in's parameters for that one's own."""
    text = """int min(int a, int b) { return a < b ? a : b; }
float fmaxf(const float a, const float b) { return a > b ? a : b; }
template <class T> T max(T a, T b) { return a > b ? a : b; }
__global__ void k(int* x) { x[threadIdx.x] = min(threadIdx.x, 5) + int(fmaxf(max(1, 2), 1.5f)); }
int main() {
 int *x, y[8]; cudaMalloc(&x, 32); k<<<1, 8>>>(x); cudaMemcpy(y, x, 32, cudaMemcpyDeviceToHost);
 return 10 * min(y[7], 9) + int(2 * min(2.5, 1.5)) + ::min(3, 2); }
"""
    assert emulate(write(text)) == 75
    assert emulate(write(f"namespace mine {{ {text} }} int main() {{ mine::main(); }}")) == 1
    assert "'min' has no __device__" in capfd.readouterr().err


def test_openmp_is_the_compilers_own(write):
    path = write(
        "#include <omp.h>\n__global__ void k(int* x, int v) { atomicAdd(x, v); }\n"
        "int main() { int *x, y; cudaMalloc(&x, 4); cudaMemset(x, 0, 4);\n"
        "#pragma omp parallel for num_threads(3)\n"
        "for (int i = 0; i < 30; ++i) k<<<2, 32>>>(x, i);\n"
        "cudaDeviceSynchronize(); cudaMemcpy(&y, x, 4, cudaMemcpyDeviceToHost);\n"
        "return y == 64 * 435 ? 7 : 1; }\n"
    )
    assert emulate(path, flags=["-fopenmp"]) == 7


def test_threads_that_nap_are_interrupted_wherever_they_are(write):
    # Of so many pauses some meet the timer in the runtime, which may hold a lock.
    path = write(
        "__global__ void k(int* x) { for (int i = 0; i < 400000; ++i) __nanosleep(100); *x = 7; }\n"
        "int main() { int *x, y; cudaMalloc(&x, 4); k<<<2, 1>>>(x);\n"
        "cudaMemcpy(&y, x, 4, cudaMemcpyDeviceToHost); return y; }\n"
    )
    assert emulate(path, timeout=60) == 7


CUB = "CUB beyond sums and scans of blocks and warps"
LACKING = {
    "CUDA graphs": "int main() {\n cudaGraph_t graph; }",
    CUB: "\n#include <cub/device/device_scan.cuh>\nint main() {}",
    "Thrust": "\n#include <thrust/sort.h>\nint main() {}",
    "cuRAND": "\n#include <curand_kernel.h>\nint main() {}",
    "cuBLAS": "\n#include <cublas_v2.h>\nint main() {}",
    "compilation at run time (NVRTC)": "\n#include <nvrtc.h>\nint main() {}",
    "inline PTX": '__global__ void k(int* x) {\nasm("mov.u32 %0, %%laneid;" : "=r"(*x)); }\n'
    "int main() {}",
    "driver API": "#include <cuda.h>\nint main() { return cuInit(0); }",
    "graphics": "\n#include <cuda_gl_interop.h>\nint main() {}",
    "libcu++ beyond barriers and pipelines": "\n#include <cuda/std/atomic>\nint main() {}",
}


def test_a_capture_is_of_cuda_graphs(write, capfd):
    capture = "cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal);"
    assert emulate(path := write("int main() {\n" + capture + " }")) == 2
    assert capfd.readouterr().err.startswith(f"the emulator has no CUDA graphs: {path}:2 uses ")


@pytest.mark.parametrize("feature", LACKING)
def test_what_the_emulator_lacks_is_named_in_one_line(feature, write, capfd):
    path = write(LACKING[feature])
    assert emulate(path) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"the emulator has no {feature}: {path}:2 ")


@pytest.mark.parametrize(
    "use",
    [
        "cub::DeviceReduce::Sum(nullptr, n, x, x, 1)",
        "cub::BlockRadixSort<int, 128, 4> sort",
        "typename cub::BlockLoad<int, 128, 4>::TempStorage storage",
        "cub::WarpMergeSort<int, 4> sort",
    ],
)
def test_what_cub_has_and_the_emulator_lacks_is_named_where_it_is_used(use, write, capfd):
    path = write(f"#include <cub/cub.cuh>\nvoid f(size_t n, int* x) {{ {use}; }}\nint main() {{}}")
    assert emulate(path) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"the emulator has no {CUB}: {path}:2 uses ")


SUMS = """#include <cub/cub.cuh>
__global__ void k(int* x) {
    using Sums = cub::BlockReduce<int, 64>;
    __shared__ Sums::TempStorage storage;
    int sum = Sums(storage).Sum(x[threadIdx.x]);
    MEET
    int most = Sums(storage).Reduce(x[threadIdx.x], [](int a, int b) { return a > b ? a : b; });
    if (threadIdx.x == 0) x[0] = sum - most;
}
int main() {
    int *x, y; cudaMalloc(&x, 256); cudaMemset(x, 1, 256); k<<<1, 64>>>(x);
    cudaMemcpy(&y, x, 4, cudaMemcpyDeviceToHost); return y == 63 * 0x1010101 ? 0 : 7;
}
"""


@pytest.mark.parametrize(("meet", "lines"), [("__syncthreads();", []), ("", [(7, 5)])])
def test_storage_of_cub_is_used_again_after_a_barrier_only(meet, lines, write, tmp_path):
    report = tmp_path / "told.json"
    program = build_program(write(SUMS.replace("MEET", meet)), watch=Watch())
    diagnose_program(program, Watch(json=report), timeout=60)
    hazards = json.loads(report.read_text())["hazards"]
    assert [(h["kind"], h["line"], h["other_line"]) for h in hazards] == [
        ("race", *places) for places in lines
    ]


@pytest.mark.parametrize("name", ["block_radix_sort", "device_scan", "warp_merge_sort"])
def test_the_toolkits_own_cub_is_refused_by_name_too(name, write, capfd):
    header = f"cub/{name.partition('_')[0]}/{name}.cuh"
    for path in (header, "cub/version.cuh"):  # as in the toolkit's include/cccl
        write("#pragma once\nstatic_assert(sizeof(int) == 8);\n", Path("cccl", *path.split("/")))
    path = write(f"// A sum.\n#include <{header}>\nint main() {{}}")
    assert emulate(path, include=[str(path.parent / "cccl")]) == 2
    assert capfd.readouterr().err == f"the emulator has no {CUB}: {path}:2 includes {header}\n"


def test_the_toolkits_own_sums_of_cub_are_left_alone(write):
    header = "cub/block/block_reduce.cuh"
    for path in (header, "cub/version.cuh"):
        write("#pragma once\nstatic_assert(sizeof(int) == 8);\n", Path("cccl", *path.split("/")))
    path = write(f"#include <{header}>\nint main() {{ return sizeof(cub::BlockReduce<int, 7>); }}")
    assert emulate(path, include=[str(path.parent / "cccl")]) == 8


def test_a_folder_of_ones_own_may_be_called_cub(write):
    write("constexpr int kAnswer = 7;\n", Path("own", "cub", "answer.h"))
    path = write("#include <cub/answer.h>\nint main() { return kAnswer; }")
    assert emulate(path, include=[str(path.parent / "own")]) == 7


def test_a_header_that_is_nowhere_is_named_too(write, capfd):
    path = write("\n#include <mpi.h>\nint main() {}")
    assert emulate(path) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line == f"{path}:2 includes mpi.h, which is in none of the folders given by -I"


# --- launches whose blocks meet

COOPERATIVE_MAIN = (
    "int main() { int* x; cudaMalloc(&x, 256); cudaMemset(x, 0, 256); void* a[] = {&x};\n"
    "cudaLaunchCooperativeKernel((void*)k, 2, 32, a); return cudaDeviceSynchronize() != 0; }\n"
)


def test_a_barrier_of_the_grid_that_is_missing_is_a_race(write, capfd):
    path = write(COOPERATE.replace("LINE", "") + COOPERATIVE_MAIN)
    assert emulate(path, watch=Watch()) == 1
    err = capfd.readouterr().err
    assert f"{path}:6: race between two" in err or f"{path}:4: race between two" in err
    text = COOPERATE.replace("LINE", "grid.sync();").replace("x[grid.thread_rank()] +=", "int y =")
    assert emulate(write(text + COOPERATIVE_MAIN, "with.cu"), watch=Watch()) == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("if (blockIdx.x == 0) return; grid.sync();", "waits for the whole grid, and other blocks"),
        ("if (threadIdx.x) grid.sync(); else __syncthreads();", "wait for each other forever"),
    ],
)
def test_blocks_that_never_meet(line, said, write, capfd):
    path = write(COOPERATE.replace("LINE", line) + COOPERATIVE_MAIN)
    assert emulate(path, timeout=20) == 1
    err = capfd.readouterr().err
    assert said in err and f"{path}:5: " in err


def test_a_barrier_of_the_grid_wants_a_cooperative_launch(write, capfd):
    text = COOPERATE.replace("LINE", "grid.sync();")
    path = write(
        text + "int main() { int* x; cudaMalloc(&x, 256); k<<<2, 32>>>(x);\n"
        "return cudaDeviceSynchronize() != 0; }\n"
    )
    assert emulate(path) == 1
    assert "was not launched by cudaLaunchCooperativeKernel" in capfd.readouterr().err
