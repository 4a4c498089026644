"""The five files of solutions/models on a GPU: right, how fast, how exact, and what they stand.

    python benchmarks/model_files.py [--save results/model_files.md] [--only 88]

- Right: KernelBench's rules. Five seeds, `Model` in PyTorch fp32, allclose with atol = rtol = 1e-4.
- Times: those of both_ways.py, with the precision of each row; what is required is of rested
  times. A forward is one without gradients. A training step is forward, backward from a given
  grad_output, and SGD; of an inner layer x gets a gradient too.
- Beside its kernel: `ModelNew`, and the launches that it ends in, in the same rounds. With the host
  ahead of the card, so that only the card's time counts; and in KernelBench's way, where the card
  waits for a host that takes longer than the flush of the L2.
- Gradients: against float64, Frobenius norm, beside PyTorch fp32's own. Where float32 rounding
  decides which derivative it is, at a kink or between two minima, grad_output is 0.
- Training: 200 steps of SGD from the same seed; and PyTorch against itself with all features, and
  columns of W, in reverse, which is the noise of float32.
- What they stand: opcheck, gradcheck, torch.compile, CUDA graphs, streams, devices, wrong inputs.

Curves go to a .json beside the saved file.
"""

import contextlib
import importlib.util
import json
import subprocess
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Annotated

import torch
import typer
from both_ways import HEAD, WAYS, Time, times
from torch import Tensor, nn

from utils.course.precision import Precision
from utils.process import card

ROOT = Path(__file__).resolve().parents[1]
FILES = {int(p.name.partition("_")[0]): p for p in (ROOT / "solutions/models").glob("[0-9]*_*.py")}
REQUIRED = {88: 3.0, 62: 3.0, 75: 3.0, 94: 3.0, 37: 2.4}  # times eager fp32, forward
STEPS = 200
BESIDE = 31  # rounds of the table of ModelNew and its kernel
RATES = {88: 0.1, 62: 0.05, 75: 0.01, 94: 0.1, 37: 1.0}  # of learning
CARD = "cuda"
REVERSED = "PyTorch, features reversed"
report: list[str] = []  # what the file will say
curves: dict[str, dict] = {}
began = time.monotonic()


def tell(line: str = "") -> None:
    report.append(line)
    print(line, flush=True)


def keep(path: Path | None) -> None:
    if path:
        path.write_text("\n".join(report) + "\n")
        path.with_suffix(".json").write_text(json.dumps(curves))


