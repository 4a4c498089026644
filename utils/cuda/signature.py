"""What a launcher takes: its C++ declaration, read from the CUDA text.

Only what the workbook's launchers need is understood: a host function at namespace scope that
returns void and takes raw pointers, integers, floats and perhaps a stream. Everything else is
refused by name.
"""

import re
from dataclasses import dataclass

import torch

from utils.errors import DeclarationError

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
    head: str  # what stands left of the name: template, attributes, return type
    name: str
    parameters: str


def parse_launcher(source: str, name: str) -> tuple[Parameter, ...]:
    """The parameters of the host function `name` of a CUDA text.

    Raises DeclarationError when there is none, or more than one, or its signature is not one that
    Python can call; the message names the parameter.
    """
    functions = [f for f in _functions(source) if not re.search(r"__(global|device)__", f.head)]
    found = [f for f in functions if f.name == name]
    if not found:
        others = ", ".join(sorted({f.name for f in functions})) or "none"
        raise DeclarationError(
            f"there is no launcher `void {name}(...)` at the top level of the text; "
            f"host functions found: {others}"
        )
    signatures = [_signature(f) for f in found]
    if len({tuple(p.ctype for p in signature) for signature in signatures}) > 1:
        raise DeclarationError(f"{name}: there are several functions of that name; keep one")
    return signatures[-1]  # the definition, where a declaration stands before it


def _signature(function: _Function) -> tuple[Parameter, ...]:
    name = function.name
    if function.head.startswith("template"):
        raise DeclarationError(f"{name}: the launcher must not be a template")
    _check_return_type(function)
    parts = enumerate(_split(function.parameters), 1)
    parameters = tuple(_parameter(text, f"{name}: parameter {i}") for i, text in parts)
    if any(p.is_stream for p in parameters[:-1]):
        raise DeclarationError(f"{name}: the cudaStream_t must be the last parameter")
    if len({p.name for p in parameters}) < len(parameters):
        raise DeclarationError(f"{name}: two parameters have the same name")
    return parameters


def _check_return_type(function: _Function) -> None:
    head = re.sub(r'extern\s*"[^"]*"|__attribute__\s*\(\(.*?\)\)|\[\[.*?\]\]', " ", function.head)
    words = [word for word in head.split() if word not in _SPECIFIERS]
    if words != ["void"]:
        returned = " ".join(words) or "nothing"
        raise DeclarationError(f"{function.name}: a launcher must return void, not {returned}")


def _spell(words: list[str]) -> str:
    """One spelling for each type: `long long int`, `int long long` -> `long long`."""
    words = [re.sub(r"^(::)?std::", "", w) for w in words]
    if "int" in words and len(words) > 1:
        words.remove("int")
        words = [w for w in words if w != "signed"] or ["int"]
    words.sort(key=lambda w: w not in ("unsigned", "signed"))  # the sign first
    return " ".join(words)


def _parameter(text: str, where: str) -> Parameter:
    where += f" `{' '.join(text.split())}`"
    words = re.findall(r"[\w:]+|\S", text)
    if "=" in words:
        raise DeclarationError(f"{where} has a default argument, which is not supported")
    if words.count("*") > 1 or not all(re.match(r"[\w:*]", word) for word in words):
        raise DeclarationError(f"{where} is not supported; pass raw pointers and sizes")
    if "*" in words:
        star = words.index("*")
        known, type_words, after = POINTERS, words[:star], words[star + 1 :]
        named = [w for w in after if w not in ("const", "__restrict__", "__restrict")]
    else:
        known, plain = {**SCALARS, "cudaStream_t": "Q"}, [w for w in words if w != "const"]
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
        return Parameter(named[0], full, is_tensor=True, is_const=is_const, dtype=known[ctype])
    return Parameter(named[0], ctype, is_stream=ctype == "cudaStream_t", code=known[ctype])


def _listed(types: dict, suffix: str = "") -> str:
    return ", ".join(name + suffix for name in types)


# --- the text as a list of top-level functions


_NOISE = re.compile(
    r"""R"(?P<tag>[^\s()\\]*)\(.*?\)(?P=tag)"    # raw string
    |"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'   # string, character
    |//[^\n]* | /\*.*?\*/                        # comments
    |^[ \t]*\#(?:\\\n|[^\n])*                    # preprocessor line
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)


def _plain(source: str) -> str:
    """The text without comments, literals and preprocessor lines; `extern "C"` is kept."""
    return _NOISE.sub(lambda m: '"C"' if m[0] in ('"C"', '"C++"') else " ", source)


def _functions(source: str) -> list[_Function]:
    """Functions declared or defined at the top level, in an unnamed namespace or in extern "C"."""
    chunks, chunk, depth = [], "", 0
    for token in re.split(r"([{};])", _plain(source)):
        if token == "{":
            if depth or not re.search(r'(extern\s*"C"|\bnamespace)\s*$', chunk):
                depth += 1
            else:
                chunk = ""  # its contents are at the top level too
        elif token == "}":
            depth = max(0, depth - 1)
        elif depth == 0 and token != ";":
            chunk += token
        if depth == 0 and token in "};" or token == "{" and depth == 1:
            chunks.append(chunk)
            chunk = ""
    return [f for f in map(_function, chunks) if f]


def _function(chunk: str) -> _Function | None:
    text = re.sub(r"\bnoexcept\s*$", "", chunk.strip()).strip()
    if not text.endswith(")"):
        return None
    start = depth = 0
    for start in range(len(text) - 1, -1, -1):
        depth += (text[start] == ")") - (text[start] == "(")
        if depth == 0:
            break
    match = re.search(r"\b([A-Za-z_]\w*)\s*$", text[:start])
    if match is None or not text[: match.start()].strip() or "=" in text[: match.start()]:
        return None
    return _Function(text[: match.start()].strip(), match[1], text[start + 1 : -1])


def _split(parameters: str) -> list[str]:
    """At the commas that stand outside of brackets."""
    parts, depth = [""], 0
    for c in parameters:
        depth += (c in "(<[{") - (c in ")>]}")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [] if parts in ([""], ["void"]) or not parameters.strip() else parts
