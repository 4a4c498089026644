"""A generated class of five notebooks, graded: how long it takes, and whether each point is right.

    python benchmarks/grade_class.py [--students 60] [--jobs 2] [--store FOLDER] [--only partial]

Perfect, partly right, empty, broken and hostile submissions, on the emulator. A store that was
graded from before is resumed.
"""

import os
import resource
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support import classroom

from utils.grading.grade import Terms, grade
from utils.wording import many


def main(
    students: Annotated[int, typer.Option(help="how many")] = 60,
    jobs: Annotated[int, typer.Option(help="graded beside each other")] = 2,
    store: Annotated[str, typer.Option(help="folder of builds and verdicts; else a new one")] = "",
    only: Annotated[str, typer.Option(help="one kind of submission")] = "",
    seed: Annotated[int, typer.Option(help="of the class")] = 0,
) -> None:
    os.environ["WORKBOOK_BACKEND"] = "emulator"
    with tempfile.TemporaryDirectory(prefix="class-") as folder:
        made = classroom.generate(Path(folder), students, seed)
        made = [student for student in made if only in ("", student.kind)]
        terms = Terms(classroom.TOPICS, "a secret", store or str(Path(folder, "store")))
        start, before = time.perf_counter(), _cpu()

        def graded(student: classroom.Student) -> list[str]:
            began = time.perf_counter()
            grades = grade(Path(folder, "class", student.name), terms)
            wrong = student.mismatches(grades)
            seconds, points = time.perf_counter() - began, grades["points"]
            statuses = Counter(record["status"] for record in grades["exercises"])
            told = ", ".join(f"{count} {status}" for status, count in statuses.items())
            print(f"{student.name!r:16} {points:>6g} points, {seconds:4.0f} s: {told}", flush=True)
            return wrong

        with ThreadPoolExecutor(jobs) as pool:
            mismatches = [line for wrong in pool.map(graded, made) for line in wrong]
        minutes, cpu = (time.perf_counter() - start) / 60, _cpu() - before
        touched = classroom.touched(Path(folder))
    print(*mismatches, *touched, sep="\n")
    print(
        f"{many(len(made), 'submission')} in {minutes:.1f} minutes, {cpu:.0f} s of CPU, "
        f"{cpu / len(made):.1f} s each (load {os.getloadavg()[0]:.1f}); "
        f"mismatches: {len(mismatches)}, files touched: {len(touched)}"
    )
    raise typer.Exit(bool(mismatches or touched))


def _cpu() -> float:
    """Seconds of this process and those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    typer.run(main)
