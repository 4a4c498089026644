"""What a built answer asks of the libraries around it, and which of their names it takes.

The names are read from the ELF file, where no trick of the text can hide them.
"""

import re
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from utils.emulator.build import include_dir
from utils.ground.errors import CompileError

MATHS = """acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc
    exp exp10 exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp
    lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter
    nexttoward pow remainder remquo rint round scalbln scalbn signbit sin sincos sinh sqrt tan
    tanh tgamma trunc y0 y1 yn finite isnan isinf""".split()
# Of the C library: printing, memory of one's own, strings, numbers, sorting, and to give up.
_C = """printf fprintf sprintf snprintf vprintf vfprintf vsnprintf puts putchar fputs
    fputc putc fwrite fflush stdout stderr malloc calloc realloc free aligned_alloc
    posix_memalign memcpy memmove memset memcmp memchr strlen strcmp strncmp strcpy strncpy
    strcat strchr strstr strtol strtod atoi atof abs labs div ldiv rand srand qsort bsearch
    exit abort time clock clock_gettime __errno_location __assert_fail __emu_assert_fail
    __stack_chk_fail __cxa_finalize __cxa_atexit __gmon_start__ _ITM_registerTMCloneTable
    _ITM_deregisterTMCloneTable __gxx_personality_v0 _Unwind_Resume __tls_get_addr threadIdx
    blockIdx blockDim gridDim""".split()
_LIBRARY = re.compile(
    rf"(__)?({'|'.join(MATHS)})[fl]?(_finite)?|{'|'.join(_C)}|__\w+_chk|cuda[A-Z]\w*"
    r"|__(popcount|udiv|umod|div|mod|mul|ashl|ashr|lshr|fix|float|ext|trunc|clz|ctz|ffs|bswap)\w*"
    r"|__cxa_\w+|__dynamic_cast|__once_proxy|__tsan_\w+|__sanitizer_cov_trace_pc"
)
# Of the C++ library all but what reaches threads, files and the environment.
_CPP = re.compile(r"_Z\w+")
_CPP_REFUSED = re.compile(
    r"_Z\w*St\d?\w*\d(thread|jthread|__future_base|condition_variable|filesystem|basic_filebuf|"
    r"basic_ifstream|basic_ofstream|basic_fstream)"
)
# Names that the emulator, the diagnosis, the C library and CUDA define, and a text must not.
_TAKEN = re.compile(
    r"__tsan_\w+|__sanitizer_\w+|__wrap_\w+|__?emu_\w+|emu_\w+|workbook_(?!run|error|device|malloc|free|upload|download|sync)\w+"
    rf"|cuda[A-Z]\w*|(__)?({'|'.join(_C)})|threadIdx|blockIdx"
)
_OWN_DEFINED = re.compile(r"__cxa_finalize|_ITM_\w+|__gmon_start__|__emu_assert_fail")


@cache
def _emulators() -> frozenset[str]:
    """The functions of the emulator that its headers call on behalf of a text."""
    texts = "".join(path.read_text() for path in include_dir().rglob("*.h"))
    return frozenset(re.findall(r"\bemu_\w+", texts)) - {"emu_set_time_limit"}


def judge(
    library: Path,
    *,
    source: str,
    filename: str,
    first_line: int = 1,
    besides: re.Pattern[str] | None = None,
    refused: re.Pattern[str] | None = None,
) -> None:
    """Pass a library whose text needs no more than an answer may, and the names `besides`, but for
    those that are `refused`.

    Raises CompileError, as `file:line: error: …` where the text has the name.
    """
    for name, defined in _symbols(library):
        if defined:
            if _TAKEN.fullmatch(name) and not _OWN_DEFINED.fullmatch(name):
                _refuse(
                    name, "is defined here, but is not the text's own", source, filename, first_line
                )
        elif _is(refused, name) or not (_may_ask_for(name) or _is(besides, name)):
            _refuse(
                name,
                "is called, which an answer may not: it has CUDA's functions, the mathematics, "
                "printf and the containers of the standard library",
                source,
                filename,
                first_line,
            )


def _is(pattern: re.Pattern[str] | None, name: str) -> bool:
    return pattern is not None and bool(pattern.fullmatch(name))


def _may_ask_for(name: str) -> bool:
    name = name.removeprefix("__wrap_")  # the linker puts it before what allocates memory
    if name in _emulators() or _LIBRARY.fullmatch(name):
        return True
    return bool(_CPP.fullmatch(name)) and not _CPP_REFUSED.match(name)


def _refuse(name: str, what: str, source: str, filename: str, first_line: int) -> None:
    if refused := _CPP_REFUSED.match(name):
        name = f"std::{refused[1].removeprefix('__').removeprefix('basic_').removesuffix('_base')}"
    place = re.search(rf"\b{re.escape(name.removeprefix('std::'))}\b", source)
    line = first_line + (source.count("\n", 0, place.start()) if place else 0)
    raise CompileError(f"{filename}:{line}: error: {name} {what}")


def _symbols(library: Path) -> Iterator[tuple[str, bool]]:
    """Each global symbol of an ELF file of 64 bits, and whether it is defined there."""
    data = library.read_bytes()
    if data[:5] != b"\x7fELF\x02":
        return
    sections_at, size, count = (
        struct.unpack_from("<Q", data, 0x28)[0],
        *struct.unpack_from("<HH", data, 0x3A),
    )
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", data, sections_at + size * i) for i in range(count)
    ]
    for kind, offset, length, link in ((s[1], s[4], s[5], s[6]) for s in sections):
        if kind not in (2, 11):  # SHT_SYMTAB, SHT_DYNSYM
            continue
        names = sections[link][4]
        for at in range(offset, offset + length, 24):
            name, info, _, section = struct.unpack_from("<IBBH", data, at)
            if not name or info & 15 in (3, 4):  # sections and files
                continue
            start = names + name
            text = data[start : data.index(b"\0", start)].decode(errors="replace").split("@")[0]
            yield text, section != 0
