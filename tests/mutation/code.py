"""A CUDA text as its operators see it: tokens, brackets and statements."""

import re
from collections.abc import Iterator
from functools import cached_property

from utils.emulator.translate.tokens import Token, tokenize

_PUNCTUATION = "<<< >>> <<= >>= << >> <= >= == != && || ++ -- += -= *= /= %= &= |= ^=".split()
_OPEN, _CLOSE = "([{", ")]}"
_DECLARATION = set(
    "alignas auto bool char const constexpr dim3 double extern float float2 float4 int long "
    "short size_t static struct template unsigned using void __device__ __global__ "
    "__shared__".split()
)


class Code:
    """The tokens of a text that say something, with punctuation as C++ reads it.

    `name` is the launcher's, whose parameters nobody may change. Tokens are meant by their index.
    """

    def __init__(self, text: str, name: str = ""):
        self.text, self.name = text, name
        self.tokens = significant(text)
        self.partner: dict[int, int] = {}  # of each bracket
        opened: list[int] = []
        for i, token in enumerate(self.tokens):
            if token.text in _OPEN:
                opened.append(i)
            elif token.text in _CLOSE:
                self.partner[i] = opened.pop()
                self.partner[self.partner[i]] = i

    def __getitem__(self, i: int) -> str:
        """The text of a token; "" beyond the ends."""
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def __len__(self) -> int:
        return len(self.tokens)

    def start(self, i: int) -> int:
        """Where a token begins in the text."""
        return self.tokens[i].start

    def end(self, i: int) -> int:
        """Where a token ends in the text."""
        return self.tokens[i].start + len(self.tokens[i].text)

    def between(self, first: int, last: int) -> str:
        """The text from one token to another, both with it."""
        return self.text[self.start(first) : self.end(last)]

    def is_binary(self, i: int) -> bool:
        """Whether it is an operator between two operands: clang-format puts spaces around it."""
        around = self.text[self.start(i) - 1 : self.start(i)], self.text[self.end(i) :][:1]
        return self.tokens[i].kind == "punct" and all(c.isspace() for c in around)

    def primary(self, i: int) -> int:
        """The last token of the operand that begins here: `x`, `-x`, `a.b[i]`, `f<N>(x)`, `(…)`."""
        while self[i] in ("-", "!", "&", "*"):
            i += 1
        if self[i] in _OPEN:
            i = self.partner[i]
        while True:
            following = self[i + 1]
            if following in (".", "->", "::"):
                i += 2
            elif following in ("[", "("):
                i = self.partner[i + 1]
            elif self.template_end(i) > i:
                i = self.template_end(i)
            else:
                return i

    def template_end(self, i: int) -> int:
        """The last token of `name<...>`, where its name is here; else that name."""
        if self[i + 1] == "<" and not self.is_binary(i + 1):
            return self.reach(i + 1, 1, frozenset([">"])) + 1
        return i

    def arguments(self, opening: int) -> list[tuple[int, int]]:
        """First and last token of each thing between two brackets that commas part."""
        places, first, i = [], opening + 1, opening + 1
        while i < self.partner[opening]:
            if self[i] in _OPEN:
                i = self.partner[i]
            elif self[i] == ",":
                places.append((first, i - 1))
                first = i + 1
            i += 1
        return [*places, (first, i - 1)] if i > first else places

    def reach(self, i: int, step: int, stops: frozenset[str]) -> int:
        """The last token from here on, forwards (step 1) or backwards (-1), before a stop or the
        bracket that all this stands in."""
        while self[i + step] and self[i + step] not in stops:
            following = self[i + step]
            if following in (_CLOSE if step > 0 else _OPEN):
                break
            i = self.partner[i + step] if following in _OPEN + _CLOSE else i + step
        return i

    @cached_property
    def bodies(self) -> list[list[tuple[int, int]]]:
        """The statements of each block of each function: first and last token."""
        every = []
        for i in range(len(self)):
            if self[i] == "{" and self[i - 1] in (")", "else", "const", ";", "{", "}"):
                every.append(list(self._statements(i + 1, self.partner[i])))
        return every

    def _statements(self, i: int, closing: int) -> Iterator[tuple[int, int]]:
        while i < closing:
            last = self._statement(i)
            yield i, last
            i = last + 1

    def _statement(self, i: int) -> int:
        """The last token of the statement that begins here."""
        if self[i] == "{":
            return self.partner[i]
        if self[i] in ("for", "if", "while"):
            head = i + 2 if self[i + 1] == "constexpr" else i + 1
            last = self._statement(self.partner[head] + 1)
            return self._statement(last + 2) if self[last + 1] == "else" else last
        return self.reach(i, 1, frozenset(";")) + 1

    def declares(self, first: int) -> bool:
        """Whether the statement that begins here declares something."""
        return self[first] in _DECLARATION or (
            self.tokens[first].kind == "name"
            and self[first] != "return"
            and self.tokens[first + 1].kind == "name"
        )

    def rounds_up(self, i: int) -> bool:
        """Whether it is the minus of `(n + B - 1) / B`; with a little more it rounds up as well."""
        return self[i] == "-" and [self[i + n] for n in (1, 2, 3)] == ["1", ")", "/"]

    @cached_property
    def pointers(self) -> set[str]:
        """What is declared as a pointer, anywhere."""
        return {
            self[i + 1]
            for i in range(len(self))
            if self[i] == "*" and not self.is_binary(i) and self.tokens[i - 1].kind == "name"
        }

    def knows(self, i: int, name: str) -> bool:
        """Whether a name stands in the same function before a token, or is a file's constant."""
        for j in range(i - 1, -1, -1):
            if self[j] == name and (name.isupper() and len(name) > 1 or j > self._function[i]):
                return True
        return False

    @cached_property
    def _function(self) -> list[int]:
        """Of each token the last `}` or `;` that no bracket holds."""
        statements, last, depth = [], -1, 0
        for i in range(len(self)):
            depth += (self[i] in _OPEN) - (self[i] in _CLOSE)
            statements.append(last)
            if not depth and self[i] in ("}", ";"):
                last = i
        return statements

    @cached_property
    def declared(self) -> set[int]:
        """The names that a declaration gives, those behind commas, too: `int a = b, c[4];`."""
        names = set()
        for i in range(len(self)):
            before = self.tokens[i - 1]
            if self.tokens[i].kind != "name" or before.kind != "name" or before.text == "return":
                continue
            names.add(i)
            while self[i := self.reach(i, 1, frozenset(",;")) + 1] == ",":
                names.add(i := i + 1)
        return names

    @cached_property
    def is_fixed(self) -> list[bool]:
        """Of each token, whether it stands in the launcher's declaration, or in a template's."""
        fixed = [False] * len(self)
        for i in range(len(self)):
            if self[i] == "template" and self[i + 1] == "<":
                last = self.reach(i + 1, 1, frozenset([">"]))
            elif self[i] == self.name and self[i - 1] == "void" and self[i + 1] == "(":
                last = self.partner[i + 1]
            else:
                continue
            fixed[i : last + 1] = [True] * (last + 1 - i)
        return fixed


