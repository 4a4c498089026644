"""Does `workbook run` print the same times beside other notebooks as alone? On a GPU.

    python benchmarks/timing_alone.py [--only 03 --only 09] [--limit 540] [--save FILE]

Runs `workbook run --solutions` for all of the notebooks together, then for one after the other, and
prints every time side by side. Exit status 1 where one differs by more than PERCENT and FLOOR, 2
where nothing was compared. After `--limit` seconds a run is ended, and no other one is begun.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Annotated

import torch
import typer

ROOT = Path(__file__).resolve().parents[1]
PERCENT = 5.0
FLOOR = 0.001  # ms: what the events of a launch of microseconds differ by from run to run
# A row of the table: number, name, verdict, and a time that was measured just now.
ROW = re.compile(r"^ *(\d\d\.\d+) +(\w+) .*? ([\d.]+(?:e[+-]?\d+)?) ms *$", re.MULTILINE)

Times = dict[str, float]  # milliseconds, by "03.4 gemm_warp"


def read(printed: str) -> Times:
    """The times in what `workbook run` printed."""
    return {f"{number} {name}": float(ms) for number, name, ms in ROW.findall(printed)}


def run(numbers: Sequence[str], until: float) -> tuple[Times, float]:
    """The times of a run of these notebooks, and its seconds; ended at `until`, with no times."""
    start = time.monotonic()
    if until <= start:
        return {}, 0.0
    process = subprocess.Popen(
        [sys.executable, "-m", "utils.cli", "run", "--solutions", *numbers],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=until - start)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # so that it ends its notebooks
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        print(f"{' '.join(numbers)}: ended, the limit was reached", file=sys.stderr)
        return {}, time.monotonic() - start
    print(printed, file=sys.stderr)
    return read(printed), time.monotonic() - start


def table(together: Times, alone: Times) -> tuple[list[str], list[float]]:
    """The lines of a table, and by how many percent each time differs."""
    lines, off = ["| exercise | together, ms | alone, ms | difference |", "| --- " * 4 + "|"], []
    for name in sorted(together | alone, key=lambda name: [*map(int, name.split()[0].split("."))]):
        here, there = together.get(name), alone.get(name)
        cells = [f"{ms:.3g}" if ms else "–" for ms in (here, there)]
        if here and there:
            percent = 100 * (here / there - 1)
            off.append(percent if abs(here - there) > FLOOR else 0.0)
            cells.append(f"{percent:+.1f} %")
        else:
            cells.append("–")
        lines.append(f"| {' | '.join([name, *cells])} |")
    return lines, off


def main(
    only: Annotated[list[str] | None, typer.Option(help="these notebooks")] = None,
    limit: Annotated[float, typer.Option(help="seconds for all runs")] = 540.0,
    save: Annotated[Path, typer.Option(help="what is written")] = ROOT / "results/timing_alone.md",
) -> None:
    """Time notebooks beside each other, then alone."""
    if not torch.cuda.is_available():
        print("there is no GPU here", file=sys.stderr)
        raise typer.Exit(2)
    numbers = only or [path.name[:2] for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))]
    until = time.monotonic() + limit
    together, seconds = run(numbers, until)
    alone: Times = {}
    spent = []
    for number in numbers:
        times, took = run([number], until)
        alone |= times
        spent.append(f"{number} {took:.0f} s" if times else f"{number} –")
    lines, off = table(together, alone)
    most = max(map(abs, off), default=0.0)
    said = [
        "# Times of `workbook run`, beside other notebooks and alone",
        "",
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {date.today()}; "
        f"`python benchmarks/timing_alone.py`. Together {seconds:.0f} s, then {', '.join(spent)}. "
        f"{len(off)} times were compared; they differ by at most {most:.1f} %, where that is more "
        f"than {1e3 * FLOOR:.0f} µs.",
        "",
        *lines,
    ]
    text = "\n".join(said) + "\n"
    print(text)
    save.write_text(text)
    raise typer.Exit(2 if not off else int(most > PERCENT))


if __name__ == "__main__":
    typer.run(main)
