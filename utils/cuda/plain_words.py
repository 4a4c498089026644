"""One plain sentence for the errors that beginners of C++ meet most, beside the compiler's own.

Rules read what g++ or nvcc said of a line, and that line of the text; the first that fits is told.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_ERROR = re.compile(
    r"(?P<file>[^\s:()]+)(?::(?P<line>\d+)(?::(?P<column>\d+))?|\((?P<nvcc>\d+)\)): "
    r"(?:fatal )?error: (?P<said>.*)"
)
_NAME = r"[‘'\"](?P<name>\w+)[’'\"]"
_BLOCK = re.compile(r"\s*(if|for|while|else|elif|def)\b.*:\s*(//.*)?$")
_PYTHON = {
    "True": "true and false are written small in C++",
    "False": "true and false are written small in C++",
    "None": "C++ has no None; a pointer to nothing is nullptr",
    "print": 'C++ prints with printf("%f\\n", x)',
    "range": "a loop of C++ is written for (int i = 0; i < n; i++) { ... }",
    "len": "a pointer does not know how many elements it leads to: the size is an argument",
    "elif": "C++ writes else if (...) { ... }",
    "def": "a function of C++ begins with the type that it returns, such as void, in place of def",
    "max": "of floats the larger one is fmaxf(a, b)",
    "min": "of floats the smaller one is fminf(a, b)",
}


@dataclass(frozen=True)
class _Fault:
    """An error of the compiler, and the text that it is about."""

    said: str
    number: int
    column: int  # from 1; 0 where it is not known
    lines: Sequence[str]  # of the text, counted as in messages

    @property
    def line(self) -> str:
        return self._at(self.number)

    def _at(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    @property
    def before(self) -> int:
        """The number of the line that ends in front of the place of the error."""
        number = self.number
        while number > 1 and self._at(number)[: max(self.column - 1, 0)].strip() == "":
            number -= 1
            if (code := self._at(number).partition("//")[0].strip()) and code != "{":
                return number
        return self.number


def sentence(complaint: Sequence[str], text: str) -> str:
    """What the first error of a compiler's complaint means; "" where no rule fits it.

    `text` has lines as messages count them.
    """
    for line in complaint:
        if match := _ERROR.match(line):
            number, column = int(match["line"] or match["nvcc"]), int(match["column"] or 0)
            fault = _Fault(match["said"], number, column, text.splitlines())
            words = (
                rule(fault, f) for pattern, rule in _RULES if (f := re.search(pattern, fault.said))
            )
            return next(filter(None, words), "")
    return ""


def _python(fault: _Fault, match: re.Match[str]) -> str:
    """Python's blocks, powers and divisions, which the compiler stumbles over in many ways."""
    ends = fault._at(fault.before)
    if _BLOCK.match(fault.line) or _BLOCK.match(ends):
        return "where Python has a colon and an indent, C++ has braces: if (i < n) { ... }"
    if "**" in fault.line:
        return "C++ has no **: write x * x, or powf(x, y)"
    code, slashes, rest = ends.partition("//")
    if (
        slashes
        and code.strip()
        and not code.rstrip().endswith((";", "{", "}", ","))
        and ";" in rest
    ):
        number = fault.before
        return (
            f"// begins a comment (line {number}): a / b of two integers already is a whole number"
        )
    return ""


def _ends(fault: _Fault, match: re.Match[str]) -> str:
    return f"a statement ends with ';': one is missing at the end of line {fault.before}"


def _parentheses(fault: _Fault, match: re.Match[str]) -> str:
    word = re.search(r"\b(if|while|for)\b", fault.line)
    if word and word[1] == "for":
        return "a loop of C++ is written for (int i = 0; i < n; i++) { ... }"
    return f"the condition of {word[1]} stands in parentheses: {word[1]} (i < n)" if word else ""


def _subscript(fault: _Fault, match: re.Match[str]) -> str:
    return (
        "one index leads to a number already: a matrix is given as its rows, one after the other, "
        "so [row][col] is [row * columns + col]"
    )


def _unknown(fault: _Fault, match: re.Match[str]) -> str:
    name = match["name"]
    if "did you mean" in fault.said and name not in _PYTHON:
        return ""
    if name in _PYTHON:
        return _PYTHON[name]
    declared = re.compile(
        rf"\b(int|float|double|bool|auto|size_t|unsigned|float4)\b[^;(){{}}]*\b{name}\b"
    )
    where = [n for n, line in enumerate(fault.lines, 1) if declared.search(line)]
    if re.search(rf"\b{name}\s*\(", fault.line):
        return f"no function {name} is defined above this line"
    if where and where[0] < fault.number:
        return (
            f"{name} of line {where[0]} is known only within the braces that it was declared in: "
            "declare it in front of them"
        )
    return (
        f"every variable is declared once, with its type: int {name} = ..., or float {name} = ..."
    )


def _fixed(words: str) -> Callable[[_Fault, re.Match[str]], str]:
    return lambda fault, match: words


def _argument(fault: _Fault, match: re.Match[str]) -> str:
    if "<<<" in fault.line or "(" in fault.line:
        return "an argument has another type than its parameter: are they in the same order?"
    return ""


_RULES = (
    (r".", _python),
    (r"expected [‘'\"(,or’ ]*;|expected a \";\"", _ends),
    (r"expected [‘'a \"]+\(", _parentheses),
    (r"for array subscript|pointer-to-object type", _subscript),
    (rf"{_NAME} was not declared", _unknown),
    (rf"identifier {_NAME} is undefined", _unknown),
    (
        r"function-definition is not allowed|at end of input|expected a \"\}\"",
        _fixed("a { above has no }: each pair of braces must be closed before the next function"),
    ),
    (
        r"expected declaration before [‘']\}|expected a declaration",
        _fixed("there is one } too many: the function has ended above"),
    ),
    (r"(invalid conversion|cannot convert) ", _argument),
    (r"argument of type .* is incompatible with parameter", _argument),
    (
        r"declaration of .* with no type|explicit type is missing",
        _fixed("a function begins with the type that it returns: void, where it returns nothing"),
    ),
    (r"invalid preprocessing directive", _fixed("a comment begins with // in C++, not with #")),
    (
        r"read-only location|modifiable lvalue",
        _fixed("what a const pointer leads to can only be read: is the output on the left side?"),
    ),
    (rf"{_NAME} has not been declared", _fixed("there is no type of that name: float, int, bool?")),
)
