"""The five models with the linear layer split over columns, on one and on more Hopper GPUs.

    python benchmarks/many_gpus.py [--save results/many_gpus.md]

Each GPU has whole groups: its rows of W, and its part of all that has one value a channel. Every
GPU has all of x, and keeps its columns of the result; only 75's minimum of a row crosses, by an
all-reduce, or, between two, by reading what the other has written, through NVLink. The kernels are
the fp32-accurate ones of chapter 11. Strong: the task's columns, split.
Weak: the task's columns on each. A time is the median over rounds of the slowest GPU's; the L2 is
flushed and all GPUs meet before each. A part of the columns on one GPU alone is measured as well:
that predicts more GPUs than there are. Before it times, each GPU computes the whole and finds its
columns of it in the same bits.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Annotated

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric
import typer
from tensor_core_models import solution
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from utils.course import catalog
from utils.course.models import MODELS, Model
from utils.cuda.compiler import compile_cuda
from utils.cuda.kernel import Kernel

ROUNDS, PARTS = 21, (1, 2, 4, 8)
# 75 in two launchers, behind the text of its solution: the minima of these channels as keys, which
# are ordered like them; and the result, from the keys of two GPUs.
IN_TWO = """
__global__ void spread_both_kernel(const int* mine, const int* theirs, const float* shift,
                                   float* out, int M, int N) {
    int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= M) return;
    float least = from_key(min(unsigned(mine[m]), unsigned(theirs[m])));
    for (int n = blockIdx.y; n < N; n += gridDim.y)
        __stcs(&out[size_t(n) * M + m], least + shift[n]);
}
void find_least(const float* x, const float* W, const float* b, const float* weight,
                const float* bias, int* keys, float* out, int M, int N, int K, int groups) {
    cudaMemsetAsync(keys, 0xff, M * sizeof(int));
    find_keys(x, W, {b, weight, bias}, reinterpret_cast<unsigned*>(keys), out, M, N, K, groups, 3);
}
void spread_both(const int* mine, const int* theirs, const float* shift, float* out, int M, int N) {
    spread_both_kernel<<<dim3((M + 127) / 128, min(N, 256)), 128>>>(mine, theirs, shift, out, M, N);
}
"""


def kernels() -> dict[str, Callable]:
    """By the model's name, compiled beside each other where they are not yet."""
    with ThreadPoolExecutor() as pool:
        answers = pool.map(solution, [f"linear_{name}_hopper" for name in MODELS])
        return dict(zip(MODELS, answers, strict=True))


def in_two() -> tuple[Kernel, Kernel]:
    """The launchers of IN_TWO."""
    text = catalog.solution_text(catalog.load("11_hopper/linear_gn_min_bias_hopper")) + IN_TWO
    halves = tuple(
        compile_cuda(text, name, backend="cuda") for name in ("find_least", "spread_both")
    )
    for kernel in halves:
        kernel.trusted = True  # called in this process, and not on copies in another one
    return halves


def inputs(model: Model) -> dict[str, Tensor]:
    """Those of the whole model."""
    draw = torch.Generator("cuda").manual_seed(1)
    N, K = model.channels, model.features
    x = torch.rand(model.rows, K, device="cuda", generator=draw)
    W = (torch.rand(N, K, device="cuda", generator=draw) * 2 - 1) / K**0.5
    names = ("b", "weight", "bias", *model.extra)
    return {"x": x, "W": W} | {n: torch.randn(N, device="cuda", generator=draw) for n in names}


def columns(
    model: Model, tensors: Mapping[str, Tensor], rank: int, ranks: int
) -> dict[str, Tensor]:
    """The part of one of `ranks` GPUs."""
    return {n: v if n == "x" else v.chunk(ranks)[rank].contiguous() for n, v in tensors.items()}


def call(
    kernel: Callable, model: Model, tensors: Mapping[str, Tensor], groups: int, crosses: bool
) -> Callable[[], Tensor]:
    """The model on these channels. `crosses`: a row's minimum is that of all GPUs."""
    (M, K), N = tensors["x"].shape, len(tensors["W"])
    minimum = model.output != "rows channels"
    out = torch.empty((N, M) if minimum else (M, N), device="cuda")
    values = {**tensors, "out": out, "M": M, "N": N, "K": K, "groups": groups, "terms": 3}
    if crosses and minimum:
        values["shift"] = torch.zeros_like(tensors["shift"])  # it is added when all have met
    taken = {p.name: values[p.name] for p in kernel.parameters}
    shift = tensors.get("shift")

    def called() -> Tensor:
        kernel(**taken)
        if not (crosses and minimum):
            return out
        least = out[0].clone()  # of each row: the same for all channels
        dist.all_reduce(least, dist.ReduceOp.MIN)
        return torch.add(least, shift[:, None], out=out)

    return called


