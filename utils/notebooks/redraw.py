"""`make pictures`: the pictures of the executed notebooks drawn anew.

They come from the emulator on any machine; all that was measured beside them stays as it is.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from nbformat import NotebookNode

from utils.ground import files
from utils.ground.paths import environment, workspace
from utils.notebooks import documents, run

PICTURE = "image/svg+xml"
DRAWS = re.compile(r"\b(?:draw|diagnose)\(")
TAKES_LONG = re.compile(r"\b(?:check|bench)\(")  # and draws nothing of a kernel


def redraw(path: Path) -> int:
    """Draw what an executed notebook shows of its kernels; returns how many pictures.

    Raises WorkbookError if the notebook is unreadable. A cell that fails here, or shows another
    number of pictures, keeps those it has.
    """
    kept = documents.read(path)
    drawn = documents.read(path)
    for cell in drawn.cells:
        if cell.cell_type == "code" and TAKES_LONG.search(cell.source):
            cell.source = ""
    variables = environment(WORKBOOK_BACKEND="emulator", WORKBOOK_SOLUTIONS="")
    run.client(drawn).execute(env=variables)
    new = sum(_take(*pair) for pair in zip(kept.cells, drawn.cells, strict=True))
    if new:
        files.write_text(path, documents.to_text(documents.canonical(kept, outputs=True)))
    return new


def _take(cell: NotebookNode, drawn: NotebookNode) -> int:
    """Put the pictures of a cell that has run into its like; returns how many."""
    if cell.cell_type != "code" or not DRAWS.search(cell.source):
        return 0
    olds, news = _pictures(cell), _pictures(drawn)
    if len(olds) != len(news):
        return 0
    for old, new in zip(olds, news, strict=True):
        old.data, old.metadata = new.data, new.metadata
    return len(olds)


def _pictures(cell: NotebookNode) -> list[NotebookNode]:
    return [output for output in cell.outputs if PICTURE in output.get("data", {})]


def main(words: Sequence[str]) -> None:
    """Of all executed notebooks, or of those whose names begin with one of the words."""
    for path in sorted(workspace().solutions.glob("[0-9][0-9]_*.ipynb")):
        if not words or path.name.startswith(tuple(words)):
            print(f"{path.name}: {redraw(path)} pictures drawn anew", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
