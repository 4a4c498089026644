"""A pair of checked kernels as one operator of PyTorch, which trains and which torch.compile takes.

`operator(forward, backward)` reads all that it needs off the two launchers. What `forward` reads
are the operator's arguments, in order: tensors, then the numbers that no tensor's shape tells, such
as `groups`. What it writes are its results. `backward` takes those of them by name that it needs,
`grad_out` for the gradient of `out`, and writes `dx` for that of `x`. A result whose gradient it
does not read, such as what the forward saves for it, takes none: it is a constant to autograd.

Kernels of the emulator take tensors on the CPU, those of nvcc tensors on the card.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.library import Library

from utils.cuda.kernel import Kernel
from utils.cuda.signature import Parameter
from utils.ground.errors import ArgumentValueError, WorkbookError

if TYPE_CHECKING:
    from torch._ops import OpOverload  # which no public module of PyTorch exports

NAMESPACE = "workbook"
Results = Tensor | tuple[Tensor, ...]
Operator = Callable[..., Results]

_LIBRARIES: dict[str, Library] = {}  # by operator: it is gone with its library


def operator(
    forward: Kernel, backward: Kernel, *, parts: Mapping[str, str] = MappingProxyType({})
) -> Operator:
    """A custom operator `workbook::NAME` of the forward's name, differentiable once.

    `parts` says which number must divide which size: {"groups": "channels"}.
    Under autocast its inputs are cast to float32. Tensors that are not contiguous are copied, and
    those that do not begin at a multiple of 16 bytes; of another type, device or shape they raise
    an ArgumentError that names them. Raises WorkbookError for kernels that have not passed their
    check, or that do not belong together.
    """
    for kernel in (forward, backward):
        if not kernel.trusted:
            raise WorkbookError(f"{kernel.name} has not passed its check: check it before it ships")
    ahead, back = _Op(forward, parts), _Op(backward, {})
    saved = _saved(ahead, back)

    def refuse(ctx: Any, *grads: Tensor | None) -> None:
        raise RuntimeError(f"{forward.name} is differentiable once, and not twice")  # as autograd

    function, library = ahead.registered(forward.name)
    gradient, library_of_gradient = back.registered(f"{forward.name}_gradients")
    library.impl(forward.name, _recording(ahead, back, saved, function, gradient), "Autograd")
    torch.library.register_autograd(gradient, refuse, lib=library_of_gradient)
    for device in ("cpu", "cuda"):
        torch.library.register_autocast(function, device, torch.float32, lib=library)
    return function


def _recording(
    ahead: "_Op", back: "_Op", saved: list[str], function: Operator, gradient: Operator
) -> Operator:
    """The operator as autograd sees it. torch.library.register_autograd would make the same of two
    functions, in more layers: a step of small tensors took a third longer."""
    known = [p.name for p in (*ahead.arguments, *ahead.results)]
    numbers = [p.name for p in back.numbers]
    grads = [f"grad_{p.name}" for p in ahead.results]
    saved_at, numbers_at = ([known.index(name) for name in names] for names in (saved, numbers))
    kept = [*saved, *numbers, *grads]
    reads = [kept.index(p.name) for p in back.arguments]
    constant = [i for i, grad in enumerate(grads) if kept.index(grad) not in reads]
    writes = {p.name: i for i, p in enumerate(back.results)}
    returns = [writes.get(f"d{p.name}") for p in ahead.arguments]

    class Recorded(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Results:
            results = _below_autograd(function, arguments)
            outputs = _several(results)
            values = (*arguments, *outputs)
            ctx.save_for_backward(*[values[i] for i in saved_at])
            ctx.numbers = [values[i] for i in numbers_at]
            ctx.mark_non_differentiable(*[outputs[i] for i in constant])
            # Of several gradients those that are lacking are zeros; of one there is nothing to do.
            ctx.set_materialize_grads(len(outputs) - len(constant) > 1)
            return results

        @staticmethod
        def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
            values = (*ctx.saved_tensors, *ctx.numbers, *grads)
            arguments = [values[i] for i in reads]
            if any(argument is None for argument in arguments):
                return (None,) * len(returns)
            if torch.is_grad_enabled():  # to be differentiated in its turn, which it refuses
                results = _several(gradient(*arguments))
            else:
                results = _several(_below_autograd(gradient, arguments))
            return tuple([None if i is None else results[i] for i in returns])

    recorded: Operator = Recorded.apply

    def recording(*arguments: Any) -> Results:
        if torch.is_grad_enabled():
            return recorded(*arguments)
        return _below_autograd(function, arguments)

    return recording


def _below_autograd(function: Operator, arguments: Sequence[Any]) -> Results:
    with torch._C._AutoDispatchBelowAutograd():
        return function(*arguments)


class _Op:
    """A launcher as a custom operator: tensors and numbers in, fresh tensors out."""

    def __init__(self, kernel: Kernel, parts: Mapping[str, str]):
        self.kernel, self.parts = kernel, parts
        tensors = [p for p in kernel.parameters if p.is_tensor]
        self.words = {p.name: kernel.shapes[p.name].split() for p in tensors}
        self.inputs = [p for p in tensors if p.is_const]
        self.results = [p for p in tensors if not p.is_const]
        words = {word for p in self.inputs for word in self.words[p.name]}
        numbers = [p for p in kernel.parameters if not p.is_tensor and not p.is_stream]
        self.sizes = [p for p in numbers if p.name in words]
        self.numbers = [p for p in numbers if p.name not in words]
        self.arguments = [*self.inputs, *self.numbers]
        order = [*self.arguments, *self.sizes, *self.results]
        self._declared = itemgetter(*(order.index(p) for p in kernel.parameters if not p.is_stream))
        # Calls come with the same shapes again and again: they are judged once.
        self._judged = functools.lru_cache(functools.partial(self._plan, judged=True))

    def registered(self, name: str) -> "tuple[OpOverload[..., Results], Library]":
        """The operator, under this name, and the library it is in; one that had the name before
        goes."""
        if name in _LIBRARIES:
            _LIBRARIES[name]._destroy()  # as torch.library.custom_op does
        library = _LIBRARIES[name] = Library(NAMESPACE, "FRAGMENT")
        library.define(name + self._schema(), tags=torch.Tag.pt2_compliant_tag)
        function = getattr(getattr(torch.ops, NAMESPACE), name).default
        torch.library.register_kernel(function, None, self._run, lib=library)
        torch.library.register_fake(function, self._empty, lib=library)
        return function, library

    def _schema(self) -> str:
        arguments = [f"{_schema_type(p)} {p.name}" for p in self.arguments]
        results = ", ".join(["Tensor"] * len(self.results))
        return f"({', '.join(arguments)}) -> {f'({results})' if len(self.results) > 1 else results}"

    def _run(self, *values: Any) -> Results:
        sizes, shapes = self._judged(*_known(values))
        results = self._fresh(values[0], shapes)
        inputs = [_prepared(v) if isinstance(v, Tensor) else v for v in values]
        self.kernel(*self._declared((*inputs, *sizes, *_several(results))))
        return results

    def _empty(self, *values: Any) -> Results:
        """The results, with nothing in them: all that torch.compile asks of a call."""
        _, shapes = self._plan(*_known(values))
        return self._fresh(values[0], shapes)

    def _fresh(self, like: Tensor, shapes: list[list[int]]) -> Results:
        results = [
            like.new_empty(shape, dtype=p.dtype)
            for p, shape in zip(self.results, shapes, strict=True)
        ]
        return tuple(results) if len(results) > 1 else results[0]

    def _plan(self, *known: Any, judged: bool = False) -> tuple[list[int], list[list[int]]]:
        """The sizes that the launcher takes and the shapes of its results, as the tensors' shapes
        and the numbers tell. Raises ArgumentValueError where two of them tell another thing, if
        they are `judged`."""
        sizes: dict[str, int] = {
            p.name: value for p, value in zip(self.arguments, known, strict=True) if not p.is_tensor
        }
        for p, shape in zip(self.inputs, known, strict=False):
            words = self.words[p.name]
            if judged and len(shape) != len(words):
                raise ArgumentValueError(
                    f"{self.kernel.name}: {p.name} has {len(shape)} dimensions and "
                    f"should have {len(words)}: ({', '.join(words)})"
                )
            for word, size in zip(words, shape, strict=True):
                if judged and sizes.get(word, size) != size:
                    raise ArgumentValueError(
                        f"{self.kernel.name}: {p.name} has {size} {word}, and another tensor "
                        f"{sizes[word]}"
                    )
                sizes[word] = size
        for part, whole in self.parts.items() if judged else ():
            if sizes[part] < 1 or sizes[whole] % sizes[part]:
                raise ArgumentValueError(
                    f"{self.kernel.name}: {sizes[whole]} {whole} are not {sizes[part]} {part} of "
                    "one size"
                )
        shapes = [
            [int(word) if word.isdigit() else sizes[word] for word in self.words[p.name]]
            for p in self.results
        ]
        return [sizes[p.name] for p in self.sizes], shapes


def _known(values: tuple[Any, ...]) -> list[Any]:
    """What a plan is made of: the tensors' shapes, and the numbers."""
    return [v.shape if isinstance(v, Tensor) else v for v in values]


