"""What g++ warns of in a text that compiles, in one plain sentence each: what C++ takes it for.

The compilation that is done anyway says it. Only what is hardly ever meant is told; a few faults
that g++ overlooks are found in the text itself.
"""

import re
from collections.abc import Iterator, Sequence

SHOWN = 3  # sentences
NO_VALUE = "may have no value by then"  # what is said of a variable that nobody has set
FILE = "warnings.txt"  # beside a library, where there are any
FLAGS = (
    "-Wparentheses", "-Wempty-body", "-Wunused-value", "-Waddress", "-Wreturn-type",
    "-Wtautological-compare", "-Wlogical-op", "-Wbool-compare", "-Wdiv-by-zero", "-Wformat",
    "-Wfloat-conversion", "-Wtype-limits", "-Wshadow=compatible-local", "-Wuninitialized",
    "-Wmaybe-uninitialized",
)  # fmt: skip
_WARNING = re.compile(
    r"(?:\./)?(?P<file>[^\s:]+):(?P<line>\d+):(?:\d+:)? warning: (?P<said>.*?)(?: \[-W\S+\])?$"
)
_NAME = r"[‘'](?P<name>[^’']+)[’']"
_UNSET = f"{{name}} is read here and {NO_VALUE}: give it one where it is declared"
_COMMA = "of two expressions with a comma between them only the second counts"
_RULES = (
    (r"assignment used as truth value", r"", "`=` stores a value; `==` compares"),
    (
        r"empty body in an [‘'](?P<word>\w+)",
        r"",
        "the `;` behind the condition is all that this `{word}` does: what follows runs always",
    ),
    (
        r"comma operator has no effect",
        r"\[[^\[\]]*,[^\[\]]*\]",
        f"{_COMMA}: element [row][col] of a matrix is `[row * columns + col]`",
    ),
    (r"comma operator has no effect", r"", f"{_COMMA}: conditions are joined by `&&`"),
    (
        r"for increment expression has no effect",
        r"",
        "the last part of this `for` changes nothing: `i++`, `i += 2`, `i /= 2` store something",
    ),
    (
        rf"statement is a reference, not call, to function {_NAME}",
        r"",
        "{name} is not called: parentheses make it a call, `{name}()`",
    ),
    (
        r"statement has no effect|value computed is not used",
        r"[^=!<>]==[^=]",
        "`==` compares and stores nothing; `=` stores",
    ),
    (
        r"statement has no effect|value computed is not used",
        r"",
        "what this line computes is not kept: nothing is stored",
    ),
    (
        r"comparisons like",
        r"",
        "`a < b < c` compares c with the 0 or 1 of `a < b`: write `a < b && b < c`",
    ),
    (
        r"from [‘'](?:float|double)[’'] to [‘'](?:unsigned |long )*(?:int|bool|long)[’']",
        r"",
        "a float is made a whole number here, and loses what is behind the point: should it be "
        "a float?",
    ),
    (
        r"format [‘'](?P<name>%\w*[diux])[’'] expects.*type [‘']double",
        r"",
        "{name} prints whole numbers, and this is a float: %f, or %g",
    ),
    (
        r"format [‘'](?P<name>%\S*[fge])[’'] expects.*type [‘'](?:long )?int",
        r"",
        "{name} prints floats, and this is a whole number: %d",
    ),
    (
        r"integer overflow in expression",
        r"",
        "an int ends at 2,147,483,647, and this is more: begin with `1LL *`, for a `long long`",
    ),
    (
        r"control reaches end|no return statement in function",
        r"",
        "this function ends without a return, and what it returns then is anything",
    ),
    (r"is always false|never be (?:true|both)", r"", "this condition is never true"),
    (r"is always true|always evaluates to true", r"", "this condition is always true"),
    (r"always evaluates to false", r"", "this condition is never true"),
    (
        r"comparison of constant .* with boolean",
        r"",
        "`!` comes before the comparison: write `!(a < b)`",
    ),
    (r"division by zero", r"", "this divides by 0"),
    (
        rf"declaration of {_NAME} shadows a previous local",
        r"",
        "this is a second {name}, and the one above keeps its value: leave out the type",
    ),
    (rf"{_NAME} (?:is|may be) used uninitialized", r"", _UNSET),
)


def sentences(output: str, filename: str, text: str) -> tuple[str, ...]:
    """The first few for `filename`, whose lines are `text`'s, from what g++ printed."""
    lines = text.splitlines()
    by_line: dict[int, str] = {}
    for number, words in (*_printed(output, filename, lines), *_overlooked(lines)):
        by_line.setdefault(number, words)
    return tuple(
        f"{filename}:{number}: warning: {words}"
        for number, words in sorted(by_line.items())[:SHOWN]
    )


