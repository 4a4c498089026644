"""The compilers of this machine: which they are, and what to install where there is none."""

import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote

import torch

from utils.emulator.build import compiler, include_dir, runtime_library
from utils.ground import files, settings
from utils.ground.errors import ToolError
from utils.ground.paths import cache
from utils.process import sandbox
from utils.process.child import GUEST


def cxx() -> str:
    """Path of the C++ compiler, as the emulator finds it. Raises ToolError."""
    return compiler()


def ninja() -> str:
    """Path of ninja. pip puts it beside Python, which need not be on the PATH."""
    path = shutil.which("ninja", path=_path()) or shutil.which(
        "ninja", path=sysconfig.get_path("scripts")
    )
    if path is None:
        raise ToolError("ninja was not found. Install it: `pip install ninja`")
    return path


_LIMITED = "limited"  # the folder of a ninja that starts compilers with limits


def _path() -> str:
    """The PATH without what `prepare` puts there."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if Path(folder).name != _LIMITED)


def _limited_ninja(backend: str) -> Path:
    """A program of that name, which PyTorch finds before the other; see limited.py."""
    real = ninja()
    words = limited([real], _HERE, backend)
    started = " ".join('"$PWD"' if word == _HERE else quote(word) for word in words)
    text = f'#!/bin/sh\n[ "$1" = --version ] && exec {quote(real)} "$@"\nexec {started} "$@"\n'
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = cache() / f"ninja-{digest}" / _LIMITED / "ninja"
    if not path.exists():
        with files.publish(path) as made:
            made.write_text(text)
            made.chmod(0o755)
    return path


_HERE = "/THE-FOLDER-OF-THE-BUILD"


def limited(words: list[str], folder: str, backend: str = "emulator") -> list[str]:
    """How what builds in `folder` is started: with limits; see limited.py. And in a box, where that
    is asked for, in which there is this build alone, and what every build takes from the cache."""
    runs = [sys.executable, "-I", "-S", str(GUEST / "limited.py")]
    if not settings.boxed():
        return [*runs, *words]
    reads = [Path(words[0]), include_dir(), runtime_library().parent, without_torch()]
    return [*runs, *boxed(words, folder, reads + [cuda_home()] * (backend == "cuda"))]


def boxed(words: Sequence[str], folder: str | Path, readable: Iterable[Path]) -> list[str]:
    """How what builds in `folder` is started in a box, in which there is that, what it may read,
    and the compiler. Raises ToolError."""
    return sandbox.command(
        words,
        readable=[*readable, *compiler_folders()],
        writable=[folder],
        environment={"PATH": f"{Path(cxx()).parent}:/usr/local/bin:/usr/bin:/bin"},
        folder=folder,
    )


def compiler_folders() -> list[Path]:
    """The compiler, and where it was installed, if that is a folder of its own, as /opt/gcc is."""
    program = Path(cxx())
    homes = {path.parent.parent for path in (program, program.resolve())}
    parts = "libexec/gcc", "lib/gcc"
    return [program, *(home for home in homes if any((home / part).is_dir() for part in parts))]


def without_torch() -> Path:
    """A folder of empty archives named as PyTorch's libraries are, which keep those away."""
    folder = cache() / "no-torch"
    if not folder.exists():
        with files.publish(folder) as made:
            made.mkdir()
            for name in ("c10", "c10_cuda", "torch", "torch_cpu", "torch_cuda", "torch_python"):
                (made / f"lib{name}.a").write_bytes(b"!<arch>\n")
    return folder


def cuda_home() -> Path:
    """The CUDA toolkit: `CUDA_HOME`, the one of the nvcc on the PATH, or pip's.

    Raises ToolError saying what to install.
    """
    named = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if named and (Path(named) / "bin" / "nvcc").exists():
        return Path(named)
    if nvcc := shutil.which("nvcc"):
        return _toolkit_of(nvcc)
    for site in sys.path:
        for home in sorted(Path(site).glob("nvidia/cu[0-9]*"), reverse=True):
            if (home / "bin" / "nvcc").exists():
                return home
    raise ToolError(
        "PyTorch sees a GPU, but nvcc was not found. Install it: "
        "`pip install 'cuda-toolkit[nvcc,cudart,cccl]'` at the CUDA version of PyTorch, or "
        "`conda install -c conda-forge cuda-nvcc cuda-cudart-dev`, or NVIDIA's toolkit. "
        "Set WORKBOOK_BACKEND=emulator to run on the CPU instead"
    )


def nvdisasm() -> str | None:
    """Path of the toolkit's disassembler, of the one on the PATH, or of pip's; None without one."""
    try:
        folders = [cuda_home() / "bin"]
    except ToolError:
        folders = []
    folders += map(Path, _path().split(os.pathsep))
    folders += [home / "bin" for site in sys.path for home in Path(site).glob("nvidia/cu[0-9]*")]
    return shutil.which("nvdisasm", path=os.pathsep.join(map(str, folders)))


@functools.cache
def _toolkit_of(nvcc: str) -> Path:
    """The toolkit that an nvcc belongs to; the one on the PATH may be a script that calls it."""
    dry_run = subprocess.run([nvcc, "--dryrun", "x.cu"], capture_output=True, text=True).stderr
    top = re.search(r"^#\$ TOP=(.+)$", dry_run, re.MULTILINE)
    return Path(top[1]).resolve() if top else Path(nvcc).resolve().parents[1]


def cudart_folder(home: Path) -> Path:
    """A folder that holds `libcudart.so`, as the linker wants it: pip ships `libcudart.so.13`."""
    folders = [home / "lib64", home / "lib", *home.glob("targets/*/lib")]
    for folder in folders:
        if (folder / "libcudart.so").exists():
            return folder
    for folder in folders:
        for library in folder.glob("libcudart.so.*"):
            link = cache() / "cudart" / library.name / "libcudart.so"
            if not link.exists():
                with files.publish(link) as made:
                    made.symlink_to(library)
            return link.parent
    raise ToolError(
        f"{home} has no libcudart.so. Install `cuda-toolkit[cudart]` or cuda-cudart-dev"
    )


def prepare(backend: str) -> None:
    """Set the environment that torch.utils.cpp_extension reads, before it is imported.

    The settings stay: `load_inline` called by a notebook itself gains from them too.
    """
    limited = _limited_ninja(backend)
    if shutil.which("ninja") != str(limited):
        os.environ["PATH"] = os.pathsep.join(filter(None, (str(limited.parent), _path())))
    os.environ["CXX"] = cxx()
    if backend == "cuda":
        os.environ["CUDA_HOME"] = str(cuda_home())
        if not os.environ.get("TORCH_CUDA_ARCH_LIST"):
            os.environ["TORCH_CUDA_ARCH_LIST"] = card_architecture()


def card_has(architecture: str) -> bool:
    """Whether this machine's card has the instructions of one, such as `sm_90a`; "": any has."""
    return not architecture or architecture == "sm_" + card_architecture().replace(".", "")


def card_architecture() -> str:
    """The card's own, such as `8.6`; from Hopper on with what that card alone has: `9.0a`."""
    major, minor = torch.cuda.get_device_capability()
    return f"{major}.{minor}" + ("a" if major >= 9 else "")
