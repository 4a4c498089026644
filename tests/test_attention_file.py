"""`solutions/models/attention.py`, self-attention that trains. Results are those of its kernels on
the emulator, of one build; how PyTorch takes it is tried with PyTorch in their place."""

import re
from dataclasses import replace

import pytest
import torch
from support.box import needs_box
from support.solution_files import HOPPER, OTHER, elsewhere, loaded, unbuilt
from torch import nn

from utils.course import attention_file, catalog
from utils.cuda.model_box import boxed, capability_for
from utils.judge.models import evaluation, requests, sizes, tasks
from utils.judge.models.calls import Call
from utils.judge.models.judging import Judging
from utils.judge.models.plan import Made
from utils.judge.models.task import Size

TEXT = attention_file.text()
FORWARD = catalog.load("14_attention/flash_attention_forward").reference
BACKWARD = catalog.load("14_attention/flash_attention_backward").reference


@pytest.fixture(scope="module")
def task():
    return tasks.find(attention_file.path())


class TorchKernels:
    """What load_inline gives, computed by PyTorch; `calls` are the names of what was called."""

    def __init__(self):
        self.calls: list[str] = []

    def linear(self, x, W, b, y):
        self.calls.append("linear")
        y.copy_(elsewhere(lambda: torch.addmm(b, x, W.t()).detach()))

    def linear_backward(self, dy, x, W, dx, dW, db):
        self.calls.append("linear_backward")
        if dx.numel():
            dx.copy_(elsewhere(lambda: dy @ W.detach()))
        if dW.numel():
            dW.copy_(elsewhere(lambda: dy.t() @ x.detach()))
        db.copy_(dy.sum(0))

    def attend(self, q, k, v, *results_and_causal):
        self.calls.append("attend")
        *results, causal = results_and_causal
        self._by_heads(FORWARD, (q, k, v), results, causal)

    def attend_backward(self, *tensors_and_causal):
        self.calls.append("attend_backward")
        *tensors, causal = tensors_and_causal
        self._by_heads(BACKWARD, tensors[:7], tensors[7:], causal)

    def _by_heads(self, reference, read, written, causal):
        D = read[0].shape[-1]
        assert D in (64, 128) and all(t.dtype == torch.float32 for t in read)
        if not read[0].numel():
            return
        flat = [tensor.detach().flatten(0, 1) for tensor in read]
        results = elsewhere(lambda: reference(*flat, D, causal))
        for place, result in zip(written, results, strict=True):
            place.copy_(result.view_as(place))


def on_the_cpu(monkeypatch):
    text = TEXT.replace('register_autocast("cuda"', 'register_autocast("cpu"')
    return loaded(monkeypatch, text, [HOPPER], lambda *_, **how: TorchKernels())


@pytest.fixture
def module(monkeypatch):
    return on_the_cpu(monkeypatch)


def pair(module, width=60, heads=3, causal=True):
    """Model and ModelNew with the same parameters."""
    torch.manual_seed(1)
    theirs = module.Model(width, heads, causal)
    ours = module.ModelNew(width, heads, causal)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def results(model, x):
    """The result, and gradients of x and all parameters."""
    x = x.clone().requires_grad_()
    out = model(x)
    grad_output = torch.linspace(-1, 1, out.numel()).view_as(out)
    return out, *torch.autograd.grad(out, [x, *model.parameters()], grad_output)


def agree(module, theirs, ours, x) -> list[str]:
    """Compare both; the names of the kernels that ours called."""
    module.kernels.calls.clear()
    for a, b in zip(results(ours, x), results(theirs, x), strict=True):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=2e-5)
    return module.kernels.calls


ALL = ["linear", "attend", "linear", "linear_backward", "attend_backward", "linear_backward"]


