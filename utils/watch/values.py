"""What one thread of a kernel computes, value by value, in the order in which it does."""

from dataclasses import dataclass

from utils.cuda.arguments import Arguments
from utils.cuda.compiler import compile_cuda
from utils.cuda.kernel import Kernel
from utils.emulator.translate import telling
from utils.emulator.translate.telling import Place
from utils.ground.errors import CompileError, WorkbookError


@dataclass(frozen=True)
class Value:
    """A variable or an element, after a line of the source."""

    line: int
    name: str  # such as As[1][0]
    value: str


def values(kernel: Kernel, arguments: Arguments, block: Place, thread: Place) -> list[Value]:
    """Those of one thread of a run on the emulator, on copies of `arguments`; at most telling.MOST.

    Raises WorkbookError for a text that cannot be made to tell, and what a run raises.
    """
    run = _telling(kernel, block, thread).isolated(arguments)
    records = [line.split(telling.MARK) for line in run.stdout.splitlines()]
    return [Value(int(r[1]), r[2], r[3]) for r in records if len(r) == 4 and r[1].isdigit()]


def _telling(kernel: Kernel, block: Place, thread: Place) -> Kernel:
    """The kernel built once more, telling as much as compiles."""
    for reads in (True, False):
        text = telling.tell(kernel.source, kernel.first_line, block, thread, reads)
        try:
            return compile_cuda(text, kernel.name, backend="emulator")
        except CompileError as error:
            cause = error
    raise WorkbookError(f"{kernel.name} cannot be traced: its text is too unusual") from cause
