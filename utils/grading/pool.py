"""Grade a class: one submission after the other, several at once, here or on many machines.

Each grade is kept under the store as soon as it is made. So an interrupted run goes on where it
was, and memory holds only the grades that are on their way.
"""

import hashlib
import itertools
import json
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path

from utils.grading import grade as grading
from utils.grading import submission
from utils.grading.collect import Student
from utils.grading.grade import Terms
from utils.grading.grades import Grade, Graded, Ungraded
from utils.grading.lateness import Clock
from utils.ground import files, settings
from utils.ground.errors import ToolError, WorkbookError

REACHED = 20.0  # seconds for a scheduler to answer
ABANDONED = 1800.0  # seconds after which nobody needs a build: a cell takes two minutes at most


@dataclass(frozen=True)
class Job:
    """What one step of grading is asked for."""

    student: Student
    terms: Terms
    resume: bool  # whether an earlier grade counts
    again: tuple[str, ...] = ()  # ids of exercises of which no earlier verdict counts


def terms(
    topics: Iterable[str],
    store: Path,
    resume: bool,
    *,
    boxed: bool = True,
    budget: float = grading.BUDGET,
    clock: Clock = Clock.AUTO,
) -> Terms:
    """How a class is graded. What an earlier run left in the store goes, unless to `resume`."""
    store = store.resolve()
    secret = store / "secret"
    if not resume:
        for name in ("verdicts", "grades"):
            shutil.rmtree(store / name, ignore_errors=True)
        secret.unlink(missing_ok=True)
    store.mkdir(parents=True, exist_ok=True)
    store.chmod(0o700)
    with files.alone(secret):  # of many that begin at once, one draws it
        if not secret.exists():
            files.write_text(secret, secrets.token_hex(16))
    return Terms(tuple(topics), secret.read_text(), str(store), boxed, budget, clock)


def graded(
    students: list[Student],
    terms: Terms,
    *,
    jobs: int = 1,
    cluster: str = "",
    resume: bool = False,
    again: Mapping[str, tuple[str, ...]] | None = None,
) -> Iterator[Graded]:
    """The grades of a class as they are made, in no order. `jobs` at once; with `cluster`, the
    address of a Dask scheduler, wherever its workers are: they must see the same files.
    `again`: the ids of the exercises of each student, by name, that are judged anew.

    What goes wrong on our side with one of them makes it Ungraded, and the rest goes on.
    Raises ToolError where Dask is missing.
    """
    work = [Job(s, terms, resume, (again or {}).get(s.name, ())) for s in students]
    for made in _on_dask(work, cluster) if cluster else _local(work, jobs):
        _prune(Path(terms.store, "builds"))
        yield made


def one(job: Job) -> Graded:
    """The grade of a student, or the one that was kept: that, too, says when the work came now."""
    student, terms = job.student, job.terms
    try:
        kept = _kept(student, terms)
        handed_in = submission.read(*student.places, clock=terms.clock)
        handed_in.notes += student.notes
        digest = grading.digest(handed_in, terms)
        if job.resume and not job.again and kept.is_file():
            earlier = json.loads(kept.read_text(encoding="utf-8"))
            if earlier.get("digest") == digest:
                kept_grade = Grade.from_json(earlier)
                return replace(kept_grade, latest=handed_in.latest, clock=handed_in.clock)
        start = time.perf_counter()
        made = grading.grade(student, terms, handed_in, job.again)
        made = replace(made, digest=digest, seconds=round(time.perf_counter() - start, 2))
        files.write_text(kept, json.dumps(made.to_json()))
    except (WorkbookError, OSError, ValueError) as error:
        return Ungraded(student.name, f"{type(error).__name__}: {error}")
    return made


def _kept(student: Student, terms: Terms) -> Path:
    name = hashlib.sha256(student.name.encode(errors="surrogateescape")).hexdigest()[:24]
    return Path(terms.store, "grades", f"{name}.json")


def _local(jobs: list[Job], at_once: int) -> Iterator[Graded]:
    """In threads: each waits for a process of its own."""
    left = iter(jobs)
    grading.begin()
    with ThreadPoolExecutor(at_once) as pool:
        running = {pool.submit(one, job) for job in itertools.islice(left, 2 * at_once)}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                running |= {pool.submit(one, job) for job in itertools.islice(left, len(done))}
                yield from (each.result() for each in done)
        except BaseException:  # an interrupt: nobody waits for what is being judged
            pool.shutdown(wait=False, cancel_futures=True)  # first: a thread would take the next
            grading.stop()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _on_dask(jobs: list[Job], address: str) -> Iterator[Graded]:
    """On a cluster's workers; on a GPU only on those that have one, one grade at a time."""
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise ToolError("--cluster needs Dask: `pip install distributed`") from None
    resources = {"GPU": 1} if settings.backend() == "cuda" else {}
    try:
        client = Client(address, timeout=f"{REACHED:g}s")
    except (OSError, ValueError) as error:  # also of asyncio's and of Dask's own
        raise ToolError(
            f"no Dask scheduler answers at {address}: {error}. `dask scheduler` starts one"
        ) from None
    with client:
        futures = client.map(one, jobs, pure=False, resources=resources)
        for future, made in as_completed(futures, with_results=True):
            future.release()
            yield made


def _prune(builds: Path) -> None:
    """Remove the builds of answers that have their verdict; behind a link they are others', too."""
    if builds.is_symlink():
        return
    for folder in builds.glob("*-*"):
        shared = folder.name.startswith(("emulator-", "ninja-", "no-torch", "."))
        try:
            if not shared and time.time() - folder.stat().st_mtime > ABANDONED:
                shutil.rmtree(folder, ignore_errors=True)
        except FileNotFoundError:  # another grader was first
            pass
