"""The compilers are found where pip, conda and NVIDIA put them."""

from pathlib import Path

import pytest

from utils.cuda import toolchain
from utils.ground.errors import ToolError


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    """A machine with nothing on it."""
    for name in ("CXX", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(toolchain.sys, "path", [str(tmp_path / "site-packages")])
    monkeypatch.setattr(toolchain, "cache", lambda: tmp_path / "cache")


def program(path, text="true"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_without_any_compiler_the_error_says_what_to_install():
    with pytest.raises(ToolError, match="apt install g"):
        toolchain.cxx()
    with pytest.raises(ToolError, match="cuda-toolkit.*conda install"):
        toolchain.cuda_home()


def test_the_compiler_that_CXX_names_comes_first(tmp_path, monkeypatch):
    other = program(tmp_path / "bin" / "c++")
    assert toolchain.cxx() == str(other)
    gcc = program(tmp_path / "bin" / "g++")
    assert toolchain.cxx() == str(gcc)
    mine = program(tmp_path / "mine")
    monkeypatch.setenv("CXX", str(mine))
    assert toolchain.cxx() == str(mine)


def test_clang_is_passed_over(tmp_path, monkeypatch):
    clang = program(tmp_path / "bin" / "g++", "echo '#define __clang__ 1'")
    with pytest.raises(ToolError, match="g[+][+]' is clang.*needs GCC.*apt install g"):
        toolchain.cxx()
    gcc = program(tmp_path / "bin" / "c++", "echo '#define __GNUC__ 12'")
    assert toolchain.cxx() == str(gcc)
    monkeypatch.setenv("CXX", str(clang))
    with pytest.raises(ToolError, match="is clang"):
        toolchain.cxx()


def test_a_script_that_calls_nvcc_leads_to_the_toolkit(tmp_path):
    home = (tmp_path / "cuda").resolve()
    real = program(home / "bin" / "nvcc", f"echo '#$ TOP={home}/bin/..' >&2")
    program(tmp_path / "bin" / "nvcc", f'exec {real} "$@"')
    assert toolchain.cuda_home() == home


def test_CUDA_HOME_comes_first_where_it_holds_nvcc(tmp_path, monkeypatch):
    wheel = program(tmp_path / "site-packages/nvidia/cu13/bin/nvcc").parents[1]
    home = program(tmp_path / "cuda" / "bin" / "nvcc").parents[1]
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "nowhere"))
    assert toolchain.cuda_home() == wheel
    monkeypatch.setenv("CUDA_HOME", str(home))
    assert toolchain.cuda_home() == home


@pytest.mark.parametrize("folder", ["lib64", "lib", "targets/x86_64-linux/lib"])
def test_libcudart_gets_the_name_that_the_linker_wants(tmp_path, folder):
    library = tmp_path / "cuda" / folder / "libcudart.so.13"
    library.parent.mkdir(parents=True)
    library.write_text("")
    linked = toolchain.cudart_folder(tmp_path / "cuda")
    assert linked != library.parent
    assert (linked / "libcudart.so").resolve() == library
    assert toolchain.cudart_folder(tmp_path / "cuda") == linked
    (library.parent / "libcudart.so").write_text("")
    assert toolchain.cudart_folder(tmp_path / "cuda") == library.parent


def test_a_toolkit_without_libcudart_is_an_error(tmp_path):
    with pytest.raises(ToolError, match="cudart"):
        toolchain.cudart_folder(tmp_path)


def test_ninja_is_found_beside_python_and_put_on_the_path(tmp_path, monkeypatch):
    program(tmp_path / "bin" / "g++")
    with pytest.raises(ToolError, match="pip install ninja"):
        monkeypatch.setattr(toolchain.sysconfig, "get_path", lambda _: str(tmp_path / "nowhere"))
        toolchain.ninja()
    ninja = program(tmp_path / "venv" / "ninja")
    monkeypatch.setattr(toolchain.sysconfig, "get_path", lambda _: str(ninja.parent))
    monkeypatch.setenv("CXX", "")  # so that what prepare sets is taken back after the test
    toolchain.prepare("emulator")
    first = toolchain.shutil.which("ninja")
    assert first != str(ninja) and str(ninja) in Path(first).read_text()
    assert toolchain.ninja() == str(ninja)  # not the one that prepare put before it


@pytest.mark.parametrize(("backend", "device"), [("emulator", "cpu"), ("cuda", "cuda")])
def test_tensors_live_where_the_backend_wants_them(monkeypatch, backend, device):
    monkeypatch.setenv("WORKBOOK_BACKEND", backend)
    import utils

    assert utils.device == device


@pytest.mark.parametrize(("capability", "has"), [((8, 6), False), ((9, 0), True), ((10, 0), False)])
def test_instructions_of_one_architecture_are_on_its_cards_alone(monkeypatch, capability, has):
    monkeypatch.setattr(toolchain.torch.cuda, "get_device_capability", lambda: capability)
    assert toolchain.card_has("sm_90a") == has
    assert toolchain.card_has("")
