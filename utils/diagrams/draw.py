"""`draw(kernel)`: a picture of what the reader's own kernel does, from its recorded accesses.

Each view is a module of views/ with a function `draw(scene)`; see VIEWS.
"""

import importlib
from dataclasses import replace

from utils.course import case_sizes
from utils.course.answers import Answer, attempted, exercise_of
from utils.course.case_calls import example
from utils.course.case_sizes import size_text
from utils.course.exercise import Exercise, Sizes
from utils.cuda.kernel import Kernel
from utils.diagrams.parts import requests, stepping
from utils.diagrams.parts.scene import Scene
from utils.diagrams.picture import Picture, own_style
from utils.diagrams.views.tree import is_tree
from utils.ground.errors import WorkbookError
from utils.process import card
from utils.watch.diagnosis import Diagnosis, diagnose_call
from utils.watch.trace import GLOBAL, MOST, SHARED, Trace, trace

VIEWS = {
    "threads": "which thread owns which element",
    "sectors": "what one warp asks of global memory",
    "matrix": "who reads what of the matrices, and how often",
    "tiles": "what one block touches between its barriers",
    "tree": "how one block makes one value of many, step by step",
    "banks": "how one warp's requests spread over the banks of shared memory",
    "hazards": "what went wrong: which threads touched what, in which order",
}
SPACES = {"sectors": GLOBAL, "banks": SHARED}  # of views whose requests a page lets one choose


@card.apart()
def draw(
    kernel: Answer,
    view: str | None = None,
    *,
    thread: int | tuple[int, ...] | None = None,
    block: int | tuple[int, ...] | None = None,
    array: str | None = None,
    line: int | None = None,
    hazard: int = 1,
    **sizes: int,
) -> Picture | None:
    """Run a kernel at a small size on the CPU, watched, and draw what it touched.

    `view` is one of VIEWS; without it, the one that suits the kernel. `sizes` replace those that
    the exercise is drawn at. `thread` (its number along x, or (x, y, z), in the whole grid) picks
    whom "matrix" follows, `block` (the same) whom "tiles" and "tree" follow, `array` what "threads"
    and "tree" show, `line` the one line that "sectors" and "banks" show, `hazard` which of them
    "hazards" shows.

    Below "sectors" and "banks", the JupyterLab of `workbook lab` lets one choose line and warp;
    below "tiles", "tree" and a race, go through what happens step by step.

    A starter that nobody has touched is not run: a line says so, and nothing is drawn.
    Raises WorkbookError saying what to do, and what a run of the kernel raises.
    """
    if view is not None and view not in VIEWS:
        raise WorkbookError(f"there is no view '{view}'; there are {', '.join(VIEWS)}")
    exercise = exercise_of(kernel)
    if not exercise.faulty and not attempted(kernel, "draw"):
        return None
    call = example(kernel, case_sizes.toy_sizes(exercise, sizes))
    if view == "hazards":
        seen = diagnose_call(kernel, call.arguments, unwritten=call.unwritten, most=MOST)
        return draw_hazard(kernel, seen, call.sizes, hazard)
    scene = _scene(kernel, trace(kernel, call.arguments), call.sizes)
    return render(replace(scene, thread=thread, block=block, array=array, line=line), view)


def draw_hazard(kernel: Kernel, seen: Diagnosis, sizes: Sizes, number: int = 1) -> Picture:
    """The picture of a hazard of a run that recorded its accesses, counted from 1.

    Raises WorkbookError where there is no such hazard, or no picture for its kind.
    """
    scene = _scene(kernel, seen.trace or Trace((), (), False), sizes)
    return render(replace(scene, hazards=seen.hazards, hazard=number), "hazards")


def _scene(kernel: Kernel, trace: Trace, sizes: Sizes) -> Scene:
    exercise: Exercise | None = getattr(kernel, "exercise", None)
    written = tuple(p.name for p in kernel.parameters if p.is_tensor and not p.is_const)
    return Scene(
        kernel.name,
        trace,
        kernel.source,
        kernel.first_line,
        exercise.outputs if exercise else written,
        sizes,
        _smaller(exercise, sizes),
    )


def _smaller(exercise: Exercise | None, sizes: Sizes) -> str:
    """Sizes to suggest where these are too large: the usual ones, or half of these."""
    usual = exercise.at.draw if exercise else None
    if not usual or all(value <= usual[name] for name, value in sizes.items()):
        usual = {name: max(1, value // 2) for name, value in sizes.items()}
    return size_text(usual).replace(" ", ", ")


def render(scene: Scene, view: str | None = None) -> Picture:
    """The picture of a scene. Raises WorkbookError where there is nothing, or too much, to draw."""
    if view != "hazards" and not any(len(launch.accesses) for launch in scene.trace.launches):
        ran = "starts no kernel" if not scene.trace.launches else "touches none of its arrays"
        raise WorkbookError(
            f"{scene.name} {ran} at {scene.size_text}, so there is nothing to draw; does the "
            "launcher start enough blocks, and does the guard let any thread pass?"
        )
    view = view or _suitable(scene)
    module = importlib.import_module(f"utils.diagrams.views.{view}")
    with own_style():
        page, title, caption, alt = module.draw(scene)
        if view != "hazards":
            caption = " ".join([caption, *scene.notes])
        more = {}
        if view in SPACES and (chosen := requests.requests(scene, SPACES[view])):
            more[requests.MIME] = chosen
        if hasattr(module, "steps") and (steps := module.steps(scene)):
            more[stepping.MIME] = steps
        return Picture(page.finish(caption), title, alt, caption, more=more)


def _suitable(scene: Scene) -> str:
    if any((launch.accesses["space"] == SHARED).any() for launch in scene.trace.launches):
        return "tree" if is_tree(scene) else "tiles"
    shapes = [scene.trace.arrays[scene.trace.array(name)].shape for name in scene.outputs]
    if any(len(shape) == 2 for shape in shapes):
        return "matrix"
    return "threads"
