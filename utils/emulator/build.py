"""How translated CUDA text is compiled: the compiler, its flags, the runtime, parsed headers.

The runtime is compiled once per machine, on first use, and kept in the cache. So is
`cuda_runtime.h`, parsed once: reading it is most of the time of a small kernel's build. g++ takes
`cuda_runtime.h.gch` from a folder on its search path if it fits the flags, and passes it over if
not. So a build never depends on it.
"""

import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from utils.ground import files
from utils.ground.errors import ToolError
from utils.ground.paths import cache

_HERE = Path(__file__).parent
LIBRARY = "workbook_emulator"

# -fno-gnu-unique: statics of templates must not be shared between two versions of a cell.
# __assert_fail: a kernel's failed assertion ends the launch, as on a GPU, not the process.
# -fno-plt: a kernel that is stopped in a call is then at a line, not in a stub that has none.
_COMMON = ["-std=c++17", "-fPIC", "-fno-plt", "-fno-gnu-unique", "-fno-strict-aliasing", "-w"]
_COMMON += ["-D__assert_fail=__emu_assert_fail"]
# Some releases of PyTorch put this on the command line, others do not. The standard library's
# headers read it, and a precompiled one fits no other value, nor none.
_COMMON += ["-D_GLIBCXX_USE_CXX11_ABI=1"]
# A kernel calls the __device__ functions of its own library: they may be inlined.
_COMMON += ["-fno-semantic-interposition"]
# A large local array must not step over the guard page into another thread's stack.
_COMMON += ["-fstack-clash-protection"]
# -gdwarf-4: addr2line of binutils 2.40 names the wrong file for #line in DWARF 5.
_COMMON += ["-gdwarf-4"]
# g++ 12 loses the mask of `some ? __uint_as_float(__float_as_uint(x) & 0xffff0000) : x`, by which a
# float becomes a bfloat16: it writes 0 to half of a register that nobody reads. Told that writes to
# halves are slow, it makes none.
_COMMON += ["-mtune-ctrl=partial_reg_stall"] if platform.machine() in ("x86_64", "AMD64") else []
# -O2 would take half as long again to compile, and what comes out runs no faster here.
PLAIN = ["-O1", "-g1"]
# The compiler calls __tsan_read4(address) and its kin before every access; the runtime answers.
INSTRUMENTED = [
    "-O1",
    "-g1",
    "-gstatement-frontiers",
    "-fsanitize=thread",
    "--param",
    "tsan-instrument-func-entry-exit=0",
]
# No jump threading: it would make one store of a line into several.
INSTRUMENTED += ["-fno-thread-jumps", "-Wno-tsan", "-DEMU_INSTRUMENTED"]
# __device__ functions of any length are inlined, as nvcc does: the compiler announces no access
# that is part of a call, as in `pair = first(pair, pairs[lane])` with a struct passed by value.
INSTRUMENTED += ["-finline-functions", "-finline-small-functions"]
_NO_LIMIT = """max-inline-insns-auto max-inline-insns-single large-function-insns
    large-function-growth inline-unit-growth large-stack-frame large-stack-frame-growth"""
INSTRUMENTED += [f"--param={limit}=1000000" for limit in _NO_LIMIT.split()]
INSTRUMENTED += ["--param=inline-min-speedup=0"]
# But none into itself, which nvcc does not do either: each call counts in recursion.cpp.
INSTRUMENTED += [f"--param=max-inline-insns-recursive{auto}=0" for auto in ("", "-auto")]
GOLD = "-fuse-ld=gold"  # takes half the time
_LINKED = "linked-by-gold"  # a file beside the runtime: gold has linked that here
# And a call where each basic block begins: so the work of a thread is known.
INSTRUMENTED += ["-fsanitize-coverage=trace-pc"]
# Where instructions are not counted by these, loops are left as they are once the accesses are
# found: a tenth of the time.
NOT_COUNTED = ["-fno-tree-loop-optimize"]
_RUNTIME = "-std=c++17 -O2 -g1 -fno-semantic-interposition -fPIC -pthread -w".split()


def include_dir() -> Path:
    """Folder of `cuda_runtime.h` and the other stand-ins."""
    return _HERE / "include"


def compiler() -> str:
    """Path of the C++ compiler, which is GCC's: the one that `CXX` names; else g++ or c++.

    Raises ToolError saying what to install.
    """
    named = os.environ.get("CXX")
    candidates = [
        path for name in ([named] if named else ("g++", "c++")) if (path := shutil.which(name))
    ]
    if not candidates:
        raise ToolError(
            (f"there is no '{named}', which CXX names. " if named else "no g++ was found. ")
            + _INSTALL
        )
    for path in candidates:
        if not _is_clang(path):
            return path
    raise ToolError(f"'{candidates[0]}' is clang, and the emulator needs GCC's g++. {_INSTALL}")


_INSTALL = (
    "Install it: `sudo apt install g++`, or `conda install -c conda-forge cxx-compiler` and "
    "activate the environment again. CXX=/path/to/g++ names one that is elsewhere"
)


@functools.cache
def _macros(path: str) -> str:
    """What a compiler defines by itself, as #define lines."""
    ask = [path, "-dM", "-E", "-x", "c++", os.devnull]
    return subprocess.run(ask, capture_output=True, text=True).stdout


