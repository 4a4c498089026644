"""PyTorch's calls, one by one, while a reference runs: heard, or answered in another way."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
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


@dataclass(frozen=True, eq=False)  # tensors are not simply equal
class Call:
    """A call, and what came of it."""

    function: Function
    args: Args
    options: Options
    result: Any
    within: str  # the formula that it is a part of; "" for none
    made: Mapping[int, "Call"]  # the calls of the run, by their result's id

    @property
    def name(self) -> str:
        """Such as "add", also of `__add__`."""
        return name_of(self.function)

    @property
    def apart(self) -> bool:
        """Whether it is a part of a formula that was taken apart."""
        return bool(self.within)


class Heard(TorchCalls):
    """Keeps the calls of a run. Of `formulas`, by the name of a call, those within are heard
    instead; the call of that `number` is answered by `answer`."""

    def __init__(
        self,
        formulas: Mapping[str, Function] = MappingProxyType({}),
        number: int = -1,
        answer: Function | None = None,
    ):
        super().__init__()
        self.formulas, self.number, self.answer = formulas, number, answer
        self.calls: list[Call] = []
        self._within = ""
        self._made: dict[int, Call] = {}

    def call(self, function: Function, args: Args, options: Options) -> Any:
        """Its own answer, PyTorch's, or what the calls within give."""
        if (name := name_of(function)) in self.formulas:
            self._within = name
            with self:
                result = self.formulas[name](args[0])
            self._within = ""
            return result
        answer = self.answer if len(self.calls) == self.number and self.answer else function
        result = answer(*args, **options)
        call = Call(function, args, options, result, self._within, self._made)
        if not (args and result is args[0]):  # such as requires_grad_(), which makes nothing
            self._made[id(result)] = call
        self.calls.append(call)
        return result


def name_of(function: Function) -> str:
    """Such as "add", also of `__add__`."""
    return function.__name__.strip("_")
