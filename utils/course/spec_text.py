"""The text of a spec, and how one more exercise gets into it: the rest of it stays as it is."""

import ast
import re
from pathlib import Path

from utils.ground.errors import WorkbookError


def extended(path: Path, entry: str) -> str:
    """The text of a spec with an entry more in EXERCISES, and what it imports.

    Raises WorkbookError where the spec cannot be read, or holds no such tuple.
    """
    try:
        text = _with_imports(path.read_text(encoding="utf-8"))
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "EXERCISES":
                return _with_entry(text, node.value, entry)
    except SyntaxError as error:
        raise WorkbookError(f"{path}, line {error.lineno}: {error.msg}") from None
    raise WorkbookError(f"{path} has no 'EXERCISES = (…)', to which an exercise could be added")


def _with_entry(text: str, value: ast.expr, entry: str) -> str:
    source, end = text.encode(), _end(text, value) - 1
    if not isinstance(value, ast.Tuple) or source[end:][:1] != b")":
        raise WorkbookError("EXERCISES is no tuple in parentheses, so nothing can be added to it")
    if value.elts:
        last = value.elts[-1]
        rest = source[_end(text, last) : end]
        if b"," not in re.sub(rb"#[^\n]*", b"", rest):
            raise WorkbookError("EXERCISES has no comma behind its last entry; write one")
    return f"{source[:end].decode().rstrip()}\n{entry}{source[end:].decode()}"


def _with_imports(text: str) -> str:
    """Exercise and At come from utils.course."""
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom)]
    ours = next((node for node in nodes if node.module == "utils.course"), None)
    have = [ast.unparse(alias) for alias in ours.names] if ours else []
    names = sorted({*have, "At", "Exercise"}, key=lambda name: (not name.isupper(), name))
    line = f"from utils.course import {', '.join(names)}"
    source = text.encode()
    if ours:
        start = _offset(text, ours.lineno, ours.col_offset)
        return source[:start].decode() + line + source[_end(text, ours) :].decode()
    later = [n for n in nodes if (n.module or "").startswith("utils.")]
    body = [n for n in ast.parse(text).body if not isinstance(n, ast.Expr)]
    first = later[0] if later else next(iter(body), None)
    start = _offset(text, first.lineno, 0) if first else len(source)
    return f"{source[:start].decode()}{line}\n{source[start:].decode()}"


def _end(text: str, node: ast.expr | ast.stmt) -> int:
    """Where a node of the syntax tree ends in the text's bytes."""
    return _offset(text, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)


def _offset(text: str, line: int, column: int) -> int:
    """Where a place of the syntax tree is in the text's bytes."""
    return sum(map(len, text.encode().splitlines(keepends=True)[: line - 1])) + column
