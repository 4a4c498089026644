"""What becomes of a mutant: refused by the compiler, killed by `check`, or alive."""

import hashlib
import io
import json
import multiprocessing
import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path

from utils.course import catalog
from utils.course.answers import compile_wrong
from utils.course.exercise import Exercise
from utils.cuda import compiler
from utils.errors import CheckFailed, CompileError, DeclarationError
from utils.judge import check as judge
from utils.paths import cache as cache_folder

from .operators import Mutation, mutations

TIMEOUT = 3.0  # seconds for a call; a solution's longest needs 0.3
REFUSED, SAME, ALIVE = "refused", "same code", "alive"  # fates that are no reason of `check`


@dataclass(frozen=True)
class Mutant:
    """One mutation of one exercise's solution."""

    exercise: str  # its id
    operator: str
    line: int  # of the solution without its markers
    difference: str
    text: str

    @property
    def digest(self) -> str:
        """Of all that tells it from others."""
        return hashlib.sha256(f"{self.exercise}\n{self.text}".encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return f"{self.exercise}:{self.line}: {self.operator}: {self.difference}"


@dataclass(frozen=True)
class Fate:
    """How a mutant ended. `reason` is `check`'s, or one of REFUSED, SAME and ALIVE."""

    digest: str
    reason: str
    tries: int  # checks until it was killed
    seconds: float
    message: str = ""


def mutants(exercise: Exercise) -> list[Mutant]:
    """All mutants of an exercise's solution."""
    made: list[Mutation] = mutations(catalog.solution_text(exercise), exercise.name)
    return [Mutant(exercise.id, *mutation) for mutation in made]


def all_mutants() -> list[Mutant]:
    """All mutants of all exercises, in order."""
    return [mutant for exercise in catalog.exercises() for mutant in mutants(exercise)]


def try_out(mutant: Mutant, most: int = 1) -> Fate:
    """Compile a mutant and check it as a learner's kernel is checked, `most` times if it passes."""
    start, exercise = time.perf_counter(), catalog.load(mutant.exercise)
    judge.TIMEOUT = TIMEOUT
    reason, tries, message = ALIVE, 0, ""
    try:
        kernel = compile_wrong(exercise, mutant.text, mutant.digest)
        while tries < most and reason == ALIVE:
            tries += 1
            try:
                with redirect_stdout(io.StringIO()):
                    judge.check(kernel)
            except CheckFailed as failure:
                reason, message = str(failure.reason), str(failure)
        if reason == ALIVE and mutant.operator != "uninitialised":  # the optimiser may do anything
            reason = SAME if _code(kernel) == _solution_code(exercise.id) else ALIVE
    except (CompileError, DeclarationError) as error:
        reason, message = REFUSED, str(error)
    finally:
        _forget(exercise, mutant)
    return Fate(mutant.digest, reason, tries, time.perf_counter() - start, message[:400])


def _code(kernel) -> bytes:
    """The machine code of a kernel's plain build, and the constants that it reads."""
    library, sections = str(kernel.library), (".text", ".rodata", ".data")
    code = f"{library}.code"
    chosen = [f"--only-section={section}" for section in sections]
    subprocess.run(["objcopy", "-O", "binary", *chosen, library, code], check=True)
    return Path(code).read_bytes()


@cache
def _solution_code(id: str) -> bytes:
    exercise = catalog.load(id)
    name = "0" * 16  # as long as a digest
    return _code(compile_wrong(exercise, catalog.solution_text(exercise), name))


def _forget(exercise: Exercise, mutant: Mutant) -> None:
    """Remove a mutant's builds, of which there are thousands."""
    place = {"first_line": 1, "filename": f"{exercise.name}__{mutant.digest}.cu"}
    for instrumented in (False, True):
        plan = partial(compiler.plan, mutant.text, exercise.name, backend="emulator", **place)
        try:
            build = plan(shapes=exercise.shapes, instrumented=instrumented)
            shutil.rmtree(cache_folder() / f"{exercise.name}-{build.digest}", ignore_errors=True)
        except (CompileError, DeclarationError):
            pass


def try_all(chosen: Iterable[Mutant], journal: Path, jobs: int = 0) -> Iterator[tuple[Mutant, Fate]]:
    """Each mutant with its fate, as they end; what stands in the journal is not tried again."""
    known = read(journal)
    left = []
    for mutant in chosen:
        if mutant.digest in known:
            yield mutant, known[mutant.digest]
        else:
            left.append(mutant)
    if not left:
        return
    journal.parent.mkdir(parents=True, exist_ok=True)
    fresh = multiprocessing.get_context("spawn")  # PyTorch's threads do not survive a fork
    pool = ProcessPoolExecutor(jobs or os.cpu_count(), fresh, max_tasks_per_child=150)
    with pool, journal.open("a") as file:
        tried = {pool.submit(try_out, mutant): mutant for mutant in left}
        for done in as_completed(tried):
            fate = done.result()
            file.write(json.dumps(asdict(fate)) + "\n")
            file.flush()
            yield tried.pop(done), fate


def read(journal: Path) -> dict[str, Fate]:
    """The fates in a journal, by digest; the last one counts."""
    lines = journal.read_text().splitlines() if journal.is_file() else []
    return {fate.digest: fate for fate in (Fate(**json.loads(line)) for line in lines)}
