"""Loops that hold nothing but mma: the lanes of a warp meet once for all of them.

What a tensor core adds up lies in a thread's own registers, and the emulator cannot know when a
kernel looks there. In a loop with nothing else in it no kernel does. So the products of such a loop
are gathered, and made when it ends: `for (...) mma_f16(d, a, b);` becomes
`{ emu::Products emu_products; for (...) mma_f16(d, a, b); }`.
"""

from collections.abc import Sequence

from utils.emulator.translate.code import Code

_PRODUCTS = ("mma_f16", "mma_bf16", "mma_tf32")


def gather_products(code: Code) -> None:
    """Mark the outermost loops of that kind."""
    if code.macro or not code.positions(*_PRODUCTS):
        return
    behind = 0
    for position in code.positions("for"):
        if position < behind:
            continue
        loop = _Loop(code)
        end = loop.statement(position)
        if end and loop.products and not loop.looked_at() and not _unrolled(code, position):
            code.put(position, "{ emu::Products emu_products; for")
            code.append(end - 1, " }")
            behind = end


def _unrolled(code: Code, position: int) -> bool:
    """Whether a pragma of g++ stands there, which no `{` may follow."""
    between = code.tokens[code.index[position - 1] + 1 : code.index[position]] if position else []
    return any(token.kind == "directive" and "GCC" in token.text for token in between)


class _Loop:
    """What a loop of products adds to, and what it multiplies, by name."""

    def __init__(self, code: Code):
        self.code = code
        self.products = 0
        self.sums: set[str] = set()
        self.factors: set[str] = set()

    def looked_at(self) -> bool:
        """Whether what it adds to is a factor, too."""
        return bool(self.sums & self.factors)

    def statement(self, position: int) -> int | None:
        """The end of the statement at a position; None where it does something else."""
        text = self.code.text(position)
        if text == "for" and self.code.text(position + 1) == "(":
            close = self.code.mate.get(position + 1)
            if close is None or {"(", "[", "{"} & set(self._texts(position + 2, close)):
                return None
            return self.statement(close + 1)
        if text == "{" and position in self.code.mate:
            end, position = self.code.mate[position], position + 1
            while position < end:
                if not (following := self.statement(position)):
                    return None
                position = following
            return end + 1
        if text in _PRODUCTS and self.code.text(position + 1) == "(":
            return self._product(position + 1)
        return self._reference(position)

    def _product(self, opening: int) -> int | None:
        close = self.code.mate.get(opening)
        if close is None or self.code.text(close + 1) != ";":
            return None
        to, *factors = self.code.split(range(opening + 1, close))
        if "(" in self._texts(opening + 1, close):
            return None
        self.products += 1
        self._adds_to(to)
        self.factors |= self._names([p for part in factors for p in part])
        return close + 2

    def _reference(self, position: int) -> int | None:
        """`float (&d)[4] = reinterpret_cast<...>(...);`"""
        if self._texts(position, position + 3) != ["float", "(", "&"]:
            return None
        end = position
        while end < len(self.code) and self.code.text(end) != ";":
            end = self.code.after(end)
        texts = self._texts(position, end)
        if "=" not in texts or texts[texts.index("=") + 1] != "reinterpret_cast":
            return None
        self.sums.add(self.code.text(position + 3))
        self._adds_to(range(position + texts.index("=") + 2, end))
        return end + 1

    def _texts(self, start: int, stop: int) -> list[str]:
        return [self.code.text(p) for p in range(start, stop)]

    def _adds_to(self, positions: Sequence[int]) -> None:
        """Indices are looked at, and what they stand behind is not."""
        behind, indices = 0, []
        for p in positions:
            if self.code.text(p) == "[":
                behind = max(behind, self.code.mate.get(p, p))
            if p < behind:
                indices.append(p)
            elif self.code.is_name(p):
                self.sums.add(self.code.text(p))
        self.factors |= self._names(indices)

    def _names(self, positions: Sequence[int]) -> set[str]:
        return {self.code.text(p) for p in positions if self.code.is_name(p)}
