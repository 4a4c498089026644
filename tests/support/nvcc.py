"""Many CUDA texts for one run of nvcc: it takes seconds to start, and to read CUDA's headers."""

import re
from collections.abc import Mapping
from pathlib import Path

# Its sizes have the names of linear_tile.cuh's: it has a namespace with the texts that include it.
APART = '#include "warp_tile.cuh"'


def in_one_file(texts: Mapping[object, str], folder: Path, *head: str) -> Path:
    """A file with each text in a namespace of its own, their headers above them.

    nvcc calls each by its key. `head` are lines between the headers and the texts; a text's own
    macros end with it.
    """
    headers: dict[str, None] = {}
    spaces: list[str] = []
    apart: list[str] = []
    for number, (name, text) in enumerate(texts.items()):
        includes = re.findall(r"^#include.*$", text, re.MULTILINE)
        headers |= dict.fromkeys(line for line in includes if line != APART)
        body = re.sub(r"^#include.*$", "", text, flags=re.MULTILINE)
        own = apart if APART in includes else spaces
        own.append(f'namespace text{number} {{\n#line 1 "{name}"\n{body}\n}}')
        own += [f"#undef {macro}" for macro in re.findall(r"^#define (\w+)", text, re.MULTILINE)]
    if apart:
        headers['#include "quads.cuh"'] = None  # which it includes, too: not in the namespace
        spaces += ["namespace apart {", APART, *apart, "}"]
    path = folder / "all.cu"
    path.write_text("\n".join([*headers, *head, *spaces]))
    return path
