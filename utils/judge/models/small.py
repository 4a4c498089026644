"""Finds what a task needs to be judged: small sizes, what its inputs are, what its own work is.

Sizes are made small by role. Of the numbers of a reference's text, one that is the first dimension
of an input is a batch, a third or later one is a length in space, and all else counts features.
Numbers of a role are divided by the same power of two, down to a least one, so that groups go on
dividing channels. The first sizes count at which Model runs at a bounded cost, gives finite values
that are not all the same, and lets each parameter matter, if it does at any size.
"""

import copy
import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from utils.judge.models import work
from utils.judge.models.task import NotJudged, Size, Task, as_given, as_tensor, type_of

PRODUCTS = 1 << 17  # multiplications of a call, at most
AGAIN = 3  # sizes that are tried while a parameter does not matter
DEARER = 4  # times as much, where nothing else is found
ELEMENTS = 1 << 15  # of all tensors that a call makes, at most
# At most so long in space, by the features, and so much of a batch; large ones first.
_SPACES = {2048: (32,), 512: (32,), 256: (16,), 128: (16,), 64: (32, 16), 32: (16, 12)}
_SPACES |= {16: (16, 12, 8), 8: (16, 12, 8, 6, 4), 4: (32, 16, 12, 8, 6, 4), 2: (8, 4)}
_CAPS = [(b, f, space) for f, most in _SPACES.items() for space in most for b in (12, 5, 3, 2)]


@dataclass
class Seen:
    """What a reference gave when it was tried."""

    outputs: list[Tensor]
    ran: list[work.Ran]


def task(wanted: Task) -> Task:
    """The task with all that is to be known of it. Raises NotJudged and what a reference raises."""
    assert wanted.source
    shapes, types = _inputs(wanted.source.module({}))
    wanted = replace(wanted, own=replace(wanted.own, shapes=shapes), types=types)
    if wanted.small:
        free = (True,) * len(shapes)
        return _described(replace(wanted, free=free, source=None), wanted.small[0])
    weaker: Task | None = None
    left = AGAIN
    said, shown = "Model does not run at any size that was tried", ""
    sizes = list(_candidates(wanted))
    for times, size in itertools.product((1, DEARER), sizes):
        if not bounded(wanted, size, times) or times > 1 and bounded(wanted, size):
            continue
        try:
            described = _described(replace(wanted, small=[size]), size)
        except NotJudged as error:  # it runs
            shown = str(error)
            continue
        except Exception as error:
            said = f"{type(error).__name__}: {error}".partition("\n")[0]
            continue
        if size != wanted.own:
            note = f"Judged at sizes made small: {size}; its own are {wanted.own}"
            described = replace(described, notes=(note, *described.notes))
        if not any("parameter" in note for note in described.notes):
            return described
        weaker, left = weaker or described, left - 1
        if not left:
            break
    if weaker is None:
        raise NotJudged(shown or f"no sizes are found that are small enough ({said})")
    return weaker


def _inputs(module: Any) -> tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]:
    """Shapes and types of what get_inputs() gives, which is not made: it may be gigabytes."""
    try:
        with torch.device("meta"):
            values = module.get_inputs()
    except (NotImplementedError, RuntimeError):  # it looks at values
        values = module.get_inputs()
    shapes = tuple(tuple(as_tensor(x).shape) for x in values)
    return shapes, tuple(map(type_of, values))


def _candidates(wanted: Task) -> Iterator[Size]:
    """The own size, and smaller ones, large ones first."""
    assert wanted.source
    yield wanted.own
    tried = {str(wanted.own)}  # arguments may be lists
    for caps in _CAPS:
        with suppress(Exception):
            size = at(wanted, _changed(wanted, caps))
            if str(size) not in tried:
                tried.add(str(size))
                yield size


def at(wanted: Task, changed: dict[int, int]) -> Size:
    """The size that a reference's text gives with other numbers. Raises whatever it raises."""
    assert wanted.source
    module = wanted.source.module(changed)
    shapes, _ = _inputs(module)
    return Size(tuple(module.get_init_inputs()), shapes, tuple(changed.items()))