def test_parameters_and_states_are_those_of_model(module, task):
    torch.manual_seed(5)
    ours = module.ModelNew(60, 3, True)
    theirs = task.make(Size((60, 3, True), ()), 5)
    assert list(ours.state_dict()) == ["qkv.weight", "qkv.bias", "out.weight", "out.bias"]
    for (name, p), (known, q) in zip(
        ours.named_parameters(), theirs.named_parameters(), strict=True
    ):
        assert name == known and torch.equal(p, q)
    other = task.make(Size((60, 3, True), ()), 6)
    ours.load_state_dict(other.state_dict())
    theirs.load_state_dict(ours.state_dict())
    for p, q in zip(theirs.parameters(), other.parameters(), strict=True):
        assert torch.equal(p, q)
    x = torch.randn(2, 7, 60)
    assert ours.eval().training is False
    torch.testing.assert_close(ours(x), theirs.eval()(x), atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("width", [1, 20, 64, 65, 128])  # of a head
@pytest.mark.parametrize("causal", [False, True])
def test_heads_of_any_width_up_to_128_are_the_kernels(module, width, causal):
    theirs, ours = pair(module, 2 * width, 2, causal)
    assert agree(module, theirs, ours, torch.randn(3, 5, 2 * width)) == ALL
    assert agree(module, theirs, ours, torch.randn(3, 0, 2 * width)) == ALL
    assert agree(module, theirs, ours, torch.randn(0, 5, 2 * width)) == ALL


def test_wider_heads_are_pytorchs(module):
    assert agree(module, *pair(module, 258, 2), torch.randn(3, 5, 258)) == []
    assert agree(module, *pair(module, 256, 2), torch.randn(3, 5, 256)) == ALL


def test_without_hopper_all_is_pytorchs_and_a_warning_says_so(monkeypatch):
    for cards in ([], [OTHER], [OTHER, HOPPER]):
        with pytest.warns(UserWarning, match="attention is PyTorch's"):
            module = loaded(monkeypatch, TEXT, cards, None)
        theirs, ours = pair(module)
        x = torch.randn(2, 7, 60)
        for a, b in zip(results(ours, x), results(theirs, x), strict=True):
            assert torch.equal(a, b)


def test_it_is_built_for_hopper_and_leaves_nothing_to_the_default_stream(monkeypatch):
    built = loaded(monkeypatch, TEXT, [HOPPER, HOPPER], unbuilt).kernels
    assert built.extra_cuda_cflags == ["-gencode=arch=compute_90a,code=sm_90a"]
    launches = built.sources.split("<<<")[1:]
    assert launches and all("current_stream()" in x.partition(">>>")[0] for x in launches)
    assert built.sources.count("config.stream = current_stream()") == 1
    fills = re.findall(r"cudaMemsetAsync\((?:[^;]*)\);", built.sources)
    assert fills and all(fill.endswith(", current_stream());") for fill in fills)
    assert "cudaMalloc" not in built.sources and '#include "' not in built.sources


def test_the_first_page_says_in_which_line_what_stands():
    lines, page = TEXT.splitlines(), TEXT.partition("What is where:")[2].partition('"""')[0]
    rows = re.findall(r"line +(\d+)  (\w+) ", page)
    wanted = {"Model", "ModelNew", "run_attention", "run_attention_backward", "HOST", "build"}
    assert wanted < {name for _, name in rows}
    assert sum(name.endswith("_kernel") for _, name in rows) == 5
    for number, name in rows:
        assert re.search(rf"\b{name}\b", lines[int(number) - 1]), f"{name} is elsewhere"


def test_what_goes_in_is_the_references(monkeypatch, task):
    module = loaded(monkeypatch, TEXT, [HOPPER], unbuilt)
    with torch.device("meta"):
        shapes = tuple(tuple(x.shape) for x in module.get_inputs())
    assert (tuple(module.get_init_inputs()), shapes) == (task.own.arguments, task.own.shapes)


def test_layers_that_are_more_than_their_weights_are_called(module):
    theirs, ours = pair(module)
    for model in (theirs, ours):
        model.qkv.register_forward_hook(lambda m, x, y: 2 * y)
        model.out.bias = None
    assert agree(module, theirs, ours, torch.randn(2, 7, 60)) == ["attend", "attend_backward"]
    for model in (theirs, ours):
        torch.manual_seed(2)
        model.out = nn.Sequential(nn.Linear(60, 60), nn.Tanh())
    assert agree(module, theirs, ours, torch.randn(2, 7, 60)) == ["attend", "attend_backward"]


def test_frozen_parameters_and_inputs_get_no_gradient(module):
    theirs, ours = pair(module)
    for model in (theirs, ours):
        model.qkv.weight.requires_grad_(False)
        model.out.bias.requires_grad_(False)
    x = torch.randn(2, 7, 60)
    for model in (theirs, ours):
        model(x).square().sum().backward()
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert (p.grad is None) == (q.grad is None)
        if p.grad is not None:
            torch.testing.assert_close(p.grad, q.grad, atol=2e-5, rtol=2e-5)


def test_under_autocast_it_is_float32(module):
    _, ours = pair(module)
    x = torch.randn(2, 7, 60)
    expected = results(ours, x)
    with torch.autocast("cpu", torch.bfloat16):
        for a, b in zip(results(ours, x), expected, strict=True):
            assert a.dtype == torch.float32 and torch.equal(a, b)


@pytest.mark.parametrize("width", [20, 64])
def test_both_operators_are_good_ones(module, width):
    q, k, v = torch.randn(3, 2, 2, 5, width).requires_grad_().unbind()
    x, W, b = (torch.randn(shape).requires_grad_() for shape in ((4, 6), (5, 6), (5,)))
    for causal in (False, True):
        torch.library.opcheck(module.attention, (q, k, v, causal))
    torch.library.opcheck(module.linear, (x, W, b))
    (grad,) = torch.autograd.grad(module.linear(x, W, b).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="no autograd formula"):
        grad.sum().backward()


def test_torch_compile_takes_it_whole(module):
    torch._dynamo.reset()
    theirs, ours = pair(module)
    fast = torch.compile(ours, fullgraph=True, backend="aot_eager")
    x = torch.randn(2, 7, 60)
    for a, b in zip(results(ours, x), results(theirs, x), strict=True):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=2e-5)
    torch.testing.assert_close(fast(x), theirs(x), atol=2e-5, rtol=2e-5)