def _printed(output: str, filename: str, lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    for line in output.splitlines():
        if not (match := _WARNING.match(line)) or match["file"] != filename:
            continue
        number, said = int(match["line"]), match["said"]
        code = _code(lines[number - 1]) if 0 < number <= len(lines) else ""
        for pattern, where, words in _RULES:
            if (names := re.search(pattern, said)) and re.search(where, code):
                yield number, words.format(**names.groupdict())
                break


_FOR = re.compile(r"\s*for\s*\(.*\)\s*;\s*$")
_WHOLE = re.compile(r"(?<![\w.])(?P<above>\d+) */ *(?P<below>[1-9]\d*)(?![\w.]| *\*)")
_UNKEPT = re.compile(r"\s*__shfl\w*\s*\(.*\)\s*;\s*$")
_RETURNS = re.compile(r"__device__ (?:float|int|bool|double|float4|unsigned) (\w+)\(")
_CALL = re.compile(r"\s*(?P<name>\w+)\([^()]*\);$")  # and no end of a longer statement
_LOCAL = re.compile(r"\s+(?:float|double|int|unsigned) (?P<names>[^=(){}]+);$")
_GUARD = re.compile(r"(?P<indent>\s*)(?P<word>if|for|while)\s*\(.*\)\s*$")


def _overlooked(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """What g++ says nothing of, or not where lines are counted anew."""
    code = [_code(line) for line in lines]
    yield from _added_to(code)
    yield from _unaligned(code)
    returning = set(_RETURNS.findall("\n".join(code)))
    for number, line in enumerate(code, 1):
        after = [(n, text) for n, text in enumerate(code[number:], number + 1) if text.strip()][:2]
        if _FOR.match(line) and after and _deeper(after[0][1], line):
            yield number, "the `;` behind the parentheses is all that this loop does"
        elif (whole := _WHOLE.search(line)) and int(whole["above"]) % int(whole["below"]):
            floats = f"{whole['above']}.0f / {whole['below']}"
            value = int(whole["above"]) // int(whole["below"])
            yield number, f"`{whole[0]}` is {value}, a whole number: write `{floats}`"
        elif (call := _CALL.match(line)) and call["name"] in returning and _balanced(line):
            yield number, f"what {call['name']} returns is not kept"
        elif _UNKEPT.match(line):
            yield number, "what the shuffle brings is not kept: `value += __shfl_…(…)`"
        elif (guard := _GUARD.match(line)) and len(after) == 2:
            (_, body), (beyond, rest) = after
            alone = body.rstrip().endswith(";") and _balanced(line) and _balanced(body)
            if alone and _deeper(body, line) and _indent(rest) == _indent(body):
                word = guard["word"]
                yield (
                    beyond,
                    f"the `{word}` of line {number} ends before this line: braces join several",
                )


def _added_to(code: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Where a local array, or a variable, that was given no value is added to first of all."""
    for number, line in enumerate(code):
        above = (text for text in reversed(code[:number]) if _indent(text) < _indent(line))
        if not (local := _LOCAL.match(line)) or re.match(r"\s*(struct|union)\b", next(above, "")):
            continue
        for name in re.findall(r"([A-Za-z_]\w*)(?:\[[^\]]*\])*(?:,|$)", local["names"]):
            mentioned = re.compile(rf"(?<![\w.>]){name}(?!\w)")
            first = next((n for n in range(number + 1, len(code)) if mentioned.search(code[n])), 0)
            if first and re.search(rf"(?<![\w.>]){name}(?:\[[^\]]*\])* *[-+*]= ", code[first]):
                yield first + 1, _UNSET.format(name=name)


def _unaligned(code: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Where an array of floats that is read as quads may begin anywhere."""
    quads = set(re.findall(r"\bquad\(&(\w+)\[", "\n".join(code)))
    declaration = re.compile(r"\s*(?:__shared__ )?float ([^=;(]*)(?:=.*)?;$")
    for number, line in enumerate(code, 1):
        declared = "".join(
            match[1] for part in re.split("(?<=;)", line) if (match := declaration.match(part))
        )
        for name in re.findall(r"\b(\w+)\[", declared):
            if name in quads:
                words = f"{name} is read as quads, 16 bytes at once, and may begin anywhere: "
                yield number, words + "`alignas(16)` in front of its type"


def _code(line: str) -> str:
    return line.partition("//")[0].rstrip()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _deeper(line: str, other: str) -> bool:
    return _indent(line) > _indent(other)


def _balanced(line: str) -> bool:
    return line.count("(") == line.count(")")
