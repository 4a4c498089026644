"""The five models on tensor cores, beside PyTorch, on a Hopper GPU: times and errors of one run.

    python benchmarks/tensor_core_models.py [--no-peers]

A study for chapters 10 and 11: `tensor_core_models.cu` has the kernels. Times are medians of 15
rounds in which all take turns, with the L2 flushed before each; errors are against float64, by
Frobenius norm, and the largest over (1e-4 + 1e-4 of the value). Every way runs twice on poisoned
outputs first, and must give the same bits. results/tensor_core_models.md keeps one run.
"""

import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
import torch._inductor.config
import torch.nn.functional as F
from torch import Tensor

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parent / "kernels" / "include"
FLAGS = ["-O3", "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-shared"]
WAYS = {"TF32": 1, "exact, split before": 3, "exact, split beside": 4, "exact, mma.sync": 5}
BF16 = 2
# task: rows, outputs and inputs of its linear layer, groups
MODELS = {
    88: (1024, 8192, 8192, 256),
    62: (1024, 8192, 8192, 512),
    75: (1024, 8192, 8192, 512),
    94: (1024, 8192, 8192, 256),
    37: (32768, 4096, 1024, 64),
}
ROUNDS = 15


def build() -> ctypes.CDLL:
    made = Path(tempfile.mkdtemp()) / "models.so"
    source = HERE / "tensor_core_models.cu"
    words = ["nvcc", *FLAGS, f"-I{INCLUDE}", "-Xcompiler", "-fPIC", "-o", made, source]
    subprocess.run([str(word) for word in words], check=True)
    return ctypes.CDLL(str(made))


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
    return (product(xh, Wh) + (product(xh, Wl) + product(xl, Wh))) * xs * Ws.T


def with_tf32(on: bool, call: Callable[[], Tensor]) -> Callable[[], Tensor]:
    def switched() -> Tensor:
        torch.backends.cuda.matmul.allow_tf32 = on
        try:
            return call()
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False

    return switched


def peers(task: int, given: list[Tensor], groups: int) -> dict[str, Callable[[], Tensor]]:
    def whole(x, W, b, *more):
        return tail(task, F.linear(x, W, b), *more, groups)

    def of_halves(x, W, b, *more):
        return tail(task, product_of_halves(x, W) + b, *more, groups)

    def compiled(function: Callable, tf32: bool, **how: str) -> Callable[[], Tensor]:
        torch._dynamo.reset()
        fast = torch.compile(function, dynamic=False, **how)
        call = with_tf32(tf32, lambda: fast(*given))
        call()
        return call

    return {
        "torch.compile fp32": compiled(whole, False),
        "torch.compile TF32": compiled(whole, True),
        "max-autotune TF32": compiled(whole, True, mode="max-autotune-no-cudagraphs"),
        "three fp16 products, compiled": compiled(of_halves, False),
    }


def times(calls: dict[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    found: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            flush.zero_()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(200_000)  # so that the host is ahead of the card
            start.record()
            call()
            end.record()
            torch.cuda.synchronize()
            found[name].append(start.elapsed_time(end))
    return {name: sorted(ms)[rounds // 2] for name, ms in found.items()}


def errors(got: Tensor, expected: Tensor) -> str:
    off = got.double() - expected
    norm = float(off.norm() / expected.norm())
    return f"{norm:.1e} {float((off.abs() / (1e-4 + 1e-4 * expected.abs())).max()):.2f}"


def pointers(tensors: list[Tensor]) -> ctypes.Array:
    return (ctypes.c_void_p * 6)(*[tensor.data_ptr() for tensor in tensors])


def study(library: ctypes.CDLL, task: int, with_peers: bool) -> None:
    M, N, K, groups = MODELS[task]
    given = inputs(M, N, K)
    out = torch.empty((N, M) if task == 75 else (M, N), device="cuda")
    scratch = torch.empty(4 * (M + N) * K + (2 << 20), dtype=torch.uint8, device="cuda")
    x, W, b, *more = (tensor.double() for tensor in given)
    expected = tail(task, F.linear(x, W, b), *more, groups)
    del x, W, b, more

    def eager() -> Tensor:
        return tail(task, F.linear(*given[:3]), *given[3:], groups)

    def ours(way: int) -> Tensor:
        where = ctypes.c_void_p(out.data_ptr()), ctypes.c_void_p(scratch.data_ptr())
        if error := library.run(task, way, pointers(given), *where, M, N, K):
            raise RuntimeError(f"CUDA error {error}")
        return out

    calls = {"PyTorch fp32": with_tf32(False, eager), "PyTorch TF32": with_tf32(True, eager)}
    calls |= peers(task, given, groups) if with_peers else {}
    for name, way in WAYS.items():
        if name == "exact, split beside" and K != 8192:
            continue  # the split of x is what counts there
        seen = []
        for _ in range(2):
            out.fill_(float("nan"))
            seen.append(ours(way).clone())
        if not torch.equal(*seen):
            raise RuntimeError(f"{name} gives other bits in a second call")
        calls[name] = lambda way=way: ours(way)
    ms = times(calls)
    print(f"\ntask {task}: ({M}, {K}) x ({N}, {K})\n")
    print("| way | ms | PyTorch fp32 over it | PyTorch TF32 over it | error, largest |")
    print("| --- | --- | --- | --- | --- |")
    for name, call in calls.items():
        ratios = [f"{ms[peer] / ms[name]:.2f}" for peer in ("PyTorch fp32", "PyTorch TF32")]
        row = [name, f"{ms[name]:.4f}", *ratios, errors(call(), expected)]
        print("|", *(" | ".join(row),), "|", flush=True)


def plain(library: ctypes.CDLL, n: int = 8192) -> None:
    """The product alone, TF32 and bfloat16, beside cuBLAS."""
    zeros, out = torch.zeros(n, device="cuda"), torch.empty(n, n, device="cuda")
    for dtype, way in ((torch.float32, WAYS["TF32"]), (torch.bfloat16, BF16)):
        x, W = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
        given = pointers([x, W, *[zeros] * 4])
        where = ctypes.c_void_p(out.data_ptr()), ctypes.c_void_p(out.data_ptr())

        def ours(way=way, given=given, where=where) -> None:
            if error := library.run(0, way, given, *where, n, n, n):
                raise RuntimeError(f"CUDA error {error}")

        def cublas(x=x, W=W) -> Tensor:
            return torch.mm(x, W.T)

        calls = {"cuBLAS": with_tf32(True, cublas), "ours": ours}
        ms = times(calls, 11)
        rate = {name: f"{2 * n**3 / t / 1e9:.0f} TFLOP/s" for name, t in ms.items()}
        print(f"{dtype} {n}^3: {rate}, ours over cuBLAS {ms['cuBLAS'] / ms['ours']:.3f}")


def main() -> None:
    # Else inductor leaves out the rounding to a half, and with it what the low halves are for.
    torch._inductor.config.emulate_precision_casts = True
    library = build()
    print(torch.cuda.get_device_name(), torch.__version__, "CUDA", torch.version.cuda)
    for task in MODELS:
        study(library, task, "--no-peers" not in sys.argv)
    plain(library)


if __name__ == "__main__":
    main()
