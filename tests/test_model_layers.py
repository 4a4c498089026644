"""The files of solutions/models as PyTorch meets them: layers with hooks or in others' places,
autocast, compilers. On the CPU, with PyTorch in their kernels' place."""

from pathlib import Path

import pytest
import torch
from support.solution_files import TEXTS, on_the_cpu
from torch import nn
from torch.nn.utils import parametrizations, spectral_norm, weight_norm
from torch.utils._python_dispatch import TorchDispatchMode

from utils.judge.models import tasks

NUMBERS = {stem: int(stem.partition("_")[0]) for stem in TEXTS}
LAYERS = {37: ("matmul", "group_norm"), 62: ("fc", "gn"), 94: ("gemm", "groupnorm")}
FUSED = ["whole", "tail_backward", "column_sums", "products"]
TAIL = ["tail", "tail_backward"]  # after a linear layer of PyTorch's


class Pair:
    """A file's model and its reference, with the same parameters, and an input."""

    def __init__(self, monkeypatch, stem: str):
        self.module = on_the_cpu(monkeypatch, stem)
        self.number = NUMBERS[stem]
        task = tasks.find(Path(f"{stem}.py"))
        size = task.small[0]
        self.theirs = task.make(size, 1)
        torch.manual_seed(2)
        self.x = torch.randn(size.shapes[0])
        for p in self.theirs.parameters():
            p.data += 0.1 * torch.randn(p.shape)
        self.ours = self.module.ModelNew(*size.arguments)
        self.ours.load_state_dict(self.theirs.state_dict())
        self.linear, self.norm = LAYERS.get(self.number, ("gemm", "group_norm"))

    def change(self, layer: str, how) -> None:
        """Call how(model, name of the layer) for both models."""
        for model in (self.ours, self.theirs):
            torch.manual_seed(3)
            how(model, getattr(self, layer))

    def agree(self, ours=None) -> list[str]:
        """Compare results and gradients; the names of the kernels that ours called for them."""
        calls = self.module.kernels.calls
        calls.clear()
        expected = results(self.theirs, self.x)
        for a, b in zip(
            results(self.ours if ours is None else ours, self.x), expected, strict=True
        ):
            torch.testing.assert_close(a, b, atol=2e-5, rtol=2e-5)
        return [name for name in calls if name != "arguments"]


def results(model, x):
    """The result, and gradients of the input and of all parameters."""
    x = x.clone().requires_grad_()
    out = model(x)
    grad_output = torch.linspace(-1, 1, out.numel()).view_as(out)
    return out, *torch.autograd.grad(out, [x, *model.parameters()], grad_output)


@pytest.fixture(params=TEXTS, ids=NUMBERS.get)
def pair(request, monkeypatch):
    return Pair(monkeypatch, request.param)


@pytest.fixture
def one(monkeypatch):
    return Pair(monkeypatch, next(stem for stem, number in NUMBERS.items() if number == 88))


def layer(change):
    """A change of a layer, as one of a model and the layer's name."""
    return lambda model, name: change(getattr(model, name))


def replaced(made):
    """The layer goes, and what is made of it comes in its place."""
    return lambda model, name: setattr(model, name, made(getattr(model, name)))


