"""A kernel's text that tells what one thread computes: each value that it stores, with its line.

`tell` wraps what is assigned, and the elements that are read for it, in calls that print them. The
text stays CUDA C++, in the same lines.
"""

import json
from collections.abc import Iterator

from utils.emulator.translate.code import Code

Place = tuple[int, int, int]
MOST = 1000  # values that are told

# One record a line: a mark, the source line, the name, its indices, the value.
MARK = "\x01"
_HEAD = """#include <cstdio>
#include <type_traits>
__device__ int told_so_far;
__device__ inline bool told_here() {{
    return blockIdx.x == {b[0]} && blockIdx.y == {b[1]} && blockIdx.z == {b[2]} &&
           threadIdx.x == {t[0]} && threadIdx.y == {t[1]} && threadIdx.z == {t[2]};
}}
template <typename T, typename... I>
__device__ inline T told(T v, int line, const char* name, I... at) {{
    constexpr bool number = std::is_arithmetic<T>::value;
    if constexpr (number || std::is_same<T, float4>::value) {{
        if (told_here() && told_so_far++ < {most}) {{
            printf("\\x01%d\\x01%s", line, name);
            const long long indices[] = {{0, (long long)at...}};
            for (unsigned i = 1; i <= sizeof...(I); i++) printf("[%lld]", indices[i]);
            if constexpr (!number) printf("\\x01(%g, %g, %g, %g)\\n", v.x, v.y, v.z, v.w);
            else if constexpr (std::is_same<T, bool>::value)
                printf("\\x01%s\\n", v ? "true" : "false");
            else if constexpr (std::is_floating_point<T>::value) printf("\\x01%g\\n", double(v));
            else printf("\\x01%lld\\n", (long long)v);
        }}
    }}
    return v;
}}
"""


def tell(text: str, first_line: int, block: Place, thread: Place, reads: bool = True) -> str:
    """The text with its telling calls. `reads`: whether elements that are read are told, too."""
    code = Code(text)
    for first, last in _bodies(code):
        for position in range(first + 1, last):
            if code.text(position) == "=":
                _assignment(code, position, first, first_line, reads)
            elif code.text(position) in "+-" and code.run(position) == 2:
                _step(code, position, first, first_line)
            elif code.text(position) == "return":
                _return(code, position, first_line)
            elif reads and code.text(position).startswith("atomic"):
                end = code.mate.get(position + 1, position)
                _reads(code, position + 1, end, code.line(position, first_line))
    return _HEAD.format(b=block, t=thread, most=MOST) + code.result()


def _bodies(code: Code) -> Iterator[tuple[int, int]]:
    """The braces of functions that run on the device."""
    for position in range(len(code)):
        if code.text(position) in ("__global__", "__device__"):
            at = position + 1
            while code.text(at) not in ("{", ";", "=", ""):
                at = code.mate.get(at, at) + 1
            if code.text(at) == "{" and at in code.mate:
                yield at, code.mate[at]


def _assignment(code: Code, position: int, body: int, first_line: int, reads: bool) -> None:
    """`x = a` becomes `x = told(a)`, and `x += a` becomes `x += a, told(x)`."""
    before, after = code.text(position - 1), code.text(position + 1)
    if after in ("=", "{") or before in ("=", "!", "<", ">") and code.run(position - 1) == 1:
        return
    compound = before in tuple("+-*/%&|^")
    end = position + 1
    while code.text(end) not in (",", ";", ")", "]", "}", ""):
        end = code.mate.get(end, end) + 1
    if before == "[" or code.text(end) == "]":  # what a lambda captures: [=], [y = x]
        return
    left = _left(code, position - 1 - compound, body)
    if (
        not left
        or end == position + 1
        or {"&", "constexpr", "static"} & {code.text(p) for p in left}
    ):
        return
    line = code.line(position, first_line)
    name = _target(code, left)
    if reads:
        _reads(code, position + 1, end, line)
    if not name:
        return
    label, indices = name
    if compound:
        value = code.flat(_tail(code, left))
        code.append(end - 1, f", told({value}, {line}, {label}{indices})")
    else:
        code.put(position, "= told(")
        code.append(end - 1, f", {line}, {label}{indices})")


