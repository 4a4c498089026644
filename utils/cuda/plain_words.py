"""One plain sentence for the errors that beginners of C++ meet most, beside the compiler's own.

Rules read what g++ or nvcc said of a line, and that line of the text; the first that fits is told.
"""

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_ERROR = re.compile(
    r"(?P<file>[^\s:()]+)(?::(?P<line>\d+)(?::(?P<column>\d+))?|\((?P<nvcc>\d+)\)): "
    r"(?:fatal )?error: (?P<said>.*)"
)
_NAME = r"[‘'\"](?P<name>\w+)[’'\"]"
_MODULES = "math", "np", "numpy", "torch", "tl", "cp", "F"
_FUNCTIONS = (
    *("__syncthreads", "__syncwarp", "__shfl_down_sync", "__shfl_xor_sync", "__shfl_sync"),
    *("atomicAdd", "atomicMin", "atomicMax", "expf", "sqrtf", "rsqrtf", "tanhf", "logf", "powf"),
    *("fmaxf", "fminf", "fabsf", "cudaMemset", "cudaMalloc", "cudaFree", "printf"),
)
_WHOLE = "the name of an array alone is its address: an element is x[i]"
_LOOP = "a loop of C++ is written for (int i = 0; i < n; i++) { ... }"
CLOSE = 0.6  # names that are as like as this may be meant for each other
_BLOCK = re.compile(r"\s*(if|for|while|else|elif|def)\b.*:\s*(//.*)?$")
_PYTHON = {
    "True": "true and false are written small in C++",
    "False": "true and false are written small in C++",
    "None": "C++ has no None; a pointer to nothing is nullptr",
    "print": 'C++ prints with printf("%f\\n", x)',
    "range": _LOOP,
    "len": "a pointer does not know how many elements it leads to: the size is an argument",
    "elif": "C++ writes else if (...) { ... }",
    "def": "a function of C++ begins with the type that it returns, such as void, in place of def",
    "max": "of floats the larger one is fmaxf(a, b)",
    "min": "of floats the smaller one is fminf(a, b)",
    "then": "C++ has no then: if (i < n) { ... }",
    "let": "a variable is declared with its type: int i = 0",
    "var": "a variable is declared with its type: int i = 0",
    "cout": 'a kernel prints with printf("%f\\n", x)',
    "std": 'a kernel prints with printf("%f\\n", x)',
    "shared": "__shared__ has two underscores on either side",
    "float32": "the type is called float",
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
        begins = fault.line if _BLOCK.match(fault.line) else ends
        if re.match(r"\s*for\b", begins):
            return _LOOP
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
    if re.search(r"\bfor\s*\(", fault.line) and fault.line.count(";") < 2:
        return "semicolons separate the three parts of a for: (int i = 0; i < n; i++)"
    if re.search(r"before [‘'\"]\)", fault.said):
        return "there is one ) too many"
    if re.search(r"\S.*\bif\b.*\belse\b", fault.line):
        return "of two values C++ takes one by condition ? value : other"
    follows = re.search(r"before [‘'\"](?P<next>\w+)", fault.said)
    if follows and fault.before == fault.number:
        return f"in front of {follows['next']} an operator is missing, or a ';'"
    return f"a statement ends with ';': one is missing at the end of line {fault.before}"


def _parentheses(fault: _Fault, match: re.Match[str]) -> str:
    word = re.search(r"\b(if|while|for)\b", fault.line)
    if word and word[1] == "for":
        return _LOOP
    return f"the condition of {word[1]} stands in parentheses: {word[1]} (i < n)" if word else ""


def _subscript(fault: _Fault, match: re.Match[str]) -> str:
    if re.search(r"\[(float|double)\]", fault.said):
        return "an index is a whole number: int i = ..."
    if "][" not in fault.line:
        return "this is a single number: an array comes as a pointer, const float* x"
    return (
        "one index leads to a number already: a matrix is given as its rows, one after the other, "
        "so [row][col] is [row * columns + col]"
    )


_TYPE = r"\b(int|float|double|bool|auto|size_t|unsigned|float4)\b"
# Variables in front of another one, with what they begin with: "a, b = f(x, y),"
_DECLARED_BEFORE = r"([\s*&]*\w+(\[[^\]]*\])*\s*(=([^;{}(),]|\([^()]*\))*)?,)*"


def _unknown(fault: _Fault, match: re.Match[str]) -> str:
    name = match["name"]
    if name in _PYTHON and re.search(rf"\b{name}\b", fault.line):
        return _PYTHON[name]
    if name in _MODULES:
        return "C++ has no modules: expf(x), sqrtf(x), fmaxf(a, b) are called by their names alone"
    if re.match(r"(thread|block|grid)\w*$", name, re.IGNORECASE) and f"{name}." in fault.line:
        return "where a thread is, threadIdx, blockIdx, blockDim and gridDim say: threadIdx.x"
    meant = re.search(r"did you mean [‘'](?P<like>\w+)", fault.said)
    assigned = re.search(rf"(^|[,;{{(]) *{name} *[-+*/]?=[^=]", fault.line)
    if meant and not assigned and _alike(name, meant["like"]):
        return f"nothing is called {name}; {meant['like']} is there"
    declared = re.compile(rf"{_TYPE}{_DECLARED_BEFORE}[\s*&]*\b{name}\b")
    where = [n for n, line in enumerate(fault.lines, 1) if declared.search(line)]
    if re.search(rf"\b{name}\s*\(", fault.line):
        if name.lower() in ("if", "for", "while", "return"):
            return f"{name.lower()} is written small"
        if near := difflib.get_close_matches(name, _FUNCTIONS, 1, CLOSE):
            return f"no function {name} is defined; {near[0]} is there"
        return f"no function {name} is defined above this line"
    if where and where[0] < fault.number:
        if re.search(r"\bfor\s*\(.*\)\s*;", fault._at(where[0])):
            return f"the ; behind the parentheses of line {where[0]} is all that its loop does"
        return (
            f"{name} of line {where[0]} is known only within the braces that it was declared in: "
            "declare it in front of them"
        )
    if where and (below := next((n for n in where if n > fault.number), 0)):
        between = [fault._at(n) for n in range(fault.number, below)]
        if not any(line.startswith("}") for line in between):  # of the same function
            return f"{name} is declared below, in line {below}: it is known from there on"
    return (
        f"every variable is declared once, with its type: int {name} = ..., or float {name} = ..."
    )


def _alike(name: str, like: str) -> bool:
    return difflib.SequenceMatcher(None, name.lower(), like.lower()).ratio() > CLOSE


def _pointer(fault: _Fault, match: re.Match[str]) -> str:
    """One side is an array as a whole, the other a number."""
    here, there = match["from"], match["to"]
    if ("*" in here) == ("*" in there) or "char" in here:
        return ""
    if re.search(r"\b(float|int|double|auto) *\* *\w+ *=", fault.line):
        return "the * in a declaration makes a pointer; a number is declared without it"
    return _WHOLE


def _function(fault: _Fault, match: re.Match[str]) -> str:
    name = match["name"]
    if any(re.search(rf"\* *{name}\b", line) for line in fault.lines):
        return f"an element of an array stands in brackets: {name}[i]"
    return f"{name} is no function: is an operator missing in front of the parenthesis?"


def _member(fault: _Fault, match: re.Match[str]) -> str:
    if "*" in match["type"]:
        return f"{match['of']} is an array: its elements are {match['of']}[i]"
    return f"{match['of']} is a single number, and has no parts"


def _count(fault: _Fault, match: re.Match[str]) -> str:
    return f"too {match['count']} arguments: the function is declared as {match['signature']}"


def _initializer(fault: _Fault, match: re.Match[str]) -> str:
    if re.search(r"\)\s*(//.*)?$", fault._at(fault.before)):
        return f"what a function does stands in braces: a {{ is missing behind line {fault.before}"
    if ":=" in fault.line:
        return "a variable gets its value by =, and is declared with its type: int i = 0"
    return "a variable gets its initial value by =, as in float sum = 0"


def _closed(fault: _Fault, match: re.Match[str]) -> str:
    if re.match(r"\w", match["next"]):
        return f"in front of {match['next']} an operator or a comma is missing, or a parenthesis"
    return f"a bracket is opened and not closed: its {match['bracket']} is missing"


def _expression(fault: _Fault, match: re.Match[str]) -> str:
    if re.search(r"[?:] *\{", fault.line):
        return "behind ? and : braces need their type: a ? Pair{x, i} : b; or write an if"
    if "=<" in fault.line:
        return "smaller or equal is <="
    if "<>" in fault.line:
        return "unequal is !="
    if match["next"] in ("const", "float", "int", "double", "unsigned", "bool"):
        return "a call gives values alone: types stand where the function is declared"
    return ""


def _operator(fault: _Fault, match: re.Match[str]) -> str:
    if match["sign"] == "^":
        return "^ is no power: write x * x, or powf(x, y)"
    if match["sign"] == "%":
        return "% is for whole numbers; of floats the remainder is fmodf(a, b)"
    if match["sign"] == "<<" and re.search(r"\w<<[^<]", fault.line):
        return "a launch has three of each: kernel<<<blocks, threads>>>(...)"
    if re.search(r"(float|int) \[\d+\]", match["types"]):
        return "of an array with two indices one alone is a whole row: s[row][column]"
    if "*" in match["types"].replace("operator*", ""):
        return _WHOLE
    return ""


def _atomic(fault: _Fault, match: re.Match[str]) -> str:
    """An element in place of its address, or one of a type that there is no such function for."""
    if "*" not in match["first"]:
        return f"{match['name']} takes an address: &out[i], or out, which is that of out[0]"
    return f"there is no {match['name']} for these types: of floats only atomicAdd, and both alike"


def _shared(fault: _Fault, match: re.Match[str]) -> str:
    typed = "a __shared__ array is declared with its type: __shared__ float s[32]"
    return typed if "__shared__" in fault.line else ""


def _quotes(fault: _Fault, match: re.Match[str]) -> str:
    return 'a text stands in double quotes: printf("%f\\n", x)' if "'" in fault.line else ""


def _fixed(words: str) -> Callable[[_Fault, re.Match[str]], str]:
    return lambda fault, match: words


def _argument(fault: _Fault, match: re.Match[str]) -> str:
    if re.search(r"in (assignment|initialization|return)", fault.said):
        return ""
    if "<<<" in fault.line or "(" in fault.line:
        return "an argument has another type than its parameter: are they in the same order?"
    return ""


_RULES = (
    (r"no matching function for call to [‘'](?P<name>atomic\w+)\((?P<first>[^,)]*)", _atomic),
    (
        r"emu::Config",
        _fixed("a launch says how many blocks and how many threads: kernel<<<blocks, threads>>>()"),
    ),
    (
        r"too (?P<count>few|many) arguments to function [‘'](?P<signature>[^’']+)",
        _count,
    ),
    (
        r"return-statement with a value, in function returning [‘']void",
        _fixed(
            "a kernel returns nothing: it stores its result, out[i] = ...; return; alone ends it"
        ),
    ),
    (r".", _python),
    (
        r"(uint3|dim3)[’']?\)? ?(\(\)|.*$)",
        _fixed("threadIdx, blockIdx, blockDim and gridDim are three numbers each: .x, .y and .z"),
    ),
    (
        r"invalid operands of types (?P<types>.*) to binary [‘']operator(?P<sign>[^’']+)",
        _operator,
    ),
    (
        r"cannot convert [‘'](?P<from>[^’']*)[’'] to [‘'](?P<to>[^’']*)[’'] in (?!call)",
        _pointer,
    ),
    (rf"{_NAME} cannot be used as a function", _function),
    (r"in [‘'](?P<of>\w+)[’'], which is of non-class type [‘'](?P<type>[^’']+)", _member),
    (
        r"no match for [‘']operator(?P<sign>[-+*/])=?[’'] \(operand types are .*[‘'](const )?"
        r"float[24][’'&]",
        _fixed(
            "a float4 has no arithmetic of its own, its parts have: "
            "v = make_float4(v.x - m, v.y - m, v.z - m, v.w - m)"
        ),
    ),
    (
        r"no matching function for call to [‘']quad\((const )?float&?\)",
        _fixed("quad takes the address of the first of four floats: quad(&x[i]), or quad(x + i)"),
    ),
    (
        r"non-scalar type [‘']float[24]|operator\[\][’'] \(operand types are [‘']float[24]",
        _fixed(
            "a float4 is four floats, v.x, v.y, v.z and v.w; of an array it is read by "
            "reinterpret_cast<const float4*>(x)[i]"
        ),
    ),
    (
        r"expected identifier before [‘']\(",
        _fixed("the whole condition stands in one pair of parentheses: if (i < n && j < m)"),
    ),
    (
        r"does not name a type",
        _shared,
    ),
    (r"ambiguous", _fixed("both arguments must have one type: fmaxf(x, 0.0f) and fminf of floats")),
    (
        r"numeric literal operator|too many decimal points",
        _fixed("a float is written with one point and an f behind: 1.0f"),
    ),
    (r"expected initializer before", _initializer),
    (r"expected [‘'](?P<bracket>[)\]])[’'] before [‘'](?P<next>[^’']+)", _closed),
    (
        r"expected (an expression|primary-expression before [‘'](?P<next>[^’']+))",
        _expression,
    ),
    (
        r"redeclaration of|shadows a parameter",
        _fixed("this name is declared already: without the type, the line stores into it"),
    ),
    (
        r"read-only variable",
        _fixed("a const variable keeps its initial value: without const it can be changed"),
    ),
    (r"break statement not within", _fixed("an if is no loop: return ends what a thread does")),
    (r"before [‘']else[’']|without a previous [‘']if", _fixed("an else follows the } of its if")),
    (r"nested-name-specifier", _fixed("C++ has no slices: a loop goes through the elements")),
    (
        r"expected [‘'],[’'] or [‘']\.\.\.[’']",
        _fixed("parameters are written float* x, const float* W, int n: type, name, comma"),
    ),
    (
        r"is not usable in a constant expression|variably modified|trying to instantiate",
        _fixed("the size of a __shared__ array is a constant: constexpr int SIZE = 256"),
    ),
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
    (r"from [‘']int[’'] to [‘']const char", _quotes),
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
    (
        r"lvalue required as left operand of assignment",
        _fixed("= stores, and on its left stands no variable; == compares"),
    ),
    (rf"{_NAME} has not been declared", _fixed("there is no type of that name: float, int, bool?")),
)