def load(path: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(tasks: list[int]) -> float:
    """Build all files at once, each in a process of its own. Returns seconds."""
    start = time.monotonic()
    script = "import runpy, sys; runpy.run_path(sys.argv[1])"
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    running = [
        subprocess.Popen([sys.executable, "-c", script, FILES[task]], **how) for task in tasks
    ]
    for task, process in zip(tasks, running, strict=True):
        said = process.communicate()[0]
        if process.returncode:
            raise SystemExit(f"task {task} does not build:\n{said[-6000:]}")
    return time.monotonic() - start


class Task:
    """A file and its reference, and models of both with the same parameters."""

    def __init__(self, number: int):
        self.number = number
        self.file = load(FILES[number])
        self.reference = load(ROOT / "kernels/models" / FILES[number].name)

    def pair(self, seed: int, arguments=None) -> tuple[nn.Module, nn.Module]:
        """(Model, ModelNew) of a seed, on the card."""
        made = []
        for kind in (self.reference.Model, self.file.ModelNew):
            torch.manual_seed(seed)
            with torch.device(CARD):
                made.append(kind(*(arguments or self.reference.get_init_inputs())))
        return made[0], made[1]

    def inputs(self, seed: int) -> Tensor:
        torch.manual_seed(seed)
        with torch.device(CARD):
            (x,) = self.reference.get_inputs()
        return x

    def randomised(self, seed: int) -> tuple[nn.Module, nn.Module]:
        """The same with weights and biases of channels that are no fresh model's."""
        ours, theirs = self.pair(seed)[::-1]
        draw = torch.Generator(CARD).manual_seed(seed)
        with torch.no_grad():
            for p in theirs.parameters():
                if p.numel() < 1 << 20:
                    p += 0.5 * torch.randn(p.shape, device=CARD, generator=draw)
        ours.load_state_dict(theirs.state_dict(), strict=False)
        return theirs, ours


@contextlib.contextmanager
def portable(model: nn.Module) -> Iterator[None]:
    model.portable = True
    try:
        yield
    finally:
        del model.portable


def right(task: Task) -> None:
    worst = {"ours": 0.0, "portable": 0.0}
    for seed in range(42, 47):
        theirs, ours = task.pair(seed)
        a, b = (dict(model.named_parameters()) for model in (theirs, ours))
        if list(a) != list(b) or not all(torch.equal(a[name], b[name]) for name in a):
            raise SystemExit(f"task {task.number}: other initial parameters")
        x = task.inputs(seed)
        with torch.no_grad():
            expected = theirs(x)
            for way in worst:
                with portable(ours) if way == "portable" else contextlib.nullcontext():
                    got = ours(x)
                if not torch.allclose(got, expected, atol=1e-4, rtol=1e-4):
                    tell(f"- **WRONG: {way}, seed {seed}**")
                off = (got - expected).abs() / (1e-4 + 1e-4 * expected.abs())
                worst[way] = max(worst[way], float(off.max()))
    said = ", ".join(f"{way} {off:.3f}" for way, off in worst.items())
    tell(f"- five seeds, allclose at 1e-4: largest difference over the bound: {said}")


def forward_times(task: Task) -> None:
    theirs, ours = task.pair(1)
    other = task.pair(1)[1]
    other.portable = True
    x = task.inputs(1)
    torch._dynamo.reset()
    fast = torch.compile(theirs, dynamic=False)
    with torch.no_grad():
        calls = {
            "PyTorch fp32": lambda: theirs(x),
            "torch.compile": lambda: fast(x),
            "**ours**": lambda: ours(x),
            "ours, portable": lambda: other(x),
        }
        ms = times(calls)
    table("forward, no_grad", ms)
    required = REQUIRED[task.number]
    ratio, slow = (ms["PyTorch fp32"].rested / ms[k].rested for k in ("**ours**", "ours, portable"))
    tell(
        f"\n- forward: {ratio:.2f}x eager (required {required}: {verdict(ratio >= required)}); "
        f"portable {slow:.3f}x (required 1.05: {verdict(slow >= 1.05)})"
    )


def table(what: str, ms: dict[str, Time]) -> None:
    """All of them are as exact as floats."""
    head = [what, "precision", *HEAD, "PyTorch over it", "torch.compile over it"]
    tell(f"\n| {' | '.join(head)} |\n" + "| --- " * len(head) + "|")
    split = torch.cuda.get_device_capability() == (9, 0)
    for name, took in ms.items():
        precision = Precision.SPLIT_FP16 if name == "**ours**" and split else Precision.FP32
        ratios = [ms[peer].over(took) for peer in ("PyTorch fp32", "torch.compile")]
        tell(f"| {' | '.join([name, precision, *took.cells(), *ratios])} |")


def verdict(good: bool) -> str:
    return "met" if good else "**SHORT**"


def step_of(
    model: nn.Module, x: Tensor, grad_output: Tensor, fused: bool = True
) -> Callable[[], None]:
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-6, fused=fused)

    def step() -> None:
        x.grad = None
        model(x).backward(grad_output)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return step