def significant(text: str) -> list[Token]:
    """Tokens without spaces, comments and directives, `<` and `=` that touch as `<=`."""
    tokens, kept, i = tokenize(text), [], 0
    while i < len(tokens):
        token = tokens[i]
        if token.kind == "punct":
            for operator in _PUNCTUATION:
                parts = tokens[i : i + len(operator)]
                if "".join(part.text for part in parts) == operator and len(parts) == len(operator):
                    token = token._replace(text=operator)
                    i += len(operator) - 1
                    break
        if token.kind not in ("space", "comment", "directive"):
            kept.append(token)
        i += 1
    return kept


def word_diff(code: Code, start: int, end: int, new: str) -> str:
    """What a change does to its line, as git's word diff shows it: `i [-<-]{+<=+} n`.

    Of a change over several lines the first and the last are shown.
    """
    head = code.text[:start].rpartition("\n")[2].lstrip()
    tail = re.sub(r"\s*//.*", "", code.text[end:].partition("\n")[0])
    old = _short(code.text[start:end])
    removed = f"[-{old}-]" if old else ""
    added = f"{{+{_short(new)}+}}" if new else ""
    return f"{head}{removed}{added}{tail}"


def _short(text: str) -> str:
    text = " ".join(re.sub(r"//.*", "", text).split())
    return text if len(text) <= 80 else f"{text[:50]} ... {text[-25:]}"
