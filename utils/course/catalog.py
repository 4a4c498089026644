"""Which exercises there are, and their texts: worked kernels, starters, solutions.

`kernels/NN_topic/spec.py` holds a tuple `EXERCISES`, in the order of the notebook. An id such as
`01_naive_gemm/gemm_naive` names the topic's folder and the launcher. Beside the spec stand the
texts, and the hints of an exercise: `NAME.md`, each below a line that begins with "## ".
"""

import functools
import importlib.util
import re
from dataclasses import replace
from pathlib import Path

from utils.course.exercise import Exercise
from utils.course.markup import is_untouched, solved
from utils.ground.errors import WorkbookError
from utils.ground.paths import workspace


def topic(name: str) -> dict[str, Exercise]:
    """The exercises of a folder such as `01_naive_gemm`, by name, in order."""
    path = workspace().kernels / name / "spec.py"
    if not path.is_file():
        raise WorkbookError(f"there is no topic '{name}': {path} does not exist")
    return _topic(name, path, path.stat().st_mtime_ns)


@functools.cache
def _topic(name: str, path: Path, written: int) -> dict[str, Exercise]:
    spec = importlib.util.spec_from_file_location(f"workbook_spec_{name}", path)
    if spec is None or spec.loader is None:
        raise WorkbookError(f"{path} is no module of Python")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    exercises = {}
    for exercise in module.EXERCISES:
        # A spec may make an exercise of another topic's, which stands in a notebook of that.
        own = f"{exercise.notebook}_".startswith(f"{name}_")
        home = exercise.notebook if own else name
        exercises[exercise.name] = replace(exercise, topic=name, notebook=home)
    return exercises


def topics() -> list[str]:
    """All topics that have a spec, in order."""
    return sorted(path.parent.name for path in workspace().kernels.glob("*/spec.py"))


def topic_of(notebook: str) -> str:
    """The topic whose name a notebook's own begins with; "" where there is none."""
    return next((name for name in topics() if f"{notebook}_".startswith(f"{name}_")), "")


def notebooks() -> list[str]:
    """The names of the notebooks with kernels, in order. A long topic goes on in a second one,
    whose name begins with its own and which its later exercises name."""
    homes = ((name, *(e.notebook for e in topic(name).values())) for name in topics())
    return list(dict.fromkeys(name for known in homes for name in known))


def in_notebook(name: str) -> list[Exercise]:
    """The kernels that stand in a notebook, in order; none in one of no topic."""
    home = topic_of(name)
    return [e for e in topic(home).values() if e.notebook == name] if home else []


def exercises() -> list[Exercise]:
    """All of all topics, in order."""
    return [exercise for name in topics() for exercise in topic(name).values()]


def rungs(exercise: Exercise) -> list[Exercise]:
    """The kernels that compute the same, in order, this one among them; no other broken one."""
    if not exercise.ladder:
        return [exercise]
    alike = [other for other in exercises() if other.ladder == exercise.ladder]
    return [other for other in alike if not other.faulty or other.id == exercise.id]


def load(id: str) -> Exercise:
    """The exercise of an id such as `01_naive_gemm/gemm_naive`.

    Raises WorkbookError naming what exists where the id does not.
    """
    folder, _, name = id.partition("/")
    exercises = topic(folder)
    if name not in exercises:
        raise WorkbookError(f"'{folder}' has no exercise '{name}'; it has {', '.join(exercises)}")
    return exercises[name]


def is_starter(exercise: Exercise, text: str) -> bool:
    """Whether a text still is what the learner of an exercise began with."""
    path = kernel_path(exercise)
    if exercise.number is None or not path.is_file():
        return False
    return is_untouched(text, path.read_text())


def is_solution(exercise: Exercise, text: str) -> bool:
    """Whether a text is the published solution of an exercise, comments and white space aside."""
    return exercise.number is not None and is_untouched(text, solution_text(exercise))


def hints(exercise: Exercise) -> tuple[str, ...]:
    """The Markdown of each hint, from the first to the one that says most."""
    path = hints_path(exercise)
    text = path.read_text() if path.is_file() else ""
    return tuple(part.strip() for part in re.split(r"^## .*$", text, flags=re.MULTILINE)[1:])


def hints_path(exercise: Exercise) -> Path:
    """The file of an exercise's hints, which need not exist."""
    return workspace().kernels / exercise.topic / f"{exercise.name}.md"


def solution_path(exercise: Exercise) -> Path:
    """The file of a solution, with its markers; a worked kernel has none."""
    return workspace().solutions / exercise.topic / f"{exercise.name}.cu"


def kernel_path(exercise: Exercise) -> Path:
    """The file of a starter or of a worked kernel."""
    return workspace().kernels / exercise.topic / f"{exercise.name}.cu"


def starter_text(exercise: Exercise) -> str:
    """What a notebook cell starts from: the worked kernel, or the starter of an exercise."""
    return kernel_path(exercise).read_text()


def solution_text(exercise: Exercise) -> str:
    """What compiles where solutions are asked for; a worked kernel is its own solution."""
    if exercise.number is None:
        return starter_text(exercise)
    return solved(solution_path(exercise).read_text())
