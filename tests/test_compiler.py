"""CUDA text becomes a callable; what does not compile is said in the cell's own line numbers."""

import os
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
import torch

from utils.cuda import compiler, toolchain
from utils.cuda.compiler import compile_cuda
from utils.emulator.build import runtime_library
from utils.ground import files
from utils.ground.errors import CompileError, DeclarationError, LaunchError, ToolError
from utils.ground.paths import ROOT, cache

DOUBLE = """__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * x[i];
}
void twice(const float* x, float* out, int n) { kernel<<<(n + 255) / 256, 256>>>(x, out, n); }
"""


def build(source, name="twice", **options):
    return compile_cuda(source, name, backend="emulator", **options)


def fresh(source=DOUBLE):
    """A text that no cache knows."""
    return f"{source}// {uuid.uuid4()}\n"


def doubles(kernel):
    x, out = torch.randn(1000), torch.empty(1000)
    kernel(x, out, 1000)
    return torch.equal(out, 2 * x)


@pytest.fixture
def builds(monkeypatch):
    """Counts the builds that really happen."""
    done = []
    make = compiler._make
    monkeypatch.setattr(compiler, "_make", lambda *args: done.append(args) or make(*args))
    return done


# --- errors


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (DOUBLE.replace("2 * x[i]", "2 * y[i]"), 3),
        (DOUBLE.replace("void twice", "oops;\nvoid twice"), 5),
        (DOUBLE.replace("256>>>(x", "256>>>(z"), 5),
        ("void twice(int n) {\n  int x = ;\n}\n", 2),
        ("/* a\nlong\ncomment */\nvoid twice(int n) { undeclared(); }", 4),
    ],
)
@pytest.mark.parametrize("first_line", [1, 2])
def test_a_compile_error_has_the_line_number_of_the_cell(source, line, first_line):
    with pytest.raises(CompileError) as error:
        build(source, first_line=first_line)
    assert f"twice.cu:{line + first_line - 1}:" in str(error.value)


@pytest.mark.parametrize("colour", ["0", "1"])  # Jupyter's kernels have CLICOLOR_FORCE=1
def test_a_compile_error_quotes_the_learners_text_and_nothing_of_ours(colour, monkeypatch):
    monkeypatch.setenv("CLICOLOR_FORCE", colour)
    with pytest.raises(CompileError) as error:
        build(DOUBLE.replace("(x, out, n);", "(x, out, m);"), first_line=2)
    message = str(error.value)
    assert "kernel<<<(n + 255) / 256, 256>>>(x, out, m);" in message
    for ours in (str(cache()), str(ROOT), "workbook", "emu::launch(", "ninja", "\x1b"):
        assert ours not in message
    assert message.startswith("twice.cu:6: error: ")


def test_a_missing_brace_is_reported_by_the_compiler_at_the_end_of_the_text():
    with pytest.raises(CompileError, match="twice.cu:4:"):
        build("void twice(int n) {\n  if (n) {\n\n}\n\n")


def test_a_long_message_is_cut():
    with pytest.raises(CompileError) as error:
        build("void twice(int n) {\n" + "".join(f"  f{i}();\n" for i in range(50)) + "}\n")
    lines = str(error.value).splitlines()
    assert len(lines) <= 10 and lines[-1] == "... (48 more errors: fix the first one first)"


def test_a_struct_is_not_shuffled_as_a_whole():
    """nvcc has no such overload; a group of cooperative_groups passes structs."""
    text = (
        "struct Pair {\n  float v;\n  int c;\n};\n"
        "__global__ void kernel(float* out, int n) {\n  Pair p = {out[0], n};\n"
        "  p = __shfl_xor_sync(0xffffffff, p, 1);\n  out[0] = p.v;\n}\n"
        "void twice(float* out, int n) { kernel<<<1, 32>>>(out, n); }\n"
    )
    with pytest.raises(CompileError, match="twice.cu:7:") as error:
        build(text)
    assert "a shuffle takes one number" in str(error.value)


def test_a_function_that_is_nowhere_defined_is_an_error():
    with pytest.raises(CompileError, match=r"twice.cu:2:.* undefined reference to .elsewhere"):
        build("void elsewhere();\nvoid twice(int n) { elsewhere(); }")


@pytest.mark.parametrize(
    "declaration",
    [
        "int atomicAdd(int* p, int v)",
        "int __float_as_int(float x)",
        "float __fadd_rn(float x, float y)",
    ],
)
def test_what_cuda_defines_cannot_be_defined_again(declaration):
    with pytest.raises(CompileError, match="redefinition of"):
        build(f"__device__ {declaration} {{ return 0; }}\n{DOUBLE}")