def _changed(wanted: Task, caps: tuple[int, int, int]) -> dict[int, int]:
    assert wanted.source
    roles: dict[int, list[int]] = {0: [], 1: [], 2: []}
    first = {shape[0] for shape in wanted.own.shapes if len(shape) > 1}
    later = {n for shape in wanted.own.shapes for n in shape[2:]}
    other = {n for shape in wanted.own.shapes for n in shape[1:2]}
    for number in wanted.source.numbers:
        batch = number in first and number not in other
        roles[2 if number in later else 0 if batch else 1].append(number)
    changed = {}
    for role, numbers in roles.items():
        divisor = 1
        while numbers and max(numbers) > caps[role] * divisor:
            divisor *= 2
        least = min(caps[role], 4 if role == 1 else caps[role])
        for number in numbers:
            changed[number] = min(number, max(least, -(-number // divisor)))
    return changed


def bounded(wanted: Task, size: Size, times: int = 1) -> bool:
    """Whether Model takes it, and the emulator could do as much. Nothing is computed."""
    with suppress(Exception), torch.no_grad():
        with torch.device("meta"):
            model = wanted.model(*size.arguments)
            inputs = _empty(wanted, size)
        with FlopCounterMode(display=False) as flops, work.Trace() as trace:
            model(*inputs)
        few = trace.elements <= times * ELEMENTS
        few = few and flops.get_total_flops() <= times * 2 * PRODUCTS
        return few and all(p.numel() <= times * ELEMENTS for p in model.parameters())
    numbers = sum(map(math.prod, size.shapes))  # it looks at values: tried as it is
    return numbers <= ELEMENTS // 8


def _empty(wanted: Task, size: Size) -> list[Any]:
    """Inputs without values."""
    module = wanted.source.module(dict(size.changed)) if wanted.source else None
    return list(module.get_inputs()) if module else [torch.empty(s) for s in size.shapes]


def _described(wanted: Task, size: Size) -> Task:
    """The task with what is seen of it at a size. Raises NotJudged where that shows nothing."""
    model = wanted.make(size, 0)
    values, free = _drawn(wanted, size)
    seen = _run(model, values, wanted.types)
    modes = tuple(
        mode for mode in (True, False) if _steady(model.train(mode), values, wanted.types)
    )
    if not modes:
        raise NotJudged("Model gives another answer each time: it is random in train() and eval()")
    notes = [] if modes[0] else ["Not judged: train(), in which Model is random"]
    model.train(modes[0])
    _require_values(wanted, size, modes[0], seen.outputs)
    without = _without_effect(model, values, wanted.types)
    if without:
        notes.append(f"At these sizes no output hangs on the parameter {', '.join(without)[:200]}")
    return replace(
        wanted,
        free=free,
        work=work.of(seen.ran),
        trains=_trains(model, values, wanted.types),
        modes=modes,
        notes=tuple(notes),
    )


class _Sources(TorchDispatchMode):
    """Which tensors are numbers of a generator, or multiples of them."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept: list[Tensor] = []
        self.drawn: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        name = func._schema.name.partition("::")[2]
        tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        alike = len(tensors) == 1 and id(tensors[0]) in self.drawn
        view = any(r.alias_info for r in func._schema.returns)
        if name in _DRAWING or alike and (view or name in _SCALING):
            self.kept += [t for t in tree_leaves(made) if isinstance(t, Tensor)]
            self.drawn |= {id(t) for t in self.kept}
        return made


_DRAWING = "rand randn rand_like randn_like uniform_ normal_ normal_functional uniform".split()
_SCALING = "add sub mul div rsub neg add_ mul_ sub_ div_ _to_copy clone".split()


def _normal(size: Size, seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in size.shapes]


def _drawn(wanted: Task, size: Size) -> tuple[list[Tensor], tuple[bool, ...]]:
    """The inputs of a size, and which of them are floats that nothing but a generator made."""
    if wanted.free:
        return _normal(size, 0), wanted.free
    assert wanted.source
    with torch.random.fork_rng(devices=[]), _Sources() as sources:
        torch.manual_seed(0)
        values = wanted.source.module(dict(size.changed)).get_inputs()
    free = [isinstance(x, Tensor) and x.is_floating_point() for x in values]
    free = [f and id(x) in sources.drawn for f, x in zip(free, values, strict=True)]
    return [as_tensor(x) for x in values], tuple(free)


def outputs_of(made: Any) -> list[Tensor]:
    """The tensors that a forward gives: one, or several in a tuple or list. Raises NotJudged."""
    several = list(made) if isinstance(made, tuple | list) else [made]
    if isinstance(made, tuple | list) and len(several) == 1:
        raise NotJudged("Model gives a tuple of one")
    if not several or not all(isinstance(one, Tensor) for one in several):
        kinds = ", ".join(type(one).__name__ for one in several)
        raise NotJudged(
            f"Model gives {kinds or 'nothing'}; tensors, or a tuple of them, are judged"
        )
    return several


def _run(model: nn.Module, values: Sequence[Tensor], types: Sequence[str]) -> Seen:
    with torch.no_grad(), work.Trace() as trace:
        outputs = outputs_of(model(*as_given([x.clone() for x in values], types)))
    return Seen(outputs, trace.ran)


def _again(model: nn.Module, values: Sequence[Tensor], types: Sequence[str]) -> list[Tensor]:
    """What a copy gives: a model may change its buffers."""
    with torch.no_grad():
        return outputs_of(copy.deepcopy(model)(*as_given([x.clone() for x in values], types)))


def same(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> bool:
    """Whether all of them are alike, NaN beside NaN."""
    pairs = zip(ours, theirs, strict=True)
    return all(a.shape == b.shape and torch.allclose(a, b, 1e-6, 0, True) for a, b in pairs)


def _steady(model: nn.Module, values: Sequence[Tensor], types: Sequence[str]) -> bool:
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            first = _again(model, values, types)
            torch.manual_seed(2)
            return same(first, _again(model, values, types))
    except ValueError:  # as of a batch norm of one value
        return False


def _require_values(wanted: Task, size: Size, mode: bool, outputs: Sequence[Tensor]) -> None:
    """Raises NotJudged where anything would be right, or nothing."""
    if not all(output.numel() for output in outputs):
        raise NotJudged("at small sizes Model gives an empty tensor")
    if not all(o.isfinite().all() for o in outputs):
        raise NotJudged("Model gives values that are not finite")
    other = wanted.make(size, 1).train(mode)
    own = wanted.source and not wanted.free
    values = wanted.drawn(size, 1) if own else _normal(size, 1)
    others = _again(other, values, wanted.types)
    many = [o.double() for o in outputs if o.numel() > 1]
    constant = [float(o.std()) <= 1e-6 * float(o.abs().max()) for o in many]
    if same(outputs, others) or constant and all(constant):
        raise NotJudged("Model gives the same number whatever goes in: nothing could be judged")


def _without_effect(model: nn.Module, values: Sequence[Tensor], types: Sequence[str]) -> list[str]:
    """Parameters that change nothing when they are changed."""
    before, names = _again(model, values, types), []
    for name, parameter in model.named_parameters():
        with torch.no_grad():
            was = parameter.clone()
            parameter.add_(torch.randn(was.shape).to(was) * (0.1 + was.abs()))
            after = _again(model, values, types)
            parameter.copy_(was)
        if all(torch.allclose(a, b, 1e-4, 1e-5, True) for a, b in zip(before, after, strict=True)):
            names.append(name)
    return names


def _trains(model: nn.Module, values: Sequence[Tensor], types: Sequence[str]) -> bool:
    """Whether the outputs have gradients."""
    leaves = [x.clone().requires_grad_(x.is_floating_point()) for x in values]
    leaves = [x.detach() if "python" in t else x for x, t in zip(leaves, types, strict=True)]
    with torch.enable_grad():
        outputs = outputs_of(copy.deepcopy(model)(*as_given(leaves, types)))
        return any(output.requires_grad for output in outputs)
