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
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

from utils import files, settings
from utils.errors import ToolError, WorkbookError
from utils.grading import grade as grading
from utils.grading import submission
from utils.grading.grade import Terms

ABANDONED = 1800.0  # seconds after which nobody needs a build: a cell takes two minutes at most

Grade = dict
Job = tuple[Path, Terms, bool]  # and whether an earlier grade counts


def terms(topics: Iterable[str], store: Path, resume: bool, **how: bool | float) -> Terms:
    """How a class is graded; what an earlier run has left in the store goes, but to `resume`.
    `how` is what else Terms have: boxed, budget."""
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
    return Terms(tuple(topics), secret.read_text(), str(store), **how)


def graded(
    folders: list[Path], terms: Terms, *, jobs: int = 1, cluster: str = "", resume: bool = False
) -> Iterator[Grade]:
    """The grades of a class as they are made, in no order. `jobs` at once; with `cluster`, the
    address of a Dask scheduler, wherever its workers are: they must see the same files.

    What goes wrong on our side with one of them is its grade's "fault", and the rest goes on.
    Raises ToolError where Dask is missing.
    """
    mapped = _dask(cluster) if cluster else _local(jobs)
    for made in mapped(one, [(folder, terms, resume) for folder in folders]):
        _prune(Path(terms.store, "builds"))
        yield made


def one(job: Job) -> Grade:
    """The grade of a folder, or the one that was kept."""
    folder, terms, resume = job
    try:
        kept = _kept(folder, terms)
        handed_in = submission.read(folder)
        digest = grading.digest(handed_in, terms)
        if resume and kept.is_file():
            made = json.loads(kept.read_text(encoding="utf-8"))
            if made.get("digest") == digest:
                return made
        start = time.perf_counter()
        made = grading.grade(folder, terms, handed_in) | {"digest": digest}
        made["seconds"] = round(time.perf_counter() - start, 2)
        files.write_text(kept, json.dumps(made))
    except (WorkbookError, OSError, ValueError) as error:
        return {"student": folder.name, "fault": f"{type(error).__name__}: {error}"}
    return made


def _kept(folder: Path, terms: Terms) -> Path:
    name = hashlib.sha256(str(folder.name).encode(errors="surrogateescape")).hexdigest()[:24]
    return Path(terms.store, "grades", f"{name}.json")


def _local(jobs: int) -> Callable[[Callable, list], Iterator]:
    """Threads: each waits for a process of its own."""

    def mapped(function: Callable, values: list) -> Iterator:
        left = iter(values)
        with ThreadPoolExecutor(jobs) as pool:
            running = {pool.submit(function, v) for v in itertools.islice(left, 2 * jobs)}
            try:
                while running:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    running |= {pool.submit(function, v) for v in itertools.islice(left, len(done))}
                    yield from (each.result() for each in done)
            except BaseException:  # an interrupt: nobody waits for what is being judged
                left = iter(())
                grading.stop()
                raise
            finally:
                pool.shutdown(cancel_futures=True)

    return mapped


def _dask(address: str) -> Callable[[Callable, list], Iterator]:
    """The workers of a Dask cluster; on a GPU only those that have one, one grade at a time."""
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise ToolError("--cluster needs Dask: `pip install distributed`") from None
    resources = {"GPU": 1} if settings.backend() == "cuda" else {}

    def mapped(function: Callable, values: list) -> Iterator:
        with Client(address, timeout="20s") as client:
            futures = client.map(function, values, pure=False, resources=resources)
            for future, made in as_completed(futures, with_results=True):
                future.release()
                yield made

    return mapped


def _prune(builds: Path) -> None:
    """Remove the builds of answers that have their verdict."""
    for folder in builds.glob("*-*"):
        shared = folder.name.startswith(("emulator-", "ninja-", "no-torch", "."))
        try:
            if not shared and time.time() - folder.stat().st_mtime > ABANDONED:
                shutil.rmtree(folder, ignore_errors=True)
        except FileNotFoundError:  # another grader was first
            pass
