"""CUDA C++ to plain C++: what g++ cannot parse is rewritten, and not a line moves.

Launches (`launches.py`), `__shared__` declarations (`shared.py`) and `__noinline__` change; so do
the bodies of macros that hold them, and the headers that the text includes. Everything else is
left to the emulator's `cuda_runtime.h`.
"""

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from utils.emulator.translate.code import Code, Misunderstood
from utils.emulator.translate.constant import limit_constants
from utils.emulator.translate.cuda_rules import Rules
from utils.emulator.translate.launches import rewrite_launches
from utils.emulator.translate.shared import rewrite_shared
from utils.emulator.translate.tokens import directive
from utils.errors import CompileError

_DEFINE = re.compile(r"(#(?:\\\n|\s)*define(?:\\\n|\s)+(\w+)(?:\(([^)]*)\))?)(.*)", re.DOTALL)
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
) -> Unit:
    """Rewrite a CUDA text for g++.

    `filename` and `first_line` are what messages about it will say. Headers are looked for in
    `base_dir`, where quoted, and then in `include_dirs`; those of the emulator are left alone.
    Raises CompileError, as `file:line: error: …`, for a launch that makes no sense and for what is
    no CUDA.
    """
    headers = _Headers([Path(folder) for folder in include_dirs])
    text = headers.rewrite(source, filename, first_line, base_dir)
    headers.rules.judge()
    text = f'#include <cuda_runtime.h>\n#line {first_line} "{_quoted(filename)}"\n{text}'
    texts = {key: headers.texts[key] for key in headers.keys.values()}
    return Unit(text, texts)


class _Headers:
    """The headers that a text includes, directly or not; each real file is rewritten once."""

    def __init__(self, include_dirs: list[Path]):
        from utils.emulator.build import include_dir  # which itself may import this module

        self.include_dirs = include_dirs
        self.emulated = include_dir()  # its headers stand in for NVIDIA's
        self.keys: dict[Path, str] = {}
        self.texts: dict[str, str] = {}
        self.rules = Rules()

    def rewrite(self, source: str, filename: str, first_line: int, folder: Path | None) -> str:
        code = Code(source)
        _rewrite_code(code, filename, first_line)
        self.rules.add(code, filename, first_line)
        for index, token in enumerate(code.tokens):
            if token.kind != "directive":
                continue
            word, rest = directive(token)
            if word == "define":
                line = first_line + source.count("\n", 0, token.start)
                code.out[index] = _rewrite_macro(token.text, filename, line)
            elif word == "include" and (match := _INCLUDE.match(rest)):
                if key := self._include(match, folder):
                    code.out[index] = token.text.replace(match[0], f"<{key}>", 1)
        return code.result()

    def _include(self, match: re.Match, folder: Path | None) -> str | None:
        """The key of an included header, rewritten; None for one that is not the program's own."""
        name = match["quoted"] or match["angled"]
        if folder and match["quoted"] and (folder / name).is_file():
            return self._header(folder / name)
        if (self.emulated / name).is_file():
            return None
        for include_dir in self.include_dirs:
            if (include_dir / name).is_file():
                return self._header(include_dir / name)
        return None

    def _header(self, path: Path) -> str:
        path = Path(os.path.abspath(path))  # not resolved: what a link includes is beside the link
        if path not in self.keys:
            # The folder's hash keeps headers of the same name apart, also from the system's.
            folder = hashlib.sha256(str(path.parent).encode()).hexdigest()[:12]
            key = self.keys[path] = f"{folder}/{path.name}"
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
            text = self.rewrite(text, str(path), 1, path.parent)
            self.texts[key] = f'#line 1 "{_quoted(str(path))}"\n{text}'
        return self.keys[path]


def _rewrite_code(code: Code, filename: str, first_line: int) -> None:
    try:
        rewrite_launches(code)
        rewrite_shared(code)
        limit_constants(code)
    except Misunderstood as error:
        before = [token.text for token in code.tokens[: code.index[error.position]]]
        line = first_line + "".join(before).count("\n")
        raise CompileError(f"{filename}:{line}: error: {error}") from None
    for position in range(len(code)):
        if code.text(position) == "return" and code.text(position + 1) == ";":
            code.put(position, "{ emu::returns(); return")
            code.append(position + 1, " }")
        if code.text(position) == "return" and code.macro and position + 1 == len(code):
            code.put(position, "return emu::returns()")
        if code.text(position) == "__noinline__" and code.text(position - 1) not in ("(", ","):
            code.put(position, "EMU_NOINLINE")


def _rewrite_macro(text: str, filename: str, line: int) -> str:
    """A `#define` with the launches and declarations in its body rewritten."""
    if not any(word in text for word in ("<<<", "__shared__", "__noinline__", "return")):
        return text
    head, _, params, body = _DEFINE.match(text).groups()
    names = [name.strip(" \t\\\n.") for name in (params or "").split(",")]
    code = Code(body, macro=True, params=(*filter(None, names), "__VA_ARGS__"))
    _rewrite_code(code, filename, line + head.count("\n"))
    return head + code.result()


def _quoted(filename: str) -> str:
    return filename.replace("\\", "\\\\").replace('"', '\\"')
