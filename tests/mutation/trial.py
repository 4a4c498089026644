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
from functools import cache, cached_property
from pathlib import Path

from utils.course import catalog
from utils.course.answers import compile_wrong
from utils.course.exercise import Exercise
from utils.ground.errors import CheckFailed, CompileError, DeclarationError
from utils.ground.paths import cache as cache_folder
from utils.judge import explain, verdict
from utils.judge.check import check

from .operators import Mutation, mutations

# Of which nobody has read the survivors yet.
UNTRIED = (
    "11_hopper",
    "14_attention/flash_attention_mma",
    "14_attention/flash_attention_hopper",
    "14_attention/flash_attention_bf16",
    "14_attention/flash_attention_forward",
    "14_attention/flash_attention_backward",
)
SHARE = 36  # percent of the mutants are tried: those of all would take hours
TIMEOUT = 3.0  # seconds for a call; a solution's longest needs 0.3
_NAME = "mutant"  # the same for all: it stands in the machine code, which is compared
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
    def rank(self) -> int:
        """From 0 to 99, by chance, but always the same, whatever the comments around it say."""
        return int(hashlib.sha256(self.name.encode()).hexdigest(), 16) % 100

    @property
    def name(self) -> str:
        """By which the survivors know it: no other has it."""
        return f"{self.exercise}: {self.operator}: {self.difference}"

    @cached_property
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


def mutants(exercise: Exercise, share: int = SHARE) -> list[Mutant]:
    """The mutants of an exercise's solution in the order of its lines: so many percent of them.

    Of a larger share those of a smaller one are part.
    """
    made: list[Mutation] = mutations(catalog.solution_text(exercise), exercise.name)
    every = [Mutant(exercise.id, *mutation) for mutation in made]
    return [mutant for mutant in every if mutant.rank < share]


def all_mutants(share: int = SHARE) -> list[Mutant]:
    """Those of all exercises, in order."""
    return [mutant for exercise in catalog.exercises() for mutant in mutants(exercise, share)]


def try_out(mutant: Mutant, most: int = 1) -> Fate:
    """Compile a mutant and check it as a learner's kernel is checked, `most` times if it passes."""
    start, exercise = time.perf_counter(), catalog.load(mutant.exercise)
    usual = verdict.TIMEOUT, explain.THOROUGH
    verdict.TIMEOUT, explain.THOROUGH = TIMEOUT, False
    try:
        reason, tries, message = _tried(mutant, exercise, most)
    finally:
        verdict.TIMEOUT, explain.THOROUGH = usual
    return Fate(mutant.digest, reason, tries, time.perf_counter() - start, message[:400])


def _tried(mutant: Mutant, exercise: Exercise, most: int) -> tuple[str, int, str]:
    """What became of a mutant, after how many checks, and what was said."""
    reason, tries, message = ALIVE, 0, ""
    try:
        kernel = compile_wrong(exercise, mutant.text, _NAME)
        while tries < most and reason == ALIVE:
            tries += 1
            try:
                with redirect_stdout(io.StringIO()):
                    check(kernel)
            except CheckFailed as failure:
                reason, message = str(failure.reason), str(failure)
        if reason == ALIVE and mutant.operator != "uninitialised":  # the optimiser may do anything
            reason = SAME if _code(kernel) == _solution_code(exercise.id) else ALIVE
    except (CompileError, DeclarationError) as error:
        reason, message = REFUSED, str(error)
    else:  # there will be thousands
        shutil.rmtree(cache_folder() / f"{kernel.name}-{kernel.digest}", ignore_errors=True)
    return reason, tries, message


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
    return _code(compile_wrong(exercise, catalog.solution_text(exercise), _NAME))


def try_all(
    chosen: Iterable[Mutant], journal: Path, jobs: int = 0
) -> Iterator[tuple[Mutant, Fate]]:
    """Each mutant with its fate, as they end; what stands in the journal is not tried again."""
    known = read(journal)
    left = []
    for mutant in chosen:
        if mutant.digest in known:
            yield mutant, known[mutant.digest]
        else:
            left.append(mutant)
    left.sort(key=lambda mutant: (mutant.rank, mutant.digest))
    journal.parent.mkdir(parents=True, exist_ok=True)
    fresh = multiprocessing.get_context("spawn")  # PyTorch's threads do not survive a fork
    with journal.open("a") as file:
        # Now and then a new pool: max_tasks_per_child comes to a standstill in Python 3.11.
        for first in range(0, len(left), 200):
            with ProcessPoolExecutor(jobs or os.cpu_count(), fresh) as pool:
                tried = {pool.submit(try_out, mutant): mutant for mutant in left[first:][:200]}
                for done in as_completed(tried):
                    fate = done.result()
                    file.write(json.dumps(asdict(fate)) + "\n")
                    file.flush()
                    yield tried[done], fate


def read(journal: Path) -> dict[str, Fate]:
    """The fates in a journal, by digest; the last one counts."""
    lines = journal.read_text().splitlines() if journal.is_file() else []
    return {fate.digest: fate for fate in (Fate(**json.loads(line)) for line in lines)}
