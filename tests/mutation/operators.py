"""What can be wrong at a place of a CUDA text: operators, each with all the edits that it makes.

An operator takes a Code and yields edits. They need no compiler: what does not compile is told
apart when it is tried.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .code import Code, word_diff


class Edit(NamedTuple):
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str


class Mutation(NamedTuple):
    """A wrong text, and what is wrong in it."""

    operator: str
    line: int  # from 1
    difference: str  # the line as a word diff; the same one twice has a number behind it
    text: str


Operator = Callable[[Code], Iterator[Edit]]
OPERATORS: dict[str, Operator] = {}


def operator(function: Operator) -> Operator:
    OPERATORS[function.__name__.rstrip("_")] = function
    return function


def mutations(text: str, name: str = "") -> list[Mutation]:
    """All that the operators make of a text, in the order of its lines, each text once.

    `name` is the launcher's, whose declaration stays as it is.
    """
    code, made, seen = Code(text, name), [], {_bare(text)}
    for what, edits in OPERATORS.items():
        for edit in edits(code):
            mutated = text[: edit.start] + edit.new + text[edit.end :]
            if (bare := _bare(mutated)) not in seen:
                seen.add(bare)
                line = text.count("\n", 0, edit.start) + 1
                made.append(Mutation(what, line, word_diff(code, *edit), mutated))
    made.sort(key=lambda mutation: (mutation.line, mutation.operator))
    return _numbered(made)


def _bare(text: str) -> str:
    """A text without its spaces, which mean nothing where a token is exchanged."""
    return "".join(text.split())


def _numbered(made: list[Mutation]) -> list[Mutation]:
    counts: dict[tuple[str, str], int] = {}
    for i, mutation in enumerate(made):
        key = mutation.operator, mutation.difference
        counts[key] = counts.get(key, 0) + 1
        if counts[key] > 1:
            made[i] = mutation._replace(difference=f"{mutation.difference} ({counts[key]})")
    return made


def _each(code: Code, *texts: str) -> Iterator[int]:
    """The places of tokens with one of these texts, but for those that must stay."""
    for i, token in enumerate(code.tokens):
        if token.text in texts and not code.is_fixed[i]:
            yield i


def _once_a_line(code: Code, *texts: str) -> Iterator[int]:
    """The first of each of these tokens in a line: what is wrong with the others is the like."""
    seen = set()
    for i in _each(code, *texts):
        place = code.text.count("\n", 0, code.start(i)), code[i]
        if place not in seen:
            seen.add(place)
            yield i


def _instead(code: Code, table: dict[str, str], binary: bool = False) -> Iterator[Edit]:
    """For each token in the table each word that may stand in its place."""
    for i in _each(code, *table):
        if (not binary or code.is_binary(i)) and not code.rounds_up(i):
            for new in table[code[i]].split():
                yield Edit(code.start(i), code.end(i), new)


def _calls(code: Code) -> Iterator[tuple[int, int]]:
    """Each call: the function's name and its opening bracket."""
    for i, token in enumerate(code.tokens):
        if (
            token.kind != "name"
            or code.is_fixed[i]
            or token.text in ("for", "if", "while", "return")
        ):
            continue
        before = code.tokens[i - 1]
        if before.kind == "name" and before.text not in ("return", "dim3") or before.text in "*&":
            if not code.is_binary(i - 1):
                continue  # a declaration
        opening = code.template_end(i) + 1
        if code[opening] == "(" and token.text not in ("__launch_bounds__", "alignas"):
            if not code.declares(opening + 1):
                yield i, opening


# --- arithmetic and logic


@operator
def arithmetic(code):
    table = {"-": "+", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "|"}
    return _instead(code, table, binary=True)


@operator
def assignment(code):
    """What was there before is lost, or stays."""
    table = {"+=": "=", "-=": "+=", "*=": "=", "/=": "*=", "^=": "|=", ">>=": "<<=", "<<=": ">>="}
    return _instead(code, table, binary=True)


@operator
def operand(code):
    """`a + b * c` loses `+ b * c`, or `* c`."""
    for i in _each(code, "+", "-", "*", "/", "%"):
        if code.is_binary(i) and not code.rounds_up(i):
            last = code.primary(i + 1)
            while code[i] in "+-" and code[last + 1] in ("*", "/", "%"):
                last = code.primary(last + 2)
            yield Edit(code.end(i - 1), code.end(last), "")


