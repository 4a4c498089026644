"""The instrumented build of a kernel's text, in which every access is seen."""

from concurrent.futures import Future, ThreadPoolExecutor

from utils.compiling import compile_cuda
from utils.exercises import Exercise
from utils.kernel import Kernel

_builder = ThreadPoolExecutor(1, thread_name_prefix="instrumented-build")
_builds: dict[tuple, Future] = {}  # by everything that a build depends on


def prepare(source: str, name: str, exercise: Exercise | None, **place) -> Future:
    """Begin the instrumented build of a text in the background; `place` is as for compile_cuda.

    So it is ready, or nearly, when the plain build beside it is.
    """
    key = (source, name, *sorted(place.items()))
    if key not in _builds:
        _builds[key] = _builder.submit(
            compile_cuda, source, name, exercise=exercise, trace=True, **place
        )
    return _builds[key]


def instrumented(kernel: Kernel) -> Kernel:
    """The instrumented build of a kernel's text. Raises what `compile_cuda` raises."""
    place = {"first_line": kernel.first_line, "filename": kernel.filename}
    return prepare(kernel.source, kernel.name, kernel.exercise, **place).result()
