"""Programs that use tensor cores, copies of tiles and barriers that count run as on a card: their
sums are right, and nothing is wrong with how they wait."""

import json
import shutil
import subprocess

import pytest

from utils.emulator.programs import Watch, build_program, diagnose_program, run_program
from utils.paths import ROOT

FOLDER = ROOT / "tests/tensor_cores"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.cu"))
HAZARDS = sorted(
    path.relative_to(ROOT)
    for path in (ROOT / "tests/hazards").rglob("*.cu")
    if "kernels/include" in path.read_text()
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_sums_are_right(name, capfd):
    assert run_program(build_program(FOLDER / f"{name}.cu")) == 0
    assert capfd.readouterr().out == f"{name}: 0 wrong\n"


@pytest.mark.parametrize("name", PROGRAMS)
def test_there_is_no_hazard_in_any_order(name, tmp_path, capfd):
    path = tmp_path / "run.json"
    program = build_program(FOLDER / f"{name}.cu", watch=Watch())
    for order in (0, 1):
        assert diagnose_program(program, Watch(json=path, order=order)) == 0
        run = json.loads(path.read_text())
        assert run["hazards"] == [] and run["launches"]
        assert capfd.readouterr().out == f"{name}: 0 wrong\n"


def test_fragments_of_swizzled_rows_meet_all_banks(tmp_path):
    path = tmp_path / "run.json"
    diagnose_program(build_program(FOLDER / "warps.cu", watch=Watch()), Watch(json=path))
    for launch in json.loads(path.read_text())["launches"]:
        assert launch["shared_load_bank_conflicts"] == 0 < launch["shared_load_requests"]


@pytest.mark.parametrize(
    ("name", "products"),  # in whole tiles: of halves, bfloat16 and floats
    [
        ("warps", [128 * 128 * 224, 128 * 128 * 128, 128 * 128 * 112]),
        ("warpgroups", [256 * 256 * 256, 128 * 256 * 320, 256 * 128 * 128]),
    ],
)
def test_what_tensor_cores_multiply_and_add_is_counted(name, products, tmp_path):
    path = tmp_path / "run.json"
    diagnose_program(build_program(FOLDER / f"{name}.cu", watch=Watch()), Watch(json=path))
    launches = json.loads(path.read_text())["launches"]
    counted = [launch["tensor_operations"] for launch in launches]
    assert counted == [2 * count for count in products]


@pytest.mark.nvcc
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on this machine")
@pytest.mark.parametrize(
    "path", [FOLDER.relative_to(ROOT) / f"{name}.cu" for name in PROGRAMS] + HAZARDS, ids=str
)
def test_nvcc_compiles_the_same_file(path, tmp_path):
    command = ["nvcc", "-std=c++17", "-arch=sm_90a", "-ptx", "-Xcicc", "-O1", "-o"]
    done = subprocess.run([*command, tmp_path / "x.ptx", ROOT / path], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
