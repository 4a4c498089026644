"""`solutions/models/`: files that stand alone, that the judge passes, and that are good operators.

To build one takes as long as twenty of the suite's other tests, since it reads PyTorch's headers.
So of the five another one is built each time, and its name is in the message where it fails.
"""

import importlib.machinery
import importlib.util
import re
import secrets
import types
from pathlib import Path

import pytest
import torch
from support.box import needs_box
from support.solution_files import HOPPER, OTHER, TEXTS, loaded, unbuilt
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.flop_counter import FlopCounterMode

from utils.course import flat_cuda, model_files
from utils.cuda import model_build
from utils.cuda.model_box import boxed
from utils.judge.models import evaluation, tasks


def built(name, cpp_sources, cuda_sources, functions, **how) -> types.ModuleType:
    path = str(model_build.library(cpp_sources, cuda_sources, functions, name, watched=False))
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def test_the_files_are_what_their_sources_make():
    for path, text in model_files.texts():
        assert path.read_text() == text, f"{path.name} is out of step: workbook sync"


@pytest.mark.parametrize("path", tasks.references(), ids=lambda path: path.stem)
def test_a_file_has_the_parameters_of_its_reference_and_tells_the_shape(path, monkeypatch):
    module = loaded(monkeypatch, TEXTS[path.stem], [OTHER], unbuilt)
    task = tasks.read(path)
    size = task.small[0]
    torch.manual_seed(3)
    ours, theirs = module.ModelNew(*size.arguments), task.make(size, 3)
    for (name, p), (known, q) in zip(
        ours.named_parameters(), theirs.named_parameters(), strict=True
    ):
        assert name == known and torch.equal(p, q)
    theirs.load_state_dict(ours.state_dict())
    ours.load_state_dict(theirs.state_dict())
    x = torch.empty(size.shapes[0], device="meta")
    out = ours.to("meta")(x)  # as torch.compile sees it: nothing is computed
    assert out.shape == theirs.to("meta")(x).shape and out.requires_grad


def test_a_file_is_built_for_the_cards_that_are_there(monkeypatch):
    for text in TEXTS.values():
        kernels = loaded(monkeypatch, text, [HOPPER, HOPPER], unbuilt).kernels
        assert kernels.extra_cuda_cflags == ["-gencode=arch=compute_90a,code=sm_90a"]
        assert "wgmma" in kernels.sources
        for cards in ([OTHER], [OTHER, HOPPER]):
            kernels = loaded(monkeypatch, text, cards, unbuilt).kernels
            assert "wgmma" not in kernels.sources and "products" not in kernels.functions
        assert kernels.extra_cuda_cflags[1] == "-gencode=arch=compute_90,code=sm_90"
        with pytest.raises(RuntimeError, match=r"task_\d\d needs a CUDA card"):
            loaded(monkeypatch, text, [], unbuilt)


def test_nothing_is_left_to_the_default_stream_or_to_memory_of_cudas_own():
    for text in TEXTS.values():
        kernels = text.partition('KERNELS = r"""')[2]
        launches = kernels.split("<<<")[1:]
        assert launches and all("current_stream()" in x.partition(">>>")[0] for x in launches)
        assert kernels.count("config.stream = current_stream()") == kernels.count("LaunchKernelEx(")
        assert kernels.count("cudaMemsetAsync(") == kernels.count(", current_stream());")
        assert "cudaMalloc" not in kernels and '#include "groups' not in kernels


def test_kernelbench_finds_nothing_in_the_files_that_it_forbids():
    for text in TEXTS.values():
        code = re.sub(r"(#|//).*", "", text)
        for words in (
            r"try\s*:",
            r"except\b",
            r"pass\b",
            r"torch\.nn\.",
            r"(nn\.functional|F)\.\w",
        ):
            assert not re.search(rf"\b{words}", code)
        assert not re.search(r"\btorch\.(matmul|mm|sigmoid|tanh|mish|clamp|softplus)\b", code)


@pytest.fixture(scope="module")
def name() -> str:
    return secrets.choice(list(TEXTS))


@needs_box
@pytest.mark.parametrize("portable", [False, True])
def test_one_of_the_files_passes_the_judge(name, portable):
    text = TEXTS[name]
    if portable:
        text = text.replace("portable = False", "portable = True")
    with boxed(capability=HOPPER) as box:
        task = tasks.find(Path(f"{name}.py"))
        verdict = evaluation.judge_text(text, task, box)
    assert verdict.passed, f"{name}: {verdict}"


