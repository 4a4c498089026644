"""The page on C++ has every word and sign of the language that the workbook's kernels use."""

import re

import pytest

from utils.emulator.translate.tokens import tokenize
from utils.ground.paths import ROOT, workspace
from utils.notebooks import documents

# Of C++17.
WORDS = """alignas alignof asm auto bool break case catch char class const const_cast constexpr
continue decltype default delete do double dynamic_cast else enum explicit extern false float for
friend goto if inline int long mutable namespace new noexcept nullptr operator private protected
public register reinterpret_cast return short signed sizeof static static_assert static_cast struct
switch template this throw true try typedef typename union unsigned using virtual void volatile
while""".split()
CODE = re.compile(r"```cuda\n(.*?)```|`([^`]+)`|<code>(.*?)</code>", re.DOTALL)


def tokens(text: str) -> set[str]:
    """The keywords and operators of a text."""
    kinds = {token for kind, token, _ in tokenize(text) if kind not in ("space", "comment")}
    return {token for token in kinds if token in WORDS or re.fullmatch(r"[^\w\s\"'\\]+", token)}


@pytest.fixture(scope="module")
def page() -> set[str]:
    cells = documents.read(workspace().notebooks / "cpp.ipynb").cells
    code = (part for cell in cells for blocks in CODE.findall(cell.source) for part in blocks)
    return set().union(*(tokens(part.replace("&#124;", "|")) for part in code if part))


def test_it_has_all_that_the_kernels_use(page):
    missing = {}
    for folder in ("kernels", "solutions"):
        for path in sorted((ROOT / folder).rglob("*.cu*")):
            for token in tokens(path.read_text()) - page:
                missing.setdefault(token, path.relative_to(ROOT).as_posix())
    assert missing == {}