def beside(task: Task) -> None:
    """`ModelNew` beside the launches of its kernels, without and with what a backward needs."""
    kernels = task.file.kernels
    if not hasattr(kernels, "whole"):
        return tell("- beside its kernel: not tried, this is no Hopper")
    ours, x = task.pair(1)[1], task.inputs(1)
    *tensors, groups = arguments_of(ours, x)
    dense = [None if t is None else t.detach() for t in tensors]
    M, N = x.shape[0], tensors[1].shape[0]
    result = x.new_empty(task.file.result_shape(M, N))
    nothing, y = x.new_empty((0,)), x.new_empty((M, N))

    def without_gradients(call: Callable[[], object]) -> Callable[[], object]:
        def called() -> object:
            with torch.no_grad():
                return call()

        return called

    forward = task.file.forward
    calls = {  # those of a kernel, and then what ends in it
        "kernel": lambda: kernels.whole(*dense, nothing, result, groups),
        "**ModelNew**, no_grad": without_gradients(lambda: ours(x)),
        "operator, no_grad": without_gradients(lambda: forward(*tensors, groups, False, False)),
        "kernel, y kept": lambda: kernels.whole(*dense, y, result, groups),
        "**ModelNew**, gradients on": lambda: ours(x),
    }
    ahead, bare = times(calls, BESIDE), times(calls, BESIDE, ahead=0)
    columns = (
        "call",
        "ms",
        "over its kernel",
        "ms, KernelBench's way",
        "over its kernel",
        "host, µs",
    )
    tell(f"\n| {' | '.join(columns)} |\n" + "| --- " * len(columns) + "|")
    own = ""
    for name, call in calls.items():
        own = name if name.startswith("kernel") else own
        ratios = [f"{ms[name].rested:.4f} | {ms[name].over(ms[own], 3)}" for ms in (ahead, bare)]
        tell(f"| {name} | {' | '.join(ratios)} | {host_time(call):.0f} |")
    named = "**ModelNew**, no_grad"
    ratio = max(ms[named].rested / ms["kernel"].rested for ms in (ahead, bare))
    tell(f"\n- ModelNew takes {ratio:.3f}x its kernel (bound 1.03: {verdict(ratio <= 1.03)})")


def arguments_of(model: nn.Module, x: Tensor) -> tuple:
    """What the operator takes of a model: six tensors, of which the last may be None, and the
    number of groups."""
    linear = next(m for m in model.modules() if isinstance(m, nn.Linear))
    norm = next(m for m in model.modules() if isinstance(m, nn.GroupNorm))
    own = next((p for name, p in model.named_parameters() if "." not in name), None)
    return x, linear.weight, linear.bias, norm.weight, norm.bias, own, norm.num_groups


