"""`%%cuda`: the first line of every CUDA cell. Compiles the cell and binds its launcher."""

import linecache
import re
import traceback
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import clear_output

from utils.course import catalog, progress
from utils.course.answers import Answer, compile_answer
from utils.cuda import instrumented, warmup
from utils.cuda.compiler import compile_cuda
from utils.cuda.kernel import Kernel
from utils.emulator import build
from utils.ground import settings
from utils.ground.errors import CompileError, WorkbookError
from utils.judge.check import begin
from utils.notebooks import beginnings
from utils.process import card, pool

if TYPE_CHECKING:
    from matplotlib.figure import Figure

USAGE = (
    "the first line of a CUDA cell is '%%cuda NN_topic/name', or '%%cuda name' for a kernel of "
    "your own; name is that of the host function that launches the kernel"
)


def compile_cell(line: str, cell: str) -> Kernel:
    """The Kernel of a cell whose first line is `%%cuda <line>` and whose other lines are `cell`:
    an Answer where the line names an exercise.

    Raises WorkbookError, with line numbers counted from the magic line.
    """
    if not re.fullmatch(r"(\w+/)?[A-Za-z_]\w*", line):
        raise WorkbookError(f"'%%cuda {line}': {USAGE}")
    if "/" not in line:
        if settings.backend() == "cuda":
            instrumented.prepare(cell, line, first_line=2)  # for its warnings
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
    kernel = compile_answer(exercise, cell, meanwhile=None if settings.boxed() else begin)
    kernel.learners = learners and not settings.boxed()  # in a box, it is somebody else's
    kernel.trusted = kernel.learners and progress.holds(kernel)
    return kernel


class Uncompiled:
    """What a cell binds that did not compile: whatever is asked of it, it says so."""

    def __init__(self, name: str, line: str, source: str):
        self._name = name
        self._exercise_id, self._source = line, source  # for hint() and reset()

    def __repr__(self) -> str:
        return f"<{self._name} did not compile>"

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """As the kernel would be called. Raises WorkbookError."""
        raise WorkbookError(f"{self._name} did not compile; fix its cell and run it again")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):  # what Python and IPython ask of any object
            raise AttributeError(name)
        self()


def _explained(
    shell: InteractiveShell,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> list[str]:
    """A NameError with what to run first. An interrupt in one line, that of the cell: below it,
    where it came in is chance."""
    if isinstance(error, NameError):
        return beginnings.explain(shell, kind, error, trace, tb_offset)
    known = shell.compile._filename_map
    frames = [(f.f_code.co_filename, n) for f, n in traceback.walk_tb(trace)]
    where = [linecache.getline(file, n).strip() for file, n in frames if file in known]
    at = f": stopped at {where[-1]}" if where else ""
    lines = [f"\x1b[31mKeyboardInterrupt\x1b[0m{at}"]
    shell._showtraceback(kind, error, lines)
    return lines


def _in_words(figure: "Figure") -> tuple[dict[str, object], dict[str, object]]:
    """No further form of a plot, but what is said in its place to those who cannot see it."""
    said = []
    for axes in figure.axes:
        shown = ", ".join(axes.get_legend_handles_labels()[1])
        words = {"upwards": axes.get_ylabel(), "to the right": axes.get_xlabel(), "shown": shown}
        parts = [axes.get_title(), *(f"{of}: {text}" for of, text in words.items() if text)]
        said.append("; ".join(filter(None, parts)))
    alt = ". ".join(filter(None, said))
    return {}, {"image/png": {"alt": f"A plot. {alt}"}} if alt else {}


def load(ipython: InteractiveShell) -> None:
    """Register `%%cuda` with IPython, once, and start what its first cell needs."""
    known = ipython.magics_manager.magics["cell"].get("cuda")
    if getattr(known, "__module__", "") == __name__:  # a cell below was run before the first one
        return beginnings.bind(ipython)

    def cuda(line: str, cell: str) -> None:
        """Compile the cell with nvcc, or for the CPU, and bind the launcher's name."""
        line = line.strip()
        name = line.rpartition("/")[2]
        if name.isidentifier():  # a cell that fails must not leave its last kernel behind
            ipython.user_ns[name] = Uncompiled(name, line, cell)
        first = settings.backend() == "emulator" and not build.is_built()
        if first:
            print("The emulator is built first, once on this machine: 10 to 30 seconds …")
        try:
            kernel = ipython.user_ns[name] = compile_cell(line, cell)
        except CompileError as error:
            if "/" in line and not settings.boxed():
                error.args = (f"{error}\nhint({name}) shows a hint, reset({name}) the starter",)
            raise
        if first:
            clear_output(wait=True)
        where = ""
        if isinstance(kernel, Answer) and kernel.backend != settings.backend():
            where = f" for the CPU, since this card has no {kernel.exercise.needs}"
        print(f"{name}: compiled{where}{', and has passed its check before' * kernel.trusted}")
        if not (isinstance(kernel, Answer) and kernel.untouched):
            on_cpu = kernel.backend == "emulator"
            if said := kernel.warnings if on_cpu else instrumented.warnings(kernel):
                print(said)

    # IPython's decorator hides from types that this is a method.
    ipython.register_magic_function(cuda, "cell", "cuda")  # type: ignore[arg-type]
    if settings.backend() == "cuda":
        ipython.events.register("pre_run_cell", lambda *_: card.cell(True))
        ipython.events.register("post_run_cell", lambda *_: card.cell(False))
        warmup.create_context()
    ipython.set_custom_exc((KeyboardInterrupt, NameError), _explained)
    if display := ipython.display_formatter:
        forms = display.mimebundle_formatter
        forms.for_type_by_name("matplotlib.figure", "Figure", _in_words)
    beginnings.bind(ipython)
    pool.prestart()
    warmup.start()
