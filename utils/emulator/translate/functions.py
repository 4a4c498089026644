"""The functions and variables of CUDA texts, with what stands before them: enough to tell code for
the device from code for the host, and not a parser. What is not understood is passed over.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from utils.emulator.translate.code import Code
from utils.emulator.translate.tokens import directive, tokenize

_ATTRIBUTES = """__launch_bounds__ __attribute__ __attribute alignas decltype noexcept __align__
    __declspec __maxnreg__ __cluster_dims__ explicit requires""".split()
_NO_NAME = """if while for switch return sizeof alignof catch void int float double char bool long
    short unsigned signed auto const static_assert throw new delete operator and or not""".split()
_NO_VARIABLE = """using typedef template static_assert friend namespace struct class union enum
    public private protected asm goto""".split()
_BEFORE_A_NAME = """return else case goto throw new delete sizeof operator do if while for switch
    and or not co_return co_yield typename""".split()


@dataclass(frozen=True)
class Function:
    """A function's definition or declaration; its parts are positions in the code."""

    code: Code
    name: str
    at: int  # of its name
    head: Sequence[int]  # what stands before the name
    words: frozenset[str]  # ... with macros replaced
    parameters: range
    body: range  # empty for a declaration
    member: bool

    @property
    def on_device(self) -> bool:
        """Whether a kernel may call it."""
        return bool(self.words & {"__device__", "constexpr", "consteval", "?"})

    @property
    def is_marked(self) -> bool:
        """Whether it says so, or nobody knows what it says."""
        return bool(self.words & {"__device__", "?"})

    @property
    def is_kernel(self) -> bool:
        """Whether it can be launched."""
        return "__global__" in self.words

    @property
    def on_host(self) -> bool:
        """Whether the host may call it."""
        return "__host__" in self.words or not self.words & {"__device__", "__global__"}


@dataclass(frozen=True)
class Variable:
    """A variable at namespace scope, of host memory, that no kernel can read."""

    name: str
    array: bool  # of constants: they cannot be read with an index


@dataclass
class Macros:
    """Names that are macros, and the words of all that they may become."""

    words: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, code: Code) -> None:
        """Those that a text defines, in whichever branch of an #if."""
        for token in code.tokens:
            word, rest = directive(token) if token.kind == "directive" else ("", "")
            if word == "define" and (
                match := re.match(r"#\s*define\s+(\w+)(\([^)]*\))?", token.text)
            ):
                macros = {
                    t.text for t in tokenize(" " + token.text[match.end() :]) if t.kind == "name"
                }
                self.words[match[1]] |= macros

    def resolved(self, names: Sequence[str]) -> frozenset[str]:
        """The names, and what those of them that are macros may stand for."""
        seen: set[str] = set()
        left = list(names)
        while left:
            name = left.pop()
            if name not in seen:
                seen.add(name)
                left += self.words.get(name, ())
        unknown = any(
            len(n) > 2 and n.isupper() and n not in self.words for n in names
        )  # from a header, or from -D
        return frozenset(seen | ({"?"} if unknown else set()))


def functions_and_variables(code: Code, macros: Macros) -> tuple[list[Function], list[Variable]]:
    """What a text declares, in order; members of classes too, and of their variables none."""
    functions: list[Function] = []
    variables: list[Variable] = []
    _walk(code, 0, len(code), False, macros, functions, variables)
    return functions, variables


def _walk(
    code: Code,
    position: int,
    stop: int,
    member: bool,
    macros: Macros,
    functions: list[Function],
    variables: list[Variable],
) -> None:
    start = position
    while position < stop:
        text = code.text(position)
        if text == ";":
            if function := _function(code, start, position, range(0), member, macros):
                functions.append(function)
            elif not member:
                variables += _variables(code, start, position, macros)
            start = position = position + 1
        elif text == "{" and position in code.mate:
            end = code.mate[position]
            function = _function(code, start, position, range(position + 1, end), member, macros)
            head = [code.text(p) for p in code.shallow(start, position)]
            if function is None and _is_transparent(head):
                _walk(code, position + 1, end, member, macros, functions, variables)
                start = position = end + 1
            elif function is None and {"class", "struct", "union"} & set(head) and "=" not in head:
                _walk(code, position + 1, end, True, macros, functions, variables)
                position = end + 1
            elif function is None or _is_initialiser(code, position, function):
                position = end + 1
            else:
                functions.append(function)
                start = position = end + 1
        elif text == ":" and code.text(position - 1) in ("public", "private", "protected"):
            start = position = position + 1
        elif text == "}":
            start = position = position + 1
        else:
            position = code.after(position)


def _is_transparent(head: Sequence[str]) -> bool:
    return "namespace" in head[:2] or (len(head) == 2 and head[0] == "extern")


def _is_initialiser(code: Code, position: int, function: Function) -> bool:
    """Whether a `{` belongs to a constructor's list, as in `A() : x{1} {}`."""
    after = range(function.parameters.stop + 1, position)
    colon = any(code.text(p) == ":" for p in after)
    return colon and code.is_name(position - 1)


