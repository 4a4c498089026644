"""What the instrumented build does not see: structs that a device function takes by value, where it
is not inlined. g++ announces no access that is part of a call, and so no load of what is copied.

It inlines all but functions that call themselves, and calls by a pointer. Which it has left is read
from the library's machine code, since a text does not say it.
"""

import functools
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from utils.emulator.translate.code import Code
from utils.emulator.translate.functions import Macros, functions_and_variables

_HEAD = re.compile(r"([0-9a-f]+) <(.+)>:")
_TARGET = re.compile(r"\b([0-9a-f]+) <.+>$")
_RETURNS = re.compile(r"\tret\b|\tjmp ")  # or what it calls last does, in its place
_BY_POINTER = re.compile(r"\tcall +\*|\tblr\b")
_RELOCATION = re.compile(r"^([0-9a-f]+) (\w+) +(.+)$", re.M)
_BY_NAME = ("GLOB_DAT", "JUMP_SLOT")  # a place that code reads an address from
_RUNTIME = re.compile(r"(^| )emu::")
_LAUNCH = "emu::launch<"  # the functions that begin a thread of a kernel
_CLONE = re.compile(r"( \[clone [^]]*\])+$")
_VERSION = re.compile(r"@@?\w+$")
_SCALAR = re.compile(
    r"((un)?signed |long |short )*(char|int|long|short|unsigned|bool|float|double|__int128)"
    r"|char\d+_t|wchar_t|_Float16|decltype\(nullptr\)|\.\.\.|void|"
)
# Handles, which hold nothing of a tensor.
_GROUP = re.compile(
    r"cooperative_groups::(\w+::)?"
    r"(thread_block|thread_group|grid_group|cluster_group|coalesced_group|thread_block_tile<.*>)"
)
_ENUM = re.compile(r"\benum\s+(?:class\s+|struct\s+)?(\w+)")


@functools.lru_cache(64)
def unseen(library: Path, text: str) -> tuple[str, ...]:
    """The device functions of a text's instrumented library that take a struct by value and were
    not inlined, by name and types, such as `value_of(One)`. None without objdump; and where calls
    by a pointer are not followed, as of AArch64, those alone that are called by name."""
    functions = _functions(library)
    named = {one.name for one in functions_and_variables(Code(text), Macros())[0] if one.is_kernel}
    kernels = {to for name, one in functions.items() if _LAUNCH in name for to in one.used}
    kernels |= {name for name in functions if _base(name) in named}  # launched by a pointer, too
    left = {to for kernel in kernels for to in functions[kernel].used}
    reached = _reached(functions, left)
    if any(functions[name].calls_by_pointer for name in reached | kernels):
        tables = {name for name, one in functions.items() if one.in_a_table}
        reached |= _reached(functions, tables)
    enums = set(_ENUM.findall(text))
    return tuple(
        name
        for name in sorted(reached - kernels)
        if functions[name].returns  # else it ends the kernel, and is not worth inlining
        and not _RUNTIME.search(name)
        and any(_is_class(kind) and kind not in enums for kind in _parameters(name))
    )


@dataclass
class _Function:
    used: set[str] = field(default_factory=set)  # functions that it calls, or takes the address of
    in_a_table: bool = False  # of pointers
    calls_by_pointer: bool = False
    returns: bool = False


def _reached(functions: Mapping[str, _Function], left: set[str]) -> set[str]:
    """These functions, and all that they use."""
    reached: set[str] = set()
    while left:
        reached |= left
        left = {to for name in left for to in functions[name].used} - reached
    return reached


def _functions(library: Path) -> Mapping[str, _Function]:
    """The functions of a library by name."""
    lines = _objdump("-d", library).splitlines()
    heads = [match for line in lines if (match := _HEAD.match(line))]
    places = {int(match[1], 16): _CLONE.sub("", match[2]) for match in heads}
    functions = {name: _Function() for name in places.values()}
    for place, kind, target in _relocations(library):
        name = places.get(int(target[6:], 16), "") if target.startswith("*ABS*+") else target
        if name in functions and kind.endswith(_BY_NAME):
            places[place] = name
        elif name in functions:
            functions[name].in_a_table = True
    current = _Function()
    for line in lines:
        if head := _HEAD.match(line):
            current = functions[places[int(head[1], 16)]]
            continue
        match = _TARGET.search(line)
        used = places.get(int(match[1], 16), "") if match else ""
        current.used |= {used} if used else set()
        current.returns |= bool(_RETURNS.search(line))
        current.calls_by_pointer |= bool(_BY_POINTER.search(line)) and not match
    return functions


def _relocations(library: Path) -> Iterator[tuple[int, str, str]]:
    """Where the loader fills in an address, in which way, and what of."""
    for match in _RELOCATION.finditer(_objdump("-R", library)):
        yield int(match[1], 16), match[2], _VERSION.sub("", match[3])


def _objdump(what: str, library: Path) -> str:
    if not (tool := shutil.which("objdump")):
        return ""
    command = [tool, what, "--demangle", "--no-show-raw-insn", str(library)]
    return subprocess.run(command, capture_output=True, text=True).stdout


def _brackets(name: str) -> tuple[int, int]:
    """Where a function's parameters begin and end: the last brackets of its name and types."""
    end = name.rfind(")")
    depth = 0
    for begin in range(end, -1, -1):
        depth += (name[begin] == ")") - (name[begin] == "(")
        if depth == 0:
            return begin, end
    return 0, 0


def _base(name: str) -> str:
    """The name alone, without types, template arguments and what it is a part of."""
    head = name[: _brackets(name)[0]]
    depth = 0
    while head.endswith(">") or depth:
        depth += (head[-1] == ">") - (head[-1] == "<")
        head = head[:-1]
    words = re.findall(r"\w+$", head)
    return words[0] if words else ""


def _parameters(name: str) -> list[str]:
    """The types of a function's parameters."""
    begin, end = _brackets(name)
    parts, depth = [""], 0
    for character in name[begin + 1 : end]:
        depth += (character in "(<{[") - (character in ")>}]")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _is_class(kind: str) -> bool:
    """Whether a parameter of this type is a struct, and no reference or pointer."""
    pointer = kind.endswith(("*", "&", "const")) or any(of in kind for of in ("(*", "(&", "::*)"))
    return not (pointer or _SCALAR.fullmatch(kind) or _GROUP.fullmatch(kind))
