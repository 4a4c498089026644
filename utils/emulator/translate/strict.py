"""What the text of an answer must not hold, since it would run beside what watches it.

An answer is judged by its accesses, which the diagnosing build sees. Attributes, assembly,
builtins, pragmas and the names of those who watch could switch that off, so they are refused by
name, wherever they stand: also where an #if leaves them out, and as pieces that `##` joins. Texts
that nobody judges, such as whole programs, are not held to this.
"""

import functools
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from utils.emulator.build import compiler, include_dir
from utils.emulator.translate.tokens import Token, directive, tokenize
from utils.ground.errors import CompileError

_DIRECTIVES = {"define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "include"}
_DIRECTIVES |= {"pragma", "error", "warning"}
_PRAGMAS = re.compile(r"(unroll|nounroll|once|nv_\w+|GCC\s+unroll)\b")

# Headers that bring computing and data; none that reaches files, threads, signals or processors.
_STANDARD = """algorithm array bit bitset cassert cctype cerrno cfloat charconv chrono
    cinttypes climits cmath complex cstdarg cstddef cstdint cstdio cstdlib cstring ctime deque
    exception functional initializer_list iomanip ios iosfwd iostream iterator limits list map
    memory new numbers numeric optional ostream queue random ratio set span sstream stack
    stdexcept string string_view tuple type_traits typeinfo unordered_map unordered_set utility
    valarray variant vector assert.h ctype.h errno.h float.h inttypes.h limits.h math.h stddef.h
    stdint.h stdio.h stdlib.h string.h time.h""".split()

# Reserved names beside those of CUDA, which are read from the emulator's headers.
_RESERVED = set(
    """__func__ __FUNCTION__ __PRETTY_FUNCTION__ __LINE__ __FILE__ __VA_ARGS__ __VA_OPT__
    __COUNTER__ __cplusplus __CUDA_ARCH__ __CUDACC__ __NVCC__ __CUDACC_VER_MAJOR__
    __CUDACC_VER_MINOR__ __GNUC__ __clang__ __linux__ __x86_64__ __aarch64__ __restrict
    __restrict__ __inline__ __inline __half __half2 __nv_bfloat16 __nv_bfloat162 __int128
    __builtin_expect __builtin_unreachable __builtin_assume_aligned __builtin_assume __assume
    _Static_assert _Bool""".split()
)
# CUDA's conversions and roundings, whose names the emulator's headers put together.
_CONVERSIONS = re.compile(
    r"__(half|float|double|u?int|u?ll|u?short|bfloat16|lows?|highs?|halves|h(?!as_)|[fd](add|sub|mul|"
    r"div|rcp|sqrt|rsqrt)_|fmaf?_)\w*|__noinline__"
)
_WORDS = {
    "asm": "inline assembly",
    "__asm": "inline assembly",
    "__asm__": "inline assembly",
    "__attribute": "an attribute of one compiler",
    "__attribute__": "an attribute of one compiler",
    "__declspec": "an attribute of one compiler",
    "_Pragma": "a pragma",
}
_ADVICE = {
    "__attribute__": "; alignas(16), __launch_bounds__ and __forceinline__ can be written instead",
    "__builtin_memcpy": "; write memcpy",
    "__builtin_memset": "; write memset",
}
# What belongs to the workbook: its emulator, its entry, and what its environment says.
_OURS = re.compile(r"(emu|EMU|workbook|WORKBOOK)(_\w*)?$|__?emu_\w*")
_RESERVED_NAME = re.compile(r"__\w*|_[A-Z]\w*|_mm\w*|_fileno|\w*tsan_\w*")
_MEMORY = ("memcpy", "memset", "memmove")


def judge(source: str, *, filename: str, first_line: int, include: Path) -> None:
    """Pass a text that holds nothing of that; `include` has the headers of the workbook's own.

    Raises CompileError, as `file:line: error: …`.
    """
    for offset, message in _objections(source, include):
        line = first_line + source.count("\n", 0, offset)
        raise CompileError(f"{filename}:{line}: error: {message}")


def _objections(source: str, include: Path) -> Iterator[tuple[int, str]]:
    """What is wrong and where, as an offset."""
    if odd := re.search(r"[\0-\b\x0e-\x1f\x7f]", source):
        yield odd.start(), f"the text holds a control character, number {ord(odd[0])}"
    tokens = tokenize(source)
    macros: dict[str, str] = {}
    pastes = None
    for token in tokens:
        if token.kind == "directive":
            yield from _in_directive(token, include, macros)
            if "##" in token.text and pastes is None:
                pastes = token.start
    yield from _in_code(tokens, [t for t in tokens if t.kind not in ("space", "comment")])
    if pastes is not None:
        yield from ((pastes, text) for text in _in_pastes(tokens, macros))


def _in_code(
    every: Sequence[Token], tokens: list[Token], within: int = 0
) -> Iterator[tuple[int, str]]:
    """What is wrong with tokens; those of a directive begin `within` the text."""
    if not within:
        for token in every:
            if token.kind == "space" and "\\" in token.text:
                yield token.start, "a line may be continued with \\ in a #define alone"
    for at, token in enumerate(tokens):
        before = tokens[at - 1].text if at else ""
        after = tokens[at + 1].text if at + 1 < len(tokens) else ""
        text, start = token.text, within + token.start
        if token.kind == "name":
            if said := _name(text):
                yield start, said
            if text in _MEMORY and (after != "(" or before == "&"):
                yield start, f"{text} can be called, but not passed on or put in brackets"
        elif token.kind == "string" and "R" in text.partition('"')[0]:
            yield start, "a raw string has no use in an answer"
        elif token.kind == "punct":
            if text == "\\":
                yield start, "a \\ stands outside of a string"
            elif text + after in ("<%", "%>", "%:") and after and _touch(token, tokens[at + 1]):
                yield start, f"{text + after} is another way to write a bracket or #; write that"
            elif text + after == "<:" and _touch(token, tokens[at + 1]):
                yield start, "<: is another way to write a bracket; write that, or put a space"
            elif text == "[" == after:
                if scope := _scope(tokens[at + 2 :]):
                    yield start, f"[[{scope}…]] is an attribute of one compiler"


def _scope(attributes: list[Token]) -> str:
    """Whose attributes they are, up to the bracket that ends them; "" for those of C++."""
    for at, token in enumerate(attributes):
        if token.text == "]":
            break
        if token.text == "using":
            return "using "
        if token.text == "::":
            return f"{attributes[at - 1].text}::" if at else "::"
    return ""


def _touch(one: Token, other: Token) -> bool:
    return one.start + len(one.text) == other.start


@functools.lru_cache(1024)  # most texts have most names in common
def _name(text: str) -> str:
    """What is wrong with a name; nothing, mostly."""
    if text in _WORDS:
        return f"{text}: {_WORDS[text]} has no place in an answer{_ADVICE.get(text, '')}"
    if _OURS.fullmatch(text):
        return f"{text}: names that begin so belong to the workbook"
    known = text in _RESERVED or text in _cuda_names()[0] or _CONVERSIONS.fullmatch(text)
    if _RESERVED_NAME.fullmatch(text) and not known:
        return (
            f"{text}: such a name belongs to the compiler or its libraries, and this one is not "
            f"CUDA's{_ADVICE.get(text, '')}"
        )
    return ""


@functools.cache
def _cuda_names() -> tuple[frozenset[str], frozenset[str]]:
    """The reserved names that the emulator's headers give CUDA's meaning, and their macros."""
    names, macros, gone = set(), set(), set()
    for path in include_dir().rglob("*.h"):
        text = path.read_text()
        names.update(re.findall(r"\b__[a-zA-Z]\w*", text))
        macros.update(re.findall(r"^#\s*define\s+(\w+)", text, re.MULTILINE))
        gone.update(re.findall(r"^#\s*undef\s+(\w+)", text, re.MULTILINE))
    foreign = re.compile(
        r"__(builtin|attribute|asm|thread$|tsan|emu|sync_|atomic|FILE|assert_fail)\w*"
    )
    assumed = {"__builtin_assume", "__builtin_align__"}
    names = {n for n in names if not foreign.fullmatch(n)} | (assumed & names)
    return frozenset(names), frozenset(macros - gone)


def _in_directive(token: Token, include: Path, macros: dict[str, str]) -> Iterator[tuple[int, str]]:
    word, _ = directive(token)
    rest = re.sub(r"\\\r?\n", lambda splice: " " * len(splice[0]), token.text)
    match = re.match(r"#\s*(\w*)", rest)
    if re.search(r"\w\\\r?\n\w", token.text):
        yield token.start, "a name is broken by \\ at the end of a line"
    if match is None or (match[1] and word not in _DIRECTIVES) or "\\" in token.text[: match.end()]:
        comment = "" if match and match[1] in _DIRECTIVES else ": a comment begins with //"
        yield token.start, f"#{match[1] if match else ''} has no place in an answer{comment}"
        return
    rest = rest[match.end() :]
    body = [t for t in tokenize(f" {rest}") if t.kind not in ("space", "comment")]
    within = token.start + match.end() - 1
    if word == "include":
        yield from _in_include(token.start, rest, include)
    elif word == "pragma":
        said = re.sub(r"\s+", " ", re.sub(r"//.*|/\*.*?\*/", "", rest)).strip()
        if not _PRAGMAS.match(said):
            yield token.start, f"#pragma {said} has no place in an answer; #pragma unroll has"
    elif word in ("define", "undef") and body:
        name = body[0].text
        reserved, taken = _cuda_names()
        if name in taken or name in reserved or name in _RESERVED:
            yield token.start, f"{name} has a meaning in CUDA; a macro of that name would change it"
        if name in macros and macros[name] != rest:
            macros[name] = "again"
        else:
            macros[name] = rest if word == "define" else "again"
        yield from _in_code([], body, within)
    else:
        yield from _in_code([], body, within)


@functools.cache
def _emulated() -> frozenset[str]:
    """The headers of CUDA's that the emulator has."""
    names = {path.name for path in include_dir().glob("*.h")}
    names |= {f"cooperative_groups/{n}.h" for n in ("reduce", "scan", "functional", "memcpy_async")}
    return frozenset(names | {"cuda_pipeline.h", "mma.h"})


def _in_include(start: int, rest: str, include: Path) -> Iterator[tuple[int, str]]:
    rest = re.sub(r"//.*|/\*.*?\*/", "", rest).strip()
    match = re.fullmatch(r'"([^"]*)"|<([^>]*)>', rest)
    name = (match[1] or match[2] or "") if match else rest
    if match is None:
        yield start, "#include needs a header's name"
    elif name in _STANDARD or name in _emulated():
        return
    elif name not in {str(path.relative_to(include)) for path in include.rglob("*.cuh")}:
        yield (
            start,
            f"{name} is none of the headers that an answer may include: those of kernels/include, "
            "CUDA's, and of the standard library those that compute",
        )


def _in_pastes(tokens: Sequence[Token], macros: dict[str, str]) -> Iterator[str]:
    """What is wrong with the names that `##` joins, as the preprocessor joins them.

    It sees every branch of the text at once, and none of the headers, of whose macros nobody can
    make pieces: their reserved names are refused already.
    """
    for name, body in macros.items():
        if body == "again":
            yield f"{name} is defined twice in a text that joins names with ##; define it once"
    kept = []
    for token in tokens:
        keep = token.kind != "directive" or directive(token)[0] in ("define", "undef")
        kept.append(token.text if keep else "")
    command = [compiler(), "-E", "-P", "-x", "c++", "-std=c++17", "-w", "-nostdinc", "-"]
    text = "".join(kept).encode(errors="surrogateescape")
    try:
        done = subprocess.run(command, input=text, capture_output=True, timeout=10)
    except subprocess.TimeoutExpired:
        yield "the macros of this text do not come to an end"
        return
    expanded = done.stdout.decode(errors="replace")
    code = [t for t in tokenize(expanded) if t.kind not in ("space", "comment")]
    for _, said in _in_code([], code):
        yield f"## makes a name: {said}"
