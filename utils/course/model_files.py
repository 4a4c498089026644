"""`solutions/models/`: the five tasks as files that stand alone, made of the course's kernels.

Each is assembled of the Python and C++ of `kernels/models/new/`, and of the solutions of chapters
08, 11 and 12 with the headers that they include, each once. What of CUDA's own runtime these use is
changed in three places: launches and fills go to PyTorch's current stream, memory is PyTorch's.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from utils.course.markup import solved
from utils.course.models import MODELS
from utils.paths import workspace

TASKS = {model.task: name for name, model in MODELS.items()}
_INCLUDE = re.compile(r'^#include "([\w.]+)"[^\n]*\n', re.MULTILINE)
_STANDARD = re.compile(r"^#include <[\w./]+>\n", re.MULTILINE)


def texts() -> Iterator[tuple[Path, str]]:
    """Each file of `solutions/models/`, and what should be in it."""
    for reference in sorted((workspace().kernels / "models").glob("[0-9]*_*.py")):
        number = int(reference.stem.partition("_")[0])
        yield workspace().solutions / "models" / reference.name, _text(reference, number)


def _text(reference: Path, number: int) -> str:
    parts, solutions, name = _parts(), workspace().solutions, TASKS[number]
    tail, back = f"08_fused_tails/{name}.cu", f"12_ship_it/{name}_backward.cu"
    whole = f"11_hopper/linear_{name}_hopper.cu"
    flat = Flat()
    kernels = flat.header("scratch.cuh") + flat.namespace("forwards", solutions / tail)
    kernels += flat.namespace("backwards", solutions / back) + flat.file(parts / f"{number}.cu")
    on_hopper = flat.header("hopper_epilogue.cuh", without="linear_bias")
    on_hopper += flat.namespace("hopper", solutions / whole, only_kernels=True)
    on_hopper += flat.header("linear_backward.cuh")
    calls = parts / ("75_hopper.cu" if number == 75 else "whole_hopper.cu")
    on_hopper += flat.file(calls).replace("NAME", name) + flat.file(parts / "products_hopper.cu")
    shape = "1, N, M, 1" if number == 75 else "M, N"
    added = number == 94
    pieces = {
        "HOST": (parts / "host.cpp").read_text(),
        "HOST_HOPPER": (parts / "hopper.cpp").read_text().replace("SHAPE", f"{{{shape}}}"),
        "KERNELS": on_the_current_stream(kernels),
        "KERNELS_HOPPER": on_the_current_stream(on_hopper),
    }
    head = f'''"""Task {number} of KernelBench by kernels of this course: `ModelNew`, which trains.

Made by `workbook sync` of kernels/models/new, of kernels/include and, in solutions/, of
{tail}, {back} and
{whole}. Change those: what is changed here is lost.

On Hopper the linear layer is split into halves and multiplied by tensor cores, as exact as fp32,
and all that follows happens in registers. A row of x or W with outliers, more than 2^15 times what
is usual in it, is multiplied in floats: as exact, and far slower. On other cards, and for groups of
other sizes, PyTorch multiplies. It takes and gives float32, also under autocast, and has first
derivatives only. Layers that have hooks, or that others have taken the place of, are called, and
not fused.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

NAME = "task_{number}"


def result_shape(M, N):
    """Of the result, for M rows and N channels."""
    return {shape}


PARAMETER_IS_ADDED_TO_Y = {added}  # as the linear layer's bias is: their gradients are the same
'''
    raw = [f'{key} = r"""\n{text.strip()}\n"""\n' for key, text in pieces.items()]
    operator = (parts / "operator.py").read_text()
    return "\n".join([head, *raw, operator, "\n" + (parts / f"{number}.py").read_text()])


class Flat:
    """CUDA texts in one: headers of ours where they are first included, and nowhere else."""

    def __init__(self):
        self.seen: set[str] = set()

    def header(self, name: str, without: str | None = None) -> str:
        """A header of ours and those that it includes; "" where it is there already."""
        if name in self.seen:
            return ""
        self.seen.add(name)
        own = _parts() / name
        text = (own if own.exists() else workspace().include / name).read_text()
        text = text.replace("#pragma once\n", "")
        text = _without(text, without) if without else text
        return self.inlined(text)

    def inlined(self, text: str) -> str:
        """A text with the headers that it includes in their places."""

        def replace(include: re.Match) -> str:
            if not (workspace().include / include[1]).exists():
                return include[0]  # the emulator's
            return self.header(include[1])

        return _INCLUDE.sub(replace, text)

    def file(self, path: Path) -> str:
        """The text of a file."""
        return self.inlined(solved(path.read_text()))

    def namespace(self, name: str, path: Path, only_kernels: bool = False) -> str:
        """A solution, in a namespace: many have functions of the same names."""
        text = solved(path.read_text())
        headers = "".join(self.header(found[1]) for found in _INCLUDE.finditer(text))
        body = _INCLUDE.sub("", text)
        if only_kernels:
            for launcher in ("find_keys", path.stem):
                body = _without(body, launcher)
        return f"{headers}\n// --- {_shown(path)}\n\nnamespace {name} {{\n{body.strip()}\n}}\n\n"


def on_the_current_stream(text: str) -> str:
    """Launches and fills of the default stream go to PyTorch's current one."""
    text = re.sub(r"<<<(.*?)>>>", _launch, text, flags=re.DOTALL)
    text = re.sub(r"(cudaMemsetAsync\([^;]*)\);", r"\1, current_stream());", text)
    return text.replace(
        "cudaLaunchConfig_t config = {};",
        "cudaLaunchConfig_t config = {};\n    config.stream = current_stream();",
    )


def _launch(found: re.Match) -> str:
    depth, commas = 0, 0
    for letter in found[1]:
        depth += (letter in "([{") - (letter in ")]}")
        commas += letter == "," and depth == 0
    return f"<<<{found[1]}{', 0' * (2 - commas)}, current_stream()>>>"


def _without(text: str, function: str) -> str:
    """A text without a function of the host, and the comment before it."""
    head = rf"(?:^//[^\n]*\n)*^(?:inline )?(?:void|int) {function}\("
    return re.sub(rf"{head}.*?^}}\n", "", text, count=1, flags=re.MULTILINE | re.DOTALL)


def _shown(path: Path) -> str:
    return path.relative_to(workspace().root).as_posix()


def _parts() -> Path:
    return workspace().kernels / "models/new"
