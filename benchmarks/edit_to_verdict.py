"""How long a learner waits from an edit to a verdict, beside a plain load_inline in the same run.

    python benchmarks/edit_to_verdict.py [--kernel 01_naive_gemm/gemm_naive] [--json FILE]

Each edit changes a constant in the text, so that nothing comes from a cache. The plain build is
what most code does: load_inline with its default arguments and a torch::Tensor function.
"""

import contextlib
import io
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import torch
import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from utils.course import catalog
from utils.course.answers import compile_answer
from utils.course.exercise import Exercise
from utils.cuda import warmup
from utils.ground import settings
from utils.judge.check import begin, check

PLAIN = "torch::Tensor twice(torch::Tensor x) { return x + x; }"
PLAIN_CUDA = """
__global__ void twice_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * x[i];
}
torch::Tensor twice(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    twice_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
"""


def edit(exercise: Exercise, number: int) -> tuple[float, float]:
    """Seconds to compile an edited text, and to check it."""
    text = f"{catalog.solution_text(exercise)}\nconstexpr long edit = {number};\n"
    start = time.perf_counter()
    kernel = compile_answer(exercise, text, meanwhile=begin)  # what a %%cuda cell does
    compiled = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        check(kernel)
    return compiled - start, time.perf_counter() - compiled


def plain(backend: str) -> float:
    """Seconds of load_inline with its defaults, to the first result."""
    from torch.utils.cpp_extension import load_inline

    x = torch.ones(1000, device="cuda" if backend == "cuda" else "cpu")
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        if backend == "cuda":
            declaration = "torch::Tensor twice(torch::Tensor x);"
            sources = {"cpp_sources": declaration, "cuda_sources": PLAIN_CUDA}
        else:
            sources = {"cpp_sources": PLAIN}
        module = load_inline("plain", functions=["twice"], build_directory=folder, **sources)
        assert bool((module.twice(x) == 2).all())
        return time.perf_counter() - start


def main(
    kernel: Annotated[
        str, typer.Option(help="whose solution is edited")
    ] = "01_naive_gemm/gemm_naive",
    edits: Annotated[int, typer.Option(help="how many")] = 10,
    skip_plain: Annotated[
        bool, typer.Option("--skip-plain", help="no load_inline beside it")
    ] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    """Time edits of a solution, from changed text to verdict."""
    exercise, backend = catalog.load(kernel), settings.backend()
    for thread in warmup.start():  # as %load_ext does: parsed headers, or each build reads them
        thread.join()
    seed = time.time_ns()  # texts that no cache has seen
    edit(exercise, seed)  # starts the worker, builds the emulator's runtime
    times = [edit(exercise, seed + i) for i in range(1, edits + 1)]
    figures = {
        "kernel": kernel,
        "backend": backend,
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "date": time.strftime("%Y-%m-%d"),
        "edit to verdict": statistics.median(c + v for c, v in times),
        "compile": statistics.median(c for c, _ in times),
        "check": statistics.median(v for _, v in times),
        "slowest": max(c + v for c, v in times),
    }
    print(f"{kernel} on {backend}, {figures['cores']} cores, median of {edits} edits:")
    for name in ("compile", "check", "edit to verdict", "slowest"):
        print(f"  {name:16} {figures[name]:7.2f} s")
    if not skip_plain:
        figures["plain load_inline"] = plain(backend)
        print(f"  plain load_inline {figures['plain load_inline']:6.2f} s, one build")
    if json_file:
        json_file.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