@operator
def sign(code):
    for i in _each(code, "-", "!"):
        if not code.is_binary(i) and not code.text[code.end(i)].isspace():
            yield Edit(code.start(i), code.end(i), "")


@operator
def comparison(code):
    table = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
    return _instead(code, table, binary=True)


@operator
def bound(code):
    """`i < n` comes to its end one earlier: `i + 1 < n`."""
    for i in _each(code, "<", "<=", ">", ">="):
        if code.is_binary(i):
            yield Edit(
                code.start(i), code.end(i), ("+ 1 " if code[i][0] == "<" else "- 1 ") + code[i]
            )


@operator
def logic(code):
    return _instead(code, {"&&": "||", "||": "&&"})


@operator
def condition(code):
    """One side of `&&` or `||` is not asked for: alignment, an edge, a NaN."""
    stops = frozenset("&& || ? : , ; = return {".split())
    for i in _each(code, "&&", "||"):
        last, first = code.reach(i, 1, stops), code.reach(i, -1, stops)
        yield Edit(code.end(i - 1), code.end(last), "")
        yield Edit(code.start(first), code.start(i + 1), "")


@operator
def guard(code):
    for i in _each(code, "if", "while"):
        if code[i + 1] == "(":
            start, end = code.end(i + 1), code.start(code.partner[i + 1])
            for new in ["true"] * (code[i] == "if") + ["false"]:
                yield Edit(start, end, new)


@operator
def choice(code):
    """Of `c ? a : b` always the one, always the other."""
    for i in _each(code, "?"):
        middle = code.reach(i, 1, frozenset(":")) + 1
        last = code.reach(middle, 1, frozenset(",;"))
        one, other = code.between(i + 1, middle - 1), code.between(middle + 1, last)
        if "?" not in one:
            yield Edit(code.start(middle + 1), code.end(last), one)
            yield Edit(code.start(i + 1), code.end(middle - 1), f"({other})")


# --- constants, names, types


@operator
def constant(code):
    for i, token in enumerate(code.tokens):
        if token.kind != "number" or code.is_fixed[i] or code.rounds_up(i - 1):
            continue
        whole = re.fullmatch(r"(\d+)([uUlL]*)", token.text)
        if whole:
            value = int(whole[1])
            near = [value + 1]
            news = [f"{number}{whole[2]}" for number in near]
        elif token.text.startswith("0x"):
            continue
        else:
            value = float(token.text.rstrip("fF"))
            news = [f"{value * 1.001:.9g}f"] if value else ["0.001f"]
        for new in news:
            yield Edit(code.start(i), code.end(i), new)


@operator
def infinity(code):
    for i in _each(code, "INFINITY"):
        for new in ("3.402823466e38f", "0.0f", "NAN"):
            yield Edit(code.start(i), code.end(i), new)


@operator
def mask(code):
    for i, token in enumerate(code.tokens):
        if token.text.lower().rstrip("u") == "0xffffffff":
            for new in ("0x7fffffffu", "0xfffffffeu", "0x0000ffffu", "__activemask()"):
                yield Edit(code.start(i), code.end(i), new)


@operator
def component(code):
    """`threadIdx.y` for `threadIdx.x`, and the like of a float4."""
    table = {"x": "y", "y": "x", "z": "w", "w": "z"}
    for i in _once_a_line(code, *table):
        if code[i - 1] == ".":
            coordinate = code[i - 2] in ("threadIdx", "blockIdx", "blockDim", "gridDim")
            new = {"z": "x"}.get(code[i], table[code[i]]) if coordinate else table[code[i]]
            yield Edit(code.start(i), code.end(i), new)


# Names of the course that mean the like of each other.
_PAIRS = """row col; row0 col0; M N; N K; tx ty; rows channels; rows cols; weight bias; lane warp;
i j; BM BN; BK BN; TM TN; WM WN; LANES_M LANES_N; As Bs; A B; mean rstd; sum squares; x out; y out;
x_rows W_rows; group channel; groups channels; first stride; quads n; w b; mine other;
size channels; shift bias; size groups; values partials"""


def _others() -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for pair in _PAIRS.split(";"):
        one, other = pair.split()
        names.setdefault(one, []).append(other)
        names.setdefault(other, []).append(one)
    return names


