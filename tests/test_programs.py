"""Complete CUDA programs run on the CPU as they do on a GPU, and say where they went wrong."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from utils.cuda import toolchain
from utils.emulator import programs
from utils.emulator.programs import build_program, emulate
from utils.errors import ToolError
from utils.paths import ROOT

PROGRAMS = sorted((ROOT / "tests/programs").glob("*.cu"))


@pytest.fixture
def write(tmp_path):
    """Writes a source file and returns its path."""

    def write(text: str, name: str = "program.cu") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_examples_verify_themselves(path, capfd):
    expected = {
        "launch_error": (3, "cudaErrorInvalidValue: invalid argument\n"),
        "grid_reduction": (0, "n = 300001, sum 2399993, expected 2399993\n"),
        "runtime_features": (0, "block 0 of 8: y[0] = 2.25\nruntime_features: 0 wrong\n"),
        "unusual_launches": (0, "x = 123, touched 3 times, 0 wrong\n"),
    }
    status, text = expected.get(path.stem, (0, ", 0 wrong\n" if "_" in path.stem else ""))
    result = emulate(path, timeout=60)
    out, err = capfd.readouterr()
    assert (result, err) == (status, "")
    assert text in out or text.strip(", ") in out


def test_nvcc_compiles_the_same_files(tmp_path):
    try:
        nvcc = toolchain.cuda_home() / "bin/nvcc"
    except ToolError:
        pytest.skip("no nvcc on this machine")
    targets = [f"-gencode=arch=compute_{sm},code=sm_{sm}" for sm in ("75", "80", "86", "90a")]
    command = [nvcc, "-std=c++17", "--threads=0", "-O1", *targets, "-c", *map(str, PROGRAMS)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {path.stem for path in tmp_path.glob("*.o")} == {path.stem for path in PROGRAMS}


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
        "illegal memory access in kernel 'far'\n  block (0, 0, 0), thread (0, 0, 0)",
    ),
    "an index outside in a header's function": (
        "__global__ void add(int* x) {\n if (threadIdx.x == 7)\n atomicAdd(x, 1);  // HERE\n}\n"
        "int main() { add<<<1, 32>>>(nullptr); return cudaDeviceSynchronize() != cudaSuccess; }",
        1,
        "illegal memory access in kernel 'add'\n  block (0, 0, 0), thread (7, 0, 0)",
    ),
    "a barrier that some never reach": (
        "__global__ void half(int* x) {\n"
        "if (threadIdx.x < 16) __syncthreads();\nelse\n __shfl_sync(~0u, 1, 0);  // HERE\n}\n"
        "int main() { half<<<1, 32>>>(nullptr); return cudaDeviceSynchronize() != cudaSuccess; }",
        1,
        "the threads wait for each other for ever in kernel 'half'",
    ),
    "an assertion in a kernel": (
        "#include <cassert>\n__global__ void never(int n) {\n assert(n > 3);  // HERE\n}\n"
        "int main() { never<<<1, 1>>>(2); return cudaDeviceSynchronize() == cudaErrorAssert; }",
        1,
        "an assertion failed in kernel 'never'",
    ),
    "a loop without end in a kernel": (
        "__global__ void spin(volatile int* x) {\n while (*x == 0) {}  // HERE\n}\n"
        "int main() { int* x; cudaMalloc(&x, 4); cudaMemset(x, 0, 4); spin<<<1, 1>>>(x); }",
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
