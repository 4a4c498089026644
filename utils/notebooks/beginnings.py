"""A kernel in which somebody begins in the middle of a notebook: nothing is missing that need be,
and what is missing is told in one sentence.

`workbook lab` has each kernel begin with prepare(), which takes no time: `%%cuda` loads the
workbook when a cell has it, and `check` and its like when they are called.
"""

import functools
import json
import re
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

import utils
from utils.ground.paths import workspace
from utils.notebooks import cuda_cell

FUNCTIONS = ("check", "bench", "draw", "diagnose", "trace", "profile", "hint", "reset")
ABOVE = "In JupyterLab: Run menu, Run All Above Selected Cell"


def prepare(ipython: InteractiveShell) -> None:
    """Make a kernel know `%%cuda` and the workbook's functions, and explain what it lacks."""

    def cuda(line: str, cell: str) -> None:
        utils.load_ipython_extension(ipython)  # which puts the real one in this one's place
        ipython.run_cell_magic("cuda", line, cell)

    cuda.__doc__ = "Load the workbook, and compile the cell."
    ipython.register_magic_function(cuda, "cell", "cuda")  # type: ignore[arg-type]
    bind(ipython)
    ipython.set_custom_exc((NameError,), explain)


def bind(ipython: InteractiveShell) -> None:
    """Bind the workbook's functions where a notebook has bound nothing else, and take comments
    above `%%cuda` away."""
    for name in FUNCTIONS:
        ipython.user_ns.setdefault(name, _later(name))
    if cuda_cell.without_comments not in ipython.input_transformers_cleanup:
        ipython.input_transformers_cleanup.insert(0, cuda_cell.without_comments)


def _later(name: str) -> Callable[..., Any]:
    """A function of the workbook that is imported when it is called."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return getattr(utils, name)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"See `from utils import {name}`."
    return function


def explain(
    shell: InteractiveShell,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> list[str]:
    """IPython's traceback of a NameError in a cell, with the sentence that says what to run."""
    lines = shell.InteractiveTB.structured_traceback(kind, error, trace, tb_offset=tb_offset)
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(trace)]
    name = getattr(error, "name", None) or ""
    if frames and frames[-1] in shell.compile._filename_map and (advice := missing(name)):
        lines = [*lines, advice]
    shell._showtraceback(kind, error, lines)
    return list(lines)


def missing(name: str) -> str:
    """What to do where a name is not bound, in a sentence; "" for a name of the reader's own."""
    from utils.course import catalog

    for exercise in catalog.exercises():
        if exercise.name == name:
            word = exercise.number or exercise.id
            early = f"; hint('{word}') and reset('{word}') work before that, too"
            return f"Run the cell that begins with '%%cuda {exercise.id}' first" + (
                f"{early}." if exercise.number else "."
            )
    if re.search(rf"^(?:from|import) .*\b{re.escape(name)}\b", _code(), re.MULTILINE):
        return f"The notebook's first cell imports {name}: run that first. {ABOVE}."
    bound = rf"^(?:[\w, ]*\b{re.escape(name)}\b[\w, ]* =|(?:def|class) {re.escape(name)}\b)"
    if name and re.search(bound, _code(), re.MULTILINE):
        return f"A cell further up makes {name}: run that first. {ABOVE}."
    return ""


@functools.cache
def _code() -> str:
    """The Python of all the workbook's notebooks."""
    sources = []
    for path in sorted(workspace().notebooks.glob("*.ipynb")):
        try:
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
            code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # a notebook that is being written
        sources += [source for source in code if cuda_cell.parts(source) is None]
    return "\n".join(sources)
