"""`workbook new 04.8 row_softmax`: the files of an exercise that passes nothing yet.

All of them are written, or none; what is there already is never overwritten, only extended: the
spec by an entry, the notebook by cells.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from utils.course import catalog, markup, mutants, selection, spec_text
from utils.course.exercise import At, Exercise
from utils.ground import files
from utils.ground.errors import WorkbookError
from utils.ground.paths import workspace
from utils.notebooks import documents, sync

CPP = frozenset(
    """
    alignas alignof and asm auto bitand bitor bool break case catch char class compl concept
    const continue default delete do double else enum explicit export extern false float for
    friend goto if inline int long main mutable namespace new noexcept not nullptr operator or
    private protected public register requires return short signed sizeof static struct switch
    template this throw true try typedef typeid typename union unsigned using virtual void
    volatile while xor
    """.split()
)
TITLE = 75  # characters of a title that fit on a spec's line

ENTRY = """\
    Exercise(
        number="{number}",
        name="{name}",
        title={title},
        shapes={{"x": "n", "out": "n"}},  # the launcher's tensors
        outputs=("out",),
        reference=lambda x: x,  # the same in PyTorch, of tensors, scalars and sizes by name
        at=At(
            check=({{"n": 1}}, {{"n": 31}}, {{"n": 256}}, {{"n": 1000}}),
            card=({{"n": 10_000_019}},),
            bench={{"n": 1 << 27}},
            draw={{"n": 300}},
            gates={{"n": 1024}},
            drawn=({{"n": (66_000, 100_000)}},),
        ),
        flops=lambda n: n,  # operations, from the sizes by name
        peers={{"PyTorch": lambda x: x.clone()}},
        library="PyTorch",
        gates=(),
        points=0,
        effort="",  # such as "about 4 lines"
{notebook}    ),
"""
SOLUTION = """\
constexpr int THREADS = 256;

// x, out: (n). out[i] = what becomes of x[i]
// One thread owns one element of out. One block owns THREADS neighbours.
__global__ void {name}_kernel(const float* x, float* out, int n) {{
    int i = blockIdx.x * THREADS + threadIdx.x;
    // BEGIN SOLUTION
    // END SOLUTION
}}

void {name}(const float* x, float* out, int n) {{
    {name}_kernel<<<(n + THREADS - 1) / THREADS, THREADS>>>(x, out, n);
}}
"""
HINTS = "## Hint 1\n\n## Hint 2\n\n## Hint 3\n"
MUTANTS = """\
# Wrong kernels that `check({name})` must reject: a name, the reason, and the lines of the solution
# that become others. A mutant, once the "# " in front of each of its lines is gone:
#
# == no_guard: out of bounds
# # the last block writes beyond the array
# -    if (i < n) out[i] = x[i];
# +    out[i] = x[i];
"""
TASK = """\
### Exercise {number}: `{name}`

{title}.

**Your task:**"""


def make(number: str, name: str, title: str) -> list[Path]:
    """Write the files of an exercise, and bring its notebook in step. Returns what was written.

    Raises WorkbookError where the number, the name or a file is taken, or has no chapter.
    """
    exercise = _exercise(number, name, title)
    words = {"number": number, "name": name, "title": title}
    solution = SOLUTION.format(**words)
    fresh = {
        catalog.solution_path(exercise): solution,
        catalog.kernel_path(exercise): markup.starter(solution),
        catalog.hints_path(exercise): HINTS,
        mutants.path_of(exercise): MUTANTS.format(**words),
    }
    for path in fresh:
        if path.exists():
            raise WorkbookError(f"{path} is there already; choose another name, or take it away")
    spec, notebook = workspace().kernels / exercise.topic / "spec.py", documents.path_of(exercise)
    later = exercise.notebook != exercise.topic
    home = f'        notebook="{exercise.notebook}",\n' if later else ""
    entry = ENTRY.format(**{**words, "title": _quoted(title), "notebook": home})
    texts = {
        spec: spec_text.extended(spec, entry),
        **fresh,
        notebook: documents.to_text(_with_cells(documents.read(notebook), exercise, words)),
    }
    _write_all(texts, exercise)
    return list(texts)


def _exercise(number: str, name: str, title: str) -> Exercise:
    """As far as it is known before it has a spec."""
    if not re.fullmatch(r"\d\d\.(0|[1-9]\d*)", number):
        raise WorkbookError(f"'{number}' is no number of an exercise; one is 04.8")
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,31}", name) or name in CPP:
        raise WorkbookError(
            f"'{name}' is no name of a launcher; one has up to 32 small letters, digits and '_', "
            "and is no word of C++"
        )
    if not title.strip() or len(title) > TITLE or not title.isprintable():
        raise WorkbookError(f"a title is one line of 1 to {TITLE} characters")
    (topic,) = selection.topics([number.partition(".")[0]])
    known = catalog.topic(topic)
    for other in known.values():
        if number == other.number:
            raise WorkbookError(f"{number} is '{other.name}' already; take another number")
        if name == other.name:
            raise WorkbookError(f"'{topic}' has a kernel '{name}' already; take another name")
    return Exercise(
        name=name,
        title=title,
        number=number,
        topic=topic,
        notebook=[topic, *(other.notebook for other in known.values())][-1],
        shapes={},
        outputs=(),
        reference=_unknown,
        at=At(check=(), bench={}),
        flops=_unknown,
    )


def _unknown(**sizes: int) -> NoReturn:
    raise NotImplementedError("the spec of a new exercise is its author's to write")


def _quoted(title: str) -> str:
    """As a string of Python, in the quotes that ruff prefers."""
    plain = '"' in title and "'" not in title
    return repr(title) if plain else json.dumps(title, ensure_ascii=False)


def _write_all(texts: Mapping[Path, str], exercise: Exercise) -> None:
    """Write all, then sync; where that fails, put everything back as it was."""
    before = {path: path.read_text() if path.exists() else None for path in texts}
    try:
        for path, text in texts.items():
            files.write_text(path, text)
        catalog.load(exercise.id)
        sync.sync()
    except BaseException:
        for path, earlier in before.items():
            if earlier is None:
                path.unlink(missing_ok=True)
            else:
                files.write_text(path, earlier)
        raise


# --- the notebook


def _with_cells(
    notebook: NotebookNode, exercise: Exercise, words: Mapping[str, str]
) -> NotebookNode:
    """The notebook with the cells of a new exercise at its end; sync fills them."""

    def fold(kind: str) -> NotebookNode:
        cell: NotebookNode = new_markdown_cell(
            metadata={"workbook": {"fold": kind, "id": exercise.id}}
        )
        return cell

    cells = [
        new_markdown_cell(TASK.format(**words)),
        new_code_cell(f"{documents.MAGIC} {exercise.id}"),
        fold("hints"),
        fold("solution"),
        new_code_cell(f"check({exercise.name})"),
    ]
    for number, cell in enumerate(cells, 1):
        cell["id"] = f"{exercise.name.replace('_', '-')}-{number}"
    notebook.cells += cells
    return notebook
