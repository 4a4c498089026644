"""Programs that use tensor cores, copies of tiles and barriers that count run as on a card: their
sums are right, and nothing is wrong with how they wait."""

import json
import shutil
import subprocess

import pytest
import torch

from utils.cuda.compiler import compile_cuda
from utils.emulator.programs import Watch, build_program, diagnose_program, run_program
from utils.ground.paths import ROOT
from utils.watch.diagnosis import diagnose_call

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


MIXED = """\
#include "tensor_cores.cuh"
__global__ void mixed_kernel(float* halves, float* floats, int times) {
    unsigned a[4] = {ONE, ONE, ONE, ONE}, b[2] = {ONE, ONE};
    float x[4] = {1, 1, 1, 1}, y[2] = {1, 1}, d[4] = {}, e[4] = {};
    for (int i = 0; i < times; i++) {
        mma_f16(d, a, b);
        mma_tf32(e, x, y);
        mma_f16(d, a, b);
    }
    for (int i = 0; i < 4; i++) {
        halves[4 * threadIdx.x + i] = d[i];
        floats[4 * threadIdx.x + i] = e[i];
    }
}
void mixed(float* halves, float* floats, int times) {
    mixed_kernel<<<1, 32>>>(halves, floats, times);
}
""".replace("ONE", "0x3c003c00u")  # two halves


@pytest.mark.parametrize("times", [1, 5, 16, 23])
def test_products_of_two_types_in_a_row(times):
    """A warp meets for many products at once, but only for those of one type."""
    kernel = compile_cuda(MIXED, "mixed", backend="emulator")
    arguments = {"halves": torch.zeros(128), "floats": torch.zeros(128), "times": times}
    seen = diagnose_call(kernel, arguments)
    for after in (kernel.isolated(arguments).after, seen.after):
        assert (after["halves"] == 2 * 16 * times).all() and (after["floats"] == 8 * times).all()
    assert seen.hazards == ()


SPLIT = """
#include "hopper_epilogue.cuh"
void split(const float* x, const float* W, const float* b, float* out, int M, int N, int K) {
    linear_bias(x, W, b, out, M, N, K, 3);
}
"""


@pytest.mark.parametrize("exponents", [(-64, -64), (-120, 100), (60, -100), (58, 58)])
def test_scales_of_halves_whose_product_no_float_holds(exponents):
    """What is split is as exact as floats wherever these hold the result."""
    kernel = compile_cuda(SPLIT, "split", backend="emulator")
    x, W = (torch.randn(9, 2048) * 2.0**e for e in exponents)
    arguments = {"x": x, "W": W, "b": torch.zeros(9), "out": torch.zeros(9, 9), "M": 9, "N": 9}
    out = kernel.isolated({**arguments, "K": 2048}).after["out"].double()
    expected = x.double() @ W.double().T
    assert (out - expected).norm() <= 2e-6 * expected.norm()


HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)


@pytest.mark.skipif(not HOPPER, reason="needs a GPU that has sm_90a")
def test_columns_are_not_overtaken_by_those_of_the_next_tile():
    """Given back before their loads had returned, they were: in 25 of 4,000 calls on an H200."""
    kernel = compile_cuda(SPLIT, "split", backend="cuda")
    kernel.trusted = True  # called in this process
    M, N, K = 1024, 8192, 2048
    x, W, b = (torch.randn(*shape, device="cuda") for shape in ((M, K), (N, K), (N,)))
    out = torch.empty(M, N, device="cuda")

    def called():
        out.fill_(float("nan"))
        kernel(x=x, W=W, b=b, out=out, M=M, N=N, K=K)
        return out

    first = called().clone()
    assert sum(bool((called() != first).any()) for _ in range(5000)) == 0


@pytest.mark.nvcc
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on this machine")
@pytest.mark.parametrize(
    "path", [FOLDER.relative_to(ROOT) / f"{name}.cu" for name in PROGRAMS] + HAZARDS, ids=str
)
def test_nvcc_compiles_the_same_file(path, tmp_path):
    command = ["nvcc", "-std=c++17", "-arch=sm_90a", "-ptx", "-Xcicc", "-O1", "-o"]
    done = subprocess.run([*command, tmp_path / "x.ptx", ROOT / path], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