def host_time(call: Callable[[], object]) -> float:
    """Median microseconds until a call returns, the card being idle before."""
    times = []
    for _ in range(BESIDE):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    torch.cuda.synchronize()
    return sorted(times)[BESIDE // 2] * 1e6


def by_kernelbench(task: Task) -> None:
    """As KernelBench's evaluator times: 3 calls ahead, then the mean of 100 between two events,
    each behind a write of 256 MB. Without gradients."""
    thrash = torch.empty(32 << 20, dtype=torch.int64, device=CARD)
    x = task.inputs(1)

    @card.alone()
    def mean(model: nn.Module) -> float:
        for _ in range(3):
            model(x)
        total = 0.0
        for _ in range(100):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            thrash.fill_(42)
            start.record()
            model(x)
            end.record()
            torch.cuda.synchronize()
            total += start.elapsed_time(end)
        return total / 100

    with torch.no_grad():
        means = [mean(model) for model in task.pair(1)]
    ratio, required = means[0] / means[1], 5.0 if task.number == 37 else 4.0
    said = f"{means[0]:.3f} ms eager, {means[1]:.3f} ours, {ratio:.2f}x"
    tell(f"\n- in KernelBench's way: {said} (required {required}: {verdict(ratio >= required)})")


def training_times(task: Task) -> None:
    x = task.inputs(1)
    for inner in (False, True):
        theirs, ours = task.pair(1)
        other = task.pair(1)[1]
        other.portable = True
        third = task.pair(1)[0]
        torch._dynamo.reset()
        fast = torch.compile(third, dynamic=False)
        inputs = [x.clone().requires_grad_(inner) for _ in range(4)]
        grad_output = torch.randn_like(theirs(x).detach())
        names = "PyTorch fp32", "torch.compile", "**ours**", "ours, portable"
        models = theirs, fast, ours, other
        steps = [step_of(m, x, grad_output) for m, x in zip(models, inputs, strict=True)]
        ms = times(dict(zip(names, steps, strict=True)), ahead=2_000_000)
        what = "inner layer" if inner else "first layer"
        table(f"training step, {what}", ms)
        ours_ms = ms["**ours**"].rested
        eager, compiled = (ms[k].rested / ours_ms for k in ("PyTorch fp32", "torch.compile"))
        tell(
            f"\n- training step, {what}: {eager:.2f}x eager (required 1.5: {verdict(eager >= 1.5)})"
            f", {compiled:.2f}x torch.compile (required 1.2: {verdict(compiled >= 1.2)})"
        )
        del theirs, ours, other, third, fast, models, steps


def smooth(task: Task, theirs: nn.Module, x: Tensor, grad_output: Tensor) -> Tensor:
    """`grad_output`, but 0 where rounding decides which derivative it has. theirs: float64"""
    with torch.no_grad():
        if task.number == 62:
            near = theirs.gn(theirs.fc(x)).abs() < 1e-4
            return torch.where(near, 0.0, grad_output)
        if task.number == 94:
            near = ((theirs.gemm(x) + theirs.bias).abs() - 1).abs() < 1e-4
            groups = near.reshape(len(x), theirs.groupnorm.num_groups, -1)
            near = groups.any(dim=2, keepdim=True).expand_as(groups).reshape(near.shape)
            return torch.where(near, 0.0, grad_output)
        if task.number == 75:
            two = theirs.group_norm(theirs.gemm(x)).topk(2, dim=1, largest=False).values
            near = (two[:, 1] - two[:, 0] < 1e-4)[None, None, :, None]
            return torch.where(near, 0.0, grad_output)
    return grad_output


def gradient_errors(task: Task) -> None:
    theirs, ours = task.randomised(7)
    x = task.inputs(7)
    with torch.device(CARD):
        wide = task.reference.Model(*task.reference.get_init_inputs()).double()
    wide.load_state_dict(theirs.state_dict())
    with torch.no_grad():
        grad_output = torch.randn_like(ours(x))
    grad_output = smooth(task, wide, x.double(), grad_output)

    def gradients(model: nn.Module, x: Tensor) -> list[Tensor]:
        x = x.clone().requires_grad_()
        out = model(x)
        return torch.autograd.grad(out, [x, *model.parameters()], grad_output.to(out.dtype))

    expected = gradients(wide, x.double())
    computed = {"PyTorch": gradients(theirs, x), "ours": gradients(ours, x)}
    with portable(ours):
        computed["portable"] = gradients(ours, x)
    columns = "gradient of", "PyTorch fp32's error", "ours", "portable", "ours over PyTorch's"
    tell(f"\n| {' | '.join(columns)} |\n" + "| --- " * 5 + "|")
    worst = 0.0
    for i, name in enumerate(["x", *(n for n, _ in ours.named_parameters())]):
        off = {way: relative(grads[i], expected[i]) for way, grads in computed.items()}
        ratio = off["ours"] / off["PyTorch"]
        worst = max(worst, ratio)
        tell(f"| {name} | {' | '.join(f'{e:.1e}' for e in off.values())} | {ratio:.2f} |")
    said = f"at most {worst:.2f} times PyTorch fp32's own error"
    tell(f"\n- gradients: {said} (bound 2: {verdict(worst <= 2)})")


def relative(got: Tensor, expected: Tensor) -> float:
    return float((got.double() - expected).norm() / expected.norm())


def loss_curves(task: Task) -> None:
    x = task.inputs(3)
    draw = torch.Generator(CARD).manual_seed(3)
    curves: dict[str, list[float]] = {}
    for way in ("PyTorch", "ours", REVERSED):
        theirs, ours = task.pair(3)
        model = ours if way == "ours" else theirs
        del theirs, ours
        batch = x
        if way == REVERSED:
            linear = next(m for m in model.modules() if isinstance(m, nn.Linear))
            batch, linear.weight.data = x.flip(1), linear.weight.data.flip(1)
        draw.manual_seed(3)
        with torch.no_grad():
            target = torch.randn(model(batch).shape, device=CARD, generator=draw)
        optimiser = torch.optim.SGD(model.parameters(), lr=RATES[task.number], fused=True)
        losses = []
        for _ in range(STEPS):
            loss = (model(batch) - target).square().mean()
            loss.backward()
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            losses.append(loss.detach())
        curves[way] = torch.stack(losses).tolist()
        del model, optimiser, target
    apart = {
        way: max(abs(a - b) / abs(b) for a, b in zip(curves[way], curves["PyTorch"], strict=True))
        for way in ("ours", REVERSED)
    }
    curves[str(task.number)] = curves
    first, last = curves["ours"][0], curves["ours"][-1]
    said = f"{apart['ours']:.1e} apart from PyTorch, which is {apart[REVERSED]:.1e}"
    tell(f"- {STEPS} steps, loss {first:.4f} to {last:.4f}: at most {said} from itself")


# --- what they stand

SMALL = {  # arguments of the model, features: groups of 32
    88: ((72, 128, 4, (128,)), 72),
    62: ((72, 128, 4), 72),
    75: ((72, 128, 4, (1, 128, 1, 1)), 72),
    94: ((72, 128, (128,), 4), 72),
    37: ((72, 128, 4, (128,)), 72),
}


def raises(call: Callable[[], object], words: str, kind: type[Exception] = RuntimeError) -> None:
    try:
        call()
    except kind as error:
        if words not in str(error):
            raise AssertionError(f"it says: {error}") from None
        return
    raise AssertionError("it raised nothing")


def close(got: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)


class Stands:
    """Checks of one task, each a method, which raises or says more than "pass"."""

    def __init__(self, task: Task):
        self.task = task
        arguments, features = SMALL[task.number]
        self.theirs, self.ours = task.pair(5, arguments)
        self.x = torch.rand(50, features, device=CARD)

    def arguments(self, portable: bool) -> tuple:
        return *arguments_of(self.ours, self.x.clone().requires_grad_()), True, portable

    def layers(self, model: nn.Module) -> tuple[nn.Module, nn.Module]:
        return tuple(
            next(m for m in model.modules() if isinstance(m, kind))
            for kind in (nn.Linear, nn.GroupNorm)
        )

    def gradients(self, model: nn.Module, grad_output: Tensor) -> list[Tensor]:
        x = self.x.clone().requires_grad_()
        return torch.autograd.grad(model(x), [x, *model.parameters()], grad_output)

    def it_opcheck(self) -> None:
        for way in (False, True):
            torch.library.opcheck(self.task.file.forward, self.arguments(way))
        x, W, b, *rest = arguments_of(self.ours, self.x)
        y = torch.addmm(b, x, W.t()).detach().requires_grad_()
        torch.library.opcheck(self.task.file.tail, (y, *rest))

    def it_gradcheck(self) -> None:
        """In float32, from coarse differences: of float64 the kernels know nothing."""
        x, *_ = self.arguments(False)
        x = x[:3].detach().requires_grad_()
        torch.autograd.gradcheck(
            lambda x: self.ours(x), (x,), eps=1e-2, atol=0.1, rtol=0.1, fast_mode=True
        )

    def it_refuses_second_derivatives(self) -> None:
        x = self.x.clone().requires_grad_()
        (grad,) = torch.autograd.grad(self.ours(x).sum(), x, create_graph=True)
        raises(lambda: grad.sum().backward(), "autograd")

    def it_torch_compile_fullgraph(self) -> None:
        torch._dynamo.reset()
        fast = torch.compile(self.ours, fullgraph=True)
        expected = [
            torch.autograd.grad(m(self.x).square().sum(), list(m.parameters()))
            for m in (self.ours, fast)
        ]
        for a, b in zip(*expected, strict=True):
            close(b, a)
        with torch.no_grad():
            close(fast(self.x), self.theirs(self.x))

    def it_CUDA_graph(self) -> None:
        x, stream = self.x.clone(), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream), torch.no_grad():
            self.ours(x)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph):
            out = self.ours(x)
        for _ in range(3):
            x.copy_(torch.randn_like(x))
            graph.replay()
            close(out, self.theirs(x))

    def it_CUDA_graph_of_a_training_step(self) -> None:
        x = self.x.clone()
        parameters = list(self.ours.parameters())
        grad_output = torch.randn_like(self.theirs(x))
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.autograd.grad(self.ours(x), parameters, grad_output)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            grads = torch.autograd.grad(self.ours(x), parameters, grad_output)
        x.copy_(torch.rand_like(x))
        graph.replay()
        for a, b in zip(
            grads, torch.autograd.grad(self.ours(x), parameters, grad_output), strict=True
        ):
            close(a, b)

    def it_two_streams(self) -> None:
        xs = [torch.randn(600, self.x.shape[1], device=CARD) for _ in range(2)]
        with torch.no_grad():
            expected = [self.ours(x) for x in xs]
            torch.cuda.synchronize()
            streams = [torch.cuda.Stream() for _ in xs]
            for _ in range(20):
                results = []
                for x, stream in zip(xs, streams, strict=True):
                    with torch.cuda.stream(stream):
                        results.append(self.ours(x))
                torch.cuda.synchronize()
                for a, b in zip(results, expected, strict=True):
                    if not torch.equal(a, b):
                        raise AssertionError("other bits")

    def it_a_second_device(self) -> str | None:
        if torch.cuda.device_count() < 2:
            return "not tried, there is one"
        state = {k: v.to("cuda:1") for k, v in self.ours.state_dict().items()}
        arguments, _ = SMALL[self.task.number]
        there = self.task.file.ModelNew(*arguments).to("cuda:1")
        there.load_state_dict(state)
        x = self.x.to("cuda:1").requires_grad_()
        with torch.cuda.device(0):
            out = there(x)
            out.sum().backward()
            with torch.no_grad():
                again = there(x)
            self.layers(there)[0].register_forward_hook(lambda m, x, y: y)
            tail = there(x)
            tail.sum().backward()
        here = self.ours(self.x).cpu()
        if x.grad.device.index != 1 or not torch.equal(out.cpu(), here):
            raise AssertionError("not what the first device gives")
        for same in (again, tail):  # by other kernels, which may round in another way
            close(same.cpu(), here)

    def it_calls_layers_with_hooks(self) -> None:
        for at in range(2):
            for model in (self.ours, self.theirs):
                layer = self.layers(model)[at]
                layer.register_forward_hook(lambda m, x, y: y + 0.5)
            close(self.ours(self.x), self.theirs(self.x))
            with torch.no_grad():
                close(self.ours(self.x), self.theirs(self.x))
            grad_output = torch.randn_like(self.theirs(self.x))
            if self.task.number in (88, 37):  # else a kink may lie between the two results
                grads = [self.gradients(model, grad_output) for model in (self.ours, self.theirs)]
                for a, b in zip(*grads, strict=True):
                    close(a, b)

    def it_backward_under_autocast(self) -> None:
        grad_output = torch.randn_like(self.theirs(self.x))
        for way in (False, True):
            self.ours.portable = way
            expected = self.gradients(self.ours, grad_output)
            with torch.autocast("cuda", torch.bfloat16):
                got = self.gradients(self.ours, grad_output)
            for a, b in zip(got, expected, strict=True):
                if a.dtype != torch.float32 or not torch.equal(a, b):
                    raise AssertionError(f"other gradients, portable {way}")

    def it_autocast_stays_float32(self) -> None:
        with torch.autocast("cuda", torch.bfloat16):
            out = self.ours(self.x.bfloat16())
        if out.dtype != torch.float32:
            raise AssertionError(str(out.dtype))
        close(out, self.theirs(self.x.bfloat16().float()))

    def it_wrong_inputs_are_named(self) -> None:
        x = self.x
        for wrong, words in (
            (x.cpu(), "x is on cpu"),
            (x.double(), "x is"),
            (x.half(), "x is"),
            (x[:, :-1], "features"),
            (x[None], "x has 3 dimensions"),
        ):
            raises(lambda wrong=wrong: self.ours(wrong), words)

    def it_not_contiguous(self) -> None:
        wide = torch.rand(self.x.shape[1], 50, device=CARD)
        close(self.ours(wide.t()), self.theirs(wide.t()))
        odd = torch.rand(self.x.numel() + 1, device=CARD)[1:].reshape(self.x.shape)
        close(self.ours(odd), self.theirs(odd))

    def it_empty_batch(self) -> None:
        x = self.x[:0].clone().requires_grad_()
        out = self.ours(x)
        out.sum().backward()
        if 0 not in out.shape or x.grad.shape != x.shape:
            raise AssertionError(str(out.shape))
        if any(p.grad is None or p.grad.any() for p in self.ours.parameters()):
            raise AssertionError("gradients of nothing")
        self.ours.zero_grad()

    def it_parameters_move(self) -> None:
        again, back = self.task.pair(9, SMALL[self.task.number][0])
        back.load_state_dict(self.theirs.state_dict())
        again.load_state_dict(self.ours.state_dict())
        close(back(self.x), again(self.x))


