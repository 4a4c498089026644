"""`diagnose(kernel)`: what a kernel does wrong, and what each of its lines costs."""

import math

from IPython.display import display

from utils.course import case_sizes
from utils.course.answers import Answer
from utils.course.case_calls import Example, example, requested_call
from utils.course.case_sizes import size_text
from utils.cuda.arguments import Argument
from utils.cuda.kernel import Kernel
from utils.diagrams.draw import draw_hazard
from utils.diagrams.listing import listing
from utils.diagrams.picture import Picture
from utils.diagrams.views.hazards import can_draw
from utils.ground.wording import many
from utils.process import card
from utils.watch import diagnosis
from utils.watch.diagnosis import Diagnosis
from utils.watch.trace import MOST


@card.apart()
def diagnose(
    kernel: Kernel, *arguments: Argument, hazard: int = 1, order: int = 0, **sizes: int
) -> None:
    """Run a kernel at a small size on the CPU, watched; say what is wrong, show what lines cost.

    The listing has traffic and hazards beside its lines. One hazard is drawn, the first or the one
    of the number `hazard`. `sizes` replace those that the exercise is drawn at; `order` other than
    0 lets the threads run in another order. With `arguments` it is called with those instead, on
    copies, as in `diagnose(mine, x, out, 8)`: a kernel of your own that belongs to no exercise.
    Raises WorkbookError for a kernel with neither, a size or a hazard that there is not,
    and KernelCrash or KernelTimeout where the run does not come to its end.
    """
    if (call := requested_call(kernel, arguments, sizes, "diagnose")) is None:
        return
    seen, size = _watched(kernel, call, order), size_text(call.sizes)
    print(_findings(kernel, seen, size))
    if hazard > 1 or (seen.hazards and can_draw(seen.hazards[0])):
        display(draw_hazard(kernel, seen, call.sizes, hazard))
    if any(launch.traffic for launch in seen.launches):
        display(listing(kernel, seen, size))


def examine(kernel: Answer) -> tuple[str, Picture | None]:
    """What `diagnose` says, and the first hazard drawn where it can be, for a reader elsewhere.

    Raises what `diagnose` raises.
    """
    call = example(kernel, case_sizes.toy_sizes(kernel.exercise, {}))
    seen = _watched(kernel, call)
    drawn = seen.hazards and can_draw(seen.hazards[0])
    picture = draw_hazard(kernel, seen, call.sizes, 1) if drawn else None
    return _findings(kernel, seen, size_text(call.sizes)), picture


def _watched(kernel: Kernel, call: Example, order: int = 0) -> Diagnosis:
    return diagnosis.diagnose_call(
        kernel, call.arguments, unwritten=call.unwritten, order=order, most=MOST
    )


def _findings(kernel: Kernel, seen: Diagnosis, sizes: str) -> str:
    if seen.hazards:
        return f"{kernel.name} with {sizes}\n{diagnosis.tell(seen.hazards)}"
    if seen.error:
        return f"{kernel.name} with {sizes}\n{seen.error}"
    threads = sum(math.prod((*x.grid, *x.block)) for x in seen.launches if x.grid and x.block)
    summary = f"{kernel.name} with {sizes}: no hazards among {many(threads, 'thread')}"
    return "\n".join([summary, diagnosis.tell(seen.remarks)] if seen.remarks else [summary])
