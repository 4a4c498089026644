"""From CUDA text to a callable: the one module that knows of two backends.

CUDA goes through `torch.utils.cpp_extension`, whose `load_inline` notebook 00 shows, and ninja,
without any of PyTorch's headers, which would cost 25 seconds a build; what is for the emulator goes
to g++, in one step. A build is kept under the hash of everything that went into it. None is loaded
into this process.
"""

import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TypedDict, Unpack

import torch

from utils.cuda import suspicions, toolchain
from utils.cuda.entry import entry_text
from utils.cuda.kernel import Kernel
from utils.cuda.messages import complaint
from utils.cuda.signature import Parameter, parse_launcher
from utils.emulator.build import (
    INSTRUMENTED,
    compile_flags,
    header_folder,
    include_dir,
    link_flags,
)
from utils.emulator.translate import rewriter
from utils.ground import files, settings
from utils.ground.errors import CompileError, DeclarationError, ToolError
from utils.ground.paths import cache, workspace
from utils.process import card

_ENTRY = "workbook entry"  # what messages about the line that we append call it

# -O1 is for host code: device code is optimised whatever it says. The instances of a template are
# optimised side by side: half the time for a model of 11 (16 cores, nvcc 13.0), nearly the same.
# torch forbids arithmetic on half and bfloat16, which a plain CUDA file may use.
NVCC_FLAGS = ["-O1", "--split-compile=0", "-lineinfo", "-std=c++17", "-w"] + [
    f"-U__CUDA_NO_{what}__"
    for what in ("HALF_OPERATORS", "HALF_CONVERSIONS", "HALF2_OPERATORS", "BFLOAT16_CONVERSIONS")
]


@dataclass(frozen=True)
class _Unit:
    """A translation unit as the compiler gets it, with all that decides what comes out."""

    text: str
    filename: str  # what messages call it
    backend: str
    cflags: list[str]
    ldflags: list[str]
    headers: dict[str, str]  # file name -> text
    excerpts: dict[str, str]  # what compilers quote from in messages: the text before rewriting
    counted: str  # the text as it was written, in lines as messages count them

    @functools.cached_property
    def digest(self) -> str:
        decides = {name: part for name, part in asdict(self).items() if name != "counted"}
        parts = [decides, os.path.realpath(toolchain.cxx()), torch.__version__]
        parts.append(Path(suspicions.__file__).read_text())  # what it said is kept beside a build
        if self.backend == "cuda":
            parts += [str(toolchain.cuda_home()), os.environ["TORCH_CUDA_ARCH_LIST"]]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    @property
    def parsed_headers(self) -> list[str]:
        """Folders that may hold a header parsed before; what is built is the same without."""
        return [str(header_folder(instrumented=set(INSTRUMENTED) <= set(self.cflags)))]


@dataclass(frozen=True)
class Build:
    """A CUDA text, ready to be compiled. `digest` is of everything that goes into its library."""

    name: str
    source: str
    first_line: int
    shapes: Mapping[str, str]
    unit: Callable[[str], _Unit]  # from the text of the entry that goes behind the source

    @functools.cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The launcher's. Raises DeclarationError."""
        return parse_launcher(self.source, self.name)

    @functools.cached_property
    def _whole(self) -> _Unit:
        return self.unit(entry_text(self.name, self.parameters))

    @property
    def digest(self) -> str:
        """Raises DeclarationError."""
        return self._whole.digest

    def kernel(self) -> Kernel:
        """Compile it, where that was not done before. Raises CompileError and DeclarationError."""
        try:
            library = _build(self._whole, self.name)
        except (DeclarationError, CompileError) as error:
            # A missing `}` hides the launcher, or spills into the entry: let the compiler say it
            # about the learner's text alone.
            if isinstance(error, DeclarationError) or _ENTRY in str(error):
                _build(self.unit(""), self.name)
            raise
        return self.kernel_of(library)

    def kernel_of(self, library: Path) -> Kernel:
        """The kernel of a library that was compiled from it. Raises DeclarationError."""
        return Kernel(
            self.name,
            self.source,
            self._whole.backend,
            library,
            self.parameters,
            self.digest,
            self.shapes,
            first_line=self.first_line,
            filename=self._whole.filename,
        )

    @property
    def library(self) -> Path:
        """Where it is once it is compiled. Raises DeclarationError."""
        return _library(self._whole, self.name)


