"""CUDA C++ text as tokens: comments, literals, directives and all."""

import functools
import re
from typing import NamedTuple

_RAW_STRING = r'(?:u8|[uUL])?R"(?P<{0}>[^()\\\s"]{{0,16}})\(.*?\)(?P={0})"'
_STRING = r'(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"'
_CHAR = r"(?:u8|[uUL])?'(?:\\.|[^'\\\n])+'"

_TOKEN = re.compile(
    rf"""
      (?P<space>   (?: \\\r?\n | \s )+ )
    | (?P<comment> //(?: \\\r?\n | [^\n] )* | /\*.*?(?: \*/ | \Z ) )
    | (?P<string>  {_RAW_STRING.format("tag")} | {_STRING} )
    | (?P<char>    {_CHAR} )
    | (?P<number>  \.?\d(?: [eEpP][+-] | '\w | [\w.] )* )
    | (?P<name>    [^\W\d]\w* )
    | (?P<punct>   :: | -> | \#\# | . )
    """,
    re.VERBOSE | re.DOTALL,
)
# A directive ends with its line, but not inside a comment, a raw string or after a backslash.
_DIRECTIVE = re.compile(
    rf"""\#(?: \\\r?\n | /\*.*?(?: \*/ | \Z ) | //(?: \\\r?\n | [^\n] )*
          | {_RAW_STRING.format("directive_tag")} | {_STRING} | {_CHAR} | [^\n] )*""",
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE_WORD = re.compile(r"#(?:\\\r?\n|\s)*(\w+)\s*([^\n]*)")


class Token(NamedTuple):
    """A piece of a text, as `tokenize` splits it."""

    kind: str  # space, comment, string, char, number, name, punct or directive
    text: str
    start: int  # offset in the text


@functools.lru_cache(64)  # of one text there is a judge, a rewriter and a reader of its signature
def tokenize(text: str) -> tuple[Token, ...]:
    """Split CUDA C++ into tokens; joined they are the text again, whatever it holds.

    Punctuation comes as single characters, except `::`, `->` and `##`. A directive, with the lines
    that it continues on, is one token. What `#if 0` disables comes as comments.
    """
    tokens, position, line_is_empty, disables = [], 0, True, False
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match and match.lastgroup  # one of its branches takes any character
        kind, piece = match.lastgroup, match[0]
        if kind == "space":
            line_is_empty = line_is_empty or "\n" in piece.replace("\\\n", "")
        elif kind != "comment":
            if line_is_empty and (match := _DIRECTIVE.match(text, position)):
                kind, piece = "directive", match[0]
                disables = disables or "if" in piece
            elif kind == "tag":
                kind = "string"
            line_is_empty = False
        tokens.append(Token(kind, piece, position))
        position += len(piece)
    return tuple(_without_disabled(tokens) if disables else tokens)


def directive(token: Token) -> tuple[str, str]:
    """A directive's word and the rest of its line: `#if 0` is ("if", "0")."""
    match = _DIRECTIVE_WORD.match(token.text)
    return (match[1], match[2].strip()) if match else ("", "")


def _without_disabled(tokens: list[Token]) -> list[Token]:
    """The tokens with those between `#if 0` and its `#else` or `#endif` turned into comments."""
    result, depth = [], 0
    for token in tokens:
        word, rest = directive(token) if token.kind == "directive" else ("", "")
        if depth:
            depth += word in ("if", "ifdef", "ifndef")
            depth -= word == "endif" or (depth == 1 and word in ("else", "elif"))
            if depth:
                token = token._replace(kind="comment")
        elif word == "if" and re.fullmatch(r"0\s*(?://.*|/\*(?:(?!\*/).)*\*/)?\s*", rest):
            depth = 1
        result.append(token)
    return result
