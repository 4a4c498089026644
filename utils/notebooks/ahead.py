"""Builds of notebooks that are about to run, made by cores that have nothing else to do.

On a GPU fewer notebooks run beside each other than there are cores, and each of them compiles one
cell after the other. A cell whose text was built before finds that in the cache.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from utils.course import catalog
from utils.course.answers import builds
from utils.course.exercise import Exercise
from utils.ground.errors import WorkbookError
from utils.notebooks import documents


@contextlib.contextmanager
def building(
    paths: Sequence[Path], *, solutions: bool, backend: str | None, beside: int
) -> Iterator[None]:
    """Build what the cells of notebooks need, while they run in this order, `beside` each other; at
    the end, what is not begun is left out.

    Of notebooks that run one by one all is built first: nothing is compiled while one is timed.
    """
    spare = (os.cpu_count() or 1) - beside
    if spare < 1:
        yield
        return
    pool = ThreadPoolExecutor(spare, thread_name_prefix="build-ahead")
    try:
        begun = [
            pool.submit(_build, exercise, text, backend, number)
            for exercise, text in _cells(paths, solutions, beside)
            for number in range(2)
        ]
        if beside == 1:
            wait(begun)
        yield
    finally:
        pool.shutdown(cancel_futures=True)


def _cells(paths: Sequence[Path], solutions: bool, beside: int) -> list[tuple[Exercise, str]]:
    """Exercises and the texts that their cells hold, about in the order in which they will run."""
    places: list[tuple[int, int, Exercise, str]] = []
    for number, path in enumerate(paths):
        notebook = documents.read(path)
        if solutions:
            documents.solve(notebook)
        for place, cell in enumerate(notebook.cells):
            id = documents.cuda_id(cell)
            if id and "/" in id:
                with contextlib.suppress(WorkbookError):  # no such exercise: its cell says so
                    text = f"{documents.cuda_text(cell)}\n"  # as IPython gives it to the magic
                    places.append((number // beside, place, catalog.load(id), text))
    return [(exercise, text) for *_, exercise, text in sorted(places, key=lambda one: one[:2])]


def _build(exercise: Exercise, text: str, backend: str | None, number: int) -> None:
    """One of the builds of a text. What cannot be built fails in its cell."""
    with contextlib.suppress(WorkbookError):
        for build in builds(exercise, text, backend)[number : number + 1]:
            build.kernel()
