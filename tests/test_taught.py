"""A name that a kernel needs is explained before: where the reader meets it, or in a chapter above.

Looked at are calls, types and CUDA's own names in each `%%cuda` cell, in the order of the road.
Explained is what the cell itself defines, or what prose above it names; hints and solutions are no
explanation, and neither is a page that was linked.
"""

import re
from collections.abc import Iterator

import pytest

from utils.course import catalog
from utils.notebooks import documents

COMMENT = re.compile(r"//[^\n]*|#include[^\n]*")
CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*(?=[(<{]|::)")
OWN = re.compile(r"\b(__\w+|cuda\w+|(?:float|int|uint)[234]|dim3|size_t)\b")  # of CUDA, and C++
FOLD = re.compile(r"<details><summary>(?:Hint|Solution).*?</details>", re.DOTALL)
# What a reader of C knows, and what stands in the very first kernel, which 00 explains whole.
KNOWN = set(
    "if for while return sizeof switch else void int float const unsigned bool char struct "
    "static true false __global__".split()
)


def defined(code: str) -> set[str]:
    """Functions, types, constants and variables that a cell makes itself."""
    of_type = r"(?<!return )(?<!else )\b[A-Za-z_][\w:]*(?:<[^;(){}]*>)?[\s&*]+(?:const\s+)?"
    names = set(re.findall(rf"{of_type}([A-Za-z_]\w*)\s*[(\[={{;,:)]", code))
    names |= set(re.findall(r"\)\s+([A-Za-z_]\w*)\s*\(", code))  # after __launch_bounds__(…)
    names |= set(re.findall(r"\b(?:struct|class|using|typename)\s+([A-Za-z_]\w*)", code))
    return names | set(re.findall(r"[,{]\s*([A-Za-z_]\w*)\s*[=,;\[(]", code))


def unexplained() -> Iterator[tuple[str, str]]:
    """(exercise, name) for each name whose first use comes before any word of it."""
    prose, met = [], set(KNOWN)
    for notebook in catalog.notebooks():
        for cell in documents.read(documents.notebook_of(notebook)).cells:
            if cell.cell_type == "markdown":
                prose.append(FOLD.sub("", cell.source))
            elif id := documents.cuda_id(cell):
                code = COMMENT.sub("", cell.source.partition("\n")[2])
                used = {*CALLED.findall(code), *OWN.findall(code)}
                words = set(re.findall(r"\w+", "\n".join(prose)))
                for name in sorted(used - met - defined(code) - words):
                    yield id, name
                met |= used
            else:
                prose.append(cell.source)


FOUND = list(unexplained())


@pytest.mark.parametrize("topic", catalog.topics())
def test_a_name_is_explained_before_a_kernel_needs_it(topic):
    missing = [f"{id}: {name}" for id, name in FOUND if id.startswith(topic)]
    assert missing == []
