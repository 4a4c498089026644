"""`%%cuda`: the first line of every CUDA cell. Compiles the cell and binds its launcher."""

import re

from IPython.display import clear_output

from utils import settings
from utils.course import catalog, progress
from utils.course.answers import compile_answer
from utils.cuda import warmup, workers
from utils.cuda.compiler import compile_cuda
from utils.cuda.kernel import Kernel
from utils.emulator import build
from utils.errors import WorkbookError
from utils.notebooks.learner import hint, reset

USAGE = (
    "the first line of a CUDA cell is '%%cuda NN_topic/name', or '%%cuda name' for a kernel of "
    "your own; name is that of the host function that launches the kernel"
)


def compile_cell(line: str, cell: str) -> Kernel:
    """The Kernel of a cell whose first line is `%%cuda <line>` and whose other lines are `cell`.

    Raises WorkbookError, with line numbers counted from the magic line.
    """
    if not re.fullmatch(r"(\w+/)?[A-Za-z_]\w*", line):
        raise WorkbookError(f"'%%cuda {line}': {USAGE}")
    if "/" not in line:
        return compile_cuda(cell, line, first_line=2)
    exercise = catalog.load(line)
    learners = not settings.use_solutions()
    if not learners and exercise.number is not None:
        solution = catalog.solution_text(exercise)
        if cell.split() != solution.split():
            print(
                f"{exercise.name}: the workbook's solution, not this cell: WORKBOOK_SOLUTIONS is "
                "set. Unset it, and restart the kernel"
            )
        cell = solution
    kernel = compile_answer(exercise, cell)
    kernel.learners = learners
    kernel.trusted = learners and progress.holds(kernel)
    return kernel


def load(ipython) -> None:
    """Register `%%cuda` with IPython and start what its first cell needs."""

    def cuda(line: str, cell: str) -> None:
        """Compile the cell with nvcc, or for the CPU, and bind the launcher's name."""
        line = line.strip()
        name = line.rpartition("/")[2]
        ipython.user_ns.pop(name, None)  # a cell that fails must not leave its last kernel behind
        first = settings.backend() == "emulator" and not build.is_built()
        if first:
            print("The emulator is built first, once on this machine: 10 to 30 seconds …")
        kernel = ipython.user_ns[name] = compile_cell(line, cell)
        if first:
            clear_output(wait=True)
        print(f"{name}: compiled{', and has passed its check before' * kernel.trusted}")

    ipython.register_magic_function(cuda, "cell", "cuda")
    for function in (hint, reset):
        ipython.user_ns.setdefault(function.__name__, function)
    workers.prestart()
    warmup.start()
