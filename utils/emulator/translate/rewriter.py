"""CUDA C++ to plain C++: what g++ cannot parse is rewritten, and not a line moves.

Launches (`launches.py`), `__shared__` declarations (`shared.py`), loops of tensor core products
(`products.py`) and `__noinline__` change; so do the bodies of macros that hold them, and the
headers that the text includes. Everything else is left to the emulator's `cuda_runtime.h`.
"""

import functools
import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from utils.emulator.translate import recursion
from utils.emulator.translate.code import Code, Misunderstood
from utils.emulator.translate.constant import limit_constants
from utils.emulator.translate.cuda_rules import Rules
from utils.emulator.translate.functions import Function
from utils.emulator.translate.launches import declare_clusters, rewrite_launches
from utils.emulator.translate.products import gather_products
from utils.emulator.translate.shared import rewrite_shared
from utils.emulator.translate.tokens import directive
from utils.ground.errors import CompileError, ToolError

_DEFINE = re.compile(r"(#(?:\\\n|\s)*define(?:\\\n|\s)+(\w+)(?:\(([^)]*)\))?)(.*)", re.DOTALL)
_ARCHITECTURE = "800"  # as the device's properties say
_COMPARED = re.compile(r"__CUDA_ARCH__\s*[<>=!]=?|[<>=]\s*__CUDA_ARCH__")
_VECTOR = re.compile(r"u?(char|short|int|long|longlong)[24]|(float|double)[24]")
_BY_POINTER = ("cudaLaunchKernel", "cudaLaunchCooperativeKernel")
_REPLACED = ("return", "=", "__CUDA_ARCH__", "clock", "__constant__", "__noinline__", *_BY_POINTER)
_INCLUDE = re.compile(r'("(?P<quoted>[^"\n]+)"|<(?P<angled>[^>\n]+)>)')


@dataclass(frozen=True)
class Unit:
    """A rewritten text, and the headers to write, by key, under a folder that is first on -I."""

    text: str
    headers: dict[str, str]


def rewrite(
    source: str,
    *,
    filename: str,
    first_line: int = 1,
    include_dirs: Sequence[Path] = (),
    base_dir: Path | None = None,
    own_constants: bool = False,
    relaxed: bool = True,
) -> Unit:
    """Rewrite a CUDA text for g++.

    `filename` and `first_line` are what messages about it will say. Headers are looked for in
    `base_dir`, where quoted, and then in `include_dirs`; those of the emulator are left alone.
    With `own_constants` a `__constant__` variable is known to no other text of the program. Where
    nothing is `relaxed`, kernels call no constexpr functions of the host: see cuda_rules.
    Raises CompileError, as `file:line: error: …`, for a launch that makes no sense and for what is
    no CUDA.
    """
    folders = [Path(folder) for folder in include_dirs]
    headers = _Headers(folders, own_constants=own_constants, relaxed=relaxed)
    code = headers.rewrite(source, filename, first_line, base_dir)
    functions = headers.rules.judge()
    recursion.mark(functions)
    for function in functions:
        if function.body and function.on_host and not function.on_device:
            _mark_host(function)
    text = f'#include <cuda_runtime.h>\n#line {first_line} "{_quoted(filename)}"\n{code.result()}'
    return Unit(text, headers.texts)


def collect(
    source: str, *, filename: str, include_dirs: Sequence[Path] = (), base_dir: Path | None = None
) -> Unit:
    """A text for the host's compiler, unchanged, with the headers that it includes."""
    headers = _Headers([Path(folder) for folder in include_dirs], rewrites=False)
    code = headers.rewrite(source, filename, 1, base_dir)
    return Unit(f'#line 1 "{_quoted(filename)}"\n{code.result()}', headers.texts)


class _Library(NamedTuple):
    name: str
    version: str  # a header that a folder of the same name need not have


# By folder. Their headers are of no use here: written for nvcc, and full of PTX.
_LIBRARIES = {
    "cub": _Library("CUB beyond sums and scans of blocks and warps", "cub/version.cuh"),
    "thrust": _Library("Thrust", "thrust/version.h"),
    "cuda": _Library("libcu++ beyond barriers and pipelines", "cuda/std/version"),
}


