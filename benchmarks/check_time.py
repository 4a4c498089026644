"""What `check` costs over all solutions, beside another checkout of the workbook in the same run.

    python benchmarks/check_time.py [--base FOLDER] [--only 09] [--seeds 1]

Each kernel is checked once before it is timed, so that no build is counted. CPU seconds are this
process's and its workers', and do not hang on what else the machine does.
"""

import contextlib
import io
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

HERE = Path(__file__).resolve().parents[1]


def cpu() -> float:
    """Seconds of this process, of those that it has ended and of its workers."""
    from utils.process import pool

    used = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    total = sum(u.ru_utime + u.ru_stime for u in used)
    slots = (slot for slots in pool._slots.values() for slot in slots)
    for worker in filter(None, (slot.worker for slot in slots)):
        fields = Path(f"/proc/{worker.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    return total


def measure(only: str, seeds: int) -> None:
    """Print a JSON line for each kernel: its id, wall and CPU seconds of a check."""
    from utils.course import catalog
    from utils.course.answers import compile_answer
    from utils.judge.check import check

    for exercise in catalog.exercises():
        if not exercise.topic.startswith(only):
            continue
        kernel = compile_answer(exercise, catalog.solution_text(exercise), backend="emulator")
        with contextlib.redirect_stdout(io.StringIO()):
            check(kernel, seed=0)
            wall, used = time.perf_counter(), cpu()
            for seed in range(1, seeds + 1):
                check(kernel, seed=seed)
        figures = (time.perf_counter() - wall) / seeds, (cpu() - used) / seeds
        print(json.dumps([exercise.id, *figures]), flush=True)


def measured(checkout: Path, only: str, seeds: int) -> dict[str, list[float]]:
    """By kernel, what `measure` says in a process of a checkout."""
    code = f"import runpy; runpy.run_path({__file__!r})['measure']({only!r}, {seeds})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(checkout)},
        cwd=checkout,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return {id: figures for id, *figures in map(json.loads, done.stdout.splitlines())}


def main(
    base: Annotated[Path | None, typer.Option(help="another checkout")] = None,
    only: Annotated[str, typer.Option(help="the beginning of chapters, such as 09")] = "",
    seeds: Annotated[int, typer.Option(help="checks of each kernel")] = 1,
) -> None:
    """Time the checks of all solutions."""
    here = measured(HERE, only, seeds)
    there = measured(base.resolve(), only, seeds) if base else {}
    print(f"{'seconds':46}  wall   CPU" + ("   base: wall   CPU  ratio of CPU" if base else ""))
    for id, (wall, used) in here.items():
        line = f"{id:46} {wall:5.2f} {used:5.2f}"
        if id in there:
            before = there[id]
            line += f"        {before[0]:5.2f} {before[1]:5.2f}  {used / before[1]:5.2f}"
        print(line)
    sums = [sum(column) for column in zip(*here.values(), strict=True)]
    line = f"{'all':46} {sums[0]:5.1f} {sums[1]:5.1f}"
    if there:
        sums += [sum(column) for column in zip(*there.values(), strict=True)]
        line += f"        {sums[2]:5.1f} {sums[3]:5.1f}  {sums[1] / sums[3]:5.2f}"
    print(line)


if __name__ == "__main__":
    typer.run(main)
