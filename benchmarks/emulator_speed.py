"""How fast the emulator runs a tiled product, beside numba's simulator of CUDA on the same kernel.

    python benchmarks/emulator_speed.py [--size 256] [--numba-size 64] [--json FILE]

The emulator runs the workbook's `gemm_tiled` on one core; numba's simulator, which is in Python,
gets the same kernel in a process of its own. numba is no dependency of the workbook: install it
into an environment of its own and name that one's python with --numba-python.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

os.environ.setdefault("EMU_THREADS", "1")  # read by the worker process: one core

import torch
import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from utils.course import catalog
from utils.course.answers import compile_answer

NUMBA = Path(__file__).with_name("numba_tiled.py")


def emulated(size: int, runs: int) -> dict:
    """Seconds of launches of `gemm_tiled` on size³, of the launches alone."""
    exercise = catalog.load("02_shared_memory_tiling/gemm_tiled")
    kernel = compile_answer(exercise, catalog.solution_text(exercise), backend="emulator")
    A, B, C = torch.randn(size, size), torch.randn(size, size), torch.empty(size, size)
    values = {"A": A, "B": B, "C": C, "M": size, "N": size, "K": size}
    seconds = []
    for _ in range(runs):
        run = kernel.isolated(values, timeout=120)
        torch.testing.assert_close(run.after["C"], A @ B, atol=1e-3, rtol=1e-4)
        seconds.append(run.seconds)
    return {"size": size, "best": min(seconds), "median": statistics.median(seconds)}


def simulated(size: int, python: str) -> dict | str:
    """Seconds of one launch in numba's simulator, or why there are none."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [python, NUMBA, str(size)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if "No module named 'numba'" in done.stderr:
        return f"skipped: {python} has no numba; see --numba-python"
    if done.returncode:
        return f"failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
    return {"size": size, "seconds": float(done.stdout)}


def main(
    size: Annotated[int, typer.Option(help="of the emulated product")] = 256,
    numba_size: Annotated[int, typer.Option(help="of numba's, which is slow")] = 64,
    numba_python: Annotated[str, typer.Option(help="a python that has numba")] = sys.executable,
    runs: Annotated[int, typer.Option(help="launches in the emulator")] = 10,
    json_file: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    """Time the emulator on a tiled product, beside numba's simulator in the same run."""
    figures = {
        "emulator": emulated(size, runs),
        "emulator at numba's size": emulated(numba_size, runs),
        "numba": simulated(numba_size, numba_python),
        "date": time.strftime("%Y-%m-%d"),
    }
    large, small, numba = (figures[name] for name in list(figures)[:3])
    print(
        f"emulator, {size}³: {large['best']:.4f} s best, {large['median']:.4f} s median of {runs}"
    )
    print(f"emulator, {numba_size}³: {small['best']:.5f} s best, {small['median']:.5f} s median")
    if isinstance(numba, dict):
        figures["ratio"] = numba["seconds"] / small["median"]
        print(f"numba's simulator, {numba_size}³: {numba['seconds']:.2f} s")
        print(f"the emulator is {figures['ratio']:.0f} times as fast")
    else:
        print(f"numba's simulator: {numba}")
    if json_file:
        json_file.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
