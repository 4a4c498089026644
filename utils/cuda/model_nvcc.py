"""`load_inline` of a model file for a card: g++ and nvcc, with the flags that PyTorch gives them.

Each compiler runs in a box. The library's own launches go through switches: a judge asks what comes
out when none of them does anything. A launch that finds a way around them is made in any case.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch.utils.cpp_extension import COMMON_NVCC_FLAGS

from utils.cuda import model_flags, toolchain
from utils.cuda.model_build import LIBRARIES, NAME, TORCH, includes, run, torch_folders
from utils.ground import files
from utils.ground.paths import cache

# What takes the place of each way to launch, by the linker's --wrap. CUDA 13's stubs call the
# first, CUDA 12's the second. Pointers, and sizes in blocks and threads by value, as in CUDA's.
_LAUNCHES = {
    "__cudaLaunchKernel": "P f, D g, D b, P a, Z m, P s",
    "cudaLaunchKernel": "P f, D g, D b, P a, Z m, P s",
    "cudaLaunchKernelExC": "P c, P f, P a",
    "cudaLaunchCooperativeKernel": "P f, D g, D b, P a, Z m, P s",
    "cuLaunchKernel": "P f, U x, U y, U z, U i, U j, U k, U m, P s, P a, P e",
    "cuLaunchKernelEx": "P c, P f, P a, P e",
}
_HEADER = "#include <torch/extension.h>"
_CUDA_HEADERS = "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>"


def library(
    cpp: Iterable[str],
    cuda: Iterable[str],
    functions: Iterable[str],
    module: str,
    bare: bool = False,
    cflags: Sequence[str] = (),
    cuda_flags: Sequence[str] = (),
    ldflags: Sequence[str] = (),
) -> Path:
    """The library of the texts that `load_inline` is given: a Python module with `functions`.
    From the cache where it is there. `bare`: the texts name all headers themselves.

    Raises CompileError, KernelTimeout and ToolError.
    """
    home, compiler = toolchain.cuda_home(), toolchain.cxx()
    bound = [f'm.def("{n}", torch::wrap_pybind_function({n}), "{n}");' for n in functions]
    binding = f"PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ {' '.join(bound)} }}" if bound else ""
    texts = {
        "main.cpp": "\n".join(["" if bare else _HEADER, *cpp, binding, ""]),
        "cuda.cu": "\n".join(["" if bare else _CUDA_HEADERS, *cuda, ""]),
        "launches.cpp": switches(),
    }
    others = _other_headers()
    folders = [f"-I{folder}" for folder in (*includes(), home / "include")]
    folders += [word for folder in others for word in ("-isystem", str(folder))]
    named = [*torch_folders(), home, toolchain.cudart_folder(home), *others]
    cflags = model_flags.allowed(cflags, "c", named)
    cuda_flags = model_flags.allowed(cuda_flags, "cuda", named)
    ldflags = model_flags.allowed(ldflags, "ld", named)
    common = [f"-DTORCH_EXTENSION_NAME={module}", "-DTORCH_API_INCLUDE_EXTENSION_H", *folders]
    host = [compiler, "-c", *common, "-fPIC", "-std=c++20", *cflags]
    device = [str(home / "bin/nvcc"), "-ccbin", compiler, "-c", *common, *COMMON_NVCC_FLAGS]
    device += ["--compiler-options", "-fPIC", *_architecture(cuda_flags), *cuda_flags]
    if not any(flag.startswith(("-std=", "--std=")) for flag in cuda_flags):
        device.append("-std=c++20")
    steps = [
        [*host, "main.cpp", "-o", "main.o"],
        [*device, "cuda.cu", "-o", "cuda.o"],
        [compiler, "-c", "-fPIC", "-O1", "launches.cpp", "-o", "launches.o"],
    ]
    link = [compiler, "-shared", "main.o", "cuda.o", "launches.o", "-o", NAME, *_linked(home)]
    link += ldflags
    said = json.dumps([texts, steps, link, torch.__version__])
    folder = cache() / f"model-{hashlib.sha256(said.encode()).hexdigest()[:16]}"
    if not (folder / NAME).exists():
        reads = [home, toolchain.cudart_folder(home), *torch_folders(), *others]
        with files.publish(folder) as work:
            work.mkdir()
            for name, text in texts.items():
                (work / name).write_text(text, errors="surrogateescape")
            with ThreadPoolExecutor() as pool:
                for done in [pool.submit(run, words, work, reads) for words in steps]:
                    done.result()
            run(link, work, reads)
    return folder / NAME


def wrapped() -> list[str]:
    """For the linker, before its libraries: each way to launch goes through its switch. The
    switches alone ask for what they stand for, and weakly: a library is kept for that, too."""
    return ["-Wl,--no-as-needed", *(f"-Wl,--wrap={name}" for name in _LAUNCHES)]


def switches() -> str:
    """C++ that `launches_off(1)` lets a library's launches do nothing by."""
    lines = ["using P = void*; using U = unsigned; using Z = unsigned long;"]
    lines += ["struct D { unsigned x, y, z; };", "static int off;", 'extern "C" {']
    lines.append("void launches_off(int to) { off = to; }")
    for name, parameters in _LAUNCHES.items():
        names = ", ".join(part.split()[-1] for part in parameters.split(","))
        lines.append(f"__attribute__((weak)) int __real_{name}({parameters});")
        lines.append(f"int __wrap_{name}({parameters}) {{")
        lines.append(f"    return off ? 0 : __real_{name}({names});")
        lines.append("}")
    return "\n".join([*lines, "}", ""])


def _other_headers() -> list[Path]:
    """Those of pip's CUDA: PyTorch's own ask for cuBLAS and cuSPARSE, and a toolkit may have been
    installed without."""
    return [path for site in sys.path for path in sorted(Path(site).glob("nvidia/cu*/include"))]


def _architecture(cuda_flags: Sequence[str]) -> list[str]:
    """The card's own, where a file names none."""
    if any("arch" in flag for flag in cuda_flags):
        return []
    number = toolchain.card_architecture().replace(".", "")
    return [f"-gencode=arch=compute_{number},code=sm_{number}"]


def _linked(home: Path) -> list[str]:
    names = [*LIBRARIES, "c10_cuda", "torch_cuda"]
    folders = [f"-L{TORCH / 'lib'}", f"-L{toolchain.cudart_folder(home)}"]
    return [*wrapped(), *folders, *(f"-l{name}" for name in names), "-lcudart"]
