"""PyTorch's calls, one by one, while a reference runs: each may be answered in another way."""

from collections.abc import Callable
from typing import Any

from torch.overrides import TorchFunctionMode

Function = Callable[..., Any]
Args = tuple[Any, ...]
Options = dict[str, Any]  # arguments by name


class TorchCalls(TorchFunctionMode):
    """A context in which `call` answers PyTorch's calls."""

    def __torch_function__(
        self, function: Function, types: object, args: Args = (), kwargs: Options | None = None
    ) -> Any:
        return self.call(function, args, kwargs or {})

    def call(self, function: Function, args: Args, options: Options) -> Any:
        """What one call gives."""
        raise NotImplementedError


def name_of(function: Function) -> str:
    """Such as "add", also of `__add__`."""
    return function.__name__.strip("_")
