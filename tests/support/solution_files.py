"""The tasks' files of solutions/models without a GPU: unbuilt, or with PyTorch in their kernels'
place."""

import types
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from utils.course import model_files
from utils.course.models import MODELS

TEXTS = {path.stem: text for path, text in model_files.of_tasks()}
HOPPER, OTHER = (9, 0), (8, 0)


def loaded(monkeypatch, text: str, cards: list[tuple[int, int]], load_inline) -> types.ModuleType:
    """A file run as a module, as if these cards were there."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(cards))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda i: cards[i])
    monkeypatch.setattr("torch.utils.cpp_extension.load_inline", load_inline)
    module = types.ModuleType("model")
    exec(compile(text, "model.py", "exec"), module.__dict__)
    return module


def unbuilt(*args, **how) -> types.SimpleNamespace:
    return types.SimpleNamespace(sources="".join(how["cuda_sources"]), **how)


def on_the_cpu(monkeypatch, stem: str, cards=(HOPPER,)) -> types.ModuleType:
    """A file whose kernels are TorchKernels, and whose card is the CPU."""
    text = TEXTS[stem].replace('register_autocast("cuda"', 'register_autocast("cpu"')
    task = int(stem.partition("_")[0])
    return loaded(monkeypatch, text, list(cards), lambda *_, **how: TorchKernels(task))


def elsewhere(compute):
    """What it computes in a thread of its own, where there is no autocast, and there are gradients:
    as kernels do, it heeds nothing that was said to PyTorch."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(compute).result()


class TorchKernels:
    """What load_inline gives for a task, computed by PyTorch. `calls` are the names of those that
    were called; `observed`: somebody watches what PyTorch does."""

    def __init__(self, task: int):
        (self.model,) = (m for m in MODELS.values() if m.task == task)
        self.calls: list[str] = []
        self.observed = False

    def arguments(self, x, W, b, weight, bias, parameter, groups):
        self.calls.append("arguments")
        assert all(t.dtype == torch.float32 for t in (x, W, b, weight, bias))
        return [t for t in (x, W, b, weight, bias, parameter) if t is not None]

    def tail_arguments(self, y, weight, bias, parameter, groups):
        assert all(t.dtype == torch.float32 for t in (y, weight, bias))
        return [t for t in (y, weight, bias, parameter) if t is not None]

    def infer(self, x, W, b, weight, bias, parameter, groups):
        self.calls.append("infer")
        if self.observed:
            return None
        y = elsewhere(lambda: torch.addmm(b, x, W.t()).detach())
        return self._tail(y, weight, bias, parameter, groups).detach()

    def _tail(self, y, weight, bias, parameter, groups):
        extra = {name: parameter.flatten() for name in self.model.extra}
        return self.model.tail(y, weight, bias, groups=groups, **extra)

    def tail(self, y, weight, bias, parameter, result, groups):
        self.calls.append("tail")
        result.copy_(self._tail(y, weight, bias, parameter, groups))

    def tail_backward(
        self, y, weight, bias, parameter, grad_out, dy, dweight, dbias, dparameter, groups
    ):
        self.calls.append("tail_backward")
        leaves = [
            t.detach().requires_grad_() for t in (y, weight, bias, parameter) if t is not None
        ]

        def gradients():
            out = self._tail(*leaves, *[None] * (4 - len(leaves)), groups)
            return torch.autograd.grad(out, leaves, grad_out)

        places = [t for t in (dy, dweight, dbias, dparameter) if t is not None]
        for place, gradient in zip(places, elsewhere(gradients), strict=True):
            place.copy_(gradient)

    def column_sums(self, x: Tensor, sums: Tensor):
        self.calls.append("column_sums")
        sums.copy_(x.sum(0))

    def whole(self, x, W, b, weight, bias, parameter, y, result, groups):
        self.calls.append("whole")
        linear = elsewhere(lambda: torch.addmm(b, x, W.t()).detach())
        result.copy_(self._tail(linear, weight, bias, parameter, groups))
        if y.numel():
            y.copy_(linear)

    def products(self, dy, x, W, dx, dW):
        self.calls.append("products")
        if dx.numel():
            dx.copy_(elsewhere(lambda: dy @ W.detach()))
        if dW.numel():
            dW.copy_(elsewhere(lambda: dy.t() @ x))
