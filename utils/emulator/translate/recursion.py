"""Device functions that call themselves tell the runtime how deep they are: runtime/recursion.cpp.

Only those that surely do. g++ inlines no function that is marked, and announces no access in a call
of one that is not inlined, as of `count(bins, x[i])` with a struct passed by value. So a name that
several functions have, or CUDA has too, is left alone: the call may mean another one.
"""

import re
from collections import Counter
from collections.abc import Sequence

from utils.emulator.linked import MATHS
from utils.emulator.translate.functions import Function

# What CUDA has for some types, and a text may define for others.
_BUILT_IN = re.compile(
    rf"({'|'.join(MATHS)}|u?(ll)?(min|max)|abs|swap)[fl]?|(__|atomic|make_|tex|surf)\w+"
)


def mark(functions: Sequence[Function]) -> None:
    """Rewrite, in place, those of all functions of a program that call themselves by name."""
    defined = Counter(function.name for function in functions if function.body)
    for function in functions:
        if defined[function.name] == 1 and _calls_itself(function):
            _mark(function)


def _calls_itself(function: Function) -> bool:
    code, name = function.code, function.name
    head = [code.text(p) for p in function.head]
    # As the text compiles, and for each number of arguments anew, is no recursion of a thread.
    if "__device__" not in head or {"constexpr", "consteval", "."} & {*head}:
        return False
    return not _BUILT_IN.fullmatch(name) and any(
        code.text(p) == name
        and code.text(p + 1) == "("
        and code.text(p - 1) not in (".", "->", "::")
        for p in function.body
    )


def _mark(function: Function) -> None:
    code = function.code
    device = next(p for p in function.head if code.text(p) == "__device__")
    code.append(device, " EMU_RECURSIVE")
    frame = "__builtin_frame_address(0)"
    code.append(function.body.start - 1, f' emu_note_recursion("{function.name}", {frame});')
