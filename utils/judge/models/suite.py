"""`workbook judge --suite FOLDER`: many model files, several at once, each beside its reference.

A row is kept as soon as it is made, so an interrupted suite goes on where it was: what has been
judged as it is now, beside a reference as it is now, is not judged again.
"""

import hashlib
import json
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from utils.cuda.model_box import boxed
from utils.ground import files
from utils.ground.errors import ArgumentValueError, WorkbookError
from utils.judge.models import evaluation, tasks
from utils.judge.models.task import Task
from utils.judge.models.verdict import Why
from utils.process.box import Box

BESIDE = "{}_reference.py", "{}.reference.py", "reference.py"  # a file's reference in its folder


@dataclass(frozen=True)
class Job:
    """A model file and what it is held against."""

    path: Path
    reference: Path | None  # None: one of the five tasks, as the file is called
    seed: int | None = None
    forward_only: bool = False


@dataclass(frozen=True)
class Row:
    """What came of a file."""

    file: str
    task: str
    evaluation: str  # passed, failed, not judged
    reason: str
    message: str
    notes: list[str]
    seconds: float
    digest: str  # of the texts that were judged


def jobs_of(
    folder: Path, references: Path | None, seed: int | None = None, forward_only: bool = False
) -> list[Job]:
    """The model files below a folder, each with its reference: in its own folder by name, or in the
    folder `references`, or that one file for all. Raises ArgumentValueError where there is none."""
    if not folder.is_dir():
        raise ArgumentValueError(f"there is no folder {folder}")
    paths = [path for path in sorted(folder.rglob("*.py")) if _is_model(path)]
    if not paths:
        raise ArgumentValueError(f"no file in {folder} defines ModelNew")
    return [Job(path, reference_of(path, references), seed, forward_only) for path in paths]


def _is_model(path: Path) -> bool:
    return "class ModelNew" in path.read_text(errors="replace")


def reference_of(path: Path, references: Path | None) -> Path | None:
    """The reference that a model file is held against; None where its name must tell the task."""
    if references and references.is_file():
        return references
    if references:
        known = {p.stem: p for p in references.glob("*.py")}
        named = [stem for stem in known if stem in path.stem]
        number = path.stem.partition("_")[0]
        same = [stem for stem in known if number.isdigit() and stem.partition("_")[0] == number]
        if chosen := max(named, key=len, default=same[0] if len(same) == 1 else ""):
            return known[chosen]
        raise ArgumentValueError(f"{references} has no reference for {path.name}")
    beside = [path.with_name(name.format(path.stem)) for name in BESIDE]
    return next((p for p in beside if p.is_file()), None)


def judged(work: Sequence[Job], out: Path, resume: bool, at_once: int) -> Iterator[Row]:
    """The rows as they are made, in no order; `out` has all of them, as JSON, in that of files."""
    kept = _kept(out) if resume else {}
    rows = {name: kept[name] for job in work if (name := str(job.path)) in kept}
    rows = {n: r for n, r in rows.items() if r.digest in {_digest(job) for job in work}}
    left = [job for job in work if str(job.path) not in rows]
    yield from rows.values()
    if not left:
        return
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(at_once, len(left)), spawn) as pool:
        try:
            for done in as_completed([pool.submit(one, job) for job in left]):
                row = done.result()
                rows[row.file] = row
                made = [asdict(rows[name]) for job in work if (name := str(job.path)) in rows]
                files.write_text(out, json.dumps(made, indent=1) + "\n")
                yield row
        except BaseException:  # an interrupt: nobody waits for what is left
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def one(job: Job) -> Row:
    """The row of a file, whatever comes of it."""
    start = time.perf_counter()
    digest, name = _digest(job), job.path.stem
    try:
        text, task = request(job)
        verdict = evaluation.judge_text(text, task, box(), job.seed)
        name = task.name
        said, why, message = verdict.evaluation, verdict.reason, verdict.message
        notes = verdict.notes
    except (WorkbookError, OSError, RuntimeError, ValueError) as error:
        said, why, message, notes = "not judged", str(Why.NOT_HERE), str(error), []
    seconds = round(time.perf_counter() - start, 2)
    return Row(str(job.path), name, said, str(why), message, notes, seconds, digest)


def request(job: Job) -> tuple[str, Task]:
    """A file's text, and its task. Raises WorkbookError."""
    wanted = _task(job.reference) if job.reference else None
    return evaluation.read_request(job.path, None, job.reference, job.forward_only, wanted)


@cache
def box() -> Box:
    """That of this process, which ends with it."""
    return boxed()


@cache
def _task(reference: Path) -> Task:
    return tasks.read(reference)


def _digest(job: Job) -> str:
    texts = [path.read_bytes() for path in (job.path, job.reference) if path]
    said = [*map(str, (job.seed, job.forward_only)), *(t.hex() for t in texts)]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def _kept(out: Path) -> dict[str, Row]:
    """The rows of an earlier run; none where the file is no such file."""
    try:
        return {row["file"]: Row(**row) for row in json.loads(out.read_text())}
    except (OSError, ValueError, TypeError, KeyError):
        return {}
