"""Forward and backward of attention as exact as fp32, beside PyTorch's: times both ways, errors.

Run on a Hopper GPU: `python benchmarks/attention_training.py > results/attention_training.md`.
A step is a forward and a backward from a given gradient, of q, k and v that need gradients; the
block is `solutions/models/attention.py` beside its `Model`: forward and backward, no optimiser.
"""

import contextlib
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.both_ways import HEAD, WAYS, Time, times
from utils.course import attention_file, catalog
from utils.course.answers import compile_answer
from utils.cuda.custom_op import operator
from utils.judge.check import check

SHAPES = (2, 16, 8192, 128), (4, 16, 2048, 128), (4, 16, 1024, 64)  # batch, heads, S, D
REQUIRED = 2.0  # times as fast as PyTorch's fp32
WIDTH, HEADS = 2048, 16  # of the block

Attend = Callable[..., Tensor]


def theirs(q: Tensor, k: Tensor, v: Tensor, causal: int) -> Tensor:
    return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=bool(causal))


def ours() -> Attend:
    pair = [
        compile_answer(exercise, catalog.solution_text(exercise))
        for exercise in map(
            catalog.load,
            ("14_attention/flash_attention_forward", "14_attention/flash_attention_backward"),
        )
    ]
    with contextlib.redirect_stdout(sys.stderr):  # the table is what this prints
        for kernel in pair:
            check(kernel)
    both = operator(*pair)

    def call(q: Tensor, k: Tensor, v: Tensor, causal: int) -> Tensor:
        out = both(*(one.flatten(0, 1) for one in (q, k, v)), causal)[0]
        return out.view(q.shape)

    return call


def gradients(attend: Attend, inputs: list[Tensor], grad_out: Tensor, causal: int) -> list[Tensor]:
    leaves = [one.detach().requires_grad_() for one in inputs]
    out = attend(*leaves, causal)
    return [out.detach(), *torch.autograd.grad(out, leaves, grad_out)]


def errors(calls: dict[str, Attend], shape: tuple[int, ...], causal: int, mean: float) -> str:
    """Relative to float64, of out, dq, dk and dv: of two heads, since that takes S * S doubles."""
    batch, heads, S, D = shape
    inputs = [torch.randn(1, 2, S, D, device="cuda") + mean for _ in range(4)]
    exact = gradients(theirs, [one.double() for one in inputs[:3]], inputs[3].double(), causal)
    rows = []
    for name, attend in calls.items():
        got = gradients(attend, inputs[:3], inputs[3], causal)
        each = [((a - b).norm() / b.norm()).item() for a, b in zip(got, exact, strict=True)]
        rows.append(f"{name} " + ", ".join(f"{error:.1e}" for error in each))
    return "; ".join(rows)


def table(title: str, ms: dict[str, Time]) -> None:
    print(f"\n### {title}\n\n| | {' | '.join(HEAD)} | PyTorch takes |\n" + "| --- " * 6 + "|")
    first = next(iter(ms.values()))
    for name, row in ms.items():
        print(f"| {name} | {' | '.join(row.cells())} | {first.over(row)} |")


def steps(attend: Attend) -> None:
    calls = {"PyTorch fp32": theirs, "ours": attend}
    for shape in SHAPES:
        for causal in (0, 1):
            inputs = [torch.randn(shape, device="cuda") for _ in range(3)]
            grad_out = torch.randn(shape, device="cuda")

            def step(name: str, inputs=inputs, grad_out=grad_out, causal=causal) -> object:
                return gradients(calls[name], inputs, grad_out, causal)

            ms = times({name: lambda name=name: step(name) for name in calls}, ahead=2_000_000)
            table(f"{shape}, causal {causal}", ms)
            ratio = ms["PyTorch fp32"].rested / ms["ours"].rested
            print(
                f"\n- {ratio:.2f}x, required {REQUIRED}: {'met' if ratio >= REQUIRED else 'SHORT'}"
            )
            for mean in (0.0, 2.0):
                print(f"- errors, mean {mean:g}: {errors(calls, shape, causal, mean)}")


def block() -> None:
    names = runpy.run_path(str(attention_file.path()))
    for batch, S in ((4, 2048), (1, 8192)):
        pair = [make(WIDTH, HEADS, True).cuda() for make in (names["Model"], names["ModelNew"])]
        pair[1].load_state_dict(pair[0].state_dict())
        x = torch.randn(batch, S, WIDTH, device="cuda")
        grad_out = torch.randn(batch, S, WIDTH, device="cuda")

        def step(model: nn.Module, x=x, grad_out=grad_out) -> None:
            model(x).backward(grad_out)
            model.zero_grad(set_to_none=True)

        named = {"PyTorch fp32": pair[0], "ours": pair[1]}
        ms = times({n: lambda m=m: step(m) for n, m in named.items()}, ahead=4_000_000)
        table(f"block, batch {batch}, S {S}, width {WIDTH}, {HEADS} heads, causal", ms)


def main() -> None:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] != 9:
        sys.exit("a Hopper GPU is needed: the kernels are for sm_90a")
    torch.backends.cuda.matmul.allow_tf32 = False
    card, version = torch.cuda.get_device_name(), torch.__version__
    print(
        f"# Attention that trains\n\n{card}, torch {version}, {time.strftime('%Y-%m-%d')}. {WAYS}"
    )
    steps(ours())
    block()


if __name__ == "__main__":
    main()
