"""CUDA C++ text as tokens that can be replaced one by one without moving a line."""

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
_PAIRS = {"(": ")", "[": "]", "{": "}"}


class Misunderstood(ValueError):
    """Code that cannot be rewritten; `position` says where in it."""

    def __init__(self, position: int, message: str):
        super().__init__(message)
        self.position = position


class Token(NamedTuple):
    kind: str  # space, comment, string, char, number, name, punct or directive
    text: str
    start: int  # offset in the text


def tokenize(text: str) -> list[Token]:
    """Split CUDA C++ into tokens; joined they are the text again, whatever it holds.

    Punctuation comes as single characters, except `::`, `->` and `##`. A directive, with the lines
    that it continues on, is one token. What `#if 0` disables comes as comments.
    """
    tokens, position, line_is_empty = [], 0, True
    while position < len(text):
        match = _TOKEN.match(text, position)
        kind = match.lastgroup if match.lastgroup != "tag" else "string"
        if match[0] in ("#", "##") and line_is_empty:
            match, kind = _DIRECTIVE.match(text, position), "directive"
        tokens.append(Token(kind, match[0], position))
        position = match.end()
        if kind == "space":
            line_is_empty = line_is_empty or "\n" in match[0].replace("\\\n", "")
        elif kind != "comment":
            line_is_empty = False
    return _without_disabled(tokens)


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
        elif word == "if" and re.match(r"0\b(?!\s*[|&])", rest):
            depth = 1
        result.append(token)
    return result


class Code:
    """The tokens of a text, with the text that each one becomes.

    Rewriting works on the positions of meaningful tokens, that is all but white space, comments
    and directives, which always stay: so no line is ever added or lost.
    """

    def __init__(self, text: str, macro: bool = False, params: tuple[str, ...] = ()):
        self.tokens = tokenize(text)
        self.out = [token.text for token in self.tokens]
        self.macro = macro  # the text is the body of a macro
        self.params = params  # ... of these parameters
        self.index = [
            i for i, t in enumerate(self.tokens) if t.kind not in ("space", "comment", "directive")
        ]
        self.mate: dict[int, int] = {}  # position of a bracket -> position of its partner
        self.blocks: dict[int, int] = {}  # position -> number of function or class bodies around it
        self._match_brackets()

    def __len__(self) -> int:
        return len(self.index)

    def token(self, position: int) -> Token:
        return self.tokens[self.index[position]]

    def text(self, position: int) -> str:
        """The original text of the token at a position; empty outside of the text."""
        return self.token(position).text if 0 <= position < len(self.index) else ""

    def is_name(self, position: int) -> bool:
        return 0 <= position < len(self.index) and self.token(position).kind == "name"

    def put(self, position: int, text: str) -> None:
        """Replace the token at a position."""
        self.out[self.index[position]] = text

    def append(self, position: int, text: str) -> None:
        self.out[self.index[position]] += text

    def result(self) -> str:
        return "".join(self.out)

    def run(self, position: int) -> int:
        """How many of the same character stand there without a gap: 3 at the start of `<<<`."""
        first, length = self.token(position), 1
        while position + length < len(self) and self.token(position + length)[1:] == (
            first.text,
            first.start + length,
        ):
            length += 1
        return length

    def flat(self, start: int, stop: int) -> str:
        """The original tokens of positions start … stop-1 on one line, without comments."""
        parts = []
        for position in range(start, stop):
            if position > start and self.index[position] - self.index[position - 1] > 1:
                parts.append(" ")
            parts.append(self.text(position))
        return "".join(parts)

    def directive_between(self, position: int) -> bool:
        """Whether a directive stands between a position and the one before."""
        between = self.tokens[self.index[position - 1] + 1 : self.index[position]]
        return any(token.kind == "directive" for token in between)

    def angle_open(self, position: int) -> int | None:
        """Where the template argument list that ends with the `>` at a position begins."""
        depth = 0
        while position >= 0:
            text = self.text(position)
            if text in (")", "]", "}"):
                position = self.mate.get(position, -1)
            elif text in (";", "{", "("):
                return None
            depth += (text == ">") - (text == "<")
            if depth == 0:
                return position
            position -= 1
        return None

    def _match_brackets(self) -> None:
        position_of = {index: position for position, index in enumerate(self.index)}
        open_brackets: list[int] = []
        saved: list[list[int]] = []
        for index, token in enumerate(self.tokens):
            if token.kind == "directive":
                # Each branch of an #if starts from the brackets that were open before it.
                word, _ = directive(token)
                if word in ("if", "ifdef", "ifndef"):
                    saved.append(open_brackets.copy())
                elif word in ("else", "elif") and saved:
                    open_brackets = saved[-1].copy()
                elif word == "endif" and saved:
                    saved.pop()
            if token.kind == "name" and token.text == "__shared__":
                self.blocks[position_of[index]] = sum(
                    self.text(p) == "{" and not self._opens_namespace(p) for p in open_brackets
                )
            if token.kind != "punct":
                continue
            position = position_of[index]
            if token.text in _PAIRS:
                open_brackets.append(position)
            elif token.text in _PAIRS.values() and open_brackets:
                if _PAIRS[self.text(open_brackets[-1])] == token.text:
                    self.mate[position] = open_brackets.pop()
                    self.mate[self.mate[position]] = position

    def _opens_namespace(self, position: int) -> bool:
        """Whether the `{` at a position opens a namespace or `extern "C"`."""
        k = position - 1
        if k >= 1 and self.token(k).kind == "string":
            return self.text(k - 1) == "extern"
        while self.is_name(k) or self.text(k) == "::":
            if self.text(k) == "namespace":
                return True
            k -= 1
        return False
