"""Notebook files: read, brought into the one form that git holds, written without a risk of loss.

Canonical form: nbformat 4.5, no outputs, no execution counts, fixed metadata, an id on every cell.
"""

import hashlib
import json
import re
from pathlib import Path

import nbformat
from nbformat.v4.rwbase import rejoin_lines

from utils.course import catalog
from utils.course.exercise import Exercise
from utils.ground.errors import WorkbookError
from utils.ground.paths import workspace
from utils.notebooks import cuda_cell

METADATA = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python"},
}
CELL_METADATA = ("tags", "workbook")
MAGIC = cuda_cell.MAGIC


def read(path: Path) -> nbformat.NotebookNode:
    """The notebook at `path`; WorkbookError says why where it cannot be read."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        if raw["nbformat"] != 4:
            raise WorkbookError(f"{path} has notebook format {raw['nbformat']}; 4 is needed")
        notebook: nbformat.NotebookNode = nbformat.from_dict(raw)
        notebook = rejoin_lines(notebook)  # of sources and of outputs: files have lists of lines
        notebook.nbformat_minor = 5
        _name_cells(notebook)
        nbformat.validate(notebook)
    except FileNotFoundError as error:
        raise WorkbookError(f"there is no notebook {path}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WorkbookError(f"{path} is no readable notebook: {error}".splitlines()[0]) from error
    except nbformat.ValidationError as error:
        raise WorkbookError(f"{path} is no valid notebook: {error.message}") from error
    return notebook


def _name_cells(notebook: nbformat.NotebookNode) -> None:
    """Give an id to each cell that has none of its own, the same one every time."""
    taken = set()
    for cell in notebook.cells:
        id, attempt = str(cell.get("id", "")), 0
        while id in taken or not re.fullmatch(r"[\w-]{1,64}", id, re.ASCII):
            id = hashlib.sha256(f"{attempt}{cell.source}".encode()).hexdigest()[:8]
            attempt += 1
        cell["id"] = id
        taken.add(id)


def canonical(notebook: nbformat.NotebookNode, outputs: bool = False) -> nbformat.NotebookNode:
    """A copy in canonical form; `outputs` keeps outputs and counts, as in `solutions/`."""
    cells = []
    for cell in notebook.cells:
        kept = {key: cell.metadata[key] for key in CELL_METADATA if cell.metadata.get(key)}
        new = {"cell_type": cell.cell_type, "id": cell.id, "metadata": kept, "source": cell.source}
        if cell.get("attachments"):
            new["attachments"] = cell.attachments
        if cell.cell_type == "code":
            new["outputs"] = cell.outputs if outputs else []
            new["execution_count"] = cell.execution_count if outputs else None
        cells.append(new)
    made: nbformat.NotebookNode = nbformat.from_dict(
        {"nbformat": 4, "nbformat_minor": 5, "metadata": METADATA, "cells": cells}
    )
    return made


def to_text(notebook: nbformat.NotebookNode) -> str:
    """The bytes of the file, as JupyterLab writes them."""
    return str(nbformat.writes(notebook, version=nbformat.NO_CONVERT)).rstrip("\n") + "\n"


def cuda_id(cell: nbformat.NotebookNode) -> str | None:
    """What stands behind `%%cuda` in a cell's first line; None for any other cell."""
    parts = cuda_cell.parts(str(cell.source)) if cell.cell_type == "code" else None
    return parts[0] if parts else None


def cuda_text(cell: nbformat.NotebookNode) -> str:
    """The CUDA text of a `%%cuda` cell, without the magic line."""
    parts = cuda_cell.parts(str(cell.source))
    return parts[1] if parts else ""


def cuda_cells(notebook: nbformat.NotebookNode) -> dict[str, nbformat.NotebookNode]:
    """The `%%cuda NN_topic/name` cells by id; the first one where an id stands twice."""
    cells: dict[str, nbformat.NotebookNode] = {}
    for cell in notebook.cells:
        id = cuda_id(cell)
        if id and "/" in id:
            cells.setdefault(id, cell)
    return cells


def solve(notebook: nbformat.NotebookNode) -> None:
    """Put the solutions into the `%%cuda` cells.

    A kernel that is there to be diagnosed runs as it was given, so that its reports and pictures
    can be seen, and solved in a cell of its own before its check.
    """
    for id, cell in cuda_cells(notebook).items():
        exercise = catalog.load(id)
        if exercise.number is None:
            continue
        solution = f"{MAGIC} {id}\n{catalog.solution_text(exercise)}".rstrip()
        if not exercise.faulty:
            cell.source = solution
            continue
        cell.source = f"{MAGIC} {id}\n{catalog.starter_text(exercise)}".rstrip()
        if (place := _check_of(exercise, notebook)) is not None:
            solved = nbformat.v4.new_code_cell(solution, id=f"{cell.id}-solved")
            notebook.cells.insert(place, solved)


def _check_of(exercise: Exercise, notebook: nbformat.NotebookNode) -> int | None:
    """The place of the cell that checks an exercise; None where the notebook has none."""
    call = f"check({exercise.name})"
    cells = enumerate(notebook.cells)
    return next((n for n, cell in cells if cell.cell_type == "code" and call in cell.source), None)


def notebook_of(name: str) -> Path:
    """The learner's notebook of a name; a topic's name is that of its first one."""
    return workspace().notebooks / f"{name}.ipynb"


def path_of(exercise: Exercise) -> Path:
    """The notebook that an exercise stands in."""
    return notebook_of(exercise.notebook)


def answer(exercise: Exercise) -> str:
    """The CUDA text that stands in the learner's notebook for an exercise."""
    path = path_of(exercise)
    cell = cuda_cells(read(path)).get(exercise.id)
    if cell is None:
        raise WorkbookError(f"{path} has no cell that begins with '{MAGIC} {exercise.id}'")
    return cuda_text(cell)
