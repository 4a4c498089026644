"""Sittings: a notebook's parts of an evening, with a place to rest between each two.

How long each takes is said once, at the notebook's head; where one ends, where it ends.
"""

import re

from nbformat import NotebookNode

from utils.course.exercise import Exercise
from utils.ground.errors import WorkbookError
from utils.notebooks import documents

REST = "**A good place to rest.**"
TIME = re.compile(r"\*\*Time\.\*\* (.+)")


def minutes(head: str) -> list[int]:
    """Of each sitting, as the first cell of a notebook has them."""
    line = TIME.search(head)
    return (
        [int(each) for each in re.findall(r"\babout (\d+)", line[1], re.IGNORECASE)] if line else []
    )


def rests(cells: list[NotebookNode]) -> int:
    """How many places to rest there are in these cells."""
    return sum(cell.source.count(REST) for cell in cells if cell.cell_type == "markdown")


def of(exercise: Exercise) -> str:
    """In which sitting of its notebook an exercise comes, in words; "" where nothing is said."""
    try:
        cells = documents.read(documents.notebook_of(exercise.notebook)).cells
    except WorkbookError:
        return ""
    places = [i for i, cell in enumerate(cells) if documents.cuda_id(cell) == exercise.id]
    each = minutes(cells[0].source) if places else []
    before = rests(cells[: places[0]]) if places else 0
    if before >= len(each):
        return ""
    number = f"sitting {before + 1} of {len(each)}, " if len(each) > 1 else ""
    return f"{number}about {each[before]} minutes"
