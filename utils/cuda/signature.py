"""What a launcher takes: its C++ declaration, read from the CUDA text.

Only what the workbook's launchers need is understood: a host function at namespace scope that
returns void and takes raw pointers, integers, floats and perhaps a stream. Everything else is
refused by name.
"""

import functools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from utils.emulator.translate.code import Code
from utils.ground.errors import DeclarationError

# C++ element type, as `_spell` writes it -> torch dtype. Each may stand behind a pointer.
POINTERS = {
    "float": torch.float32,
    "double": torch.float64,
    "int": torch.int32,
    "unsigned": torch.uint32,
    "long": torch.int64,
    "long long": torch.int64,
    "unsigned long": torch.uint64,
    "unsigned long long": torch.uint64,
    "short": torch.int16,
    "char": torch.int8,
    "signed char": torch.int8,
    "unsigned char": torch.uint8,
    "int8_t": torch.int8,
    "int16_t": torch.int16,
    "int32_t": torch.int32,
    "int64_t": torch.int64,
    "uint8_t": torch.uint8,
    "uint32_t": torch.uint32,
    "bool": torch.bool,
    "__half": torch.float16,
    "half": torch.float16,
    "__nv_bfloat16": torch.bfloat16,
    "nv_bfloat16": torch.bfloat16,
}

# C++ type of a value -> how `struct` packs it (Q also carries a stream's handle).
SCALARS = {
    "int": "i",
    "unsigned": "I",
    "long": "q",
    "long long": "q",
    "unsigned long": "Q",
    "unsigned long long": "Q",
    "size_t": "Q",
    "int32_t": "i",
    "int64_t": "q",
    "uint32_t": "I",
    "float": "f",
    "double": "d",
    "bool": "?",
}

_SPECIFIERS = ("static", "inline", "extern", "__host__", "__forceinline__")
_ATTRIBUTES = ("__attribute__", "noexcept")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a launcher."""

    name: str
    ctype: str  # "const float*", "int", "cudaStream_t"
    is_tensor: bool = False
    is_const: bool = False  # a tensor that the launcher may only read
    dtype: torch.dtype | None = None  # of a tensor
    is_stream: bool = False
    code: str = "Q"  # struct's format letter for the 8-byte slot it travels in


@dataclass(frozen=True)
class _Function:
    """A function in a text; all but its name are positions in the text's Code."""

    code: Code
    head: Sequence[int]  # what stands left of the name: template, attributes, return type
    name: str
    parameters: Sequence[int]
    trailing: Sequence[int]  # the return type behind `->`

    def has(self, *words: str) -> bool:
        return any(self.code.text(position) in words for position in self.head)


@functools.lru_cache(64)  # a cell is compiled twice, and checked against its starter each time
def parse_launcher(source: str, name: str) -> tuple[Parameter, ...]:
    """The parameters of the host function `name` of a CUDA text.

    Raises DeclarationError when there is none, or more than one, or its signature is not one that
    Python can call; the message names the parameter.
    """
    functions = [f for f in _functions(Code(source)) if not f.has("__global__", "__device__")]
    candidates = [f for f in functions if f.name == name]
    if not candidates:
        others = ", ".join(sorted({f.name for f in functions})) or "none"
        raise DeclarationError(
            f"there is no launcher `void {name}(...)` at the top level of the text; "
            f"host functions found: {others}"
        )
    signatures = [_signature(f) for f in candidates]
    if len({tuple(p.ctype for p in signature) for signature in signatures}) > 1:
        raise DeclarationError(f"{name}: there are several functions of that name; keep one")
    return signatures[-1]  # the definition, where a declaration stands before it


def _signature(function: _Function) -> tuple[Parameter, ...]:
    code, name = function.code, function.name
    if code.text(function.head[0]) == "template":
        raise DeclarationError(f"{name}: the launcher must not be a template")
    _check_return_type(function)
    parts = code.split(function.parameters)
    if [code.flat(part) for part in parts] in ([""], ["void"]):
        parts = []
    parameters = tuple(
        _parameter(code, part, f"{name}: parameter {i}") for i, part in enumerate(parts, 1)
    )
    if any(p.is_stream for p in parameters[:-1]):
        raise DeclarationError(f"{name}: the cudaStream_t must be the last parameter")
    if len({p.name for p in parameters}) < len(parameters):
        raise DeclarationError(f"{name}: two parameters have the same name")
    return parameters


def _check_return_type(function: _Function) -> None:
    code = function.code
    words: Sequence[int] = [p for p in function.head if code.text(p) not in _SPECIFIERS]
    if function.trailing and code.flat(words) == "auto":
        words = function.trailing
    if code.flat(words) != "void":
        returned = code.flat(words) or "nothing"
        raise DeclarationError(f"{function.name}: a launcher must return void, not {returned}")


def _spell(words: list[str]) -> str:
    """One spelling for each type: `long long int`, `int long long` -> `long long`."""
    words = [word.removeprefix("::").removeprefix("std::") for word in words]
    if "int" in words and len(words) > 1:
        words.remove("int")
        words = [w for w in words if w != "signed"] or ["int"]
    words.sort(key=lambda w: w not in ("unsigned", "signed"))  # the sign first
    return " ".join(words)


