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
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

from utils.grading import grade as grading
from utils.grading import submission
from utils.grading.grade import Terms
from utils.grading.grades import Grade, Graded, Ungraded
from utils.ground import files, settings
from utils.ground.errors import ToolError, WorkbookError

ABANDONED = 1800.0  # seconds after which nobody needs a build: a cell takes two minutes at most

Job = tuple[Path, Terms, bool]  # and whether an earlier grade counts


def terms(
    topics: Iterable[str],
    store: Path,
    resume: bool,
    *,
    boxed: bool = True,
    budget: float = grading.BUDGET,
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
    return Terms(tuple(topics), secret.read_text(), str(store), boxed, budget)


def graded(
    folders: list[Path], terms: Terms, *, jobs: int = 1, cluster: str = "", resume: bool = False
) -> Iterator[Graded]:
    """The grades of a class as they are made, in no order. `jobs` at once; with `cluster`, the
    address of a Dask scheduler, wherever its workers are: they must see the same files.

    What goes wrong on our side with one of them makes it Ungraded, and the rest goes on.
    Raises ToolError where Dask is missing.
    """
    work = [(folder, terms, resume) for folder in folders]
    for made in _on_dask(work, cluster) if cluster else _local(work, jobs):
        _prune(Path(terms.store, "builds"))
        yield made


def one(job: Job) -> Graded:
    """The grade of a folder, or the one that was kept."""
    folder, terms, resume = job
    try:
        kept = _kept(folder, terms)
        handed_in = submission.read(folder)
        digest = grading.digest(handed_in, terms)
        if resume and kept.is_file():
            earlier = json.loads(kept.read_text(encoding="utf-8"))
            if earlier.get("digest") == digest:
                return Grade.from_json(earlier)
        start = time.perf_counter()
        made = grading.grade(folder, terms, handed_in)
        made = replace(made, digest=digest, seconds=round(time.perf_counter() - start, 2))
        files.write_text(kept, json.dumps(made.to_json()))
    except (WorkbookError, OSError, ValueError) as error:
        return Ungraded(folder.name, f"{type(error).__name__}: {error}")
    return made


def _kept(folder: Path, terms: Terms) -> Path:
    name = hashlib.sha256(str(folder.name).encode(errors="surrogateescape")).hexdigest()[:24]
    return Path(terms.store, "grades", f"{name}.json")


def _local(jobs: list[Job], at_once: int) -> Iterator[Graded]:
    """In threads: each waits for a process of its own."""
    left = iter(jobs)
    with ThreadPoolExecutor(at_once) as pool:
        running = {pool.submit(one, job) for job in itertools.islice(left, 2 * at_once)}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                running |= {pool.submit(one, job) for job in itertools.islice(left, len(done))}
                yield from (each.result() for each in done)
        except BaseException:  # an interrupt: nobody waits for what is being judged
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
    with Client(address, timeout="20s") as client:
        futures = client.map(one, jobs, pure=False, resources=resources)
        for future, made in as_completed(futures, with_results=True):
            future.release()
            yield made


def _prune(builds: Path) -> None:
    """Remove the builds of answers that have their verdict."""
    for folder in builds.glob("*-*"):
        shared = folder.name.startswith(("emulator-", "ninja-", "no-torch", "."))
        try:
            if not shared and time.time() - folder.stat().st_mtime > ABANDONED:
                shutil.rmtree(folder, ignore_errors=True)
        except FileNotFoundError:  # another grader was first
            pass
