"""`load_inline` of a model file without a GPU: its C++ and CUDA texts become one library of g++'s.

The CUDA text is translated for the emulator; PyTorch's own headers say what `torch::Tensor` is. The
compiler runs in a box, in which there is this text and no other.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from utils.cuda import model_flags, toolchain
from utils.cuda.messages import complaint
from utils.emulator import build, linked
from utils.emulator.translate import rewriter
from utils.ground import files
from utils.ground.errors import CompileError, KernelTimeout, ToolError
from utils.ground.paths import cache
from utils.process.child import GUEST
from utils.process.guest import limited

NAME = "model.so"
LIMIT = 300  # seconds for a step of a build
_SHIMS = Path(build.__file__).parent / "include_torch"
_DEVICE = Path(build.__file__).parent / "torch_device/device.cpp"
TORCH = Path(torch.__file__).parent
# What PyTorch's headers need besides a kernel's library; and its code for the CPU, which would read
# a card's memory.
_BINDING = re.compile(r"_?Py\w+|pthread_mutex_\w+|strdup|getenv|__libc_single_threaded|THP\w+")
_CPUS = re.compile(r"_ZNK?2at(6native|3cpu)\w+")
# How an access is not announced; in whatever way the word is put together.
_HIDDEN = re.compile(r"(__)?no_sanitize\w*|no_instrument_function|push_macro")
_NOTHING_HIDDEN = [
    f"-D{before}no_sanitize{rest}=unused"
    for before in ("", "__")
    for rest in ("(x)", "_thread", "_thread__", "__(x)")
]
LIBRARIES = ("torch", "torch_cpu", "torch_python", "c10")


def library(
    cpp: Iterable[str],
    cuda: Iterable[str],
    functions: Iterable[str],
    module: str,
    cflags: Sequence[str] = (),
    cuda_flags: Sequence[str] = (),
    ldflags: Sequence[str] = (),
    *,
    watched: bool = True,
) -> Path:
    """The library of the texts that `load_inline` is given: a Python module with `functions`.
    From the cache where it is there. Of the flags, macros alone say something here. `watched`: for
    tensors of the device below, each access announced; else for the CPU's, as a trusted text's.

    Raises CompileError, KernelTimeout and ToolError.
    """
    cpp, cuda = "\n".join(cpp), "\n".join(cuda)
    if hidden := _HIDDEN.search(cpp + cuda):
        raise CompileError(f"{hidden[0]} keeps the diagnosis from what a kernel does")
    text = _text(cpp, cuda, list(functions), module)
    words = [toolchain.cxx(), *_flags(watched), f"-DTORCH_EXTENSION_NAME={module}"]
    words += [*_macros(cflags, cuda_flags, ldflags), *_NOTHING_HIDDEN]
    words += ["-x", "c++", "main.cpp", "-shared", "-o", NAME, *_link()]
    parts = [text, words, torch.__version__, build.digest(), _shims()]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    folder = cache() / f"model-{digest}"
    if not (folder / NAME).exists():
        with files.publish(folder) as work:
            work.mkdir()
            (work / "main.cpp").write_text(text, errors="surrogateescape")
            runs_on = [build.include_dir(), build.runtime_library().parent, _SHIMS]
            run([*words, f"-fdebug-prefix-map={work}=."], work, [*runs_on, *torch_folders()])
            judge_symbols(work / NAME, f"{cpp}\n{cuda}")
    return folder / NAME


def judge_symbols(library: Path, text: str) -> None:
    """Pass a library that needs no more of its process than a model file does: no system calls,
    threads or files, nothing of the emulator's, and not PyTorch's code for the CPU, past which no
    operation is seen. Raises CompileError."""
    named = "cuda_sources"
    linked.judge(library, source=text, filename=named, besides=_BINDING, refused=_CPUS)


def _text(cpp: str, cuda: str, functions: list[str], module: str) -> str:
    # One translation unit for what load_inline makes two of: PyTorch's headers are read once.
    bound = [f'm.def("{n}", torch::wrap_pybind_function({n}), "");' for n in functions]
    binding = f"PYBIND11_MODULE({module}, m) {{ {' '.join(bound)} }}" if functions else ""
    return "\n".join(
        [
            "#include <torch/extension.h>",
            "#include <cuda_runtime.h>",
            '#line 1 "cpp_sources"',
            cpp,
            rewriter.rewrite(cuda, filename="cuda_sources").text,
            '#line 1 "binding"',
            binding,
            "",
        ]
    )


def _flags(watched: bool) -> list[str]:
    flags = [*build.compile_flags(watched), "-std=c++20", "-fdiagnostics-color=never"]
    flags += [] if watched else ["-g0", "-DEMU_TENSORS_OF_THE_CPU"]
    # Without limits, inlining what PyTorch's headers have takes minutes and 4 GB.
    flags = [flag for flag in flags if "inline" not in flag and "large" not in flag]
    return [*flags, *(f"-I{folder}" for folder in (_SHIMS, *includes()))]


def device() -> Path:
    """The library by which PyTorch has a device "cuda" where there is no card; it must be loaded
    before PyTorch is. Raises ToolError."""
    words = ["-std=c++20", "-O1", "-fPIC", "-shared", "-w", *(f"-I{f}" for f in includes())]
    link = [f"-L{TORCH / 'lib'}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{TORCH / 'lib'}"]
    link += build.runtime_link()
    parts = [_DEVICE.read_text(), words, torch.__version__, build.digest()]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    path = cache() / f"device-{digest}" / "device.so"
    with files.alone(path):
        if not path.exists():
            with files.publish(path) as made:
                call = [toolchain.cxx(), *words, str(_DEVICE), "-o", str(made), *link]
                done = subprocess.run(call, capture_output=True, text=True)
                if done.returncode:
                    raise ToolError(f"the device does not compile here:\n{done.stderr[-3000:]}")
    return path


def _macros(*flags: Sequence[str]) -> list[str]:
    kinds = zip(("c", "cuda", "ld"), flags, strict=True)
    words = [w for of, values in kinds for w in model_flags.allowed(values, of, torch_folders())]
    return [word for word in words if re.match("-[DU]", word)]


def includes() -> list[Path]:
    """Where the headers of PyTorch and Python are."""
    own = TORCH / "include"
    return [own, own / "torch/csrc/api/include", Path(sysconfig.get_paths()["include"])]


def torch_folders() -> list[Path]:
    """What of PyTorch and Python a build reads."""
    return [*includes(), TORCH / "lib"]


def _link() -> list[str]:
    folder = TORCH / "lib"
    return [f"-L{folder}", *(f"-l{name}" for name in LIBRARIES), *build.link_flags()]


def _shims() -> str:
    return "".join(p.read_text() for p in sorted(_SHIMS.rglob("*.h")))


def run(words: Sequence[str], work: Path, readable: Iterable[Path]) -> None:
    """Run a compiler in a folder, in a box in which there is this folder and what it reads, with
    limits on time, memory and what it writes.

    Raises CompileError, KernelTimeout and ToolError.
    """
    boxed = toolchain.boxed(words, work, readable)
    work.chmod(0o777 if os.geteuid() == 0 else 0o755)
    limits = [sys.executable, "-I", "-S", str(GUEST / "limited.py"), str(LIMIT)]
    done = subprocess.run([*limits, *boxed], capture_output=True, text=True, errors="replace")
    if done.returncode and limited.LATE.format(LIMIT) in done.stdout:
        raise KernelTimeout(limited.LATE.format(LIMIT))
    if done.returncode:
        said = complaint(done.stdout + done.stderr, "cuda_sources", [work], "")
        raise CompileError(said[:4000])
