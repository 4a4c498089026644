"""What a reference gives with one of its steps in a wrong form, or with its steps in another order.

The steps are PyTorch's calls while the reference runs.
"""

from collections.abc import Callable, Iterator

from torch import Tensor
from torch.overrides import TorchFunctionMode

from utils.judge.wrong_forms import FORMS, Form

STEPS = 6  # of a chain whose orders are tried
NAMES = {"silu": "swish", "mul": "the product", "add": "the sum", "group_norm": "GroupNorm"}
WITH = " with "
Run = Callable[[], Tensor | None]  # the reference, to its output


def outcomes(run: Run, inputs: dict[str, Tensor], eps: float) -> Iterator[tuple[str, Tensor]]:
    """Each mistake in words, and what comes of it. `inputs` name what steps are done with."""
    with _Listening(inputs) as heard:
        run()
    comes = "this is what comes out if"
    for number, name, args, kwargs in heard.calls:
        more = {"eps": eps} if name == "rsqrt" else {}
        for words, form in FORMS[name](*args, **kwargs, **more):
            with _Replacing(number, form):
                value = run()
            if value is not None:
                yield f"{comes} {words}", value
    if len(heard.chain) <= STEPS:
        for words, order in _moves(heard.names):
            with _Reordering([heard.chain[i] for i in order]):
                value = run()
            if value is not None:
                yield f"{comes} {words}", value


def _moves(names: list[str]) -> Iterator[tuple[str, list[int]]]:
    """One step moved behind, or before, others; in words, and as an order."""
    count = len(names)
    for moved in sorted(range(count), key=lambda i: WITH not in names[i]):  # these say more
        for to in range(count):
            if to == moved:
                continue
            order = [i for i in range(count) if i != moved]
            order.insert(to, moved)
            where = "after" if to > moved else "before"
            yield f"{names[moved]} comes {where} {names[to]}", order


class _Mode(TorchFunctionMode):
    """Numbers the calls that have wrong forms, and those of a chain: each changes one tensor."""

    def __init__(self):
        super().__init__()
        self.number = -1

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = function.__name__.strip("_")
        self.number += name in FORMS
        return self.call(name, function, args, kwargs)


def _on(given: Tensor, function, args, kwargs) -> Callable[[Tensor], Tensor]:
    """The same call of another tensor, also where it stands in several places, as in y + y."""
    return lambda v: function(*(v if a is given else a for a in args), **kwargs)


def _changes(result, args) -> bool:
    """Whether a call made one tensor of another of the same shape, and did not only look at it."""
    given = args[0] if args and isinstance(args[0], Tensor) else None
    shape = getattr(result, "shape", None)
    return given is not None and shape == given.shape and not result._is_view()


class _Listening(_Mode):
    def __init__(self, inputs: dict[str, Tensor]):
        super().__init__()
        self.inputs = inputs
        self.calls: list[tuple[int, str, tuple, dict]] = []  # those that have wrong forms
        self.chain: list[Callable[[Tensor], Tensor]] = []
        self.names: list[str] = []

    def call(self, name, function, args, kwargs):
        result = function(*args, **kwargs)
        if name in FORMS:
            self.calls.append((self.number, name, args, kwargs))
        if _changes(result, args):
            self.chain.append(_on(args[0], function, args, kwargs))
            self.names.append(self._told(name, args))
        return result

    def _told(self, name: str, args: tuple) -> str:
        with_ = [k for k, t in self.inputs.items() if any(t is a for a in args[1:])]
        told = NAMES.get(name, name)
        return f"{told}{WITH}{with_[0]}" if with_ and name in ("mul", "add") else told


class _Replacing(_Mode):
    def __init__(self, wanted: int, form: Form):
        super().__init__()
        self.wanted, self.form = wanted, form

    def call(self, name, function, args, kwargs):
        if name in FORMS and self.number == self.wanted:
            return self.form(*args, **kwargs)
        return function(*args, **kwargs)


class _Reordering(_Mode):
    """The whole chain, in another order, in place of its first step; the others do nothing."""

    def __init__(self, chain: list[Callable[[Tensor], Tensor]]):
        super().__init__()
        self.chain, self.done = chain, False

    def call(self, name, function, args, kwargs):
        result = function(*args, **kwargs)
        if not _changes(result, args):
            return result
        value = args[0]
        if not self.done:
            self.done = True
            for step in self.chain:
                value = step(value)
        return value
