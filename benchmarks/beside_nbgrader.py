"""The same submissions through nbgrader and through `workbook grade`, one after the other.

    python benchmarks/beside_nbgrader.py --nbgrader FOLDER/bin/nbgrader [--students 10]

nbgrader is in an environment of its own, and runs notebooks with this one's Python. Each submission
is notebook 02 with right answers, no two texts alike; each tool has its own empty cache, in which
only the emulator is built. Then some that cheat, in Python: what does each tool give them?
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import nbformat
import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from utils.course import catalog
from utils.emulator import build
from utils.grading.grade import notebook
from utils.ground.paths import environment

TOPIC = "02_shared_memory_tiling"
# Cells of Python that a student adds behind the first one: nothing of the kernels is written.
CHEATS = {
    "check is replaced": "check = lambda kernel: None",
    "check is patched": "import utils.judge.check as c\n"
    "c.Trial.run = lambda self: c.Passed(1, '', '')",
    "errors are swallowed": "get_ipython().run_cell_magic = lambda *a: None\ncheck = print\n"
    "gemm_tiled = gemm_tiled_race = linear_tiled = 0",
    "the kernel's text is replaced": "import os\nos.environ['WORKBOOK_SOLUTIONS'] = '1'",
    "failures are hidden": "from utils.ground.errors import CheckFailed\n"
    "get_ipython().set_custom_exc((Exception,), lambda *a, **k: None)",
}


def submission(number: int, cheat: str = "") -> nbformat.NotebookNode:
    """Right answers, or with a cheat the starters."""
    exercises = [e for e in catalog.topic(TOPIC).values() if e.number]
    text = catalog.starter_text if cheat else catalog.solution_text
    made = notebook([(e, f"{text(e)}\n// {number}\n" * (not cheat) or text(e)) for e in exercises])
    if cheat:
        cell = nbformat.v4.new_code_cell(cheat)
        cell["id"] = "cheat"
        made.cells.insert(1, cell)
    points = {f"check({e.name})": e.points for e in exercises}
    for cell in made.cells:
        if worth := points.get(cell.source):
            metadata = {"grade": True, "locked": True, "solution": False, "schema_version": 3}
            metadata |= {"grade_id": cell.id, "points": worth, "task": False, "cell_type": "code"}
            cell.metadata["nbgrader"] = metadata
    return made


def timed(words: list, folder: Path, **variables: str) -> float:
    """Seconds of a command, all of its processes on one core."""
    start = time.perf_counter()
    env = environment(WORKBOOK_BACKEND="emulator", **variables)
    command = ["taskset", "-c", "0", *map(str, words)]
    with open(folder / "log.txt", "a") as log:
        subprocess.run(command, cwd=folder, env=env, stdout=log, stderr=log, check=False)
    return time.perf_counter() - start


def with_nbgrader(program: Path, folder: Path, notebooks: dict, cache: Path) -> tuple[float, dict]:
    """Seconds, and the points of each student."""
    kernel = folder / "share/kernels/python3"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Python 3", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    (folder / "source/hw").mkdir(parents=True)
    nbformat.write(notebooks["0"], folder / "source/hw" / f"{TOPIC}.ipynb")
    for student, made in notebooks.items():
        home = folder / "submitted" / student / "hw"
        home.mkdir(parents=True)
        nbformat.write(made, home / f"{TOPIC}.ipynb")
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"  # it calls alembic
    environment = {
        "JUPYTER_PATH": str(folder / "share"),
        "WORKBOOK_CACHE": str(cache),
        "PATH": path,
    }
    timed([program, "generate_assignment", "hw", "--create", "--force"], folder, **environment)
    seconds = timed([program, "autograde", "hw", "--create"], folder, **environment)
    timed([program, "export"], folder, **environment)
    rows = [line.split(",") for line in (folder / "grades.csv").read_text().splitlines()]
    return seconds, {
        r[rows[0].index("student_id")]: float(r[rows[0].index("score")]) for r in rows[1:]
    }


def with_ours(folder: Path, notebooks: dict, store: Path) -> tuple[float, dict]:
    for student, made in notebooks.items():
        home = folder / "class" / student
        home.mkdir(parents=True)
        nbformat.write(made, home / f"{TOPIC}.ipynb")
    words = [sys.executable, "-m", "utils.cli", "grade", "class", "--jobs", "1", "--notebook", "02"]
    seconds = timed([*words, "--store", store, "--json-dir", "json"], folder)
    read = [json.loads(path.read_text()) for path in (folder / "json").iterdir()]
    return seconds, {made["student"]: made["points"] for made in read}


def main(
    nbgrader: Annotated[Path, typer.Option(help="the program")],
    students: Annotated[int, typer.Option(help="how many")] = 10,
) -> None:
    built = build.runtime_library().parent
    build.precompile_headers()
    honest = {str(n): submission(n) for n in range(students)}
    cheats = {str(n): submission(n, text) for n, text in enumerate(CHEATS.values())}
    for what, notebooks in (("honest", honest), ("cheating", cheats)):
        with tempfile.TemporaryDirectory() as name:
            folder, caches = Path(name), [Path(name, "theirs"), Path(name, "store/builds")]
            for cache in caches:
                shutil.copytree(built, cache / built.name)
            (folder / "nbgrader").mkdir()
            (folder / "ours").mkdir()
            theirs = with_nbgrader(nbgrader.absolute(), folder / "nbgrader", notebooks, caches[0])
            ours = with_ours(folder / "ours", notebooks, folder / "store")
        for tool, (seconds, points) in (("nbgrader", theirs), ("workbook grade", ours)):
            listed = ", ".join(f"{points.get(student, '-')}" for student in notebooks)
            print(f"{what}, {tool}: {seconds:.0f} s for {len(notebooks)}; points: {listed}")
    print(f"cheats: {'; '.join(CHEATS)}; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    typer.run(main)
