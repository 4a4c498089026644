"""`workbook judge` tried on a card: files that cheat, and honest ones, each with its verdict.

    python benchmarks/judge_models.py [NAME...] [--kind timed] [--json FILE]

The files are those of tests/models. All share a box and the processes of eager PyTorch and
torch.compile, so a file takes some ten seconds. Needs a GPU, nvcc and bubblewrap; without a GPU,
`--emulator` tries the protocol alone, at a small size, where no time is worth anything. Exit status
0 where all came out as their first lines say.
"""

import dataclasses
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Annotated

import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support import model_files

from utils.cuda.model_box import boxed
from utils.ground import settings
from utils.judge.models import evaluation, probe, tasks
from utils.judge.models.task import Size, Task
from utils.judge.models.verdict import Verdict
from utils.process.box import Box
from utils.timing import model_runtime

KINDS = "honest", "timed", "cheats"
SMALL = Size((64, 64, 2, (64,)), ((6, 64),))  # for the emulator


def main(
    names: Annotated[list[str] | None, typer.Argument(help="files, else all")] = None,
    kind: Annotated[list[str] | None, typer.Option(help="honest, timed, cheats")] = None,
    clock: Annotated[bool, typer.Option(help="without the trial of values before")] = False,
    emulator: Annotated[bool, typer.Option(help="try the protocol without a GPU")] = False,
    out: Annotated[Path | None, typer.Option("--json", help="where the rows go")] = None,
) -> None:
    """Judge them one after the other."""
    backend = "emulator" if emulator else "cuda"
    if settings.backend() != backend:
        print("there is no GPU here; --emulator tries the protocol alone")
        raise typer.Exit(2)
    task = tasks.find(Path("88.py"))
    if emulator:
        task = dataclasses.replace(task, own=SMALL)
    paths = [path for k in kind or KINDS for path in model_files.of(k)]
    paths = [p for p in paths if not names or p.stem in names]
    paths = [p for p in paths if not (emulator and model_files.for_a_card(p))]
    rows = []
    start = time.perf_counter()
    print(f"A model that is right: {probe.obstacle(backend) or 'is found so'}", flush=True)
    with boxed(backend) as box, model_runtime.Peers(task, backend) as peers:
        print(f"PyTorch's own are ready after {time.perf_counter() - start:.1f} s {peers.failed}")
        for path in paths:
            rows.append(row(path, task, box, peers, clock))
            if out:
                out.write_text(json.dumps(rows, indent=1) + "\n")
    right = sum(row["good"] for row in rows)
    print(f"{right} of {len(rows)} as expected")
    raise typer.Exit(0 if right == len(rows) else 1)


def row(path: Path, task: Task, box: Box, peers: model_runtime.Peers, clock: bool) -> dict:
    """Judge a file, and print what came of it; `clock`: only beside its peers."""
    start, seed = time.perf_counter(), 5
    text, expected = model_files.text_of(path), model_files.reasons(path)
    try:
        verdict = Verdict(task.name, passed=True, seed=seed)
        if not clock:
            verdict = evaluation.judge_text(text, task, box, seed)
        if verdict.passed:
            verdict = model_runtime.timed(verdict, text, task, box, peers)
        said = verdict.reason or "passed"
    except Exception as error:
        traceback.print_exc()
        verdict, said = None, f"{type(error).__name__}: {error}"
    good = said in (expected or ["passed"])
    took = time.perf_counter() - start
    runtime = verdict.runtime if verdict else None
    figures = "" if runtime is None else str(runtime)
    note = "" if verdict is None or verdict.passed and runtime else " ".join(verdict.notes[-1:])
    note = verdict.message[:160] if verdict and verdict.message else note[:200]
    mark = "" if good else "*** NOT AS EXPECTED *** "
    print(f"{path.stem:<34}{said:<26}{took:>6.1f}s {mark}{figures}{note}", flush=True)
    shown = {"file": path.stem, "said": said, "expected": expected, "good": good, "took": took}
    return shown | {"verdict": verdict.as_json() if verdict else None}


if __name__ == "__main__":
    typer.run(main)
