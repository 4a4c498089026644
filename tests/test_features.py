"""Every feature of CUDA C++ in tests/features behaves on the emulator as its program says.

The programs hold the answers that a GPU gives; `tests/features/run_on_gpu.sh` asks one.
"""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.nvcc import in_one_file

from utils.emulator.programs import build_program
from utils.ground.paths import ROOT

FOLDER = ROOT / "tests/features"
FEATURES = sorted(path.stem for path in FOLDER.glob("*.cu"))
TARGETS = [f"-gencode=arch=compute_{sm},code=sm_{sm}" for sm in ("75", "90a")]  # the ends


@pytest.fixture(scope="module")
def at_once():
    """Starts one call for each item, two at a time; the first test waits for the first only."""
    with ThreadPoolExecutor(2) as pool:
        yield lambda call, items: {item: pool.submit(call, item) for item in items}
        pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def programs(at_once, request):
    """The executable of each program that the chosen tests ask for, as a future."""
    tests = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    names = sorted({test.get("name") for test in tests} & set(FEATURES))
    return at_once(lambda name: build_program(FOLDER / f"{name}.cu"), names)


def run(program, **variables) -> subprocess.CompletedProcess:
    environment = os.environ | {"EMU_PROGRAM": "30"} | variables
    return subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("name", FEATURES)
def test_the_emulator_agrees(programs, name):
    done = run(programs[name].result())
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert ", 0 wrong\n" in done.stdout


@pytest.mark.parametrize("cores", ["1", "4"])
@pytest.mark.parametrize("name", ["atomics_float", "atomics_integer", "indices", "shared_memory"])
def test_the_number_of_cores_changes_nothing(programs, name, cores):
    done = run(programs[name].result(), EMU_THREADS=cores)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_a_wrong_answer_is_seen_on_host_and_device(tmp_path):
    source = tmp_path / "wrong.cu"
    source.write_text(
        '#include "expect.cuh"\n'
        "__global__ void k() { EXPECT(__popc(hidden(7u)), threadIdx.x); }\n"
        "int main() {\n"
        "    k<<<1, 4>>>(); LAUNCHED(); EXPECT_NEAR(hidden(NAN), 1.0, 1e9);\n"
        "    return finish();\n"
        "}\n"
    )
    done = run(build_program(source, includes=[str(FOLDER)]))
    assert done.returncode == 1
    assert "wrong.cu:2: __popc(hidden(7u)) is 3, not 0\n" in done.stdout
    assert "wrong.cu:4: hidden(NAN) is nan, not 1\n" in done.stdout
    assert " cases, 4 wrong\n" in done.stdout


def nvcc() -> str | None:
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which("nvcc") or shutil.which("nvcc", path=f"{home}/bin")


@pytest.fixture(scope="module")
def said_by_nvcc(tmp_path_factory) -> str:
    """What nvcc has to say of all of them in one compilation; "" where it is content."""
    folder = tmp_path_factory.mktemp("nvcc")
    texts = {f"{name}.cu": (FOLDER / f"{name}.cu").read_text() for name in FEATURES}
    source = in_one_file(texts, folder, "#define main program")
    quick = ["-Xcicc", "-O1", "-Xptxas", "-O0"]  # nothing runs
    command = [nvcc(), "-std=c++17", *quick, *TARGETS, f"-I{FOLDER}"]
    command += ["-c", source, "-o", folder / "all.o"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


@pytest.mark.nvcc
@pytest.mark.skipif(nvcc() is None, reason="no nvcc on this machine")
@pytest.mark.parametrize("name", FEATURES)
def test_nvcc_compiles_the_same_file(said_by_nvcc, name):
    known = [feature for feature in FEATURES if f"{feature}.cu" in said_by_nvcc]
    about = name in known or (said_by_nvcc and not known)  # what is of no file is of all
    assert not about, said_by_nvcc[-3000:]
