"""A kernel that answers an exercise: what `%%cuda NN_topic/name`, `check`, a judge or a grader has.

Below this room, kernels know of no exercise.
"""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypedDict

from utils.course import catalog
from utils.course.exercise import Exercise
from utils.cuda import compiler, instrumented, toolchain
from utils.cuda.compiler import Build, compile_cuda
from utils.cuda.kernel import Kernel
from utils.emulator import linked
from utils.emulator.translate import strict
from utils.ground import settings
from utils.ground.errors import DeclarationError, WorkbookError
from utils.ground.paths import workspace


@dataclass(eq=False, kw_only=True)
class Answer(Kernel):
    """A Kernel, and the exercise that it answers."""

    exercise: Exercise
    learners: bool = False  # the learner's own: its pass is kept
    begun: object = None  # a check of it, where one was begun while it was compiled

    @functools.cached_property
    def untouched(self) -> bool:
        """Whether its text still is the starter."""
        return catalog.is_starter(self.exercise, self.source)

    @property
    def built(self) -> bool:
        """Whether the library is there, and not made where it is first needed."""
        return isinstance(self.library, Path)


Meanwhile = Callable[[Answer, Callable[[], bool]], object]  # does something until it is so


class Place(TypedDict):
    """What messages call the first line of a text."""

    first_line: int
    filename: str


def compile_answer(
    exercise: Exercise,
    text: str,
    *,
    backend: str | None = None,
    first_line: int = 2,
    filename: str | None = None,
    meanwhile: Meanwhile | None = None,
) -> Answer:
    """Compile a text for an exercise, and begin its diagnosing build beside it.

    `first_line` and `filename` are compile_cuda's; else those of its cell, where %%cuda stands in
    the first line. While nvcc compiles, `meanwhile(answer, until)` is called with what is returned
    later, whose library is not there yet. Raises what compile_cuda raises.
    """
    place = Place(first_line=first_line, filename=filename or f"{exercise.name}.cu")
    strict.judge(text, **place, include=workspace().include)
    if _diagnosed(exercise, text):
        instrumented.prepare(text, exercise.name, **place)
    shapes, backend = exercise.shapes, backend or _backend(exercise)
    build = compiler.plan(text, exercise.name, shapes=shapes, backend=backend, **place)
    if meanwhile and backend == "cuda" and _to_be_built(build):
        return _compiled_beside(build, exercise, meanwhile)
    kernel = build.kernel()
    if kernel.backend == "emulator":
        linked.judge(kernel.library, source=text, **place)
    return as_answer(exercise, kernel)


def _to_be_built(build: Build) -> bool:
    with suppress(DeclarationError):  # no launcher, which the compiler may have to explain
        return not build.library.exists()
    return False


def _compiled_beside(build: Build, exercise: Exercise, meanwhile: Meanwhile) -> Answer:
    """The answer that a build makes, in a thread while this one does something else."""
    compiler_thread = ThreadPoolExecutor(1, thread_name_prefix="nvcc")
    made = compiler_thread.submit(build.kernel)
    compiler_thread.shutdown(wait=False)
    answer = as_answer(exercise, build.kernel_of(build.library), _Late(made.result))
    meanwhile(answer, made.done)
    answer.library = made.result().library
    return answer


def builds(exercise: Exercise, text: str, backend: str | None = None) -> list[Build]:
    """What `compile_answer` makes of a cell's text: its build, and the diagnosing one where that is
    begun. Raises ToolError."""
    place = Place(first_line=2, filename=f"{exercise.name}.cu")
    plain = compiler.How(shapes=exercise.shapes, backend=backend or _backend(exercise))
    ways = [plain, compiler.How(instrumented=True)][: 1 + _diagnosed(exercise, text)]
    return [compiler.plan(text, exercise.name, **compiler.How(**way, **place)) for way in ways]


def _diagnosed(exercise: Exercise, text: str) -> bool:
    """Whether calls of it will be watched: those of a starter are not."""
    return exercise.faulty or not catalog.is_starter(exercise, text)


def as_answer(exercise: Exercise, kernel: Kernel, library: "_Late | None" = None) -> Answer:
    """A kernel as one that answers an exercise, with another `library` where one is given."""
    attributes = {field.name: getattr(kernel, field.name) for field in fields(Kernel)}
    attributes["multiprocessors"] = exercise.multiprocessors
    if library is not None:
        attributes["library"] = library
    return Answer(**attributes, exercise=exercise)


def _backend(exercise: Exercise) -> str:
    """This machine's; but the emulator for what its card has no instructions for."""
    backend = settings.backend()
    return backend if backend == "emulator" or toolchain.card_has(exercise.needs) else "emulator"


class _Late:
    """The library of a kernel, built where it is first needed."""

    def __init__(self, build: Callable[[], Kernel]):
        self._build = functools.cache(build)

    def __str__(self) -> str:
        return str(self._build().library)


def compile_wrong(exercise: Exercise, text: str, name: str) -> Answer:
    """A wrong kernel for the emulator. Only the instrumented build is made, which shows most
    faults; the plain one follows where it is needed. `name` tells it from others of the exercise.

    Raises what compile_cuda raises.
    """
    place = Place(first_line=1, filename=f"{exercise.name}__{name}.cu")
    strict.judge(text, **place, include=workspace().include)
    compiled = functools.partial(compile_cuda, text, exercise.name, backend="emulator", **place)
    watched = compiled(shapes=exercise.shapes, instrumented=True)
    linked.judge(watched.library, source=text, **place)
    return as_answer(exercise, watched, library=_Late(compiled))


def exercise_of(kernel: Kernel) -> Exercise:
    """The exercise that a kernel answers. Raises WorkbookError for one that answers none."""
    exercise: Exercise | None = getattr(kernel, "exercise", None)
    if not hasattr(kernel, "name"):
        raise WorkbookError(
            f"{kernel!r} is no kernel: run its '%%cuda' cell, then name what it binds"
        )
    if exercise is None:
        raise WorkbookError(
            f"'{kernel.name}' belongs to no exercise, so its sizes, its inputs and what it must "
            "compute are not known; begin its cell with '%%cuda NN_topic/name', or call it with "
            f"small tensors of your own, as diagnose({kernel.name}, x, out, n) and trace do"
        )
    return exercise


def attempted(kernel: Answer, what: str) -> bool:
    """Whether a kernel is no longer its starter; if it is, says so: to `what` it has to wait."""
    if not kernel.untouched:
        return True
    effort = f" ({kernel.exercise.effort})" if kernel.exercise.effort else ""
    print(f"{kernel.name}: not attempted yet; write your part{effort}, then {what} it again")
    return False