class _Headers:
    """The headers that a text includes, directly or not; each real file is rewritten once."""

    def __init__(
        self,
        include_dirs: Sequence[Path],
        rewrites: bool = True,
        own_constants: bool = False,
        relaxed: bool = True,
    ):
        from utils.emulator.build import include_dir  # which itself may import this module

        self.include_dirs = include_dirs
        self.rewrites = rewrites
        self.own_constants = own_constants
        self.emulated = include_dir()  # its headers stand in for NVIDIA's
        self.keys: dict[Path, str] = {}
        self.codes: dict[Path, Code] = {}
        self.rules = Rules(relaxed)

    @property
    def texts(self) -> dict[str, str]:
        """Each header as it is written, by key."""
        return {
            key: f'#line 1 "{_quoted(str(path))}"\n{self.codes[path].result()}'
            for path, key in self.keys.items()
        }

    def rewrite(self, source: str, filename: str, first_line: int, folder: Path | None) -> Code:
        code = _rewritten(source, filename, first_line, self.rewrites, self.own_constants)
        self._follow(code, source, filename, first_line, folder)
        return code

    def _follow(
        self, code: Code, source: str, filename: str, first_line: int, folder: Path | None
    ) -> None:
        """Rewrite a text's directives, and the headers that it includes."""
        self.rules.add(code, filename, first_line)
        for index in code.directives:
            token = code.tokens[index]
            word, rest = directive(token)
            if word == "define" and self.rewrites:
                line = first_line + source.count("\n", 0, token.start)
                code.out[index] = _rewrite_macro(token.text, filename, line)
            elif word in ("if", "elif") and self.rewrites:
                code.out[index] = _with_architecture(token.text)
            elif word == "include" and (match := _INCLUDE.match(rest)):
                line = first_line + source.count("\n", 0, token.start)
                if key := self._include(match, folder, f"{filename}:{line}"):
                    code.out[index] = token.text.replace(match[0], f"<{key}>", 1)

    def _include(self, match: re.Match[str], folder: Path | None, place: str) -> str | None:
        """The key of an included header, rewritten; None for one that is not the program's own.

        Raises ToolError for one of NVIDIA's libraries, found by way of -I.
        """
        name = match["quoted"] or match["angled"]
        if folder and match["quoted"] and (folder / name).is_file():
            return self._header(folder / name)
        if (self.emulated / name).is_file():
            return None
        for include_dir in self.include_dirs:
            if (include_dir / name).is_file():
                library = _LIBRARIES.get(name.partition("/")[0])
                if library and (include_dir / library.version).is_file():
                    raise ToolError(f"the emulator has no {library.name}: {place} includes {name}")
                return self._header(include_dir / name)
        return None

    def _header(self, path: Path) -> str:
        path = Path(os.path.abspath(path))  # not resolved: what a link includes is beside the link
        if path not in self.keys:
            # The folder's hash keeps headers of the same name apart, also from the system's.
            folder = hashlib.sha256(str(path.parent).encode()).hexdigest()[:12]
            self.keys[path] = f"{folder}/{path.name}"
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
            code = _rewritten_header(text, str(path), 1, self.rewrites, self.own_constants).copy()
            self._follow(code, text, str(path), 1, path.parent)
            self.codes[path] = code
        return self.keys[path]


def _rewritten(
    source: str, filename: str, first_line: int, rewrites: bool, own_constants: bool
) -> Code:
    """A text without its directives, which depend on what else is in the program."""
    code = Code(source)
    if rewrites:
        _rewrite_code(code, filename, first_line)
        if own_constants:
            _rewrite_constants(code)
    return code


_rewritten_header = functools.lru_cache(64)(_rewritten)  # many texts include the same ones


def _rewrite_code(code: Code, filename: str, first_line: int) -> None:
    try:
        rewrite_launches(code)
        declare_clusters(code)
        rewrite_shared(code)
        gather_products(code)
        limit_constants(code)
    except Misunderstood as error:
        line = code.line(error.position, first_line)
        raise CompileError(f"{filename}:{line}: error: {error}") from None
    for position in code.positions(*_REPLACED):
        word, before, after = (code.text(position + k) for k in (0, -1, 1))
        if word == "return" and after == ";":
            code.put(position, "{ emu::returns(); return")
            code.append(position + 1, " }")
        elif word == "return" and code.macro and position + 1 == len(code):
            code.put(position, "return emu::returns()")
        elif word == "=" and code.text(position + 2) == "{":
            _rewrite_vector(code, position + 1)
        elif word == "=" and after == "{" and before in (")", "]"):
            _rewrite_braces(code, position)
        elif word == "__CUDA_ARCH__":
            code.put(position, _ARCHITECTURE)
        elif word == "clock" and after == "(":
            _rewrite_clock(code, position)
        elif word in _BY_POINTER and after == "(":
            _rewrite_pointer(code, position + 2)
        elif word == "__constant__" and "extern" in (before, after):
            code.put(position, "EMU_ELSEWHERE")  # it has a section where it is defined
        elif word == "__noinline__" and before not in ("(", ","):
            code.put(position, "EMU_NOINLINE")


def _mark_host(function: Function) -> None:
    """A diagnosing build inlines functions of any length, for the sake of what runs on the device.
    A launcher would have all that it calls in it, over and over."""
    code, first = function.code, function.head[0]
    while code.text(first) == "template":
        first = code.angle_close(first + 1)
    if code.text(first) == "extern" and code.token(first + 1).kind == "string":
        first += 2
    if first < function.at and not {code.text(p) for p in function.head} & {"requires", "["}:
        code.out[code.index[first]] = f"EMU_HOST {code.out[code.index[first]]}"


def _with_architecture(text: str) -> str:
    """A condition that compares the GPU's architecture. nvcc reads a text once for the device and
    once for the host: here both are one, so what only asks whether there is one stays the host's.
    """
    if not _COMPARED.search(text):
        return text
    text = re.sub(r"defined\s*(\(\s*__CUDA_ARCH__\s*\)|__CUDA_ARCH__\b)", "1", text)
    return re.sub(r"\b__CUDA_ARCH__\b", _ARCHITECTURE, text)


