"""The flags that a model file may give to the compilers that build it: by a list, and no others.

A compiler reads files, writes files and starts programs where its flags ask for it: -wrapper,
-specs=, -fplugin=, -B, @file, -Wl,… So a flag passes because it is known to do nothing of the kind.
Source: GCC's "Option Summary", nvcc's "Command Option Description", ld's manual.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from utils.ground.errors import CompileError

_VALUE = r"[\w.+*/()<>=,:\ -]*"  # of a macro: nothing that a shell, which nvcc starts, would act on
_DEFINED = rf"-[DU]\w+(\(\w*\))?(={_VALUE})?"
_LANGUAGE = r"-O([0-3sg]|fast)?|--?std=(c|gnu)\+\+\w\w|-g\d?|-w|-W(all|extra|error|no-[\w-]+)"
_HOST = r"""-fPIC|-fopenmp|-pthread|-fpermissive|-fvisibility=\w+|-fdiagnostics-color(=\w+)?
    |-f(no-)?(fast-math|math-errno|finite-math-only|associative-math|unroll-loops|strict-aliasing|rtti
    |exceptions|omit-frame-pointer|inline-functions|tree-vectorize|plt|semantic-interposition)
    |-m(arch|tune|cpu)=[\w.+-]+|-m(no-)?(avx\w*|sse[\d.]+|fma|64|f16c|bmi2?)"""
_ARCHITECTURE = r"(compute|sm|lto)_\w+|native|all(-major)?"
_CARD = rf"""--?use_fast_math|-G|--?(generate-)?line-?info|--?res-usage|--?source-in-ptx|-v
    |--?(expt-)?(relaxed-constexpr|extended-lambda)|--?restrict|--?device-debug|--?verbose
    |--?(ftz|prec-div|prec-sqrt|fmad|rdc|relocatable-device-code)=\w+
    |--?maxrregcount[=\ ]\d+|(--threads|-t)[=\ ]?\d+|--?split-compile[=\ ]\d+
    |--?default-stream[=\ ](legacy|null|per-thread)|--?diag-suppress=\d+
    |(-gencode|--generate-code)[=\ ]arch=({_ARCHITECTURE}),code=\[?({_ARCHITECTURE}|,)+\]?
    |(-arch|--gpu-architecture|-code|--gpu-code)[=\ ]({_ARCHITECTURE})"""
_ASSEMBLER = r"-v|-O[0-4]|--?(warn-\w+(-\w+)*|def-(load|store)-cache|allow-expensive-\w+)(=\w+)?"
_LINKER = r"--(no-)?as-needed|-O\d?|--gc-sections|--strip-all|-s|--export-dynamic|-z,(now|relro)"
_LIBRARIES = """torch torch_cpu torch_cuda torch_python c10 c10_cuda cudart cudart_static cuda
    cudadevrt m stdc++ gomp pthread dl rt cublas cublasLt cudnn curand cusparse cusolver cufft
    nvrtc nvToolsExt""".replace("+", r"\+").split()
_PAIRS = """-gencode --generate-code -arch -code --gpu-architecture --gpu-code --maxrregcount -t
    -maxrregcount --threads --default-stream --split-compile -D -U -I -L -l -isystem""".split()
_ABROAD = re.compile(r"(?:-I|-L|-isystem ?|-Wl,-rpath[,=])(.+)")  # with a folder
_FOR = dict.fromkeys(("-Xcompiler", "--compiler-options"), "c")
_FOR |= dict.fromkeys(("-Xptxas", "--ptxas-options"), "ptxas")

_ALLOWED = {
    "c": re.compile(f"{_DEFINED}|{_LANGUAGE}|{_HOST}", re.VERBOSE),
    "cuda": re.compile(f"{_DEFINED}|{_LANGUAGE}|{_CARD}", re.VERBOSE),
    "ptxas": re.compile(_ASSEMBLER),
    "ld": re.compile(rf"-l({'|'.join(_LIBRARIES)})|-Wl,({_LINKER})|-O\d|-s|-pthread"),
}


def allowed(flags: Sequence[str], of: str, folders: Iterable[Path]) -> list[str]:
    """The flags of a compiler, one word each: `of` "c", "cuda" or "ld". Folders that are named must
    lie in `folders` or in the build's own. Raises CompileError, which names one that may not be."""
    return [word for flag in _whole(flags) for word in _passed(flag, of, list(folders))]


def _whole(flags: Sequence[str]) -> Iterator[str]:
    """A flag and the value in the word behind it as one: "-gencode arch=…"."""
    rest = [word for word in map(str.strip, flags) if word]
    while rest:
        word = rest.pop(0)
        if word in (*_PAIRS, *_FOR) and rest:
            word = f"{word} {rest.pop(0)}"
        elif " " in word and not word.startswith("-D"):  # several in one string, as some write them
            first, *others = word.split()
            rest[:0] = [first, *others]
            continue
        yield word


def _passed(flag: str, of: str, folders: list[Path]) -> list[str]:
    name, value = (re.split(r"[= ]", flag, maxsplit=1) + [""])[:2]
    if of == "cuda" and (inner := _FOR.get(name)):
        for part in re.split(r"[, ]", value.strip("'\"")):
            _require(part, inner)
        return [name, value.strip("'\"").replace(" ", ",")]
    if place := _ABROAD.fullmatch(flag):
        _require_folder(flag, Path(place[1].strip()), folders)
        return [flag.replace(" ", "", 1)] if not flag.startswith("-isystem") else flag.split()
    joined = re.sub(r"^-([DUl]) ", r"-\1", flag)
    _require(joined, of)
    return joined.split(" ", 1) if of == "cuda" and not joined.startswith("-D") else [joined]


def _require(flag: str, of: str) -> None:
    if not _ALLOWED[of].fullmatch(flag):
        raise CompileError(f"the flag {flag} is none of those that a model file may ask for")


def _require_folder(flag: str, path: Path, folders: list[Path]) -> None:
    inside = not path.is_absolute() and ".." not in path.parts
    if not inside and not any(Path(path).is_relative_to(folder) for folder in folders):
        raise CompileError(f"the flag {flag} names a folder that is not part of CUDA or PyTorch")