class Adapted(nn.Module):
    """A linear layer with a product of low rank beside it."""

    def __init__(self, base: nn.Linear):
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, 2, bias=False)
        self.up = nn.Linear(2, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def own_forward(module):
    before = module.forward
    module.forward = lambda x: before(x) + 1


LINEAR = {
    "hook": layer(lambda m: m.register_forward_hook(lambda m, x, y: 2 * y)),
    "hook before": layer(lambda m: m.register_forward_pre_hook(lambda m, x: (x[0] + 1,))),
    "hook backward": layer(
        lambda m: m.register_full_backward_hook(lambda m, dx, dy: tuple(3 * d for d in dx))
    ),
    "hook before backward": layer(
        lambda m: m.register_full_backward_pre_hook(lambda m, dy: (3 * dy[0],))
    ),
    "spectral_norm": layer(spectral_norm),
    "weight_norm": layer(weight_norm),
    "low rank": replaced(Adapted),
    "subclass": layer(lambda m: setattr(m, "__class__", Doubled)),
    "forward of its own": layer(own_forward),
    "no bias": layer(lambda m: setattr(m, "bias", None)),
}
NORM = {
    "hook": layer(lambda m: m.register_forward_hook(lambda m, x, y: y + 1)),
    "other": replaced(lambda m: nn.LayerNorm(m.num_channels)),
    "eps": layer(lambda m: setattr(m, "eps", 0.1)),
    "no weight": layer(lambda m: (setattr(m, "weight", None), setattr(m, "bias", None))),
    "forward of its own": layer(own_forward),
}


def test_layers_that_are_as_they_were_are_fused(pair):
    fused = [name for name in FUSED if pair.number != 94 or name != "column_sums"]
    assert pair.agree() == fused  # in 94, b has the gradient of the bias that is added to it
    pair.ours.portable = True
    assert pair.agree() == ["tail", *fused[1:-1]]


@pytest.mark.parametrize("how", LINEAR)
def test_a_linear_layer_that_is_more_than_its_weights_is_called(one, how):
    one.change("linear", LINEAR[how])
    assert one.agree() == TAIL


@pytest.mark.parametrize("how", NORM)
def test_a_norm_that_is_not_what_the_kernels_compute_is_called(one, how):
    one.change("norm", NORM[how])
    assert one.agree() == []


def test_by_layers_every_model_is_its_reference(pair):
    handles = []
    pair.change("linear", layer(lambda m: handles.append(m.register_forward_hook(lambda *_: None))))
    assert pair.agree() == TAIL
    pair.change("norm", layer(lambda m: handles.append(m.register_forward_hook(lambda *_: None))))
    assert pair.agree() == []
    for handle in handles:
        handle.remove()
    assert "products" in pair.agree()


def test_hooks_of_all_modules_see_the_layers(one):
    seen = []
    with nn.modules.module.register_module_forward_hook(lambda m, x, y: seen.append(type(m))):
        assert one.agree() == []
    assert seen.count(nn.Linear) == seen.count(nn.GroupNorm) == 2
    assert one.agree() == FUSED


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm", "orthogonal"])
def test_weights_that_are_computed_are_read_at_each_call(one, name):
    one.change("linear", layer(getattr(parametrizations, name)))
    assert one.agree() == FUSED
    with torch.no_grad():
        for model in (one.ours, one.theirs):
            for p in model.parameters():
                p *= 1.5
    assert one.agree() == FUSED


@pytest.mark.parametrize("portable", [False, True])
def test_a_backward_under_autocast_is_one_in_float32(pair, portable):
    pair.ours.portable = portable
    expected = results(pair.ours, pair.x)
    with torch.autocast("cpu", torch.bfloat16):
        for a, b in zip(results(pair.ours, pair.x), expected, strict=True):
            assert a.dtype == torch.float32 and torch.equal(a, b)


def test_the_tail_takes_what_a_linear_layer_gives_under_autocast(one):
    one.change("linear", LINEAR["hook"])
    with torch.autocast("cpu", torch.bfloat16):
        got = results(one.ours, one.x)
        y = one.ours.gemm(one.x)
    assert y.dtype == torch.bfloat16 and all(t.dtype == torch.float32 for t in got)
    assert torch.equal(got[0], one.module.tail(y.float(), *rest(one.ours)))


def rest(model):
    norm = model.group_norm
    return norm.weight, norm.bias, model.multiply_weight, norm.num_groups


@pytest.mark.parametrize("where", ["nowhere", "linear", "norm"])
def test_torch_compile_takes_it_whole(one, where):
    torch._dynamo.reset()
    if where != "nowhere":
        one.change(where, layer(lambda m: m.register_forward_hook(lambda m, x, y: y + 1)))
    fast = torch.compile(one.ours, fullgraph=True, backend="aot_eager")
    one.agree(fast)
    with torch.no_grad():
        torch.testing.assert_close(fast(one.x), one.theirs(one.x), atol=2e-5, rtol=2e-5)


class Seen(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names = [*getattr(self, "names", []), function.name()]
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("observed", [False, True])
def test_an_operation_that_nobody_watches_and_that_trains_nothing_is_none(one, observed):
    def calls(ours):
        with Seen() as seen:
            results.append(ours(one.x))
        return "task_88::forward" in seen.names

    results = [one.ours(one.x)]
    one.module.kernels.observed = observed
    with torch.no_grad():
        assert calls(one.ours) == observed
    assert calls(one.ours)
    one.ours.requires_grad_(False)
    assert calls(one.ours) == observed
    one.ours.portable = True
    assert calls(one.ours)
    for out in results:  # PyTorch multiplies here, on a CPU: not always to the same bit
        torch.testing.assert_close(out, results[0])


def test_tails_of_no_rows(monkeypatch):
    for stem in TEXTS:
        pair = Pair(monkeypatch, stem)
        pair.change("linear", LINEAR["hook"])
        out = pair.ours(pair.x[:0])
        assert 0 in out.shape
        assert not any(g.any() for g in torch.autograd.grad(out.sum(), pair.ours.parameters()))
