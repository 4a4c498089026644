"""A pair of checked kernels as one operator of PyTorch, which trains and which torch.compile takes.

`operator(forward, backward)` reads all that it needs off the two launchers. What `forward` reads
are the operator's arguments, in order: tensors, then the numbers that no tensor's shape tells, such
as `groups`. What it writes are its results. `backward` takes those of them by name that it needs,
`grad_out` for the gradient of `out`, and writes `dx` for that of `x`. A result whose gradient it
does not read, such as what the forward saves for it, takes none: it is a constant to autograd.

Kernels of the emulator take tensors on the CPU, those of nvcc tensors on the card.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from utils.cuda.kernel import Kernel
from utils.cuda.signature import Parameter
from utils.ground.errors import ArgumentValueError, WorkbookError

if TYPE_CHECKING:
    from torch._library.custom_ops import CustomOpDef  # which torch.library does not export

NAMESPACE = "workbook"
Results = Tensor | tuple[Tensor, ...]
Values = dict[str, Any]  # by parameter: a tensor or a number, as its C++ type says


def operator(
    forward: Kernel, backward: Kernel, *, parts: Mapping[str, str] = MappingProxyType({})
) -> Callable[..., Results]:
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
    read = {p.name for p in back.arguments}
    constant = [p.name for p in ahead.results if f"grad_{p.name}" not in read]
    function = ahead.registered(forward.name)
    gradient = back.registered(f"{forward.name}_gradients")

    def remember(ctx: Any, inputs: tuple[Any, ...], output: Results) -> None:
        known = _named(ahead.arguments, inputs) | _named(ahead.results, output)
        ctx.save_for_backward(*(known[name] for name in saved))
        ctx.numbers = {p.name: known[p.name] for p in back.arguments if not p.is_tensor}
        ctx.mark_non_differentiable(*(known[name] for name in constant))

    def gradients(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        known = dict(zip(saved, ctx.saved_tensors, strict=True)) | ctx.numbers
        known |= {f"grad_{p.name}": grad for p, grad in zip(ahead.results, grads, strict=True)}
        by_name = _named(back.results, gradient(*(known[p.name] for p in back.arguments)))
        return tuple(by_name.get(f"d{p.name}") for p in ahead.arguments)

    function.register_autograd(gradients, setup_context=remember)
    for device in ("cpu", "cuda"):
        function.register_autocast(device, torch.float32)
    return function


class _Op:
    """A launcher as a custom operator: tensors and numbers in, fresh tensors out."""

    def __init__(self, kernel: Kernel, parts: Mapping[str, str]):
        self.kernel, self.parts = kernel, parts
        tensors = [p for p in kernel.parameters if p.is_tensor]
        self.results = [p for p in tensors if not p.is_const]
        inputs = [p for p in tensors if p.is_const]
        words = {word for p in inputs for word in kernel.shapes[p.name].split()}
        numbers = [p for p in kernel.parameters if not p.is_tensor and not p.is_stream]
        self.sizes = [p.name for p in numbers if p.name in words]
        self.arguments = [*inputs, *(p for p in numbers if p.name not in words)]

    def registered(self, name: str) -> "CustomOpDef":
        """The operator, under this name; one that had it before goes."""
        name, schema = f"{NAMESPACE}::{name}", self._schema()
        function = torch.library.custom_op(name, self._run, mutates_args=(), schema=schema)
        function.register_fake(self._empty)
        return function

    def _schema(self) -> str:
        arguments = [f"{_schema_type(p)} {p.name}" for p in self.arguments]
        results = ", ".join(["Tensor"] * len(self.results))
        return f"({', '.join(arguments)}) -> {f'({results})' if len(self.results) > 1 else results}"

    def _run(self, *values: Any) -> Results:
        arguments = _named(self.arguments, values)
        for p in self.arguments:
            if p.is_tensor and arguments[p.name].dtype == p.dtype:
                arguments[p.name] = _prepared(arguments[p.name].detach())
        sizes = self._sizes(arguments, judged=True)
        outputs = self._empty(*values)
        results = _named(self.results, outputs)
        self.kernel(**arguments, **{name: sizes[name] for name in self.sizes}, **results)
        return outputs

    def _empty(self, *values: Any) -> Results:
        """The results, with nothing in them: all that torch.compile asks of a call."""
        arguments = _named(self.arguments, values)
        sizes = self._sizes(arguments)
        like = next(arguments[p.name] for p in self.arguments if p.is_tensor)
        outputs = []
        for p in self.results:
            words = self.kernel.shapes[p.name].split()
            shape = [int(word) if word.isdigit() else sizes[word] for word in words]
            outputs.append(like.new_empty(shape, dtype=p.dtype))
        return tuple(outputs) if len(outputs) > 1 else outputs[0]

    def _sizes(self, arguments: Values, judged: bool = False) -> dict[str, int]:
        """What the shapes of the tensors tell of the sizes. Raises ArgumentValueError where two
        of them tell another thing, if they are `judged`."""
        sizes: dict[str, int] = {
            p.name: arguments[p.name] for p in self.arguments if not p.is_tensor
        }
        for p in self.arguments:
            words = self.kernel.shapes[p.name].split() if p.is_tensor else []
            if judged and p.is_tensor and arguments[p.name].dim() != len(words):
                raise ArgumentValueError(
                    f"{self.kernel.name}: {p.name} has {arguments[p.name].dim()} dimensions and "
                    f"should have {len(words)}: ({', '.join(words)})"
                )
            for word, size in zip(words, arguments[p.name].shape if words else (), strict=True):
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
        return sizes


def _prepared(tensor: Tensor) -> Tensor:
    """The tensor as kernels want it: dense, from a multiple of 16 bytes on, as a float4 must be."""
    dense = tensor.contiguous()
    return dense.clone() if dense.data_ptr() % 16 else dense


def _schema_type(parameter: Parameter) -> str:
    if parameter.is_tensor:
        return "Tensor"
    return "float" if "float" in parameter.ctype or "double" in parameter.ctype else "SymInt"


def _named(parameters: list[Parameter], values: tuple[Any, ...] | Tensor) -> Values:
    values = values if isinstance(values, tuple) else (values,)
    return {p.name: value for p, value in zip(parameters, values, strict=True)}


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
