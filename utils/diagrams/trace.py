"""`trace(kernel)`: the values of one thread, line by line."""

from itertools import groupby

from utils.course.case_calls import requested_call
from utils.course.case_sizes import size_text
from utils.cuda.arguments import Argument
from utils.cuda.kernel import Kernel
from utils.diagrams.table import Table
from utils.emulator.translate import telling
from utils.ground.errors import WorkbookError
from utils.ground.wording import many
from utils.process import card
from utils.watch.values import values

FIRST, LAST = 40, 20  # rows that are shown of a longer run


@card.apart()
def trace(
    kernel: Kernel,
    *arguments: Argument,
    thread: int | tuple[int, ...] = 0,
    block: int | tuple[int, ...] = 0,
    **sizes: int,
) -> Table | None:
    """Run a kernel at a small size on the CPU; show what one thread stores, and what it reads.

    `thread` is its threadIdx, `block` its blockIdx: the number along x, or (x, y, z). `sizes`
    replace those that the exercise is drawn at; `arguments` of your own all of the exercise's, as
    in `diagnose`. Raises WorkbookError for a kernel with neither, a size that there is not, or a
    thread that computes nothing.
    """
    if (call := requested_call(kernel, arguments, sizes, "trace")) is None:
        return None
    observed = values(kernel, call.arguments, _place(block), _place(thread))
    size = size_text(call.sizes)
    if not observed:
        raise WorkbookError(
            f"thread {thread} of block {block} of {kernel.name} stores no value with {size}: is "
            "there such a thread, and does a guard let it pass?"
        )
    source = kernel.source.splitlines()
    rows = []
    for line, group in groupby(observed, key=lambda value: value.line):
        place = line - kernel.first_line
        text = source[place].strip() if 0 <= place < len(source) else ""
        shown = ", ".join(f"{value.name} = {value.value}" for value in group)
        rows.append([str(line), text, shown])
    if (left := len(rows) - FIRST - LAST) > 0:
        rows[FIRST:-LAST] = [["…", "", f"{many(left, 'line')} left out"]]
    notes = []
    if len(observed) >= telling.MOST:
        notes.append(f"after {telling.MOST} values it was stopped")
    return Table(
        caption=f"{kernel.name}, {size}: what thread {thread} of block {block} reads and stores",
        head=["line", "source", "values"],
        rows=rows,
        notes=notes,
        left=3,
        code=(1, 2),
    )


def _place(index: int | tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = [*((index,) if isinstance(index, int) else index), 0, 0][:3]
    return x, y, z
