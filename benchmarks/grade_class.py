"""A generated class of five notebooks through `workbook grade`: how long, and is each point right?

    python benchmarks/grade_class.py [--students 60] [--jobs 2] [--way killed] [--copies 10]

Perfect, partly right, empty, broken and hostile submissions, on the emulator, from nothing.
--way: `local`; `killed` half way and resumed; `dask`, two local workers; `reversed`, names that
sort the other way round. Each writes its table to compare: --table FILE. --copies: so many classes
of the same texts under other names, of which each text is judged once: what all else costs.
"""

import csv
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support import classroom

from utils.grading import feedback
from utils.ground.paths import ROOT, environment

NUMBERS = [word for topic in classroom.TOPICS for word in ("--notebook", topic[:2])]


def command(folder: Path, *words: object) -> list[str]:
    grade = [
        sys.executable,
        "-m",
        "utils.cli",
        "grade",
        folder / "class",
        "-o",
        folder / "grades.csv",
    ]
    kept = ["--store", folder / "store", "--json-dir", folder / "json"]
    return [str(word) for word in (*grade, *kept, *NUMBERS, *words)]


def call(words: list[str], until: Path | None = None, most: int = 0) -> None:
    """Run it; killed as soon as `until` holds `most` files."""
    env = environment(WORKBOOK_BACKEND="emulator")
    process = subprocess.Popen(words, cwd=ROOT, env=env, start_new_session=True)
    while process.poll() is None:
        time.sleep(1)
        if until and until.is_dir() and len(list(until.iterdir())) >= most:
            os.killpg(process.pid, signal.SIGKILL)
    print(f"ended with {process.returncode}")


def copied(folder: Path, copies: int) -> None:
    for student in list((folder / "class").iterdir()):
        for number in range(1, copies):
            # Unlike shutil it copies pipes and links as such, and holes as holes.
            copy = student.with_name(f"{student.name} {number}")
            subprocess.run(["cp", "-a", "--sparse=always", "--", student, copy], check=True)


def main(
    students: Annotated[int, typer.Option(help="how many")] = 60,
    jobs: Annotated[int, typer.Option(help="graded beside each other")] = 2,
    way: Annotated[str, typer.Option(help="local, killed, dask or reversed")] = "local",
    table: Annotated[Path | None, typer.Option(help="where the points go")] = None,
    copies: Annotated[int, typer.Option(help="of the class")] = 1,
    seed: Annotated[int, typer.Option(help="of the class")] = 0,
) -> None:
    with tempfile.TemporaryDirectory(prefix="class-") as name:
        folder = Path(name)
        made = classroom.generate(folder, students, seed)
        if way == "reversed":
            for number, student in enumerate(made):
                (folder / "class" / student.name).rename(folder / "class" / f"{999 - number}")
        copied(folder, copies)
        start, before = time.perf_counter(), _cpu()
        if way == "killed":
            call(command(folder, "--jobs", jobs), folder / "json", students // 2)
            call(command(folder, "--jobs", jobs, "--resume"))
        elif way == "dask":
            from distributed import LocalCluster

            os.environ |= environment(WORKBOOK_BACKEND="emulator")
            with LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address=None) as here:
                call(command(folder, "--cluster", here.scheduler_address))
        else:
            call(command(folder, "--jobs", jobs))
        minutes, cpu = (time.perf_counter() - start) / 60, _cpu() - before
        wrong, points = [], []
        for number, student in enumerate(made):
            named = f"{999 - number}" if way == "reversed" else student.name
            path = folder / "json" / f"{feedback.safe_name(named)}.json"
            grades = json.loads(path.read_text())
            wrong += student.mismatches(grades)
            points += [
                [student.name, r["number"], r["points"], r["status"]] for r in grades["exercises"]
            ]
        wrong += classroom.touched(folder)
        with open(folder / "grades.csv", newline="") as file:
            rows = len(list(csv.DictReader(file)))
    if table:
        table.write_text("".join(f"{line!r}\n" for line in points))
    print(*wrong, sep="\n")
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        f"{rows} rows ({way}) in {minutes:.1f} minutes, {cpu:.0f} s of CPU, {cpu / rows:.1f} s each"
    )
    print(f"largest process {most:.0f} MiB, load {os.getloadavg()[0]:.1f}; {len(wrong)} mismatches")


def _cpu() -> float:
    """Seconds of this process and of those that it has waited for, and they for theirs."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


if __name__ == "__main__":
    typer.run(main)