def _parameter(code: Code, positions: Sequence[int], where: str) -> Parameter:
    where += f" `{code.flat(positions)}`"
    words = _words(code, positions)
    if "=" in words:
        raise DeclarationError(f"{where} has a default argument, which is not supported")
    is_plain = all(code.is_name(p) or code.text(p) in ("::", "*") for p in positions)
    if words.count("*") > 1 or not is_plain:
        raise DeclarationError(f"{where} is not supported; pass raw pointers and sizes")
    codes = {**SCALARS, "cudaStream_t": "Q"}
    known: Collection[str] = POINTERS if "*" in words else codes
    if "*" in words:
        star = words.index("*")
        type_words, after = words[:star], words[star + 1 :]
        named = [w for w in after if w not in ("const", "__restrict__", "__restrict")]
    else:
        plain = [w for w in words if w != "const"]
        type_words, named = plain[:-1], plain[-1:]
        if not type_words or named[0] in known:  # `int`, `unsigned int`: the last word is type
            named = []
    if len(named) != 1:
        raise DeclarationError(f"{where} has no name")
    ctype = _spell([w for w in type_words if w != "const"])
    if ctype not in known:
        raise DeclarationError(
            f"{where} has a type that Python cannot pass; tensors are {_listed(POINTERS, '*')}; "
            f"values are {_listed(SCALARS)}"
        )
    if "*" in words:
        is_const = "const" in type_words
        full = ("const " if is_const else "") + ctype + "*"
        return Parameter(named[0], full, is_tensor=True, is_const=is_const, dtype=POINTERS[ctype])
    return Parameter(named[0], ctype, is_stream=ctype == "cudaStream_t", code=codes[ctype])


def _words(code: Code, positions: Sequence[int]) -> list[str]:
    """The tokens, with qualified names in one piece: `std::size_t`, `::size_t`."""
    words = [""]
    for position in positions:
        text = code.text(position)
        qualifies = text == "::" and code.is_name(position - 1) and words[-1] != "const"
        if qualifies or words[-1].endswith("::"):
            words[-1] += text
        else:
            words.append(text)
    return words[1:]


def _listed(types: Iterable[str], suffix: str = "") -> str:
    return ", ".join(name + suffix for name in types)


# --- the text as a list of top-level functions


def _functions(code: Code) -> Iterator[_Function]:
    """Functions declared or defined at the top level, in an unnamed namespace or in extern "C"."""
    start = position = 0
    while position < len(code):
        text, opening = code.text(position), position
        position = code.after(position)
        if text not in ("{", "}", ";"):
            continue
        if text == "{" and _is_transparent(code, start, opening):
            position = opening + 1  # its contents are at the top level too
        else:
            if text == "{" and opening not in code.mate:
                position = _next_directive(code, opening)
            function = _function(code, start, opening)
            if function:
                yield function
        start = position


def _next_directive(code: Code, opening: int) -> int:
    """Where an #else or its like ends the branch whose `{` is closed in another one."""
    rest = range(opening + 1, len(code))
    return next((position for position in rest if code.directive_between(position)), len(code))


def _is_transparent(code: Code, start: int, opening: int) -> bool:
    """Whether what stands before a `{` opens an unnamed namespace or an `extern "C"`."""
    before = [code.text(position) for position in range(start, opening)]
    return before[-1:] == ["namespace"] or before[-2:] in (["extern", '"C"'], ["extern", '"C++"'])


def _function(code: Code, start: int, stop: int) -> _Function | None:
    """The function that positions start … stop-1 declare, or whose body follows them."""
    words = code.shallow(start, stop)
    arrow = next((i for i, position in enumerate(words) if code.text(position) == "->"), len(words))
    words, trailing = _without_attributes(code, words[:arrow]), words[arrow + 1 :]
    if len(words) < 2 or code.text(words[-1]) != "(" or words[-1] not in code.mate:
        return None
    *head, named, opening = words
    head = _without_calls(code, head)
    is_other = any(code.text(position) in ("=", ":") for position in head)
    if not head or is_other or not code.is_name(named) or code.text(named - 1) == "::":
        return None  # a variable, a constructor, a macro, a member
    parameters = range(opening + 1, code.mate[opening])
    return _Function(code, head, code.text(named), parameters, trailing)


def _without_attributes(code: Code, words: list[int]) -> list[int]:
    """Without `[[...]]`, `__attribute__((...))`, `noexcept` and the language behind `extern`."""

    def is_attribute(position: int) -> bool:
        text, before = code.text(position), code.text(position - 1)
        return (
            text in _ATTRIBUTES
            or (text == "(" and before in _ATTRIBUTES)
            or (text == "[" and code.text(position + 1) == "[")
            or (before == "extern" and code.token(position).kind == "string")
        )

    return [position for position in words if not is_attribute(position)]


def _without_calls(code: Code, head: list[int]) -> list[int]:
    """Without macros that are given something, such as `__launch_bounds__(256)`."""
    called = {position - 1 for position in head if code.text(position) == "("}
    return [p for p in head if p not in called and code.text(p) != "("]
