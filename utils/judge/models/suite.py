"""`workbook judge --suite FOLDER`: many model files, several at once, each beside its reference.

A row is kept as soon as it is made, so an interrupted suite goes on where it was: what has been
judged as it is now, beside a reference as it is now, is not judged again.
"""

import hashlib
import json
import multiprocessing
import queue
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from utils.cuda.model_box import boxed, capability_for
from utils.ground import files
from utils.ground.errors import ArgumentValueError, WorkbookError
from utils.ground.wording import one_line
from utils.judge.models import evaluation, tasks
from utils.judge.models.task import Task
from utils.judge.models.verdict import Why
from utils.process.box import Box

LONGEST = 900.0  # seconds for a file: its own limits end it long before, a reference has none
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
    for row in _by_workers(left, at_once):
        rows[row.file] = row
        made = [asdict(rows[name]) for job in work if (name := str(job.path)) in rows]
        files.write_text(out, json.dumps(made, indent=1) + "\n")
        yield row


def _by_workers(work: Sequence[Job], at_once: int) -> Iterator[Row]:
    """In threads, each of which waits for a process of its own."""
    free: queue.SimpleQueue[Worker] = queue.SimpleQueue()
    workers = [Worker() for _ in range(min(at_once, len(work)))]
    for worker in workers:
        free.put(worker)

    def judge(job: Job) -> Row:
        worker = free.get()
        try:
            return worker.row(job)
        finally:
            free.put(worker)

    with ThreadPoolExecutor(max(len(workers), 1)) as pool:
        try:
            for done in as_completed([pool.submit(judge, job) for job in work]):
                yield done.result()
        finally:  # after an interrupt nobody waits for what is left
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.end()


class Worker:
    """A process that judges, and another one after it where it has ended: a reference is run in it,
    which may take it down, or the machine's memory."""

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._ended = False

    def row(self, job: Job) -> Row:
        """The row of a file, whatever becomes of the process."""
        start = time.perf_counter()
        try:
            channel = self._started()
            channel.send(job)
            if channel.poll(LONGEST):
                row: Row = channel.recv()
                return row
            said = f"there is no verdict after {LONGEST:g} s"
        except (EOFError, OSError):
            said = "the process that judges it has ended"
        self._kill()
        return _not_judged(job, said, start)

    def end(self) -> None:
        """For good: a row that is being made is not made."""
        self._ended = True
        self._kill()

    def _started(self) -> Connection:
        if self._ended:
            raise EOFError
        if not self._process:
            spawn = multiprocessing.get_context("spawn")
            self._channel, theirs = spawn.Pipe()
            self._process = spawn.Process(target=_serve, args=(theirs,), daemon=True)
            # An interrupt is the parent's, which ends this one: it would only say where it was.
            resource_tracker.ensure_running()  # which would unblock it again
            before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
            self._process.start()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
        return self._channel

    def _kill(self) -> None:
        process, self._process = self._process, None  # a thread and who ends it, both may be here
        if process:
            process.kill()
            process.join()


def _serve(channel: Connection) -> None:
    with suppress(EOFError):
        while True:
            channel.send(one(channel.recv()))


def one(job: Job) -> Row:
    """The row of a file, whatever comes of it."""
    start = time.perf_counter()
    try:
        text, task = request(job)
        verdict = evaluation.judge_text(text, task, box(*capability_for(text)), job.seed)
    except WorkbookError as error:
        return _not_judged(job, str(error), start)
    except Exception as error:  # of a reference, or of the judge: so the others are judged
        return _not_judged(job, f"{type(error).__name__}: {error}", start)
    said, why, message = verdict.evaluation, str(verdict.reason), verdict.message
    return Row(str(job.path), task.name, said, why, message, verdict.notes, *_end(job, start))


def _not_judged(job: Job, message: str, start: float) -> Row:
    said, why = "not judged", str(Why.NOT_HERE)
    name = (job.reference or job.path).stem
    return Row(str(job.path), name, said, why, one_line(message), [], *_end(job, start))


def _end(job: Job, start: float) -> tuple[float, str]:
    return round(time.perf_counter() - start, 2), _digest(job)


def request(job: Job) -> tuple[str, Task]:
    """A file's text, and its task. Raises WorkbookError."""
    wanted = _task(job.reference) if job.reference else None
    return evaluation.read_request(job.path, None, job.reference, job.forward_only, wanted)


@cache
def box(major: int = 8, minor: int = 0) -> Box:
    """That of this process for a card of this compute capability, which ends with it."""
    return boxed(capability=(major, minor))


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