def _is_clang(path: str) -> bool:
    """clang instruments what its optimiser has left over: other accesses, other counts."""
    return "__clang__" in _macros(path)


def _filled() -> list[str]:
    """A local variable that nobody sets holds -1.7e38, not what luck has left there: a 0."""
    known = re.search(r"#define __GNUC__ (\d+)", _macros(compiler()))
    return ["-ftrivial-auto-var-init=pattern"] if known and int(known[1]) >= 12 else []


def compile_flags(instrumented: bool = False, counted: bool = False) -> list[str]:
    """Flags for a rewritten CUDA text; `instrumented` selects the instrumented build, `counted`
    one by which instructions are counted."""
    watched = INSTRUMENTED + ([] if counted else NOT_COUNTED)
    build = watched if instrumented else PLAIN
    return [*_COMMON, *_filled(), *build, f"-I{include_dir()}"]


def link_flags() -> list[str]:
    """Flags that link a kernel's library with the runtime, and with nothing it does not use."""
    wrapped = [f"-Wl,--wrap={symbol}" for symbol in _ALLOCATE.split()]
    quick = [GOLD] if (runtime_library().parent / _LINKED).exists() else []
    return [*quick, "-Wl,--as-needed", *wrapped, *runtime_link(), *_DEFAULT]


def runtime_link() -> list[str]:
    """Flags that link a library with the runtime, and no more."""
    folder = runtime_library().parent
    return [f"-L{folder}", f"-l{LIBRARY}", f"-Wl,-rpath,{folder}"]


# By itself, g++ links what was compiled with -fsanitize=thread with libtsan: here the runtime
# answers in its place, and libtsan's thread-local variables do not fit into a running process.
_DEFAULT = "-nodefaultlibs -lstdc++ -lm -lgcc_s -lgcc -lc".split()


# What kernels allocate with, which device_heap.cpp watches: malloc, free, new, delete.
_ALLOCATE = "malloc free _Znwm _Znam _ZdlPv _ZdaPv _ZdlPvm _ZdaPvm"


@functools.cache
def digest() -> str:
    """Hash of the headers and the runtime; a change of either makes every build a new one."""
    hasher = hashlib.sha256(
        " ".join([*_COMMON, *PLAIN, *INSTRUMENTED, *NOT_COUNTED, *_RUNTIME]).encode()
    )
    headers = (path for path in include_dir().rglob("*") if path.is_file())
    for path in sorted([*headers, *(_HERE / "runtime").iterdir()]):
        hasher.update(path.read_bytes())
    return hasher.hexdigest()[:16]


_building = threading.Lock()


@functools.cache
def runtime_library() -> Path:
    """The runtime as a shared library, built if it is not there. Raises ToolError."""
    path = _runtime_path()
    if not path.exists():
        with _building, files.alone(path):  # who comes second waits for the first one's
            if not path.exists():
                _build_runtime(path)
    return path


def is_built() -> bool:
    """Whether the runtime is there: to build it takes a while."""
    return _runtime_path().exists()


def _runtime_path() -> Path:
    return cache() / f"emulator-{digest()}" / f"lib{LIBRARY}.so"


def _build_runtime(path: Path) -> None:
    with files.publish(path) as made:
        # The first cell waits for this: a file is compiled on each core, the longest ones first.
        sources = sorted(
            (_HERE / "runtime").glob("*.cpp"), key=lambda source: -source.stat().st_size
        )
        things = [made.with_name(f"{source.stem}.o") for source in sources]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(_compile, sources, things))
        link = [*_RUNTIME, "-shared", *map(str, things), "-o", str(made), "-ldl"]
        try:
            _call([GOLD, *link])
            path.with_name(_LINKED).touch()
        except ToolError:  # there is none, or it does not find what this compiler brings
            _call(link)


def _compile(source: Path, thing: Path) -> None:
    _call([*_RUNTIME, f"-I{include_dir()}", "-c", str(source), "-o", str(thing)])


def _call(arguments: list[str]) -> None:
    done = subprocess.run([compiler(), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise ToolError(f"the emulator's runtime does not compile here:\n{done.stderr[-3000:]}")


# --- the header, parsed once

_HEADER = "cuda_runtime.h"


def header_folder(instrumented: bool) -> Path:
    """Where the header for the plain or the instrumented build is, or would be."""
    return cache() / f"emulator-{digest()}" / ("instrumented" if instrumented else "plain")


def precompile_headers() -> None:
    """Make what is missing of both. Failing to is no error: builds are only slower."""
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 2)) as pool:  # the runtime is first
        list(pool.map(_precompile, (False, True)))


def _precompile(instrumented: bool) -> None:
    path = header_folder(instrumented) / f"{_HEADER}.gch"
    if path.exists():
        return
    command = [compiler(), *compile_flags(instrumented)]
    command += ["-x", "c++-header", str(include_dir() / _HEADER)]
    with files.alone(path):
        if path.exists():
            return
        with suppress(subprocess.CalledProcessError), files.publish(path) as made:
            subprocess.run([*command, "-o", str(made)], capture_output=True, check=True)