def stands(tasks: list[int]) -> dict[int, str]:
    """What comes of all checks, by task. Each has a process of its own, which it may end."""
    names = [name for name in vars(Stands) if name.startswith("it_")]

    def said(task: int, name: str) -> str:
        words = [sys.executable, "-X", "faulthandler", __file__, "--only", str(task)]
        how = {"capture_output": True, "text": True, "errors": "replace"}
        done = subprocess.run([*words, "--check", name], **how)
        last = (done.stdout.strip().splitlines() or [""])[-1]
        what = name[3:].replace("_", " ")
        if done.returncode == 0:
            return f"{what}: {last}"
        print(f"--- task {task}, {what}: {done.returncode}\n{done.stderr[-3000:]}", flush=True)
        return f"**{what}: FAIL: {last[:400] or done.returncode}**"

    with ThreadPoolExecutor(8) as pool:
        pending = {t: [pool.submit(said, t, name) for name in names] for t in tasks}
        return {t: "; ".join(f.result() for f in futures) for t, futures in pending.items()}


def check(task: int, name: str) -> None:
    """One of them, in this process."""
    try:
        print(getattr(Stands(Task(task)), name)() or "pass")
    except Exception as error:
        traceback.print_exc()
        print(f"{type(error).__name__}: {' '.join(str(error).split())}")
        raise typer.Exit(1) from None