def beside(tensors: Mapping[str, Tensor], groups: int) -> Callable[[], Tensor]:
    """75 on two GPUs: each writes its minima where the other can read them, and they meet."""
    (M, K), N = tensors["x"].shape, len(tensors["W"])
    find, spread = in_two()
    out = torch.empty(N, M, device="cuda")
    taken = {n: tensors[n] for n in ("x", "W", "b", "weight", "bias")}
    taken |= {"out": out, "M": M, "N": N, "K": K, "groups": groups}
    places = []  # two, in turns: the other one may still read those of the call before
    for _ in range(2):
        mine = symmetric.empty(M, dtype=torch.int32, device="cuda")
        both = symmetric.rendezvous(mine, dist.group.WORLD)
        places.append((mine, both, both.get_buffer(1 - dist.get_rank(), mine.shape, mine.dtype)))

    def called() -> Tensor:
        mine, both, theirs = places[0]
        places.reverse()
        find(**taken, keys=mine)
        both.barrier()
        spread(mine=mine, theirs=theirs, shift=tensors["shift"], out=out, M=M, N=N)
        return out

    return called


def time(function: Callable[[], Tensor]) -> float:
    """Milliseconds, of the slowest GPU: the median over rounds."""
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    meet, times = torch.zeros(1, device="cuda"), []
    for _ in range(3):
        function()
    for _ in range(ROUNDS):
        flush.zero_()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(1_000_000)  # so that the host is ahead of the card
        dist.all_reduce(meet)
        start.record()
        function()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    slowest = torch.tensor(times, device="cuda")
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return float(slowest.median())


def rank_main(rank: int, ranks: int, folder: str) -> None:
    """What each process does; the first leaves its times in the folder."""
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", f"file://{folder}/meet{ranks}", rank=rank, world_size=ranks)
    times: dict[str, float] = {}
    for name, kernel in kernels().items():
        model = MODELS[name]
        whole = inputs(model)
        mine = call(
            kernel, model, columns(model, whole, rank, ranks), model.groups // ranks, ranks > 1
        )
        across = int(model.output == "rows channels")  # the dimension of channels
        alone = call(kernel, model, whole, model.groups, crosses=False)()
        if not torch.equal(mine(), alone.chunk(ranks, across)[rank]):
            raise SystemExit(f"{name}: other bits on {ranks} GPUs than on one")
        times[f"{name} strong"] = time(mine)
        weak = call(kernel, model, whole, model.groups, ranks > 1)
        times[f"{name} weak"] = time(weak)
        if across == 0 and ranks == 2:
            direct = beside(columns(model, whole, rank, ranks), model.groups // ranks)
            if not torch.equal(direct(), alone.chunk(ranks, across)[rank]):
                raise SystemExit(f"{name}: other bits where one GPU reads what another wrote")
            times[f"{name} read"] = time(direct)
        for parts in PARTS if ranks == 1 else ():
            tensors = columns(model, whole, 0, parts)
            times[f"{name} 1/{parts}"] = time(
                call(kernel, model, tensors, model.groups // parts, parts > 1)
            )
    if rank == 0:
        torch.save(times, f"{folder}/times{ranks}")
    dist.destroy_process_group()


def table(measured: Mapping[int, Mapping[str, float]]) -> list[str]:
    """Of the times by number of GPUs."""
    most, one = max(measured), measured[1]
    lines = [
        f"| task | one GPU, ms | {most} GPUs, ms | times as fast | predicted | weak, ms on {most} "
        "| efficiency | predicted for 4 | for 8 |",
        "| --- " * 9 + "|",
    ]
    for name, model in MODELS.items():
        strong, alone = measured[most][f"{name} strong"], one[f"{name} strong"]
        weak = measured[most][f"{name} weak"]
        ahead = [alone / one[f"{name} 1/{parts}"] for parts in (most, 4, 8)]
        lines.append(
            f"| {model.task} | {alone:.4f} | {strong:.4f} | **{alone / strong:.2f}** | "
            f"{ahead[0]:.2f} | {weak:.4f} | {alone / weak:.2f} | {ahead[1]:.2f} | {ahead[2]:.2f} |"
        )
        if read := measured[most].get(f"{name} read"):
            lines.append(
                f"| {model.task}, without an all-reduce | {alone:.4f} | {read:.4f} | "
                f"**{alone / read:.2f}** | | | | | |"
            )
    return lines


def main(
    save: Annotated[Path | None, typer.Option(help="write the table to this file")] = None,
) -> None:
    gpus = torch.cuda.device_count()
    kernels(), in_two()  # built once, before every process asks for them
    measured = {}
    os.environ.setdefault("NCCL_DEBUG", "WARN")
    with tempfile.TemporaryDirectory() as folder:
        for ranks in sorted({1, min(gpus, max(PARTS))}):
            torch.multiprocessing.spawn(rank_main, (ranks, folder), nprocs=ranks)
            measured[ranks] = torch.load(f"{folder}/times{ranks}")
    report = [
        "# The five models on more than one GPU\n",
        f"{gpus} x {torch.cuda.get_device_name()}, torch {torch.__version__}, {date.today()};",
        "`python benchmarks/many_gpus.py`, which says how.\n",
        *table(measured),
    ]
    print("\n".join(report))
    if save:
        save.write_text("\n".join(report) + "\n")


if __name__ == "__main__":
    typer.run(main)
