"""What a block does between its barriers, as data: a page lets its reader go from step to step.

static/steps.js of the JupyterLab extension draws it, in JupyterLab and on the pages of the site;
wherever nothing does, the picture beside it stands, which shows the steps beside one another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from utils.diagrams.parts.canvas import Swatch, hexadecimal
from utils.diagrams.parts.scene import Scene

MIME = "application/vnd.cuda-workbook.steps+json"
MOST, CELLS, LINES = 32, 1 << 14, 8  # steps; cells of one step; lines of source below it


@dataclass(frozen=True)
class Panel:
    """One array, in every step at the same place."""

    name: str
    detail: str  # such as "8 × 8"
    rows: int
    columns: int


@dataclass(frozen=True)
class Step:
    """One of them. `cells`: for each panel, which of the colours each of its cells has, flat."""

    name: str
    said: str  # all that happens, in words
    cells: Sequence[np.ndarray]
    lines: Sequence[int] = ()  # of the source, that run in it
    links: Sequence[tuple[int, int, int]] = ()  # cell of panel 0, cell of panel 1, colour


def data(
    scene: Scene,
    what: str,
    colors: Sequence[Swatch],
    panels: Sequence[Panel],
    steps: Sequence[Step],
) -> dict[str, object] | None:
    """They as a page has them; None where there is only one, or too much for a page.

    `what` a step is, such as "Phase"; `colors`: pairs (colour, what it means), or triples with the
    letter that stands on it.
    """
    if len(steps) < 2 or sum(panel.rows * panel.columns for panel in panels) > CELLS:
        return None
    used = sorted({int(c) for step in steps for cells in step.cells for c in np.unique(cells)})
    return {
        "what": what,
        "colors": " ".join(hexadecimal(color) for color, *_ in colors),
        "meanings": [meaning for _, meaning, *_ in colors],
        "letters": "".join((letter or [" "])[0] for _, _, *letter in colors),
        "legend": " ".join(map(str, used)),
        "panels": [vars(panel) for panel in panels],
        "steps": [_step(scene, step) for step in steps],
    }


def _step(scene: Scene, step: Step) -> dict[str, object]:
    lines = [f"{n:4}  {text}" for n in step.lines[:LINES] if (text := scene.raw_text_of(n))]
    return {
        "name": step.name,
        "said": step.said,
        "cells": [_runs(cells) for cells in step.cells],
        "links": " ".join(":".join(map(str, link)) for link in step.links),
        "code": "\n".join(lines),
    }


def _runs(cells: np.ndarray) -> str:
    """Cells alike as one word: "0*12 3 0*3"."""
    runs = ((value, len(list(same))) for value, same in groupby(cells.tolist()))
    return " ".join(f"{value}*{count}" if count > 1 else str(value) for value, count in runs)
