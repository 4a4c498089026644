"""The five models on tensor cores, beside all peers, on a Hopper GPU: times and errors of one run.

    python benchmarks/tensor_core_models.py [--no-peers] [--save results/tensor_core_models.md]

The kernels are the solutions of chapters 10 and 11. Peers: PyTorch in fp32 and TF32, torch.compile,
max-autotune, the models as one Triton kernel each (triton_models.py), and three cuBLAS products of
halves with all else compiled. Times are those of both_ways.py; splitting x and W is part of every
time. Errors are against float64: Frobenius norm, and the largest over 1e-4 + 1e-4 of the value.
Ours run twice on poisoned outputs before and after they are timed, and must give the same bits.
"""

import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Annotated

import torch
import torch._inductor.config
import torch.nn.functional as F
import triton_models
import typer
from both_ways import HEAD, WAYS, Time, times
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from utils.course import catalog
from utils.course.answers import compile_answer
from utils.course.precision import Precision, alike, under

# task: the kernel, rows, outputs and inputs of its linear layer, groups
MODELS = {
    88: ("linear_gn_swish_multiply_swish", 1024, 8192, 8192, 256),
    62: ("linear_gn_leaky_relu_double", 1024, 8192, 8192, 512),
    75: ("linear_gn_min_bias", 1024, 8192, 8192, 512),
    94: ("linear_bias_hardtanh_mish_gn", 1024, 8192, 8192, 256),
    37: ("linear_swish_bias_gn", 32768, 4096, 1024, 64),
}
PLAIN = "linear_persistent", "linear_split_wgmma", "linear_split_beside"
BF16 = "cuBLAS bfloat16"
TRITON = "Triton tf32x3"
OF_HALVES = "three fp16 products, compiled"
report: list[str] = []  # what the file will say


def tell(line: str = "") -> None:
    report.append(line)
    print(line, flush=True)


def keep(path: Path | None) -> None:
    if path:
        path.write_text("\n".join(report) + "\n")


def solution(name: str) -> Callable:
    (exercise,) = (e for e in catalog.exercises() if e.name == name)
    kernel = compile_answer(exercise, catalog.solution_text(exercise), backend="cuda")
    kernel.trusted = True  # called in this process, and not on copies in another one
    return kernel


def tail(task: int, y: Tensor, weight: Tensor, bias: Tensor, extra: Tensor, groups: int) -> Tensor:
    def norm(y: Tensor) -> Tensor:
        return F.group_norm(y, groups, weight, bias, 1e-5)

    if task == 88:
        y = norm(y)
        y = torch.sigmoid(y) * y * extra
        return torch.sigmoid(y) * y
    if task == 62:
        y = F.leaky_relu(norm(y), 0.01)
        return y + y
    if task == 94:
        return norm(F.mish(F.hardtanh(y + extra)))
    if task == 37:
        return norm(torch.sigmoid(y) * y + extra)
    return norm(y).min(dim=1).values[None, :] + extra[:, None]


def inputs(M: int, N: int, K: int) -> list[Tensor]:
    draw = torch.Generator("cuda").manual_seed(1)
    x = torch.rand(M, K, device="cuda", generator=draw)
    W = (torch.rand(N, K, device="cuda", generator=draw) * 2 - 1) / K**0.5
    b = (torch.rand(N, device="cuda", generator=draw) * 2 - 1) / K**0.5
    weight, bias, extra = torch.randn(3, N, device="cuda", generator=draw)
    return [x, W, b, 1 + 0.5 * weight, bias, extra]


