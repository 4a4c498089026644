"""CUDA texts as one text: what a file includes in its place, and launches on PyTorch's stream."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from utils.course.markup import solved
from utils.emulator.translate.code import Code
from utils.emulator.translate.functions import Macros, functions_and_variables
from utils.emulator.translate.tokens import directive
from utils.ground.paths import workspace


class Flat:
    """Headers stand where they are first included, and nowhere else.

    A header is looked for in each of `folders`, in order. One that is in none of them is the
    emulator's, and stays an #include.
    """

    def __init__(self, folders: Sequence[Path]):
        self.folders = folders
        self.included: set[str] = set()

    def header(self, name: str, without: Sequence[str] = ()) -> str:
        """A header with those that it includes; "" where it has been included."""
        if name in self.included:
            return ""
        self.included.add(name)
        path = next(path for path in self._places(name) if path.exists())
        return self._flat(without_functions(path.read_text(), without))

    def file(self, path: Path) -> str:
        """A file, solved where it is an exercise, with what it includes."""
        return self._flat(solved(path.read_text()))

    def namespace(self, name: str, path: Path, without: Sequence[str] = ()) -> str:
        """A file in a namespace, behind what it includes: many have functions of the same names."""
        code = Code(without_functions(solved(path.read_text()), without))
        headers = "".join(self.header(header) for header in self._take_includes(code).values())
        shown = path.relative_to(workspace().root).as_posix()
        body = code.result().strip()
        return f"{headers}\n// --- {shown}\n\nnamespace {name} {{\n{body}\n}}\n\n"

    def _flat(self, text: str) -> str:
        code = Code(text)
        for index, header in self._take_includes(code).items():
            code.out[index] = self.header(header)
        return code.result()

    def _take_includes(self, code: Code) -> dict[int, str]:
        """Take `#pragma once` and the includes of our headers away; which token named which."""
        included: dict[int, str] = {}
        for index in code.directives:
            word, rest = directive(code.tokens[index])
            header = rest.split('"')[1] if word == "include" and rest.startswith('"') else ""
            if header and any(path.exists() for path in self._places(header)):
                included[index] = header
            elif (word, rest) != ("pragma", "once"):
                continue
            _blank(code, index, index)
        return included

    def _places(self, header: str) -> list[Path]:
        return [folder / header for folder in self.folders]


def _blank(code: Code, first: int, last: int) -> None:
    """Take these tokens away, and the end of the line behind them."""
    code.out[first : last + 1] = [""] * (last + 1 - first)
    if last + 1 < len(code.out):
        code.out[last + 1] = code.out[last + 1].removeprefix("\n")


def without_functions(text: str, names: Iterable[str]) -> str:
    """A text without the first function of each name, and the comment right above it."""
    code = Code(text)
    functions, _ = functions_and_variables(code, Macros())
    for name in names:
        function = next(f for f in functions if f.name == name and f.body)
        first = code.index[function.head[0]]
        while code.tokens[first - 1].text == "\n" and code.tokens[first - 2].kind == "comment":
            first -= 2
        _blank(code, first, code.index[function.body.stop])
    return code.result()


def substituted(text: str, words: Mapping[str, str]) -> str:
    """A text in which some names stand for other tokens."""
    code = Code(text)
    for name, word in words.items():
        for position in code.positions(name):
            code.put(position, word)
    return code.result()


def on_the_current_stream(text: str) -> str:
    """Launches and fills of the default stream go to `current_stream()`."""
    code = Code(text)
    behind = 0
    for opening in code.positions("<"):
        if opening >= behind and code.run(opening) == 3:
            behind = closing = _closing(code, opening + 3)
            arguments = len(code.split(range(opening + 3, closing)))
            code.append(closing - 1, ", 0" * (3 - arguments) + ", current_stream()")
    for fill in code.positions("cudaMemsetAsync"):
        code.append(code.mate[fill + 1] - 1, ", current_stream()")
    for kind in code.positions("cudaLaunchConfig_t"):
        end = next(p for p in range(kind, len(code)) if code.text(p) == ";")
        code.append(end, f"\n    {code.text(kind + 1)}.stream = current_stream();")
    return code.result()


def _closing(code: Code, position: int) -> int:
    """Where the `>>>` begins behind a position in front of it."""
    while not (code.text(position) == ">" and code.run(position) == 3):
        position = code.after(position)
    return position
