"""Judges on the same files: ours, and one that compares as KernelBench's evaluator does.

    python benchmarks/judges.py [NAME...] [--jobs N] [--out results/judges.md]

First the tasks of tests/support/any_tasks.py: for each an honest file, and a wrong twin. Then the
cheats and honest files of tests/models, for task 88. Without a GPU, on the emulator. The second
judge is our own small script by the rule of KernelBench's evaluator, and not that program: in the
file's own process, five seeds, `torch.allclose` at 1e-4, nothing else. An hour on two cores.
"""

import datetime
import json
import multiprocessing
import os
import platform
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support import any_tasks, model_files

from utils.judge.models import requests, suite, tasks
from utils.judge.models.suite import Job, Row
from utils.process.child import Gone

BY_ALLCLOSE = """

def _compared(text, arguments, shapes):
    module = types.ModuleType("reference")
    exec(text, module.__dict__)
    torch.manual_seed(42)
    model = module.Model(*arguments).cuda()
    torch.manual_seed(42)
    new = ModelNew(*arguments).cuda()
    for seed in range(5):
        torch.manual_seed(seed)
        inputs = [torch.rand(shape) for shape in shapes] or module.get_inputs()
        inputs = [x.cuda() if isinstance(x, torch.Tensor) else x for x in inputs]
        with torch.no_grad():
            wanted, got = model(*inputs), new(*inputs)
        wanted = wanted if isinstance(wanted, (tuple, list)) else [wanted]
        got = got if isinstance(got, (tuple, list)) else [got]
        for w, g in zip(wanted, got, strict=True):
            w, g = w.cpu(), g.cpu()
            slack = 1e-2 if w.element_size() == 2 else 1e-4
            if w.shape != g.shape or not torch.allclose(w, g, atol=slack, rtol=slack):
                return "other values"
    return "passed"


import types
raise AssertionError(_compared({text!r}, {arguments!r}, {shapes!r}))
"""


def by_allclose(job: Job) -> str:
    """What the comparison says of a file: passed, or why not."""
    try:
        text, task = suite.request(job)
        size = task.small[0]
        reference, shapes = task.text, size.shapes
        if task.source:  # its own inputs, at the sizes that ours is given
            reference, shapes = task.source.written(dict(size.changed)), ()
        script = BY_ALLCLOSE.format(text=reference, arguments=size.arguments, shapes=shapes)
        with suite.box().open() as session:
            reply, _ = session.ask(requests.LOADING, "load", text=text + script, mode="trusted")
    except Gone as gone:
        return f"ended: {gone}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return str(reply.get("text", ""))


def both(job: Job) -> tuple[Row, str]:
    """Ours, and the comparison."""
    return suite.one(job), by_allclose(job)


def of_all_kinds(folder: Path, names: list[str]) -> list[tuple[str, Job]]:
    """The tasks' honest files and wrong twins."""
    work = []
    for task in any_tasks.TASKS.values():
        if names and task.name not in names:
            continue
        (folder / "references").mkdir(exist_ok=True)
        reference = folder / "references" / f"{task.name}.py"
        reference.write_text(task.reference)
        for kind, body in (("honest", task.honest), ("wrong", task.wrong)):
            path = folder / f"{task.name}_{kind}.py"
            path.write_text(task.file(body))
            work.append((kind, Job(path, reference, seed=5)))
    return work


def of_one_task(folder: Path) -> list[tuple[str, Job]]:
    """The files of tests/models that say what becomes of them without a card."""
    (reference,) = (p for p in tasks.references() if p.stem.startswith("88_"))
    texts = {}
    for kind in ("cheats", "honest"):
        for path in model_files.of(kind):
            if not model_files.for_a_card(path):
                texts[kind, path.stem] = model_files.text_of(path)
        for name, (_, text) in model_files.parts(f"more_{kind}.txt").items():
            texts[kind, name] = text
    work = []
    for (kind, name), text in texts.items():
        (folder / kind).mkdir(exist_ok=True)
        path = folder / kind / f"{name}.py"
        path.write_text(text, errors="surrogateescape")
        work.append(("honest" if kind == "honest" else "wrong", Job(path, reference, seed=5)))
    return work


