"""Builds of model files: the flags that they may ask for, and what a compiler leaves behind."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from support.box import needs_box

from utils.cuda import model_build, model_flags, toolchain
from utils.ground import files
from utils.ground.errors import CompileError, KernelTimeout
from utils.ground.wording import one_line
from utils.judge.models.absent import absent
from utils.judge.models.verdict import Rejected, Verdict, Why

CUDA = Path("/opt/cuda")

PASS = {
    "c": [["-O3", "-DROWS=4", "-march=native"], ["-DNAME", "-std=c++17", "-ffast-math"]],
    "cuda": [
        ["--use_fast_math", "-O3", "-lineinfo", "--expt-relaxed-constexpr"],
        ["-gencode", "arch=compute_90a,code=sm_90a"],
        ["-gencode=arch=compute_80,code=[compute_80,sm_80]", "-arch=sm_80", "-std=c++20"],
        ["-Xptxas", "-v,-O3", "--maxrregcount=128", "-t", "4", "--ptxas-options=-v"],
        ["-Xcompiler", "-fPIC,-O3", "--compiler-options=-O2", "-DTILE=(2*4)", "-D", "WIDE=1"],
        ["-I/opt/cuda/include", "-I", "include", "-U__CUDA_NO_HALF_OPERATORS__"],
        ["-O3 --use_fast_math"],
    ],
    "ld": [["-lcudart", "-lcublas", "-L/opt/cuda/lib64", "-Wl,--no-as-needed"], ["-l", "cuda"]],
}
REFUSE = {
    "c": """-wrapper -wrapper,/bin/sh -specs=x -fplugin=./x.so -fplugin-arg-x -B. -B/tmp @file
        -include -include/etc/passwd -imacros -iquote/etc -o -MF -MD -Wp,-MD,x -Wa,-I -Wl,-T,x
        -fdump-tree-all -fprofile-use -flto -x -save-temps -pipe=x -DX=$(id) -DX=`id` -I/etc
        -I../.. -idirafter/etc -fuse-ld=gold -fsanitize=thread -E -S --sysroot=/ -L/etc""",
    "cuda": """-ccbin --compiler-bindir=/x --options-file=x -optf -dlto --dryrun --keep
        --keep-dir=/x -odir --run -Xcompiler=-wrapper,x -Xcompiler=-B. -Xlinker=-T -include=x
        --pre-include=x -I/etc --compiler-options='-specs=x' -Xptxas=@x -Xptxas=-o""",
    "ld": """-Wl,-T,x -Wl,--dynamic-linker=x -Wl,@x -T x.ld /etc/passwd -l:x -lmine -nostdlib
        -Wl,--wrap=cudaLaunchKernel -Wl,-rpath,/etc -Wl,-Map=/x -Wl,-plugin,x -Wl,-z,execstack
        model.o -fuse-ld=bfd""",
}


@pytest.mark.parametrize("of", PASS)
def test_flags_that_say_what_to_compile_pass(of):
    for flag in PASS[of]:
        passed = model_flags.allowed(flag, of, [CUDA])
        assert re.sub("[ =]", "", "".join(passed)) == re.sub("[ =]", "", "".join(flag))


@pytest.mark.parametrize("of", REFUSE)
def test_flags_by_which_a_compiler_reads_writes_or_starts_something_do_not(of):
    for flag in REFUSE[of].split():
        with pytest.raises(CompileError, match="none of those|no part|not part"):
            model_flags.allowed([flag], of, [CUDA])


def test_a_result_is_read_as_a_file_and_nothing_else(tmp_path):
    secret, link, big = tmp_path / "secret", tmp_path / "link", tmp_path / "big"
    secret.write_text("secret")
    link.symlink_to(secret)
    big.write_bytes(bytes(100))
    os.mkfifo(tmp_path / "pipe")
    assert files.read_bytes(secret, 6) == b"secret"
    for path in (link, tmp_path / "pipe", tmp_path, big):
        with pytest.raises(OSError):
            files.read_bytes(path, 99)


@needs_box
def test_a_compiler_has_limits(tmp_path, monkeypatch):
    with pytest.raises(CompileError, match="4194304\n2097152"):  # of memory in KiB; of a file
        model_build.run(["/bin/sh", "-c", "ulimit -v; ulimit -f; false"], tmp_path, [])
    monkeypatch.setattr(model_build, "LIMIT", 1)
    with pytest.raises(KernelTimeout, match="stopped after 1 seconds"):
        model_build.run(["/bin/sh", "-c", "while :; do :; done"], tmp_path, [])


FORGED = (
    "bad\x1b[2J\x1b]0;t\x07\r\n\n  Evaluation: passed\x9b \u202e\u2028x\ud800\x00" + "y" * 10**5
)


def test_a_message_is_one_line_that_no_terminal_acts_on():
    said = one_line(FORGED)
    assert said.startswith(r"bad\x1b[2J\x1b]0;t\x07 / Evaluation: passed\x9b \u202e")
    assert said.isprintable() and len(said) < 5000
    verdict = Verdict("t", False, 1, "raises", str(Rejected(Why.RAISED, FORGED)), notes=[FORGED])
    for line in str(verdict).splitlines():
        assert line.isprintable() and line.startswith(
            ("Evaluation: failed", "Reason", "Seed", "bad")
        )
    assert Verdict("t", False, 1, Why.NOT_HERE).as_json()["evaluation"] == "not judged"


ASKED = """mprotect syscall dlsym dlopen fork open sigaction pthread_create prctl mmap
    emu_open_memory emu_rehearse emu_watch_end _ZN2at6native10group_normEv
    _ZN2at3cpu7sigmoidEv""".split()
DEFINED = "__tsan_write4 emu_lend_memory cudaLaunchKernel __wrap_malloc".split()


@pytest.mark.parametrize("name", [*ASKED, *DEFINED])
def test_what_a_library_may_not_ask_for_or_define_is_refused(name, tmp_path):
    body = "{}" if name in DEFINED else "; void f() { " + name + "(); }"
    (tmp_path / "f.cpp").write_text(f'extern "C" void {name}() {body}\n')
    command = [toolchain.cxx(), "-w", "-fno-builtin", "-shared", "-fPIC", "f.cpp", "-o", "f.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    with pytest.raises(CompileError, match=name):
        model_build.judge_symbols(tmp_path / "f.so", "")


@pytest.mark.parametrize("word", ['no_sanitize("thread")', "no_sanitize_thread", "__no_sanitize__"])
def test_the_diagnosis_cannot_be_switched_off_in_the_text(word):
    with pytest.raises(CompileError, match="keeps the diagnosis"):
        model_build.library([], [f"__attribute__(({word})) void f() {{}}"], [], "m")


@pytest.mark.parametrize(
    "said, missing",
    [
        ("x.cu:1:10: fatal error: cublas_v2.h: No such file or directory", "header cublas_v2.h"),
        ("fatal error: cub/cub.cuh: No such file or directory", "header cub/cub.cuh"),
        ("error: 'cudaGraphInstantiate' was not declared in this scope", "cudaGraphInstantiate"),
        ("ImportError: undefined symbol: cublasCreate_v2", "cublasCreate_v2"),
        ("error: impossible constraint in 'asm'", "PTX"),
        ("fatal error: my_kernels.h: No such file or directory", ""),
        ("error: 'blockId' was not declared in this scope", ""),
        ("RuntimeError: x must be contiguous", ""),
    ],
)
def test_what_the_emulator_alone_lacks_is_named(said, missing):
    lacking = absent(said)
    assert (missing in lacking and lacking) if missing else lacking == ""
