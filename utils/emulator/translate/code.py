"""CUDA C++ text whose tokens can be replaced one by one without moving a line."""

import copy
from collections import defaultdict
from collections.abc import Iterable, Sequence

from utils.emulator.translate.tokens import Token, directive, tokenize

_PAIRS = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_PAIRS.values())


class Misunderstood(ValueError):
    """Code that cannot be rewritten; `position` says where in it."""

    def __init__(self, position: int, message: str):
        super().__init__(message)
        self.position = position


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
        self.index: list[int] = []  # of the token at each position
        self.words: list[str] = []  # the original text at each position
        self.kinds: list[str] = []  # ... and its kind
        self.places: dict[str, list[int]] = defaultdict(list)  # word -> its positions
        self.directives: list[int] = []  # indices of tokens
        self.mate: dict[int, int] = {}  # position of a bracket -> position of its partner
        self.blocks: dict[int, int] = {}  # position -> number of function or class bodies around it
        self._parse()

    def copy(self) -> "Code":
        """The same text, to be changed on its own from here on."""
        twin = copy.copy(self)
        twin.out = self.out.copy()
        return twin

    def __len__(self) -> int:
        return len(self.index)

    def token(self, position: int) -> Token:
        """The token at a position."""
        return self.tokens[self.index[position]]

    def text(self, position: int) -> str:
        """The original text of the token at a position; empty outside of the text."""
        words = self.words
        return words[position] if 0 <= position < len(words) else ""

    def is_name(self, position: int) -> bool:
        """Whether an identifier or keyword is at a position; False outside of the text."""
        kinds = self.kinds
        return 0 <= position < len(kinds) and kinds[position] == "name"

    def positions(self, *words: str) -> list[int]:
        """Where any of these words stands, in order."""
        if len(words) == 1:
            return self.places.get(words[0], [])
        return sorted(position for word in words for position in self.places.get(word, ()))

    def put(self, position: int, text: str) -> None:
        """Replace the token at a position."""
        self.out[self.index[position]] = text

    def append(self, position: int, text: str) -> None:
        """Put a text behind the token at a position."""
        self.out[self.index[position]] += text

    def result(self) -> str:
        """The text with all changes."""
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

    def flat(self, positions: Sequence[int]) -> str:
        """The original tokens of these positions on one line, without comments."""
        parts, before = [], None
        for position in positions:
            if before is not None and self.index[position] - self.index[before] > 1:
                parts.append(" ")
            parts.append(self.text(position))
            before = position
        return "".join(parts)

    def after(self, position: int) -> int:
        """The next position; behind its partner where a bracket opens."""
        if self.text(position) in _PAIRS:
            position = self.mate.get(position, position)
        return position + 1

    def shallow(self, start: int, stop: int) -> list[int]:
        """The positions between; of what is in brackets only the opening one."""
        positions = []
        while start < stop:
            positions.append(start)
            start = self.after(start)
        return positions

    def statement(self, position: int) -> int:
        """Where the statement or declaration around a position begins."""
        while position > 0 and self.text(position - 1) not in (";", "}", "{"):
            position -= 1
        return position

    def line(self, position: int, first_line: int) -> int:
        """The line that a position is in, of a text that begins with `first_line`."""
        before = self.tokens[: self.index[position]]
        return first_line + sum(token.text.count("\n") for token in before)

    def split(self, positions: Iterable[int]) -> list[list[int]]:
        """At the commas that stand outside of brackets and template arguments."""
        parts: list[list[int]] = [[]]
        angles = behind = 0
        for position in positions:
            if position >= behind:
                text, behind = self.text(position), self.after(position)
                if text == "," and not angles:
                    parts.append([])
                    continue
                angles = max(0, angles + (text == "<") - (text == ">"))
            parts[-1].append(position)
        return parts

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

    def angle_close(self, position: int) -> int:
        """Behind the template argument list that begins with the `<` at a position."""
        depth = 0
        while position < len(self):
            text = self.text(position)
            depth += (text == "<") - (text == ">")
            position = self.after(position)
            if depth == 0 or text == ";":
                return position
        return position

    def _parse(self) -> None:
        open_brackets: list[int] = []
        saved: list[list[int]] = []
        for index, token in enumerate(self.tokens):
            kind, text, _ = token
            if kind in ("space", "comment"):
                continue
            if kind == "directive":
                self.directives.append(index)
                # Each branch of an #if starts from the brackets that were open before it.
                word, _ = directive(token)
                if word in ("if", "ifdef", "ifndef"):
                    saved.append(open_brackets.copy())
                elif word in ("else", "elif") and saved:
                    open_brackets = saved[-1].copy()
                elif word == "endif" and saved:
                    saved.pop()
                continue
            position = len(self.words)
            self.index.append(index)
            self.words.append(text)
            self.kinds.append(kind)
            self.places[text].append(position)
            if text in _PAIRS:
                open_brackets.append(position)
            elif text in _CLOSING and open_brackets:
                if _PAIRS[self.words[open_brackets[-1]]] == text:
                    self.mate[position] = open_brackets.pop()
                    self.mate[self.mate[position]] = position
            elif text == "__shared__":
                self.blocks[position] = sum(
                    self.text(p) == "{" and not self._opens_namespace(p) for p in open_brackets
                )

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