def test_the_file_name_of_a_message_is_the_one_given():
    with pytest.raises(CompileError, match="kernels/mine.cu:1:"):
        build("void twice(int n) { oops(); }", filename="kernels/mine.cu")


def test_the_hint_about_a_text_in_a_file_is_of_the_line_with_the_error(tmp_path):
    text = fresh(DOUBLE.replace("2 * x[i]", "2 * x[i][i]"))
    file = tmp_path / "k.cu"
    file.write_text(text)
    with pytest.raises(CompileError, match=r"hint: one index leads to a number"):
        build(text, filename=str(file))


def test_a_launcher_of_another_name_is_named():
    with pytest.raises(DeclarationError, match="found: twice"):
        build(DOUBLE, "thrice")


def test_a_text_that_does_not_compile_says_so_before_its_launcher_is_missed():
    with pytest.raises(CompileError, match="twice.cu:2:"):
        build("__global__ void kernel() {\n  oops();\n}\n")


def test_warnings_are_not_shown(capfd):
    build(fresh("void twice(int n) { int unused; if (n = 3) ; }\n"))
    assert capfd.readouterr() == ("", "")


# --- tools that are missing, or broken


def test_what_the_tools_cannot_do_is_no_fault_of_the_text(tmp_path, monkeypatch):
    runtime_library()  # made by tools that can
    broken, real = tmp_path / "g++", shutil.which("g++")
    broken.write_text(
        f'#!/bin/sh\ncase "$*" in *" main.cpp "*) echo "cannot execute cc1plus"; exit 1;; esac\n'
        f'exec {real} "$@"\n'
    )
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    with pytest.raises(ToolError, match="nothing can be compiled here: .*cannot execute cc1plus"):
        build(fresh())


def test_a_text_cannot_pass_its_error_for_one_of_the_tools():
    with pytest.raises(CompileError, match="no space left"):
        build(fresh('#line 1 "other"\n#error no space left\nvoid twice(int n) {}\n'))


@pytest.mark.parametrize(
    ("present", "complaint"), [(["ninja"], "apt install g[+][+]"), (["g++"], "pip install ninja")]
)
def test_a_missing_tool_is_an_error_that_says_what_to_install(
    present, complaint, tmp_path, monkeypatch
):
    for tool in present:
        (tmp_path / tool).symlink_to(shutil.which(tool) or toolchain.ninja())
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(toolchain.sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(ToolError, match=complaint):
        build(DOUBLE)


# --- the cache


def test_a_text_is_built_once(builds):
    source = fresh()
    first, second = build(source), build(source)
    assert len(builds) == 1 and first.library == second.library and doubles(second)


def test_a_changed_text_is_another_build_and_the_old_one_still_works():
    first, second = build(fresh()), build(fresh(DOUBLE.replace("2 * x", "3 * x")))
    assert doubles(first) and not doubles(second)


def test_a_changed_header_is_another_build(place, tmp_path):
    place(include=tmp_path)
    source = fresh('#include "factor.cuh"\n' + DOUBLE.replace("2 * x", "FACTOR * x"))
    (tmp_path / "factor.cuh").write_text("#define FACTOR 3\n")
    assert not doubles(build(source))
    (tmp_path / "factor.cuh").write_text("#define FACTOR 2\n")
    assert doubles(build(source))


def test_a_text_that_failed_is_built_when_tried_again(place, tmp_path):
    place(include=tmp_path)
    source = fresh('#include "late.cuh"\n' + DOUBLE)
    for _ in range(2):
        with pytest.raises(CompileError, match="late.cuh"):
            build(source)
    (tmp_path / "late.cuh").write_text("")
    assert doubles(build(source))


def test_what_a_killed_build_left_behind_is_no_obstacle(monkeypatch, tmp_path):
    monkeypatch.setenv("WORKBOOK_CACHE", str(tmp_path))
    gxx = tmp_path / "slow-g++"
    real = shutil.which("g++")
    gxx.write_text(f'#!/bin/sh\ncase "$*" in *" main.cpp "*) sleep 60;; esac\nexec {real} "$@"\n')
    gxx.chmod(0o755)
    environment = {**os.environ, "CXX": str(gxx), "WORKBOOK_BACKEND": "emulator"}
    source = fresh()
    program = (
        "from pathlib import Path; from utils.cuda import compiler; "
        "from utils.emulator import build;"
        f"build.runtime_library = lambda: Path({str(runtime_library())!r});"
        f"compiler.compile_cuda({source!r}, 'twice')"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], env=environment, cwd=ROOT, start_new_session=True
    )
    while not list(tmp_path.glob(f".*{files.UNFINISHED}/*/main.cpp")):
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, 9)
    process.wait()
    gxx.write_text(f'#!/bin/sh\nexec {real} "$@"\n')
    monkeypatch.setenv("CXX", str(gxx))
    assert doubles(build(source))
    assert list(tmp_path.glob(f".*{files.UNFINISHED}"))
    monkeypatch.setattr(files, "ABANDONED", 0.0)
    assert doubles(build(fresh()))
    assert not list(tmp_path.glob(f".*{files.UNFINISHED}"))


