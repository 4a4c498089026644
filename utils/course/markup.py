"""Solution files: what of them a learner writes, and whether a text still is the starter."""

import re

BEGIN, END, STARTER = "// BEGIN SOLUTION", "// END SOLUTION", "// STARTER:"
_REGION = re.compile(
    rf"^(?P<indent>[ \t]*){BEGIN}[^\n]*\n(?P<body>.*?)^[ \t]*{END}[^\n]*\n",
    re.MULTILINE | re.DOTALL,
)
_BREAK = re.compile(r"(?<=[^\s/])[ \t]*//[ \t]*$", re.MULTILINE)


def _starter_lines(body: str) -> list[str]:
    lines = [line for line in body.splitlines() if line.lstrip().startswith(STARTER)]
    return [line.replace(STARTER + " ", "", 1).replace(STARTER, "", 1).rstrip() for line in lines]


def without_breaks(text: str) -> str:
    """The text without empty comments behind code: they only tell clang-format where to break."""
    return _BREAK.sub("", text)


def starter(text: str) -> str:
    """The learner's version of a solution file: each region becomes its starter lines."""

    def replace(region: re.Match[str]) -> str:
        lines = _starter_lines(region["body"]) or [region["indent"] + "// your code here"]
        return "\n".join(lines) + "\n"

    return without_breaks(_REGION.sub(replace, text))


def solved(text: str) -> str:
    """The solution file without its markers and starter lines."""

    def replace(region: re.Match[str]) -> str:
        lines = region["body"].splitlines(keepends=True)
        return "".join(line for line in lines if not line.lstrip().startswith(STARTER))

    return without_breaks(_REGION.sub(replace, text))


def _essence(text: str) -> str:
    """CUDA text without comments and white space, but with what a learner says of a fault."""
    return re.sub(r"//(?![ \t]*fault:)[^\n]*|/\*.*?\*/|\s+", "", text, flags=re.DOTALL)


def is_untouched(text: str, starter_text: str) -> bool:
    """Whether a learner's text still is the starter, comments and white space aside."""
    return _essence(text) == _essence(starter_text)
