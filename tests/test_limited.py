"""What a learner wrote is built without being run, and compilers end whatever they are given."""

import os
import signal
import subprocess
import sys

import pytest
from support.processes import sleeping, wait_until

from utils.cuda import toolchain
from utils.cuda.compiler import compile_cuda
from utils.ground.errors import KernelCrash
from utils.ground.paths import ROOT
from utils.process.guest import limited

LAUNCHER = "void f(int n) {}\n"
BOMB = """template <int depth, long n> struct Tree {
    typename Tree<depth - 1, 2 * n>::type left;
    typename Tree<depth - 1, 2 * n + 1>::type right;
    using type = Tree;
};
template <long n> struct Tree<0, n> { using type = int; };
Tree<40, 1> all;
"""


@pytest.mark.parametrize(
    "does", ["_exit(0);", "abort();", "for (;;) {}", 'setenv("WORKBOOK_LOG", "/x", 1);']
)
def test_what_runs_when_a_library_is_loaded_does_not_run_here(does, monkeypatch):
    monkeypatch.delenv("WORKBOOK_LOG", raising=False)
    source = f"#include <cstdlib>\n#include <unistd.h>\nint early = [] {{ {does} return 1; }}();\n"
    compile_cuda(source + LAUNCHER, "f", backend="emulator")
    compile_cuda(source + LAUNCHER, "f", instrumented=True)
    assert "WORKBOOK_LOG" not in os.environ


def test_it_ends_the_worker_with_a_verdict():
    source = "#include <unistd.h>\nint early = [] { _exit(0); return 1; }();\n" + LAUNCHER
    with pytest.raises(KernelCrash, match="exit status 0"):
        compile_cuda(source, "f", backend="emulator")(1)


def run(*command: str, **options) -> subprocess.Popen:
    """A command with limits of its own, changed by `options`."""
    changes = "".join(f"limited.{name} = {value}\n" for name, value in options.items())
    program = (
        f"import sys\nfrom utils.process.guest import limited\n{changes}sys.exit(limited.main())"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program, *command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_build_has_the_exit_status_of_what_it_runs():
    for status in (0, 3):
        build = run("/bin/sh", "-c", f"echo said; exit {status}")
        assert (build.communicate()[0], build.returncode) == ("said\n", status)


def test_a_compiler_that_takes_too_long_is_stopped_and_what_it_started():
    build = run("/bin/sh", "-c", "sleep 987 & sleep 987", SECONDS=0.3)
    said, _ = build.communicate(timeout=20)
    assert build.returncode == 1 and "does not end" in said
    assert not sleeping("987")


def test_a_compiler_that_takes_all_memory_is_stopped(tmp_path):
    (tmp_path / "bomb.cpp").write_text(BOMB)
    command = [toolchain.cxx(), "-c", str(tmp_path / "bomb.cpp"), "-o", str(tmp_path / "bomb.o")]
    build = run(*command, MEMORY=200 << 20)
    said, _ = build.communicate(timeout=60)
    assert build.returncode and "memory" in said


def test_a_build_ends_with_who_asked_for_it():
    asking = subprocess.Popen(
        ["/bin/sh", "-c", f"{sys.executable} {limited.__file__} /bin/sleep 986 & echo on; wait"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert asking.stdout.readline() == "on\n"
    wait_until(lambda: sleeping("986"))
    os.kill(asking.pid, signal.SIGKILL)
    asking.wait()
    wait_until(lambda: not sleeping("986"))
