"""What a reference gives with one of its steps in a wrong form, or with its steps in another order.

The steps are PyTorch's calls while the reference runs. Those of a chain each change one tensor.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from utils.cuda.arguments import Arguments
from utils.judge.mistakes.expressions import expression
from utils.judge.mistakes.wrong_forms import FORMS
from utils.judge.mistakes.wrong_statistics import Forms
from utils.judge.torch_calls import Args, Call, Function, Heard, Options, TorchCalls, name_of

STEPS = 9  # of a chain whose orders are tried
NORMALISING = "the normalising"
NAMES = {"silu": "swish"}
Run = Callable[[], Tensor | None]  # the reference, to its output
Step = tuple[str, Callable[[Tensor], Tensor]]  # in words, and of the tensor that it changes


def outcomes(
    run: Run,
    inputs: Arguments,
    eps: float,
    methods: Mapping[str, Forms] = MappingProxyType({}),
) -> Iterator[tuple[str, Tensor | None]]:
    """Each mistake in words, and what comes of it. `inputs` name what steps are done with;
    `methods` are more forms of a call, for the method by which an exercise wants it done.
    """
    comes = "this is what comes out if"
    with Heard() as heard:
        run()
    names = [call.name for call in heard.calls]
    for number, call in enumerate(heard.calls):
        several = names.count(call.name) > 1
        where = f", in {expression(call, inputs)}" if several else ""
        more = {"eps": eps} if call.name == "rsqrt" else {}
        for forms in (table[call.name] for table in (methods, FORMS) if call.name in table):
            for words, form in forms(*call.args, **call.options, **more):
                with Heard(number=number, answer=form):
                    value = run()
                yield f"{comes} {words}{where}", value
    chain = [step for call in heard.calls for step in _steps(call, inputs)]
    if len(chain) <= STEPS and not any(map(_is_lone, heard.calls)):
        for words, other in _other_chains(chain):
            with _Rebuilding(other):
                value = run()
            yield f"{comes} {words}", value


def _other_chains(chain: list[Step]) -> Iterator[tuple[str, list[Step]]]:
    """Two neighbouring stretches that change places; several steps, or the normalising, left out.

    Any other single step that is left out is a call, and tried where calls are.
    """
    names = [name for name, _ in chain]
    moves = []
    for i, j, k in itertools.combinations(range(len(chain) + 1), 3):
        first, second = names[i:j], names[j:k]
        descriptions = [
            (first, f"{' and '.join(first)} {_come(first)} after {second[-1]}"),
            (second, f"{' and '.join(second)} {_come(second)} before {first[0]}"),
        ]
        for moved, words in descriptions:
            twice = any(names.count(name) > 1 for name in moved)  # does not say which of them
            cost = twice, len(first) + len(second), len(moved), moved[0][0] not in "+*"
            moves.append((cost, words, chain[:i] + chain[j:k] + chain[i:j] + chain[k:]))
    yield from ((words, other) for _, words, other in sorted(moves, key=lambda move: move[0]))
    for i in range(1, len(chain) - 1):
        yield f"nothing comes after {names[i - 1]}", chain[:i]
        yield f"nothing comes before {names[i + 1]}", chain[i + 1 :]
    for i, name in enumerate(names):
        if name == NORMALISING:
            yield f"{name} is left out", chain[:i] + chain[i + 1 :]


def _come(names: list[str]) -> str:
    return "comes" if len(names) == 1 else "come"


def _changes(result: Any, args: Args) -> bool:
    """Whether a call made one tensor of another of the same shape, and did not only look at it."""
    if not (args and isinstance(args[0], Tensor) and isinstance(result, Tensor)):
        return False
    return result.shape == args[0].shape and not result._is_view()


def _begins(name: str, args: Args) -> bool:
    """Whether a call is a product with a bias, of which the chain's first step is the bias."""
    return name == "linear" and len(args) == 3


def _is_lone(call: Call) -> bool:
    """Whether its groups have a single value each, which tells nothing of the order."""
    return call.name == "group_norm" and call.args[1] == call.args[0].shape[1]


def _steps(call: Call, inputs: Arguments) -> Iterator[Step]:
    """Those of the chain that a call makes."""
    function, args, options, name = call.function, call.args, call.options, call.name

    def named(value: object) -> str:
        """The name of an input; of anything else what it is."""
        tensors = ((k, v) for k, v in inputs.items() if isinstance(v, Tensor))
        return next((k for k, tensor in tensors if tensor is value), str(value)[:8])

    if _begins(name, args):
        yield f"+ {named(args[2])}", lambda v: v + args[2]
    elif name == "group_norm" and len(args) == 5:
        _, groups, weight, bias, eps = args
        yield NORMALISING, lambda v: torch.group_norm(v, groups, None, None, eps)
        yield f"* {named(weight)}", lambda v: v * weight
        yield f"+ {named(bias)}", lambda v: v + bias
    elif _changes(call.result, args):
        tensor, label = args[0], NAMES.get(name, name)
        others = [named(a) for a in args[1:] if a is not tensor]
        if name in ("add", "mul"):
            label = f"{'+' if name == 'add' else '*'} {others[0]}" if others else "the doubling"
        yield label, lambda v: function(*(v if a is tensor else a for a in args), **options)


class _Rebuilding(TorchCalls):
    """Another chain in place of the first step; the others do nothing."""

    def __init__(self, chain: list[Step]):
        super().__init__()
        self.chain, self.done = chain, False

    def call(self, function: Function, args: Args, options: Options) -> Any:
        result = function(*args, **options)
        if _begins(name_of(function), args):
            value = function(*args[:2])
        elif _changes(result, args):
            value = args[0]
        else:
            return result
        if not self.done:
            self.done = True
            for _, step in self.chain:
                value = step(value)
        return value