class How(TypedDict, total=False):
    """How a text is compiled."""

    shapes: Mapping[str, str]  # dimensions of tensors by name, to check arguments by
    backend: str | None  # "cuda" or "emulator"; else this machine's
    first_line: int  # what the compiler's messages call the text's first line,
    filename: str | None  # and where they say that it is
    instrumented: bool  # the diagnosing build, which only the emulator has
    counted: bool  # that in which basic blocks are seen, too


def plan(source: str, name: str, **how: Unpack[How]) -> Build:
    """What `compile_cuda` compiles. Raises ToolError."""
    instrumented, counted = how.get("instrumented", False), how.get("counted", False)
    backend = "emulator" if instrumented else how.get("backend") or settings.backend()
    toolchain.prepare(backend)
    source = source.removeprefix("\ufeff")  # a byte order mark, as some editors write it
    emulated = functools.partial(_emulator_unit, instrumented=instrumented, counted=counted)
    make, first_line = _cuda_unit if backend == "cuda" else emulated, how.get("first_line", 1)
    unit = functools.partial(make, source, how.get("filename") or f"{name}.cu", first_line)
    return Build(name, source, first_line, how.get("shapes", {}), unit)


def compile_cuda(source: str, name: str, **how: Unpack[How]) -> Kernel:
    """Compile CUDA text and bind its launcher `name`.

    Raises CompileError, DeclarationError (no launcher of that name that Python can call) and
    ToolError (a compiler is missing; the message says what to install).
    """
    return plan(source, name, **how).kernel()


def _cuda_unit(source: str, filename: str, first_line: int, entry: str) -> _Unit:
    cudart = toolchain.cudart_folder(toolchain.cuda_home())
    return _Unit(
        f"#line {first_line} {json.dumps(filename)}\n{source}" + _apart(entry),
        filename,
        "cuda",
        NVCC_FLAGS,
        _link_flags([f"-L{cudart}", f"-Wl,-rpath,{(cudart / 'libcudart.so').resolve().parent}"]),
        {path.name: path.read_text() for path in sorted(workspace().include.glob("*.cuh"))},
        {},
        _as_counted(source, first_line),
    )


def _emulator_unit(
    source: str, filename: str, first_line: int, entry: str, instrumented: bool, counted: bool
) -> _Unit:
    unit = _rewritten(source, filename, first_line, workspace().include, headers())
    return _Unit(
        unit.text + _apart(entry),
        filename,
        "emulator",
        [
            *(flag for flag in compile_flags(instrumented, counted) if flag != "-w"),
            *suspicions.FLAGS,
            "-fdiagnostics-color=never",
        ],
        _link_flags(link_flags()),
        unit.headers,
        {} if "/" in filename else {filename: _as_counted(source, first_line)},
        _as_counted(source, first_line),
    )


def _as_counted(source: str, first_line: int) -> str:
    """A text behind so many lines that its own are counted from `first_line`."""
    return "\n" * (first_line - 1) + source


@functools.lru_cache(maxsize=8)  # of one text there is a plain build, and another one beside it
def _rewritten(
    source: str, filename: str, first_line: int, include: Path, state: tuple[object, ...]
) -> rewriter.Unit:
    return rewriter.rewrite(
        source, filename=filename, first_line=first_line, include_dirs=[include], relaxed=False
    )


def headers() -> tuple[tuple[Path, int], ...]:
    """What kernels may include, and when it was written."""
    files = sorted(workspace().include.rglob("*"))
    return tuple((path, path.stat().st_mtime_ns) for path in files)


def _apart(entry: str) -> str:
    """The entry under a file name of its own, so that messages about it are told apart."""
    return f'\n#line 1 "{_ENTRY}"\n{entry}\n' if entry else "\n"