# --- On the emulator

# width, heads, causal, batch, S: heads of 64 and of 128 columns, tiles of 64 keys and 128 queries.
AWKWARD = [
    (64, 1, True, 3, 1),
    (64, 1, False, 1, 130),
    (128, 2, True, 1, 65),
    (128, 1, False, 3, 1),
    (128, 1, True, 1, 130),
]


@pytest.fixture(scope="module")
def box():
    with boxed(capability=HOPPER) as box:
        yield box


@needs_box
def test_results_and_all_gradients_at_awkward_sizes(box, task):
    generator = torch.Generator().manual_seed(3)
    with box.open() as session:
        requests.load(session, TEXT, work=task.work)
        made, calls = [], []
        for number, (*arguments, batch, S) in enumerate(AWKWARD):
            size = Size(tuple(arguments), ((batch, S, arguments[0]),))
            model = task.make(size, number)
            reply, _ = requests.made(session, size, number, model)
            assert "error" not in reply, reply
            made.append(Made(number, size, model))
            x, grad_output = torch.randn(2, *size.shapes[0], generator=generator).unbind()
            state = [p.detach() + 0.1 * torch.randn(p.shape) for p in model.parameters()]
            calls.append(Call("normal", state, [x], grad_output, train=True, made=number))
        _, answers = requests.call(session, calls)
    judging = Judging(made, calls, answers, [], task.work)
    judging.run()
    assert not judging.notes, judging.notes


def test_sizes_that_a_judge_draws_are_few_heads(task):
    assert task.may_draw((64, 3, True), ((1, 9, 64),)) and not task.may_draw((64, 2), ((2, 9, 64),))
    drawn = [sizes.secret(task, torch.Generator().manual_seed(seed)) for seed in range(9)]
    others = [size for one in drawn for size in one]
    assert len(others) > 6 and all(task.may_draw(size.arguments, size.shapes) for size in others)
    call_of = sizes.other_batch(task, task.small[1], torch.Generator().manual_seed(1))
    assert call_of == task.small[1]  # whose heads are as many as may be


def test_it_is_judged_by_its_name_on_the_card_that_it_names(task):
    assert task.name == "attention" and capability_for(TEXT) == HOPPER
    assert capability_for("sm_80") == OTHER


@needs_box
def test_the_judge_passes_it(box, task):
    verdict = evaluation.judge_text(TEXT, task, box)
    assert verdict.passed, str(verdict)
    assert not any("Not judged" in note for note in verdict.notes), str(verdict)


WRONG = {
    "every key is seen": (
        "attention(q, k, v, self.causal)",
        "attention(q, k, v, False)",
        ("wrong values", "too imprecise"),  # the first call that shows it decides
    ),
    "dk and dv exchanged": ("return dq if by == 1 else dq.mul_(by), dk, dv",
        "return dq if by == 1 else dq.mul_(by), dv, dk",
        ("wrong gradient",),
    ),
}  # fmt: skip


@needs_box
@pytest.mark.parametrize("name", WRONG)
def test_the_judge_refuses_what_is_wrong(name, box, task):
    right, wrong, reasons = WRONG[name]
    assert TEXT.count(right) == 1
    few = replace(task, small=task.small[:1], may_draw=lambda *_: False)
    few = replace(few, trains="wrong gradient" in reasons)
    verdict = evaluation.judge_text(TEXT.replace(right, wrong), few, box)
    assert verdict.reason in reasons, str(verdict)