_OTHERS = _others()


@operator
def variable(code):
    """The other one of two that are easily taken for each other, where both are known."""
    for i in _once_a_line(code, *_OTHERS):
        if i in code.declared or code[i - 1] in (".", "->") or code[i + 1] == "(":
            continue
        if code[i - 1] in ("*", "&") and code.tokens[i - 2].text in ("float", "int", "long"):
            continue  # a declaration
        news = [new for new in _OTHERS[code[i]] if code.knows(i, new)]
        for new in news[:1]:
            yield Edit(code.start(i), code.end(i), new)


@operator
def width(code):
    """Sizes and indices in 16 bits; 32 bits for 64; sums that are cut off."""
    for i in _each(code, "int", "unsigned", "size_t", "long", "float"):
        named = code.tokens[i + 1].kind == "name" and code[i - 1] not in ("const", "constexpr")
        rest = code.between(i, code.reach(i, 1, frozenset(",;")))
        if code[i] == "size_t" or (code[i], code[i + 1]) == ("long", "long"):
            yield Edit(code.start(i), code.end(i + (code[i] == "long")), "int")
        elif code[i] == "float" and named and "=" in rest:
            yield Edit(code.start(i), code.end(i), "int")
        elif code[i] in ("int", "unsigned") and named and _grows(code, i):
            yield Edit(code.start(i), code.end(i), {"int": "short"}.get(code[i], "unsigned short"))


def _grows(code: Code, i: int) -> bool:
    """Whether what a type declares may become as large as a tensor, as far as its text tells."""
    if code[i - 1] in ("(", ","):
        return code[i - 2] != "for"
    return "blockIdx" in code.between(i, code.reach(i, 1, frozenset(";")))


@operator
def uninitialised(code):
    """A variable that begins with nothing."""
    for body in code.bodies:
        for first, last in body:
            if not code.declares(first) or code[first] in ("const", "constexpr", "auto"):
                continue
            for i in range(first, last):
                value = code[i + 1] in ("{", "INFINITY") or code.tokens[i + 1].kind == "number"
                if code[i] == "=" and value and code[code.primary(i + 1) + 1] in ",;":
                    yield Edit(code.end(i - 1), code.end(code.primary(i + 1)), "")


@operator
def shared_size(code):
    """A shared array that is one too short."""
    for i in _each(code, "__shared__"):
        for j in range(i, code.reach(i, 1, frozenset(";"))):
            if code[j] == "[":
                inner = code.between(j + 1, code.partner[j] - 1)
                yield Edit(code.end(j), code.start(code.partner[j]), f"{inner} - 1")


# --- statements


@operator
def statement(code):
    """A statement is forgotten: a barrier, a store, an early exit, a launch."""
    for body in code.bodies:
        for first, last in body:
            whole = code[first] == "return" and code[first + 1] != ";"
            if code[first] in ("if", "while", "{", ";", "for") or code.declares(first) or whole:
                continue
            lines = "\n" * code.between(first, last).count("\n")
            yield Edit(code.start(first), code.end(last), lines + ";")


@operator
def barrier(code):
    """A barrier that stands one statement too early or too late, or holds a warp only."""
    for body in code.bodies:
        for place, (first, last) in enumerate(body):
            if code[first] not in ("__syncthreads", "__syncwarp"):
                continue
            here = code.between(first, last)
            if code[first] == "__syncthreads":
                yield Edit(code.start(first), code.end(last), "__syncwarp();")
                yield Edit(code.start(first), code.end(last), "__threadfence_block();")
            for other in (place - 1, place + 1):
                if 0 <= other < len(body):
                    one, two = sorted((body[place], body[other]))
                    old = code.text[code.start(one[0]) : code.end(two[1])]
                    there = code.between(*body[other])
                    gap = code.text[code.end(one[1]) : code.start(two[0])]
                    parts = (here, there) if other < place else (there, here)
                    assert old == parts[1] + gap + parts[0]
                    yield Edit(code.start(one[0]), code.end(two[1]), parts[0] + gap + parts[1])


