"""The table that `workbook run` and `workbook check` print."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from utils.notebooks.run import Event, Run

COLOURS = {"passed": "green", "not attempted": "yellow", "not checked": "yellow"}


def coloured(verdict: str) -> str:
    """A verdict in rich's markup."""
    colour = COLOURS.get(verdict, "red")
    return f"[{colour}]{verdict}[/]"


def timing(event: Event) -> str:
    """The learner's own row of a bench event: measured here, or stored with GPU and date."""
    for row in event.get("rows", ()):
        if row["label"] == event["id"].rpartition("/")[2]:
            figure = f"{row['median_ms']:.3g} ms"
            measured = event["measured"]
            return figure if measured else f"{figure} (stored: {event['gpu']}, {event['date']})"
    return "–"


def print_runs(runs: Sequence[Run], console: Console) -> None:
    """One row for each exercise, then a line for each notebook with its seconds and failures."""
    table = Table("", "exercise", "check", "time", box=None, pad_edge=False, header_style="dim")
    for run in runs:
        for exercise in run.exercises():
            verdict = coloured(run.verdict(exercise))
            time = timing(run.event("bench", exercise))
            table.add_row(exercise.number, exercise.name, verdict, time)
    if table.row_count:
        console.print(table)
        console.print()
    for run in runs:
        exercises = run.exercises()
        done = sum(run.verdict(e) == "passed" for e in exercises)
        passed = f"{done} of {len(exercises)} passed" if exercises else "no exercises"
        console.print(f"{run.path.stem}: {passed}, {run.seconds:.1f} s", highlight=False)
        for error in run.errors:
            console.print(f"  {error}", style="red", markup=False, highlight=False, soft_wrap=True)