def _link_flags(flags: Iterable[str]) -> list[str]:
    """`flags` after those that keep PyTorch's libraries away and make missing symbols errors.

    torch links them to everything, and reading their symbols takes 0.2 s. Empty archives of
    their names stand in the linker's way. What is linked is loaded where there is no PyTorch.
    """
    return ["-Wl,--as-needed", "-Wl,-z,defs", f"-L{toolchain.without_torch()}", *flags]


def _library(unit: _Unit, name: str) -> Path:
    return cache() / f"{name}-{unit.digest}" / f"{name}.so"


def _build(unit: _Unit, name: str) -> Path:
    """The compiled library, from the cache where it is there.

    A build has a folder of its own, published as a whole: a killed one leaves no lock behind.
    """
    library = _library(unit, name)
    folder = library.parent
    if library.exists():
        return library
    with card.apart(), files.publish(folder) as work:
        work.mkdir()
        for file, text in {**unit.headers, **unit.excerpts}.items():
            (work / file).parent.mkdir(exist_ok=True)
            (work / file).write_text(text, errors="surrogateescape")
        try:
            built = _make(unit, name, work)
        except RuntimeError as error:
            folders = [work, include_dir()]
            message = complaint(str(error), unit.filename, folders, unit.counted)
            _blame(unit, message)
            raise CompileError(message) from None
        os.replace(built, work / library.name)
        if folder.exists() and not library.exists():  # somebody has emptied it
            shutil.rmtree(folder, ignore_errors=True)
    return library


def _blame(unit: _Unit, message: str) -> None:
    """Raises ToolError where the tools fail, and not the text. Where the message names no line of
    it, that is tried on a text with nothing in it: what a message says, a text can say, too."""
    if re.search(rf"^{re.escape(unit.filename)}[:(]\d+.*error", message, re.MULTILINE):
        return
    empty = replace(unit, text="\n", headers={}, excerpts={})
    with tempfile.TemporaryDirectory(dir=cache(), prefix=".empty-") as folder:
        try:
            _make(empty, "empty", Path(folder))
        except RuntimeError as error:
            blame = complaint(str(error), "main.cpp", [Path(folder)])
            raise ToolError(f"nothing can be compiled here: {blame}") from None


def _make(unit: _Unit, name: str, work: Path) -> str | Path:
    """Path of the library that was built in `work`. Raises RuntimeError with what was printed."""
    make = _by_torch if unit.backend == "cuda" else _by_gxx
    return make(unit, name, work)


def _by_torch(unit: _Unit, name: str, work: Path) -> str:
    """What `load_inline` does, but for the loading: a library's initialisers would run in the
    process that is to judge it. What torch calls standalone is not loaded."""
    from torch.utils import cpp_extension  # imports setuptools; only a real build needs it

    cpp_extension.CUDA_HOME = os.environ["CUDA_HOME"]  # may have been imported before
    source = work / "cuda.cu"
    source.write_text(unit.text, errors="surrogateescape")
    built: str = cpp_extension.load(
        f"{name}_{unit.digest}",  # torch counts versions by name; two may be built at once
        str(source),
        extra_cuda_cflags=[quote(flag) for flag in unit.cflags],
        extra_ldflags=["-shared", *(quote(flag) for flag in unit.ldflags)],
        extra_include_paths=[str(work)],
        build_directory=str(work),
        is_python_module=False,
        is_standalone=True,
    )
    return built


def _by_gxx(unit: _Unit, name: str, work: Path) -> Path:
    """One call of the compiler, for which ninja would start four programs."""
    library = work / f"{name}.built"
    (work / "main.cpp").write_text(unit.text, errors="surrogateescape")
    folders = [f"-I{folder}" for folder in (*unit.parsed_headers, work)]
    # Folders move: `work` is about to be renamed.
    words = [toolchain.cxx(), *folders, *unit.cflags, f"-fdebug-prefix-map={work}=."]
    words += ["main.cpp", "-shared", *unit.ldflags, "-o", str(library)]
    command = toolchain.limited(words, str(work))
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    if warnings := suspicions.sentences(done.stderr, unit.filename, unit.counted):
        (work / suspicions.FILE).write_text("\n".join(warnings))
    return library
