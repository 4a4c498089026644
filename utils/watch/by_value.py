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

_HEAD = re.compile(r"([0-9a-f]+) <(.+)>:")
_TARGET = re.compile(r"\b([0-9a-f]+) <.+>$")
_RELOCATION = re.compile(r"^([0-9a-f]+) (\w+) +(.+)$", re.M)
_BY_NAME = ("GLOB_DAT", "JUMP_SLOT")  # a place that code reads an address from
_RUNTIME = re.compile(r"(^| )emu::")
_LAUNCH = "emu::launch<"  # the functions that begin a thread of a kernel
_CLONE = re.compile(r"( \[clone [^]]*\])+$")
_VERSION = re.compile(r"@@?\w+$")
_SCALAR = re.compile(
    r"((un)?signed |long |short )*(char|int|long|short|unsigned|bool|float|double|__int128)"
    r"|char\d+_t|wchar_t|_Float16|std::nullptr_t|\.\.\.|void|"
)


@functools.lru_cache(64)
def unseen(library: Path) -> tuple[str, ...]:
    """The device functions of an instrumented library that take a struct by value and were not
    inlined, by name and types, such as `value_of(One)`. None without objdump; and where calls by a
    pointer are not followed, as of AArch64, those alone that are called by name."""
    functions = _functions(library)
    kernels = {to for name, one in functions.items() if _LAUNCH in name for to in one.used}
    left = {to for kernel in kernels for to in functions[kernel].used}
    left |= {name for name, one in functions.items() if one.in_a_table}
    reached: set[str] = set()
    while left:
        reached |= left
        left = {to for name in left for to in functions[name].used} - reached
    own = (name for name in reached - kernels if not _RUNTIME.search(name))
    return tuple(sorted(name for name in own if any(map(_is_class, _parameters(name)))))


@dataclass
class _Function:
    used: set[str] = field(default_factory=set)  # functions that it calls, or takes the address of
    in_a_table: bool = False  # of pointers


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
        elif (match := _TARGET.search(line)) and (place := int(match[1], 16)) in places:
            current.used.add(places[place])
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


def _parameters(name: str) -> list[str]:
    """The types of a function's parameters: what stands in its last brackets."""
    end = name.rfind(")")
    depth, begin = 0, end
    for begin in range(end, -1, -1):
        depth += {")": 1, "(": -1}.get(name[begin], 0)
        if depth == 0:
            break
    parts, depth = [""], 0
    for character in name[begin + 1 : end] if end >= 0 else "":
        depth += (character in "(<{[") - (character in ")>}]")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _is_class(kind: str) -> bool:
    """Whether a parameter of this type is a struct, and no reference or pointer."""
    pointer = kind.endswith(("*", "&", "const")) or "(*" in kind or "(&" in kind
    return not pointer and not _SCALAR.fullmatch(kind)