def halves(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """High and low halves of rows that are scaled by powers of two, and what undoes the scale."""
    most = x.abs().amax(dim=1, keepdim=True).clamp(min=1e-30)
    up = torch.exp2(14 - torch.floor(torch.log2(most)))
    high = (x * up).half()
    return high, (x * up - high.float()).half(), 1 / up


def product_of_halves(x: Tensor, W: Tensor) -> Tensor:
    def product(a: Tensor, b: Tensor) -> Tensor:
        return torch.mm(a, b.T, out_dtype=torch.float32)

    (xh, xl, xs), (Wh, Wl, Ws) = halves(x), halves(W)
    high, low = product(torch.cat((xh, xl)), Wh).chunk(2)  # faster than one after the other
    return (high + (product(xh, Wl) + low)) * xs * Ws.T


def with_tf32(on: bool, call: Callable[[], Tensor]) -> Callable[[], Tensor]:
    return under(Precision.TF32 if on else Precision.FP32, call)


def peers(task: int, arguments: list[Tensor], groups: int) -> dict[str, Callable[[], Tensor]]:
    def whole(x, W, b, *more):
        return tail(task, F.linear(x, W, b), *more, groups)

    def of_halves(x, W, b, *more):
        return tail(task, product_of_halves(x, W) + b, *more, groups)

    def compiled(function: Callable, tf32: bool, **how: str) -> Callable[[], Tensor]:
        torch._dynamo.reset()
        fast = torch.compile(function, dynamic=False, **how)
        call = with_tf32(tf32, lambda: fast(*arguments))
        call()
        return call

    return {
        "torch.compile fp32": compiled(whole, False),
        "max-autotune TF32": compiled(whole, True, mode="max-autotune-no-cudagraphs"),
        OF_HALVES: compiled(of_halves, False),
        TRITON: lambda: triton_models.model(task, arguments, groups, "tf32x3"),
    }


def errors(got: Tensor, expected: Tensor) -> tuple[str, str]:
    off = got.double() - expected
    norm = float(off.norm() / expected.norm())
    largest = float((off.abs() / (1e-4 + 1e-4 * expected.abs())).max())
    return f"{norm:.1e}", f"{largest:.2f}"


def ours(task: int, arguments: list[Tensor], groups: int) -> dict[str, Callable[[], Tensor]]:
    name, M, N, K, _ = MODELS[task]
    out = torch.empty((N, M) if task == 75 else (M, N), device="cuda")
    values = dict(zip(("x", "W", "b", "weight", "bias", "extra"), arguments, strict=True))
    values |= {"scale": arguments[-1], "shift": arguments[-1], "out": out}
    values |= {"M": M, "N": N, "K": K, "groups": groups}

    def call(kernel: Callable, **more: int) -> Callable[[], Tensor]:
        all_of = values | more
        taken = {p.name: all_of[p.name] for p in kernel.parameters}

        def called() -> Tensor:
            kernel(**taken)
            return out

        return called

    hopper = solution(f"{name}_hopper")
    calls = {"**TF32**": call(hopper, terms=1), "**exact**": call(hopper, terms=3)}
    if task == 88:
        calls["**exact, mma.sync**"] = call(solution(f"{name}_split"))
    return calls


def same_bits(name: str, call: Callable[[], Tensor]) -> None:
    seen = []
    for _ in range(2):
        call().fill_(float("nan"))
        seen.append(call().clone())
    if not torch.equal(*seen):
        raise SystemExit(f"{name} gives other bits in a second call")


def precision(label: str) -> Precision | None:
    """Of a row. Three products in TF32, as of halves, are as exact as floats."""
    if BF16 in label or "bf16" in label:
        return Precision.BF16
    if label.strip("*").startswith(("exact", "linear_split", "three fp16")):
        return Precision.SPLIT_FP16
    if label.strip("*").startswith("linear_persistent") or "TF32" in label:
        return Precision.TF32
    return Precision.FP32


def rows(
    ms: dict[str, Time],
    over: list[str],
    expected: Tensor,
    calls: dict[str, Callable[[], Tensor]],
    flops: int = 0,
    places: int = 2,
) -> None:
    """A table: with `flops`, TFLOP/s beside the rested time; ratios of `over` where they are of
    like precision."""
    rate = ["TFLOP/s"] if flops else []
    head = ["way", "precision", *HEAD, *rate, *(f"{peer} over it" for peer in over)]
    tell(f"| {' | '.join([*head, 'error', 'largest'])} |")
    tell("| --- " * (len(head) + 2) + "|")
    for label, call in calls.items():
        mine = precision(label)
        ratios = [
            ms[peer].over(ms[label], places) if alike(precision(peer), mine) else "–"
            for peer in over
        ]
        named = "three TF32" if label == TRITON else str(mine)
        cells = [label, named, *ms[label].cells()]
        cells += [f"{flops / ms[label].rested / 1e9:.0f}"] if flops else []
        tell(f"| {' | '.join([*cells, *ratios, *errors(call(), expected)])} |")


def model(task: int, with_peers: bool) -> None:
    name, M, N, K, groups = MODELS[task]
    arguments = inputs(M, N, K)
    x, W, b, *more = (tensor.double() for tensor in arguments)
    expected = tail(task, F.linear(x, W, b), *more, groups)
    del x, W, b, more

    def eager() -> Tensor:
        return tail(task, F.linear(*arguments[:3]), *arguments[3:], groups)

    calls = {"PyTorch fp32": with_tf32(False, eager), "PyTorch TF32": with_tf32(True, eager)}
    calls |= peers(task, arguments, groups) if with_peers else {}
    own = ours(task, arguments, groups)
    for label, call in own.items():
        same_bits(label, call)
    calls |= own
    ms = times(calls)
    for label, call in own.items():
        same_bits(label, call)
    over = [peer for peer in calls if peer.endswith(("fp32", "TF32", OF_HALVES))]
    tell(f"\n## Task {task}: ({M}, {K}) x ({N}, {K})\n")
    rows(ms, over, expected, calls)


def product(M: int, N: int, K: int, dtype: torch.dtype = torch.float32) -> None:
    """The product alone, beside cuBLAS."""
    x, W = (torch.randn(rows, K, device="cuda", dtype=dtype) for rows in (M, N))
    out, expected = torch.empty(M, N, device="cuda"), x.double() @ W.double().T

    def cublas(**how: torch.dtype) -> Tensor:
        return torch.mm(x, W.T, **how)

    if dtype == torch.float32:
        calls = {"cuBLAS fp32": with_tf32(False, cublas), "cuBLAS TF32": with_tf32(True, cublas)}
        over, names = ["cuBLAS fp32", "cuBLAS TF32"], PLAIN
    else:
        calls = {BF16: cublas, f"{BF16}, leaving floats": lambda: cublas(out_dtype=torch.float32)}
        over, names = [BF16], ("linear_bf16",)
    for name in names:
        kernel = solution(name)

        def call(kernel: Callable = kernel) -> Tensor:
            kernel(x=x, W=W, out=out, M=M, N=N, K=K)
            return out

        same_bits(name, call)
        calls[f"**{name}**"] = call
    ms = times(calls, 11)
    for name in names:
        same_bits(name, calls[f"**{name}**"])
    tell(f"\n## The product alone: ({M}, {K}) x ({N}, {K}), {str(dtype).partition('.')[2]}\n")
    rows(ms, over, expected, calls, flops=2 * M * N * K, places=3)


def main(
    peers: Annotated[bool, typer.Option(help="time PyTorch's and Triton's ways, too")] = True,
    save: Annotated[Path | None, typer.Option(help="write the tables to this file")] = None,
    only: Annotated[list[int] | None, typer.Option(help="these tasks")] = None,
) -> None:
    # Else inductor leaves out the rounding to a half, and with it what the low halves are for.
    torch._inductor.config.emulate_precision_casts = True
    tell("# The five models on tensor cores, beside all peers\n")
    tell(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {date.today()};")
    tell("`python benchmarks/tensor_core_models.py`, which says how. Bold: ours.")
    tell(f"{WAYS} The card's clock and power are those of the sustained calls.")
    product(8192, 8192, 8192)
    product(1024, 8192, 8192)
    product(8192, 8192, 8192, torch.bfloat16)
    product(1024, 8192, 8192, torch.bfloat16)
    for task in only or MODELS:
        model(task, peers)
        keep(save)


if __name__ == "__main__":
    typer.run(main)