@operator
def loop(code):
    """A loop goes round once, steps too far or begins at 0."""
    for i in _each(code, "for"):
        opening, closing = i + 1, code.partner[i + 1]
        one = code.reach(opening, 1, frozenset(";")) + 1
        two = code.reach(one, 1, frozenset(";")) + 1
        head = code.text[code.end(opening) : code.start(two)]
        yield Edit(code.start(i), code.end(closing), f"if ({head})")
        for j in range(two, closing):
            if code[j] == "++":
                name = code[j - 1] if j - 1 > two else code[j + 1]
                yield Edit(code.end(two), code.start(closing), f" {name} += 2")
            elif code[j] in ("+=", "-=", "/=", "*="):
                yield Edit(code.end(j), code.end(j), " 2 *")
            elif code[j] in (">>=", "<<="):
                yield Edit(code.end(j), code.end(j), " 1 +")
        for j in range(opening, one):
            if code[j] == "=":
                last = code.reach(j, 1, frozenset(",;"))
                yield Edit(code.start(j + 1), code.end(last), "0")


# --- calls


@operator
def function(code):
    table = {"fmaxf": "fminf", "fminf": "fmaxf", "max": "min", "min": "max", "rsqrtf": "sqrtf"}
    table |= {"sqrtf": "rsqrtf", "isnan": "isinf", "__shfl_xor_sync": "__shfl_down_sync"}
    table |= {"__shfl_down_sync": "__shfl_xor_sync __shfl_up_sync", "atomicMin": "atomicMax"}
    table |= {"atomicMax": "atomicMin", "atomicAdd": "atomicExch", "log1pf": "expm1f"}
    table |= {"expf": "exp2f", "__expf": "exp2f", "logf": "log2f", "true": "false", "false": "true"}
    return _instead(code, table)


@operator
def nan(code):
    """What fmaxf and fminf do with NaN, a comparison does not."""
    for i, opening in _calls(code):
        if code[i] in ("fmaxf", "fminf") and len(code.arguments(opening)) == 2:
            a, b = (f"({code.between(*argument)})" for argument in code.arguments(opening))
            sign_ = ">" if code[i] == "fmaxf" else "<"
            new = f"({a} {sign_} {b} ? {a} : {b})"
            yield Edit(code.start(i), code.end(code.partner[opening]), new)


@operator
def atomic(code):
    """A plain sum for an atomic one."""
    for i, opening in _calls(code):
        if code[i] == "atomicAdd":
            where, what = (code.between(*argument) for argument in code.arguments(opening))
            new = f"*({where}) += {what}"
            yield Edit(code.start(i), code.end(code.partner[opening]), new)


@operator
def call(code):
    """A function of one argument is not called: `rsqrtf(v)` is `(v)`."""
    for i, opening in _calls(code):
        if len(code.arguments(opening)) == 1 and code[i - 1] not in (".", "->", "dim3"):
            yield Edit(code.start(i), code.start(opening), "")


@operator
def argument(code):
    """Two neighbours of a call, of a launch or of a list change places."""
    for _, opening in _calls(code):
        arguments = code.arguments(opening)
        for one, two in zip(arguments, arguments[1:], strict=False):
            if (code[one[0]] in code.pointers) != (code[two[0]] in code.pointers):
                continue
            a, b = code.between(*one), code.between(*two)
            gap = code.text[code.end(one[1]) : code.start(two[0])]
            yield Edit(code.start(one[0]), code.end(two[1]), b + gap + a)


@operator
def launch(code):
    """One block too few, one thread too few."""
    for i in _each(code, "<<<"):
        comma = code.reach(i, 1, frozenset([","])) + 1
        last = code.reach(comma, 1, frozenset([">>>", ","]))
        yield Edit(code.end(comma - 1), code.end(comma - 1), " - 1")
        yield Edit(code.end(last), code.end(last), " - 1")


@operator
def eps(code):
    """An eps outside of the root."""
    for i in _each(code, "eps", "EPS"):
        if code[i - 1] == "+" and code[i + 1] == ")":
            yield Edit(code.end(i - 2), code.end(i + 1), f") + {code[i]}")


@operator
def rounding(code):
    """`(n + B - 1) / B` rounds down."""
    for i in _each(code, "("):
        last = code.partner[i]
        if code[last + 1] == "/" and (code[last - 2], code[last - 1]) == ("-", "1"):
            plus = code.reach(i, 1, frozenset("+")) + 1
            if code[plus] == "+":
                yield Edit(code.end(plus - 1), code.end(last - 1), "")