def test_a_half_empty_folder_in_the_cache_is_replaced():
    source = fresh()
    library = build(source).library
    library.unlink()
    assert doubles(build(source))


def test_two_processes_may_build_the_same_text_at_once():
    source = fresh()
    program = (
        "import torch; from utils.cuda.compiler import compile_cuda;"
        f"f = compile_cuda({source!r}, 'twice', backend='emulator');"
        "x, out = torch.ones(9), torch.empty(9); f(x, out, 9); print(int(out.sum()), f.library)"
    )
    command = [sys.executable, "-c", program]
    processes = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    said = {process.communicate(timeout=120)[0] for process in processes}
    assert len(said) == 1 and said.pop().startswith("18 ")


@pytest.mark.parametrize("instrumented", [False, True])
def test_what_is_built_needs_the_emulator_and_nothing_of_torch_nor_of_g_plus_plus_tsan(
    instrumented,
):
    library = build(DOUBLE, instrumented=instrumented).library
    needed = subprocess.run(["ldd", library], capture_output=True, text=True).stdout
    assert "libworkbook_emulator" in needed
    assert not [other for other in ("libtorch", "libc10", "libtsan") if other in needed]


# --- nvcc

nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")


@pytest.fixture
def hopper(monkeypatch):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0a")


@pytest.mark.parametrize("backend", [pytest.param("cuda", marks=nvcc), "emulator"])
def test_every_parameter_type_compiles(backend, hopper):
    from utils.cuda.signature import POINTERS, SCALARS

    types = [f"const {t}*" for t in POINTERS] + [f"{t}*" for t in POINTERS] + list(SCALARS)
    parameters = ", ".join(f"{t} p{i}" for i, t in enumerate(types))
    includes = "#include <cstdint>\n#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
    source = f"{includes}void all({parameters}, cudaStream_t stream) {{}}\n"
    kernel = compile_cuda(source, "all", backend=backend)
    assert kernel.library.exists() and len(kernel.parameters) == len(types) + 1


@nvcc
def test_nvcc_speaks_in_the_lines_of_the_cell(hopper):
    with pytest.raises(CompileError) as error:
        compile_cuda(DOUBLE.replace("2 * x", "2 * y"), "twice", backend="cuda", first_line=2)
    assert "twice.cu(4): error" in str(error.value)
    assert str(cache()) not in str(error.value) and "workbook" not in str(error.value)


@nvcc
def test_half_arithmetic_compiles_although_torch_forbids_it(hopper):
    source = "#include <cuda_fp16.h>\n__global__ void k(__half* x) { x[0] = x[0] * x[1]; }\n"
    assert compile_cuda(source + "void f(__half* x) { k<<<1, 1>>>(x); }", "f", backend="cuda")


@nvcc
@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_cuda_build_without_a_gpu_fails_with_cudas_own_error(hopper):
    kernel = compile_cuda(DOUBLE, "twice", backend="cuda")
    with pytest.raises(LaunchError) as error:
        kernel.isolated({"x": torch.ones(3), "out": torch.ones(3), "n": 3})
    assert error.value.name in ("cudaErrorNoDevice", "cudaErrorInsufficientDriver")


def test_a_wrong_backend_is_refused(monkeypatch):
    monkeypatch.setenv("WORKBOOK_BACKEND", "gpu")
    with pytest.raises(ToolError, match="'cuda' or 'emulator'"):
        compile_cuda(DOUBLE, "twice")


def test_the_emulator_is_what_a_trace_is_built_for():
    kernel = compile_cuda(DOUBLE, "twice", instrumented=True)
    assert kernel.backend == "emulator" and Path(kernel.library).exists()
