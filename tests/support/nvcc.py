"""Many CUDA texts for one run of nvcc: it takes seconds to start, and to read CUDA's headers."""

import re
from collections.abc import Mapping
from pathlib import Path


def in_one_file(texts: Mapping[object, str], folder: Path, *head: str) -> Path:
    """A file with each text in a namespace of its own, their headers above them.

    nvcc calls each by its key. `head` are lines between the headers and the texts; a text's own
    macros end with it.
    """
    headers, spaces = {}, []
    for number, (name, text) in enumerate(texts.items()):
        headers |= dict.fromkeys(re.findall(r"^#include.*$", text, re.MULTILINE))
        body = re.sub(r"^#include.*$", "", text, flags=re.MULTILINE)
        spaces.append(f'namespace text{number} {{\n#line 1 "{name}"\n{body}\n}}')
        spaces += [f"#undef {macro}" for macro in re.findall(r"^#define (\w+)", text, re.MULTILINE)]
    path = folder / "all.cu"
    path.write_text("\n".join([*headers, *head, *spaces]))
    return path