def _rewrite_constants(code: Code) -> None:
    for position in code.positions("__constant__"):
        start, stop = code.statement(position), position
        while stop < len(code) and code.text(stop) not in (";", "=", "{", "["):
            stop += 1
        words = {code.text(p) for p in range(start, stop)}
        if not words & {"static", "extern", "inline", "template"}:
            code.append(position, " static")


def _rewrite_vector(code: Code, position: int) -> None:
    """`p[i] = float4{…}` is one store of 16 bytes; g++ would make it one of each member."""
    end = code.mate.get(position + 1)
    constant = "constexpr" in map(code.text, range(code.statement(position), position))
    if end and not constant and _VECTOR.fullmatch(code.text(position)):
        code.put(position, f"::emu::whole({code.text(position)}")
        code.append(end, ")")


def _rewrite_braces(code: Code, position: int) -> None:
    """`quad(p) = {…}` and `p[i] = {…}`, likewise, whatever their type is."""
    end = code.mate.get(position + 1)
    start = _operand(code, position - 1)
    if end and code.text(end + 1) == ";" and start is not None and _begins(code, start):
        code.out[code.index[start]] = f"::emu::assign({code.out[code.index[start]]}"
        code.put(position, ",")
        code.append(end, ")")


def _operand(code: Code, last: int) -> int | None:
    """Where what is assigned to begins, which ends with a bracket at `last`."""
    position: int | None = last
    while position is not None and position >= 0:
        text = code.text(position)
        if text in (")", "]"):
            opened = code.mate.get(position, 0)
            if position != last and code.text(opened) == "(" and code.text(opened + 1) == "*":
                return None  # of a declaration, as `void (*table[])(int)`
            position = opened - 1
            if code.text(position) not in (")", "]", ">") and not code.is_name(position):
                break
        elif text == ">":
            begin = code.angle_open(position)
            position = None if begin is None else begin - 1
        elif code.text(position - 1) in (".", "->", "::"):
            position -= 2
        else:
            position -= 1
            break
    while position is not None and code.text(position) == "*":
        position -= 1
    return None if position is None else position + 1


def _begins(code: Code, start: int) -> bool:
    """Whether a statement begins there, and no declaration of which the type lies before."""
    before = code.text(start - 1) if start else ""
    if before == ")":  # of an `if` or a loop
        return code.text(code.mate.get(start - 1, 0) - 1) in ("if", "for", "while", "constexpr")
    if before == "}":  # of a block, not of a struct
        words = map(code.text, range(code.statement(code.mate.get(start - 1, 0)), start))
        return not {"struct", "class", "union", "enum"} & set(words)
    return before in (";", "{", "else", "do")


def _rewrite_clock(code: Code, position: int) -> None:
    """A kernel's clock() counts cycles of the GPU; the C library's counts microseconds."""
    is_call = code.text(position + 2) == ")" and code.text(position + 3) not in ("{", "const")
    declared = code.is_name(position - 1) and code.text(position - 1) not in ("return", "else")
    if is_call and not declared and code.text(position - 1) not in (".", "->", "::"):
        code.put(position, "emu_clock")


def _rewrite_pointer(code: Code, start: int) -> None:
    """The first argument of a launch by pointer, without casts: its type tells the parameters."""
    stop = start
    while stop < len(code) and code.text(stop) not in (",", ")", ";"):
        stop = code.angle_close(stop) if code.text(stop) == "<" else code.after(stop)
    casts = ("reinterpret_cast", "static_cast")
    first, last = start, stop - 1
    while first < last:
        if code.text(first) in casts and code.text(last) == ")":
            first, last = code.mate[last] + 1, last - 1
        elif code.text(first) == "(" and code.mate.get(first) == last:
            first, last = first + 1, last - 1
        elif code.text(first) == "(" and code.text(code.mate.get(first, first) - 1) == "*":
            first = code.mate[first] + 1
        else:
            break
    if code.text(first) == "&":
        first += 1
    label = code.flat(range(first, last + 1))
    for index in range(code.index[start], code.index[stop - 1] + 1):
        if "\n" not in code.out[index]:
            code.out[index] = ""
    quoted = label.replace("\\", "\\\\").replace('"', '\\"')
    code.put(start, f'::emu::named("{quoted}", {label})')


def _rewrite_macro(text: str, filename: str, line: int) -> str:
    """A `#define` with the launches and declarations in its body rewritten."""
    if not any(word in text for word in ("<<<", "__shared__", "__noinline__", "return")):
        return text
    match = _DEFINE.match(text)
    assert match  # its word is `define`
    head, params = match[1], match[3] or ""
    names = [name.strip(" \t\\\n.") for name in params.split(",")]
    code = Code(match[4], macro=True, params=(*filter(None, names), "__VA_ARGS__"))
    _rewrite_code(code, filename, line + head.count("\n"))
    return head + code.result()


def _quoted(filename: str) -> str:
    return filename.replace("\\", "\\\\").replace('"', '\\"')