def _prepared(tensor: Tensor) -> Tensor:
    """The tensor as kernels want it: dense, from a multiple of 16 bytes on, as a float4 must be."""
    dense = tensor.contiguous()
    return dense.clone() if dense.data_ptr() % 16 else dense


def _schema_type(parameter: Parameter) -> str:
    if parameter.is_tensor:
        return "Tensor"
    return "float" if "float" in parameter.ctype or "double" in parameter.ctype else "SymInt"


def _several(results: Results) -> tuple[Tensor, ...]:
    return results if isinstance(results, tuple) else (results,)


def _saved(ahead: _Op, back: _Op) -> list[str]:
    """The tensors that the backward needs of the forward. Raises WorkbookError where they are not
    among what that one read and wrote."""
    known = {p.name for p in (*ahead.arguments, *ahead.results)}
    gradients = {f"grad_{p.name}" for p in ahead.results}
    needed = [p.name for p in back.arguments if p.name not in gradients]
    if lacking := [name for name in needed if name not in known]:
        raise WorkbookError(
            f"{back.kernel.name} reads {', '.join(lacking)}, and {ahead.kernel.name} neither reads "
            "nor writes it; what a backward needs is saved by the forward"
        )
    wanted = {f"d{p.name}" for p in ahead.arguments if p.is_tensor}
    if extra := [p.name for p in back.results if p.name not in wanted]:
        raise WorkbookError(
            f"{back.kernel.name} writes {', '.join(extra)}, and {ahead.kernel.name} reads nothing "
            "of which that is the gradient"
        )
    return [p.name for p in back.arguments if p.is_tensor and p.name not in gradients]