def _return(code: Code, position: int, first_line: int) -> None:
    """`return a;` becomes `return told(a);`."""
    end = position + 1
    while code.text(end) not in (";", "}", ""):
        end = code.mate.get(end, end) + 1
    if end > position + 1 and code.text(position + 1) != "{":
        code.put(position, "return told(")
        code.append(end - 1, f', {code.line(position, first_line)}, "returned")')


def _step(code: Code, position: int, body: int, first_line: int) -> None:
    """`i++` of a statement, or of a loop's head, becomes `i++, told(i)`."""
    if code.is_name(position - 1) and code.text(position + 2) in (";", ")"):
        left = _left(code, position - 1, body)
        name, behind = code.text(position - 1), position + 1
        if len(left) != 1:
            return
    elif code.is_name(position + 2) and code.text(position + 3) in (";", ")"):
        name, behind = code.text(position + 2), position + 2
        if _left(code, position - 1, body):
            return
    else:
        return
    line = code.line(position, first_line)
    code.append(behind, f", told({name}, {line}, {json.dumps(name)})")


def _left(code: Code, position: int, body: int) -> list[int]:
    """The tokens of the statement up to a position, or of its part behind the last comma."""
    first = position + 1
    while first - 1 > body:
        at = first - 1
        if code.text(at) in (";", "{", "}", ",", "(", "else", "do", ":", "?", "return"):
            break
        at = code.mate.get(at, at)
        if code.text(at) == "(" and code.text(at - 1) in ("if", "while", "for", "switch"):
            break
        first = at
    return list(range(first, position + 1))


def _tail(code: Code, left: list[int]) -> list[int]:
    """Of what stands on the left side what names the variable: the type is left out."""
    at = left[-1]
    while True:
        at = code.mate.get(at, at)
        if code.text(at) == "[":
            at -= 1
            continue
        if code.text(at - 1) in (".", "->") and at - 2 >= left[0]:
            at -= 2
            continue
        return list(range(at, left[-1] + 1))


def _target(code: Code, left: list[int]) -> tuple[str, str] | None:
    """(name, ", index" of each bracket) of an assigned variable; None where it has another form."""
    tail = _tail(code, left)
    if tail[0] < left[0] or not code.is_name(tail[0]):
        return None
    declared = code.text(tail[-1]) == "]" and tail[0] > left[0] and code.is_name(tail[0] - 1)
    return None if declared else _named(code, tail)


def _named(code: Code, tail: list[int]) -> tuple[str, str] | None:
    words, indices, at = [], [], tail[0]
    while at <= tail[-1]:
        if code.text(at) == "[":
            inner = range(at + 1, code.mate[at])
            plain = all(code.text(p) not in ("=", "[") for p in inner)
            if (
                not inner
                or not plain
                or any(code.run(p) == 2 for p in inner if code.text(p) in "+-")
            ):
                return None
            indices.append(f", ({code.flat(inner)})")
            at = code.mate[at]
        else:
            if indices:
                return None  # such as a[i].x
            words.append(code.text(at))
        at += 1
    return json.dumps("".join(words)), "".join(indices)


def _reads(code: Code, first: int, end: int, line: int) -> None:
    """`a[i]` on a right side becomes `told(a[i])`."""
    at = first
    while at < end:
        if not (code.is_name(at) and code.text(at + 1) == "["):
            at += 1
            continue
        last = at + 1
        while code.text(last) == "[":
            last = code.mate[last] + 1
        named = _named(code, list(range(at, last)))
        if (
            named
            and code.text(at - 1) not in ("&", ".", "->")
            and code.text(last) not in (".", "=", "(")
        ):
            before = code.out[code.index[at]]
            code.put(at, f"told({before}")
            code.append(last - 1, f", {line}, {named[0]}{named[1]})")
        at = last
