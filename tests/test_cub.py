"""CUB, a peer of two kernels: nvcc finds its headers and compiles what is timed."""

import shutil
import subprocess

import pytest

from utils.cuda import cub
from utils.ground.paths import ROOT

INCLUDE = f"-I{ROOT / 'kernels/include'}"


@pytest.mark.nvcc
def test_nvcc_compiles_cub_s_operations(tmp_path):
    if not shutil.which("nvcc"):
        pytest.skip("there is no nvcc here")
    (tmp_path / "cub.cu").write_text(cub._TEXT)
    command = ["nvcc", "-std=c++17", "-ptx", "-arch=compute_80", INCLUDE, "-o", tmp_path / "ptx"]
    done = subprocess.run([*command, tmp_path / "cub.cu"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "DeviceScan" in (tmp_path / "ptx").read_text()
