"""What a model file is held against: our own reference, never anything of the file's.

A reference is a file in KernelBench's format: `Model`, `get_inputs()`, `get_init_inputs()`; its
`SIZES`, if it has some, are small ones that a model is tried at, too. kernels/models/ has those of
the five tasks.
"""

import re
import types
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from utils.ground.errors import ArgumentValueError, WorkbookError
from utils.ground.paths import workspace

SMALL = 1 << 22  # elements that the emulator takes at most


@dataclass(frozen=True)
class Size:
    """Arguments of a model, and its inputs' shapes."""

    arguments: tuple[object, ...]
    shapes: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.shapes))} into Model{self.arguments}"


@dataclass(frozen=True)
class Task:
    """A reference: its name, its text, its class, its own size, and smaller ones."""

    name: str
    text: str
    model: type[nn.Module]
    own: Size
    small: Sequence[Size]

    def make(self, size: Size, seed: int, device: str = "cpu") -> nn.Module:
        """A reference model, float32, with the initial parameters of a seed, made on a device."""
        cards = [device] if device.startswith("cuda") else []
        with torch.random.fork_rng(devices=cards), torch.device(device):
            torch.manual_seed(seed)
            return self.model(*size.arguments)


def read(path: Path) -> Task:
    """The task of a reference file, which is run: it must be one that you trust.

    Raises WorkbookError.
    """
    module = types.ModuleType(path.stem)
    try:
        text = path.read_text()
        exec(compile(text, str(path), "exec"), module.__dict__)
        model, arguments = module.Model, tuple(module.get_init_inputs())
        own = Size(arguments, _shapes(module))
        sizes = getattr(module, "SIZES", ())
    except OSError as error:
        raise WorkbookError(f"there is no reference {path}: {error.strerror}") from None
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise WorkbookError(f"{path.name} is no reference: {message}") from error
    small = [Size(tuple(arguments), tuple(map(tuple, shapes))) for arguments, shapes in sizes]
    task = Task(path.stem, text, model, own, small or [own])
    _require_tensor(path, task)
    return task


def _require_tensor(path: Path, task: Task) -> None:
    """Raises WorkbookError where Model does not run, or gives what is no tensor."""
    size = task.small[0]
    try:
        with torch.device("meta"), torch.no_grad():
            output = task.model(*size.arguments)(*map(torch.empty, size.shapes))
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise WorkbookError(f"{path.name}: Model does not take {size}: {message}") from error
    if not isinstance(output, Tensor):
        kind = type(output).__name__
        raise WorkbookError(f"{path.name}: Model gives a {kind}; one tensor can be judged")


def _shapes(module: types.ModuleType) -> tuple[tuple[int, ...], ...]:
    """Of what get_inputs() gives, which is not made: it may be gigabytes."""
    with torch.device("meta"):
        inputs = module.get_inputs()
    if not all(isinstance(x, Tensor) and x.dtype == torch.float32 for x in inputs):
        raise WorkbookError("get_inputs() must give float32 tensors")
    return tuple(tuple(x.shape) for x in inputs)


def find(path: Path, task: int | None = None, reference: Path | None = None) -> Task:
    """The task that is asked for, or else the one that a file's name begins with or tells of.

    Raises WorkbookError.
    """
    if reference:
        return read(reference)
    known = {int(p.stem.partition("_")[0]): p for p in references()}
    if task is None:
        stem = path.stem.lower()
        number = re.search(r"(?<!\d)\d+(?!\d)", stem)
        named = [n for n, p in known.items() if p.stem.partition("_")[2].lower() in stem]
        task = named[0] if named else int(number[0]) if number else None
    if task not in known:
        several = ", ".join(map(str, sorted(known)))
        raise ArgumentValueError(
            f"{path.name} tells of no task; say which: --task {several}, or --reference FILE"
        )
    return read(known[task])


def references() -> list[Path]:
    """The files of the five tasks."""
    return sorted((workspace().kernels / "models").glob("[0-9]*_*.py"))
