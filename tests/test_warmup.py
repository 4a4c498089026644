"""`%load_ext utils` makes ready what the first cell needs, and leaves its errors to that cell."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from utils.cuda import warmup
from utils.cuda.compiler import compile_cuda
from utils.emulator import build
from utils.ground.errors import ToolError
from utils.ground.paths import ROOT


def test_after_a_while_the_first_cell_finds_everything_there(tmp_path):
    compiler = tmp_path / "g++"  # compiles nothing, but leaves what is asked for
    compiler.write_text(
        '#!/bin/sh\nfor word; do test "$last" = -o && echo > "$word"; last=$word; done\n'
    )
    compiler.chmod(0o755)
    program = """
import sys
from utils.cuda import warmup
from utils.emulator import build
for thread in warmup.start():
    thread.join()
print("torch.utils.cpp_extension" in sys.modules)
made = [build.LIBRARY in str(build.runtime_library())]
made += [any(build.header_folder(trace).glob("*.gch")) for trace in (False, True)]
build.subprocess.run = None  # nothing is left to build
print(made, build.runtime_library().exists())
"""
    environment = os.environ | {"WORKBOOK_CACHE": str(tmp_path), "WORKBOOK_BACKEND": "emulator"}
    environment |= {"CXX": str(compiler)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("True\n[True, True, True] True\n", "")


def test_two_processes_build_it_once(tmp_path):
    """JupyterLab makes it ready, and the first notebook wants it at the same time."""
    program = """
import time
from utils.emulator import build
build._build_runtime = lambda path: (print("built"), time.sleep(1), path.touch())
build.runtime_library()
"""
    environment = os.environ | {"WORKBOOK_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", program]
    pipes = {"stdout": subprocess.PIPE, "text": True}
    both = [subprocess.Popen(command, cwd=ROOT, env=environment, **pipes) for _ in range(2)]
    assert sorted(process.communicate()[0] for process in both) == ["", "built\n"]


@pytest.mark.parametrize("trace", [False, True])
def test_a_build_takes_the_precompiled_header(monkeypatch, trace):
    build.precompile_headers()
    said, run = [], subprocess.run

    def recorded(*args, **kwargs):
        done = run(*args, **kwargs)
        said.append(str(done.stderr))
        return done

    build.digest()  # is not to know of the flag: -H names the headers, "!" before one in use
    monkeypatch.setattr(build, "_COMMON", [*build._COMMON, "-H"])
    monkeypatch.setattr(subprocess, "run", recorded)
    text = f"// {time.time_ns()}\nvoid nothing(int n) {{}}"
    compile_cuda(text, "nothing", backend="emulator", instrumented=trace)
    assert f"! {build.header_folder(trace)}/cuda_runtime.h.gch" in "".join(said)


@pytest.mark.parametrize("header", ["cuda.h", "driver_types.h", "cuda_fp16.h"])
def test_headers_that_rest_on_the_precompiled_one_can_be_included(header):
    build.precompile_headers()
    text = f"// {time.time_ns()}\n#include <{header}>\nvoid nothing(int n) {{}}"
    compile_cuda(text, "nothing", backend="emulator")


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """No runtime library is built, and none is remembered."""
    monkeypatch.setenv("WORKBOOK_CACHE", str(tmp_path))
    monkeypatch.setenv("WORKBOOK_BACKEND", "emulator")
    build.runtime_library.cache_clear()
    yield
    build.runtime_library.cache_clear()


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("backend", ["emulator", "abacus"])  # the latter is refused at once
def test_an_error_waits_for_the_cell_that_meets_it(fresh, monkeypatch, backend):
    monkeypatch.setattr(build.subprocess, "run", _refuse)
    monkeypatch.setenv("WORKBOOK_BACKEND", backend)
    for thread in warmup.start():
        thread.join()
    monkeypatch.setenv("WORKBOOK_BACKEND", "emulator")
    with pytest.raises(ToolError, match="does not compile here:\nno room"):
        compile_cuda("void nothing(int n) {}", "nothing")


@pytest.mark.parametrize("works", [True, False])
def test_the_quick_linker_is_used_where_it_works(fresh, monkeypatch, works):
    """It is there on machines whose libraries only the compiler's own linker finds."""

    def call(arguments):
        if build.GOLD in arguments and not works:
            raise ToolError("ld.gold: error: cannot open libstdc++.so")
        Path(arguments[arguments.index("-o") + 1]).touch()

    monkeypatch.setattr(build, "_call", call)
    assert (build.GOLD in build.link_flags()) == works


def _refuse(command, **_):
    return subprocess.CompletedProcess(command, 1, "", "no room")


def test_a_cell_that_comes_early_waits_for_the_build_under_way(fresh, monkeypatch):
    builds = []

    def slowly(path):
        builds.append(path)
        time.sleep(0.2)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    monkeypatch.setattr(build, "_build_runtime", slowly)
    threads = [threading.Thread(target=build.runtime_library) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(builds) == 1