@needs_box
def test_one_of_the_files_is_a_good_operator(name, monkeypatch):
    module = loaded(monkeypatch, TEXTS[name], [HOPPER], built)
    task = tasks.find(Path(f"{name}.py"))
    ours = module.ModelNew(*task.small[0].arguments)
    x = torch.randn(task.small[0].shapes[0], requires_grad=True)
    layers = [m for m in ours.children() if list(m.parameters())]
    linear, norm = sorted(layers, key=lambda m: -m.weight.ndim)
    own = next((p for n, p in ours.named_parameters() if "." not in n), None)
    arguments = x, linear.weight, linear.bias, norm.weight, norm.bias, own, norm.num_groups
    tests = "test_schema", "test_autograd_registration", "test_faketensor"
    for portable in (False, True):
        torch.library.opcheck(module.forward, (*arguments, True, portable), test_utils=tests)
    y = linear(x)
    after = y.detach().requires_grad_(), *arguments[3:]
    torch.library.opcheck(module.tail, after, test_utils=tests)
    torch.testing.assert_close(module.tail(*after), ours(x))
    _not_contiguous(ours, x.detach())
    _empty(ours, x)
    _sees_who_looks(module, x.detach())
    (grad,) = torch.autograd.grad(ours(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="no autograd formula"):
        grad.sum().backward()
    for wrong, words in (
        (x.double(), "x is Double and must be float32"),
        (x[:, :-1], "x has 39 features, and the linear layer's weight takes 40"),
        (x[None], "x has 3 dimensions and must have 2"),
    ):
        with pytest.raises(RuntimeError, match=words):
            ours(wrong)
    with pytest.raises(RuntimeError, match="channels are not 7 groups of one size"):
        module.forward(*arguments[:-1], 7, True, False)
    with pytest.raises(RuntimeError, match="the linear layer's result has 3 dimensions"):
        module.tail(y[None], *arguments[3:])


def _not_contiguous(ours, x):
    expected = ours(x)
    for same in (x.t().contiguous().t(), torch.cat([x.new_zeros(1), x.flatten()])[1:].view_as(x)):
        assert torch.equal(ours(same), expected)
        with torch.no_grad():
            assert torch.equal(ours(same), expected)
    with torch.no_grad(), pytest.raises(RuntimeError, match="x has 39 features"):
        ours(x[:, :-1])


def _sees_who_looks(module, x):
    """Whether PyTorch has to see a call with x is known to the file."""
    unobserved = module.kernels.unobserved
    assert unobserved([x, None, nn.Parameter(x)])
    assert not unobserved([x.to("meta")])
    with torch.autocast("cpu"):
        assert not unobserved([x])
        with torch.autocast("cpu", enabled=False):
            assert unobserved([x])
    with torch.inference_mode():
        assert unobserved([x + 1])
    with FlopCounterMode(display=False):
        assert not unobserved([x])
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(x)
        assert not unobserved([fake])
    assert not unobserved([fake]) and not unobserved([x, fake])
    seen = []
    torch.vmap(lambda row: seen.append(unobserved([row])) or row)(x)
    torch.func.grad(lambda x: seen.append(unobserved([x])) or x.sum())(x)
    make_fx(lambda x: seen.append(unobserved([x])) or x + 1)(x)
    assert seen == [False, False, False] and unobserved([x])


def _empty(ours, x):
    got = ours(x[:0])
    with torch.no_grad():
        assert 0 in got.shape and ours(x[:0]).shape == got.shape
    assert not any(g.any() for g in torch.autograd.grad(got.sum(), list(ours.parameters())))


def test_the_first_page_says_in_which_line_what_stands():
    for text in TEXTS.values():
        lines, page = text.splitlines(), text.partition("What is where:")[2].partition('"""')[0]
        rows = re.findall(r"line +(\d+)  (\w+) ", page)
        assert {"ModelNew", "run", "run_backward", "build", "HOST"} < {name for _, name in rows}
        assert sum(name.endswith("_kernel") for _, name in rows) == 5
        for number, name in rows:
            assert re.search(rf"\b{name}\b", lines[int(number) - 1]), f"{name} is elsewhere"


CUDA = """
// launches k
void first(int n) { k<<<n, 32>>>(n); }

// Of first: what it says
// goes with it.
inline void second(int n) {
    k<A<int, 2>><<<dim3(n, 1), 32, f(n, 2)>>>(n);
    cudaMemsetAsync(p, 0, g(n, 4));
    cudaLaunchConfig_t config = {};
}
"""


def test_launches_and_fills_go_to_the_current_stream():
    text = flat_cuda.on_the_current_stream(CUDA)
    assert "k<<<n, 32, 0, current_stream()>>>(n)" in text
    assert "k<A<int, 2>><<<dim3(n, 1), 32, f(n, 2), current_stream()>>>(n)" in text
    assert "cudaMemsetAsync(p, 0, g(n, 4), current_stream());" in text
    assert "config = {};\n    config.stream = current_stream();" in text
    assert text.replace(", current_stream()", "").count("\n") == CUDA.count("\n") + 1


def test_a_function_goes_with_its_comment_and_nothing_else_does():
    of_second = CUDA.index("// Of first")
    assert flat_cuda.without_functions(CUDA, ["second"]) == CUDA[:of_second]
    assert flat_cuda.without_functions(CUDA, ["first"]) == "\n\n" + CUDA[of_second:]


def test_a_header_stands_once_where_it_is_first_included(tmp_path):
    (tmp_path / "a.cuh").write_text('#pragma once\n#include "b.cuh"  // for b\nint a;\n')
    (tmp_path / "b.cuh").write_text("#pragma once\nint b;\n")
    (tmp_path / "c.cu").write_text('#include "a.cuh"\n#include "b.cuh"\n#include "x.h"\nint c;\n')
    flat = flat_cuda.Flat([tmp_path])
    assert flat.file(tmp_path / "c.cu") == 'int b;\nint a;\n#include "x.h"\nint c;\n'
