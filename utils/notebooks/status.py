"""`workbook status` and `workbook next`: how far the learner is, and what comes next."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from utils.course import catalog, progress
from utils.course.exercise import Exercise
from utils.ground.errors import WorkbookError
from utils.notebooks import documents, sittings

BAR = 12  # characters


def chapters(topics: Sequence[str]) -> Table:
    """A row a chapter: how many of its exercises are done."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for topic in topics:
        exercises = progress.exercises(topic)
        done = sum(map(progress.done, exercises))
        full = BAR * done // max(1, len(exercises))
        bar = f"[green]{'█' * full}[/][dim]{'░' * (BAR - full)}[/]"
        mark = "[green]✓[/]" if done == len(exercises) else ""
        table.add_row(mark, _title(topic), bar, f"{done} of {len(exercises)}")
    return table


def exercises(topics: Sequence[str]) -> Table:
    """A row an exercise: what became of it."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for topic in topics:
        for exercise in progress.exercises(topic):
            mark = "[green]✓[/]" if progress.done(exercise) else ""
            table.add_row(mark, exercise.number, exercise.name, _state(exercise))
    return table


def print_next(console: Console) -> None:
    """The first exercise that is not done, where it stands, and how long its sitting is."""
    exercise = progress.next_after()
    if exercise is None:
        console.print("All exercises are done.")
        return
    effort = f" ({exercise.effort})" if exercise.effort else ""
    line = f"next: {exercise.number} {exercise.name}, {exercise.title}{effort}"
    place = ": ".join(
        filter(None, (f"in notebooks/{exercise.notebook}.ipynb", sittings.of(exercise)))
    )
    console.print(f"{line}\n{place}", markup=False, soft_wrap=True)


def _title(topic: str) -> str:
    """Such as "00 Start here", as the notebook's heading has it."""
    try:
        first = documents.read(documents.notebook_of(topic)).cells[0].source
    except (WorkbookError, IndexError):
        first = ""
    head = first.partition("\n")[0]
    return head.removeprefix("# ") if head.startswith("# ") else topic.replace("_", " ")


def _state(exercise: Exercise) -> str:
    """In words, by what stands in the notebook now."""
    passed = progress.texts(exercise)
    try:
        now = documents.answer(exercise)
    except WorkbookError as error:
        return f"[red]{error}[/]"
    if now.strip() in (text.strip() for text in passed):
        return "passed"
    if catalog.is_starter(exercise, now):
        return "passed, and the starter again" if passed else "[dim]not attempted[/]"
    return "passed, and changed since" if passed else "[yellow]begun[/]"
