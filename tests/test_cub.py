"""CUB, a peer of two kernels: nvcc finds its headers and compiles what is timed."""

import shutil
import subprocess
from types import SimpleNamespace

import pytest

from utils.cuda import cub
from utils.ground.paths import ROOT
from utils.process import card

INCLUDE = f"-I{ROOT / 'kernels/include'}"


def test_while_it_compiles_others_have_the_card(monkeypatch, tmp_path):
    monkeypatch.setattr(card, "_path", lambda what: tmp_path / what)
    held = []

    def compile_cuda(*_, **__):
        held.append(card._lock)
        return SimpleNamespace()

    monkeypatch.setattr(cub, "compile_cuda", compile_cuda)
    with card.together():
        assert cub._launcher.__wrapped__("cub_histogram").trusted
        assert held == [0] and card._lock == card.TOGETHER


@pytest.mark.nvcc
def test_nvcc_compiles_cub_s_operations(tmp_path):
    if not shutil.which("nvcc"):
        pytest.skip("there is no nvcc here")
    (tmp_path / "cub.cu").write_text(cub._TEXT)
    command = ["nvcc", "-std=c++17", "-ptx", "-arch=compute_80", INCLUDE, "-o", tmp_path / "ptx"]
    done = subprocess.run([*command, tmp_path / "cub.cu"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "DeviceScan" in (tmp_path / "ptx").read_text()
