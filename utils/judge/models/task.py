"""What a model file is held against: a task, its sizes, and what goes into its Model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from utils.ground.errors import WorkbookError
from utils.judge.models.reference_text import ReferenceText
from utils.judge.models.work import Work

PYTHON = {"python float": float, "python int": int, "python bool": bool}  # kinds of numbers
_DTYPES = {float: torch.float64, int: torch.int64, bool: torch.bool}


class NotJudged(WorkbookError):
    """Why a task cannot be judged here."""


@dataclass(frozen=True)
class Size:
    """Arguments of a model, and its inputs' shapes."""

    arguments: tuple[object, ...]
    shapes: tuple[tuple[int, ...], ...]
    # The numbers of a reference's text that are put otherwise there.
    changed: tuple[tuple[int, int], ...] = field(default=(), compare=False)

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
    types: tuple[str, ...] = ()  # of the inputs; () where all are float32
    free: tuple[bool, ...] = ()  # whether an input may have any values; () where all may
    source: ReferenceText | None = None  # where sizes are numbers of the text
    work: Work = field(default_factory=Work)
    trains: bool = True  # whether there are gradients to be asked for
    modes: tuple[bool, ...] = (True, False)  # of nn.Module.train(), in which it gives one answer
    notes: tuple[str, ...] = ()
    may_draw: Callable[..., bool] | None = (
        None  # of arguments and shapes; None: any that Model takes
    )

    def make(self, size: Size, seed: int, device: str = "cpu") -> nn.Module:
        """A reference model with the initial parameters of a seed, made on a device."""
        cards = [device] if device.startswith("cuda") else []
        with torch.random.fork_rng(devices=cards), torch.device(device):
            torch.manual_seed(seed)
            return self.model(*size.arguments)

    def drawn(self, size: Size, seed: int) -> list[Tensor]:
        """Inputs as the reference's own get_inputs() draws them."""
        assert self.source  # whoever has none has free inputs only
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module = self.source.module(dict(size.changed))
            return [as_tensor(x) for x in module.get_inputs()]

    @property
    def dtypes(self) -> tuple[str, ...]:
        """A type for each input."""
        return self.types or ("float32",) * len(self.own.shapes)

    @property
    def usual(self) -> bool:
        """Whether the inputs are float32 and may have any values."""
        return all(t == "float32" for t in self.types) and all(self.free)


def as_tensor(value: Any) -> Tensor:
    """An input as a tensor; a number has no dimensions. Raises NotJudged."""
    if isinstance(value, Tensor):
        return value.detach()
    if type(value) in _DTYPES:
        return torch.tensor(value, dtype=_DTYPES[type(value)], device="cpu")
    raise NotJudged(f"get_inputs() gives a {type(value).__name__}; tensors and numbers are judged")


def type_of(value: Any) -> str:
    """What an input is: a dtype, or a Python number."""
    if isinstance(value, Tensor):
        return str(value.dtype).removeprefix("torch.")
    return f"python {type(value).__name__}"


def as_given(tensors: Sequence[Tensor], types: Sequence[str]) -> list[Any]:
    """Inputs as a forward takes them, numbers as numbers."""
    return [
        PYTHON[kind](tensor.item()) if kind in PYTHON else tensor
        for tensor, kind in zip(tensors, types or [""] * len(tensors), strict=True)
    ]