def judged(work: list[tuple[str, Job]], at_once: int) -> list[tuple[str, Row, str]]:
    """Kind, our row, and what the comparison says, of each file."""
    spawn = multiprocessing.get_context("spawn")
    rows = []
    with ProcessPoolExecutor(at_once, spawn) as pool:
        for (kind, _), (row, other) in zip(work, pool.map(both, [j for _, j in work]), strict=True):
            rows.append((kind, row, other))
            bad = row.evaluation != ("passed" if kind == "honest" else "failed")
            mark = "*** " if bad else ""
            said = f"{row.evaluation} {row.reason} {row.message[:200]}"
            print(
                f"{mark}{Path(row.file).stem} {row.seconds:.1f} s {said} | {other[:60]}", flush=True
            )
    return rows


def table(rows: list[tuple[str, Row, str]]) -> list[str]:
    """Caught, missed, false alarms of both."""
    lines = ["| judge | wrong files: caught | missed | no verdict | honest files: passed | "]
    lines[0] += "false alarms | no verdict |"
    lines.append("|---|---|---|---|---|---|---|")
    ours, other = Counter(), Counter()
    for kind, row, compared in rows:
        ours[kind, row.evaluation] += 1
        other[kind, "passed" if compared == "passed" else "failed"] += 1
    for name, count in (("`workbook judge`", ours), ("`allclose` in the file's process", other)):
        wrong = [count["wrong", said] for said in ("failed", "passed", "not judged")]
        honest = [count["honest", said] for said in ("passed", "failed", "not judged")]
        lines.append(f"| {name} | {' | '.join(map(str, [*wrong, *honest]))} |")
    return lines


def exceptions(rows: list[tuple[str, Row, str]]) -> list[str]:
    """What ours has not judged as it should."""
    lines = []
    for kind, row, _ in rows:
        if row.evaluation != ("passed" if kind == "honest" else "failed"):
            stem = Path(row.file).stem
            lines.append(
                f"- `{stem}` ({kind}): {row.evaluation}; {row.reason}: {row.message[:160]}"
            )
    return lines or ["- none"]


HEAD = """# Judges on the same files

{date}, {machine}, without a GPU: on the emulator, `python benchmarks/judges.py`. The second judge
is a script of ours by the rule of KernelBench's evaluator (one process, five seeds, `allclose` at
1e-4), not that program; at the sizes that ours is given, since a card's own are out of reach here.

## {count} tasks in the style of KernelBench's levels 1 and 2

Each with an honest file, whose kernels are small, and a wrong twin
([any_tasks.py](../tests/support/any_tasks.py)).
"""


def main(
    names: Annotated[list[str] | None, typer.Argument(help="tasks, else all, and cheats")] = None,
    jobs: Annotated[int, typer.Option(help="at once")] = os.cpu_count() or 1,
    out: Annotated[Path | None, typer.Option(help="where the tables go")] = None,
    rows_to: Annotated[Path | None, typer.Option("--json", help="where the rows go")] = None,
) -> None:
    """Judge all, and write the tables."""
    with tempfile.TemporaryDirectory() as place:
        first = judged(of_all_kinds(Path(place), names or []), jobs)
        print("\n".join([*table(first), *exceptions(first)]), flush=True)
        second = [] if names else judged(of_one_task(Path(place)), jobs)
    date = datetime.date.today().isoformat()
    machine = f"{os.cpu_count()} cores of {platform.machine()}"
    lines = [HEAD.format(date=date, machine=machine, count=len(first) // 2), *table(first)]
    times = sorted(row.seconds for _, row, _ in first)
    lines += [
        "",
        f"A file took {times[len(times) // 2]:.1f} s (median), {times[-1]:.1f} s at most.",
    ]
    lines += ["Not as it should be:", "", *exceptions(first)]
    if second:
        lines += ["", "## Cheats and honest files for task 88", ""]
        lines += ["Those of `tests/models` that need no card.", "", *table(second)]
        lines += ["", "Not as it should be:", "", *exceptions(second)]
    print("\n".join(lines))
    if out:
        out.write_text("\n".join(lines) + "\n")
    if rows_to:
        rows_to.write_text(json.dumps([(k, vars(r), c) for k, r, c in (*first, *second)], indent=1))


if __name__ == "__main__":
    typer.run(main)
