"""The workbook's words are the field's: CUDA's, PyTorch's, the C++ standard's.

A private word costs every reader a lookup. What a reader stumbled over once does not come back.
"""

import ast
import json
import re
from collections.abc import Iterator
from functools import cache

import pytest
from support.committed import committed

from utils.ground.paths import ROOT

# What no text says, as a regular expression, and what it says instead.
INSTEAD = {
    r"\bSince `": "Changed from `",
    r"\b[Ss]trays?\b": "out of bounds",
    r"\b[Dd]eeds?\b": "asynchronous operation",
    r"\b[Dd]oubts?\b": "benign race, caveat",
    r"\b[Mm]end(s|ed|ing)?\b": "fix",
    r"\b[Ff]or ever\b": "forever",
    r"lies nearest": "the obvious way",
    r"\b(is|are|was|were) served\b": "runs",
    r"\bdout\b": "grad_out in a kernel, grad_output in Python",
    r"(?<!negative )\b[Ss]lopes?\b": "derivative, grad_output",
    r"\bint products\b|\bproducts(=| == )[13]\b|\"products\": [13]": "terms",
    r"\bint high\(\)": "height() of a band; high() is a half",
    r"one number of many": "reduce many numbers to one",
    r"\bcounts further is not found": "a kernel that counts further is not caught",
    r"gives himself away": "gives itself away",
    r"\bneglected\b": "waited, but not for this operation",
    r"that is all of the whole": "that is all there is to win",
    r"nothing to forgive": "the reference is exact, so the tolerance is zero",
    r"\btimes less\b": "times as fast",
    r"\bever (fewer|larger)\b": "the fewer, the larger",
    r"\bThe larger of a block's values": "the largest",
    r"\bstops? to pay\b": "stop paying",
}
# (word, beginning of a path): where it is the right one, and why.
RIGHT = {
    (r"(?<!negative )\b[Ss]lopes?\b", "notebooks/07"): "of a roofline",
    (r"(?<!negative )\b[Ss]lopes?\b", "solutions/07"): "of a roofline",
    (r"(?<!negative )\b[Ss]lopes?\b", "tests/mutants/07"): "a mutant's name: of LeakyReLU",
    (r"\b[Dd]oubts?\b", "notebooks/cpp.ipynb"): "'when in doubt' is what one says",
}
# Names that say when a value came, and not what it is: messages, matches, arguments, a request.
PARTICIPLES = {"told", "found", "given", "asked"}
NOT_TEXT = (".png", ".gif", ".json", ".ico")


def text_of(path: str) -> str:
    """What a reader sees of a file: of a notebook the cells and their outputs."""
    text = (ROOT / path).read_text(errors="ignore")
    return "\n".join(shown(json.loads(text))) if path.endswith(".ipynb") else text


def shown(notebook: dict) -> Iterator[str]:
    for cell in notebook["cells"]:
        yield "".join(cell["source"])
        for output in cell.get("outputs", ()):
            yield "".join(output.get("text", ()))
            data = output.get("data", {})
            yield from (
                "".join(data.get(kind, ())) for kind in ("text/plain", "text/html", "image/svg+xml")
            )


@cache
def texts() -> dict[str, str]:
    """All that is written in the project, by path; this file has the words themselves."""
    paths = [path for path in committed() if not path.endswith(NOT_TEXT)]
    return {path: text_of(path) for path in paths if path != "tests/test_words.py"}


def is_right(word: str, path: str) -> bool:
    return any(word == allowed and path.startswith(place) for allowed, place in RIGHT)


@pytest.mark.parametrize("word", INSTEAD)
def test_no_word_is_a_private_one(word):
    pattern = re.compile(word)
    lines = [
        f"{path}: {line.strip()}"
        for path, text in texts().items()
        if pattern.search(text) and not is_right(word, path)
        for line in text.splitlines()
        if pattern.search(line)
    ]
    assert lines == [], f"instead: {INSTEAD[word]}"


def names(tree: ast.Module) -> Iterator[str]:
    """What a module names: variables, parameters, attributes, functions, classes."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def test_a_name_says_what_it_is():
    modules = {path: text for path, text in texts().items() if path.endswith(".py")}
    private = [
        f"{path}: {name}"
        for path, text in modules.items()
        if any(word in text for word in PARTICIPLES)
        for name in names(ast.parse(text))
        if name.strip("_").lower() in PARTICIPLES
    ]
    private += [path for path in modules if re.search(r"/_?(told|found|given|asked)\.py$", path)]
    assert private == []