def main(
    save: Annotated[Path | None, typer.Option(help="write what is found to this file")] = None,
    only: Annotated[list[int] | None, typer.Option(help="these tasks")] = None,
    alone: Annotated[str, typer.Option("--check", help="one check of Stands, nothing else")] = "",
    stand: Annotated[bool, typer.Option(help="what they stand")] = True,
    figures: Annotated[bool, typer.Option(help="all else")] = True,
    kernel: Annotated[
        bool, typer.Option("--beside/--no-beside", help="ModelNew beside its kernel")
    ] = True,
) -> None:
    tasks = only or [88, 62, 75, 94, 37]
    if alone:
        return check(tasks[0], alone)
    tell("# The five model files\n")
    made = f"torch {torch.__version__}, CUDA {torch.version.cuda}, {date.today()}"
    tell(f"{torch.cuda.get_device_name()}, {made};")
    tell("`python benchmarks/model_files.py`, which says how. Bold: ours.")
    tell(f"{WAYS}\n")
    tell(f"- built, {len(tasks)} files at once: {build(tasks):.0f} s")
    parts = [right, forward_times, training_times, gradient_errors, loss_curves] if figures else []
    parts += [by_kernelbench, beside] if kernel else []
    results = stands(tasks) if stand else {}
    loaded = [Task(number) for number in tasks]
    for task in loaded:
        tell(f"\n## {FILES[task.number].stem}\n")
        if stand:
            tell(f"- {results[task.number]}")
        for part in parts:
            try:
                part(task)
            except Exception as error:
                tell(f"- **{part.__name__}: FAIL: {type(error).__name__}: {str(error)[:1500]}**")
            torch.cuda.empty_cache()
            keep(save)
        tell(f"- at {time.monotonic() - began:.0f} s")
        keep(save)


if __name__ == "__main__":
    typer.run(main)