def _function(
    code: Code, start: int, stop: int, body: range, member: bool, macros: Macros
) -> Function | None:
    opening = None
    flat = code.shallow(start, stop)
    for position in flat:
        text, before = code.text(position), code.text(position - 1)
        if text in ("=", ":", "->") and opening is not None:
            break
        if text == "=" and before != "operator":
            return None
        if text == "(" and position > start and before not in _ATTRIBUTES and position in code.mate:
            name = code.angle_open(position - 1) if before == ">" else position
            if name and code.is_name(name - 1) and code.text(name - 1) not in _NO_NAME:
                opening, at = position, name - 1
    if opening is None or code.text(opening + 1) == "*" or start == at:
        return None
    head = [p for p in range(start, at)]
    words = [code.text(p) for p in head if code.is_name(p)]
    if not words or words[0] in ("using", "typedef", "friend", "return", "static_assert"):
        return None
    if code.text(at - 1) == "~":
        return None
    member = member or code.text(at - 1) == "::"
    parameters = range(opening + 1, code.mate[opening])
    resolved = macros.resolved(words)
    if not body and any(
        code.text(p) in ("default", "delete") for p in range(parameters.stop, stop)
    ):
        resolved |= {"__host__", "__device__"}
    if not body and not member and not _declares(code, parameters):
        return None  # a variable that is given values: float4 v(0, 0, 0, 0);
    return Function(code, code.text(at), at, head, resolved, parameters, body, member)


def _declares(code: Code, parameters: range) -> bool:
    """Whether brackets of a declaration hold parameters: none, or each of more than one word."""
    return not parameters or any(
        code.is_name(p) and (code.is_name(p + 1) or code.text(p + 1) in ("*", "&", ",", ")", "<"))
        for p in parameters
    )


def _variables(code: Code, start: int, stop: int, macros: Macros) -> Iterator[Variable]:
    words = [code.text(p) for p in code.shallow(start, stop)]
    if len(words) < 2 or words[0] in _NO_VARIABLE or not code.is_name(start):
        return
    resolved = macros.resolved([w for w in words if w.isidentifier()])
    if resolved & {"__device__", "__constant__", "__managed__", "__shared__", "?", "thread_local"}:
        return
    if resolved & {"operator", "template", "typedef", "using", "friend", "extern"}:
        return
    first = True
    for part in code.split(range(start, stop)):
        flat = code.shallow(part[0], part[-1] + 1) if part else []
        cut = next((i for i, p in enumerate(flat) if code.text(p) in "=[{("), len(flat))
        names = [p for p in flat[:cut] if code.is_name(p)]
        if not names or (first and len(names) < 2) or code.text(names[-1] - 1) in ("::", "."):
            return
        if flat[cut:] and code.text(flat[cut]) == "(" and code.text(flat[cut] + 1) == "*":
            return  # a pointer to a function, whose name stands in the brackets
        first = False
        pointer = (
            any(code.text(p) == "*" for p in flat[:cut]) and code.text(names[-1] - 1) != "const"
        )
        array = cut < len(flat) and code.text(flat[cut]) == "["
        constant = "constexpr" in words or ("const" in words and not pointer)
        if array or not constant:
            yield Variable(code.text(names[-1]), array and constant)


def locals_of(function: Function) -> set[str]:
    """The names of a function's parameters and variables, and of those of its lambdas."""
    code, names = function.code, set()
    for position in (*function.parameters, *function.body):
        if not code.is_name(position):
            continue
        before, after = code.text(position - 1), code.text(position + 1)
        if after not in ("=", ";", ",", ")", "[", "(", "{", ":", "") and position + 1 not in (
            function.parameters.stop,
        ):
            continue
        if code.is_name(position - 1):
            declared = before not in _BEFORE_A_NAME
        elif before in ("*", "&"):
            first = position - 2
            while code.text(first) in ("*", "&", "const", "__restrict__"):
                first -= 1
            if code.text(first) == ">":
                first = code.angle_open(first) or first
                first -= 1
            pointer = after == ")" and code.text(position + 2) in ("(", "[")  # float (*f)(float)
            declared = (
                (pointer and code.text(first) == "(")
                or code.text(first) in ("auto", "float", "int", "double", "char", "void")
                or (
                    code.is_name(first)
                    and code.text(first - 1) in (";", "{", "}", "(", ",", "const", "unsigned", "::")
                )
            )
        else:
            declared = before == ">" or (before in ("[", ",") and _in_binding(code, position))
        if declared:
            names.add(code.text(position))
    return names


def _in_binding(code: Code, position: int) -> bool:
    """Whether a name is one of `auto [a, b]`, or made by a lambda: `[a = 1]`."""
    if code.text(position + 1) == "=":
        return True
    while code.text(position) != "[" and position > 0 and code.text(position) not in ";{}(":
        position -= 1
    return code.text(position) == "[" and code.text(position - 1) in ("auto", "&")
