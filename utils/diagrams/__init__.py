"""`draw(kernel)`: a picture of what the reader's own kernel does, from its recorded accesses.

Each view is a module of this package with a function `draw(scene)`; see VIEWS.
"""

import importlib

from torch import Generator

from utils import cases, checking
from utils.diagrams.canvas import own_style
from utils.diagrams.picture import Picture
from utils.diagrams.scene import Scene
from utils.errors import WorkbookError
from utils.exercises import Exercise, Sizes
from utils.tracing import SHARED, trace

VIEWS = {
    "threads": "which thread owns which element",
    "sectors": "what one warp asks of global memory",
    "matrix": "who reads what of the matrices, and how often",
    "tiles": "what one block touches between its barriers",
    "banks": "how one warp's requests spread over the banks of shared memory",
}


def draw(
    kernel,
    view: str | None = None,
    *,
    thread: int | tuple[int, ...] | None = None,
    block: int | tuple[int, ...] | None = None,
    array: str | None = None,
    line: int | None = None,
    **sizes: int,
) -> Picture | None:
    """Run a kernel at a small size on the CPU, watched, and draw what it touched.

    `view` is one of VIEWS; without it, the one that suits the kernel. `sizes` replace those that
    the exercise is drawn at. `thread` (its number along x, or (x, y, z), in the whole grid) picks
    whom "matrix" follows, `block` (the same) whom "tiles" follows, `array` what "threads" shows,
    `line` the one line that "sectors" and "banks" show.

    A starter that nobody has touched is not run: a line says so, and nothing is drawn.
    Raises WorkbookError saying what to do, and what a run of the kernel raises.
    """
    if view is not None and view not in VIEWS:
        raise WorkbookError(f"there is no view '{view}'; there are {', '.join(VIEWS)}")
    exercise = kernel.exercise
    if exercise is None:
        raise WorkbookError(
            f"'{kernel.name}' belongs to no exercise, so its inputs are not known; begin its cell "
            "with '%%cuda NN_topic/name' to draw it"
        )
    if kernel.untouched and not exercise.faulty:
        effort = f" ({exercise.effort})" if exercise.effort else ""
        print(f"{kernel.name}: not attempted yet; write your part{effort}, then draw it again")
        return None
    sizes = cases.toy_sizes(exercise, sizes)
    dtypes = {p.name: p.dtype for p in kernel.parameters if p.is_tensor}
    seeded = Generator().manual_seed(0)
    case = cases.draw(exercise, sizes, "standard normal", seeded, dtypes)
    scene = Scene(
        kernel.name,
        trace(kernel, checking.arguments(kernel, case)),
        kernel.source,
        kernel.first_line,
        exercise.outputs,
        sizes,
        _smaller(exercise, sizes),
        thread,
        block,
        array,
        line,
    )
    return render(scene, view)


def _smaller(exercise: Exercise, sizes: Sizes) -> str:
    """Sizes to suggest where these are too large: the usual ones, or half of these."""
    usual = exercise.draw
    if not usual or all(value <= usual[name] for name, value in sizes.items()):
        usual = {name: max(1, value // 2) for name, value in sizes.items()}
    return cases.size_text(usual).replace(" ", ", ")


def render(scene: Scene, view: str | None = None) -> Picture:
    """The picture of a scene. Raises WorkbookError where there is nothing, or too much, to draw."""
    if not any(len(launch.accesses) for launch in scene.trace.launches):
        ran = "starts no kernel" if not scene.trace.launches else "touches none of its arrays"
        raise WorkbookError(
            f"{scene.name} {ran} at {scene.size_text}, so there is nothing to draw; does the "
            "launcher start enough blocks, and does the guard let any thread pass?"
        )
    module = importlib.import_module(f"utils.diagrams.{view or _suitable(scene)}")
    with own_style():
        page, title, caption, alt = module.draw(scene)
        caption = " ".join([caption, *scene.notes])
        return Picture(page.finish(caption), title, caption, alt)


def _suitable(scene: Scene) -> str:
    if any((launch.accesses["space"] == SHARED).any() for launch in scene.trace.launches):
        return "tiles"
    shapes = [scene.trace.arrays[scene.trace.array(name)].shape for name in scene.outputs]
    if any(len(shape) == 2 for shape in shapes):
        return "matrix"
    return "threads"
