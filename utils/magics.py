"""`%%cuda`: the first line of every CUDA cell. Compiles the cell and binds its launcher."""

import re

from utils.course import catalog, markup
from utils.course.exercise import Exercise
from utils.cuda import instrumented, warmup, workers
from utils.cuda.compiler import compile_cuda
from utils.cuda.kernel import Kernel
from utils.errors import WorkbookError
from utils.paths import use_solutions

USAGE = (
    "the first line of a CUDA cell is '%%cuda NN_topic/name', or '%%cuda name' for a kernel of "
    "your own; name is that of the host function that launches the kernel"
)


def compile_answer(exercise: Exercise, text: str, **place) -> Kernel:
    """The Kernel of a text for an exercise, marked where it still is the starter.

    `place` is compile_cuda's first_line and filename. Raises WorkbookError.
    """
    place = {"first_line": 1, "filename": f"{exercise.name}.cu", **place}
    instrumented.prepare(text, exercise.name, **place)  # beside the plain build
    kernel = compile_cuda(text, exercise.name, exercise=exercise, **place)
    kernel.untouched = exercise.number is not None and markup.is_untouched(
        text, catalog.starter_text(exercise)
    )
    return kernel


def compile_cell(line: str, cell: str) -> Kernel:
    """The Kernel of a cell whose first line is `%%cuda <line>` and whose other lines are `cell`.

    Raises WorkbookError, with line numbers counted from the magic line.
    """
    if not re.fullmatch(r"(\w+/)?[A-Za-z_]\w*", line):
        raise WorkbookError(f"'%%cuda {line}': {USAGE}")
    if "/" not in line:
        return compile_cuda(cell, line, first_line=2)
    exercise = catalog.load(line)
    if use_solutions() and exercise.number is not None:
        return compile_answer(exercise, catalog.solution_text(exercise), first_line=2)
    return compile_answer(exercise, cell, first_line=2)


def load(ipython) -> None:
    """Register `%%cuda` with IPython and start what its first cell needs."""

    def cuda(line: str, cell: str) -> None:
        """Compile the cell with nvcc, or for the CPU, and bind the launcher's name."""
        line = line.strip()
        name = line.rpartition("/")[2]
        ipython.user_ns.pop(name, None)  # a cell that fails must not leave its last kernel behind
        ipython.user_ns[name] = compile_cell(line, cell)
        print(f"{name}: compiled")

    ipython.register_magic_function(cuda, "cell", "cuda")
    workers.prestart()
    warmup.start()
