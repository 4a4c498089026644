"""`workbook sync` and `reset`: one source for every exercise, and never a learner's line lost.

solutions/NN/name.cu -> kernels/NN/name.cu (starter) -> the `%%cuda` cell of the notebook, and the
folds with hints and solution. Each cell that sync writes carries the hash of its text in
`metadata.workbook.sha`: a cell whose text has another hash is the learner's, and stays.
"""

import hashlib
import re
import time
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode

from utils.course import catalog, markup, model_files, selection
from utils.course.exercise import Exercise
from utils.emulator.translate.tokens import tokenize
from utils.ground import files
from utils.ground.errors import WorkbookError
from utils.ground.paths import workspace
from utils.notebooks import documents, readme

RESULTS_BEGIN, RESULTS_END = "<!-- results -->", "<!-- /results -->"
FOLDS = ("hints", "solution")


@dataclass
class Synced:
    """What a sync found: files it wrote (or would write), cells it left alone, and mistakes."""

    changed: list[str] = field(default_factory=list)
    learners: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def write(self, path: Path, text: str, check: bool) -> None:
        """Note that `path` is out of step where its text is another; write it unless checking."""
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            self.changed.append(path.relative_to(workspace().root).as_posix())
            if not check:
                files.write_text(path, text)


def sha(text: str) -> str:
    """By which sync knows a text that it wrote again."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def starter_of(exercise: Exercise) -> str:
    """The text a learner starts from; a worked kernel has its only source in `kernels/`."""
    if exercise.number is None:
        return catalog.starter_text(exercise)
    return markup.starter(catalog.solution_path(exercise).read_text())


def cell_source(exercise: Exercise) -> str:
    """The text of an exercise's cell as it is given to the learner."""
    return f"{documents.MAGIC} {exercise.id}\n{starter_of(exercise)}".rstrip("\n")


def _fold(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def fold_source(kind: str, exercise: Exercise) -> str:
    """The markdown of an exercise's hints (one fold each) or of its solution."""
    if kind == "solution":
        text = catalog.solution_text(exercise).strip("\n")
        return _fold("Solution", f"```cuda\n{text}\n```")
    folds = (_fold(f"Hint {n}", hint.strip()) for n, hint in enumerate(catalog.hints(exercise), 1))
    return "\n".join(folds)


def generated(cell: NotebookNode) -> tuple[str, str] | None:
    """The id and kind ("cell", "hints", "solution") of a cell that sync writes."""
    id = documents.cuda_id(cell)
    if id and "/" in id:
        return id, "cell"
    mark = cell.metadata.get("workbook", {})
    if cell.cell_type == "markdown" and mark.get("fold") in FOLDS and "id" in mark:
        return mark["id"], mark["fold"]
    return None


def kinds(exercise: Exercise) -> list[str]:
    """The kinds of cells that an exercise has in its notebook."""
    solved, hinted = exercise.number is not None, bool(catalog.hints(exercise))
    return ["cell", *["solution"] * solved, *["hints"] * hinted]


def _is_ours(cell: NotebookNode, new: str) -> bool:
    """Whether a cell's text is empty, or one that sync wrote: it may be replaced."""
    text = documents.cuda_text(cell) if cell.cell_type == "code" else cell.source
    written = cell.metadata.get("workbook", {}).get("sha")
    return not text.strip() or cell.source == new or sha(cell.source) == written


def _sync_notebook(path: Path, report: Synced, check: bool) -> None:
    notebook = documents.read(path)
    seen = set()
    learners = []
    for cell in notebook.cells:
        target = generated(cell)
        if target is None:
            continue
        id, kind = target
        try:
            exercise = catalog.load(id)
            new = cell_source(exercise) if kind == "cell" else fold_source(kind, exercise)
        except (WorkbookError, OSError) as error:
            report.problems.append(f"{path.name}: {kind} of '{id}': {error}")
            continue
        if target in seen:
            report.problems.append(f"{path.name}: the {kind} of '{id}' stands there twice")
        seen.add(target)
        if not _is_ours(cell, new):
            learners.append(f"{path.name}: {kind} of '{id}'")
            continue
        cell.source = new
        cell.metadata.setdefault("workbook", {})["sha"] = sha(new)
    report.problems += _missing(path.stem, seen)
    report.learners += learners
    # Where a learner has worked, outputs are kept too.
    report.write(path, documents.to_text(documents.canonical(notebook, bool(learners))), check)
    if not learners:
        _sync_copy(workspace().solutions / path.name, documents.canonical(notebook), report, check)


def _sync_copy(path: Path, notebook: NotebookNode, report: Synced, check: bool) -> None:
    """Bring the prose and comments of an executed copy in step; its code must be what the notebook
    has now."""
    if not path.is_file():
        return
    ran = {cell.id: cell for cell in documents.read(path).cells}
    try:
        documents.solve(notebook)
    except (WorkbookError, OSError):
        return  # a cell of no exercise: reported already
    for number, cell in enumerate(notebook.cells, 1):
        if cell.cell_type != "code":
            continue
        before = ran.get(cell.id)
        if before is None or not _same_program(before, cell):
            report.problems.append(
                f"solutions/{path.name} is of an older cell {number}: run "
                f"`workbook run {path.stem[:2]} --solutions --save` anew, on a GPU if you have one"
            )
            return
        cell.outputs, cell.execution_count = before.outputs, before.execution_count
    report.write(path, documents.to_text(documents.canonical(notebook, outputs=True)), check)


def _same_program(before: NotebookNode, now: NotebookNode) -> bool:
    """Whether the outputs of one cell are those of the other: both run the same code."""
    if before.source == now.source:
        return True
    cuda = documents.cuda_id(before) and documents.cuda_id(now)
    return bool(cuda) and _lines_of_code(before.source) == _lines_of_code(now.source)


def _lines_of_code(text: str) -> list[str]:
    """The lines of CUDA C++, with "" for each that has nothing but comment.

    Outputs name lines by number and show them with the comment behind their code, unless it is
    empty. What a cell says of a fault is judged, and so it counts as code.
    """
    text, code = markup.without_breaks(text), set[int]()
    for kind, token, start in tokenize(text):
        if kind != "space" and (kind != "comment" or re.match(r"//[ \t]*fault:", token)):
            first = text.count("\n", 0, start)
            code.update(range(first, first + token.count("\n") + 1))
    return [line if number in code else "" for number, line in enumerate(text.split("\n"))]


def _missing(name: str, seen: set[tuple[str, str]]) -> list[str]:
    """What the spec says of a notebook and the notebook lacks."""
    return [
        f"{name}.ipynb has no {kind} of '{exercise.id}'"
        for exercise in catalog.in_notebook(name)
        for kind in kinds(exercise)
        if (exercise.id, kind) not in seen
    ]


def _sync_starters(report: Synced, check: bool) -> None:
    for topic in catalog.topics():
        known = catalog.topic(topic)
        for exercise in known.values():
            try:
                text = starter_of(exercise)
            except OSError as error:
                report.problems.append(f"'{exercise.id}': {error.filename} does not exist")
                continue
            path = catalog.kernel_path(exercise)
            if not check and path.exists() and path.read_text() != text:
                keep(path.read_text(), exercise.name)  # nobody edits a copy; if somebody did, …
            report.write(path, text, check)
        kernels, solutions = workspace().kernels / topic, workspace().solutions / topic
        for folder, ending in ((kernels, "cu"), (kernels, "md"), (solutions, "cu")):
            for path in sorted(folder.glob(f"*.{ending}")):
                if path.stem not in known:
                    name = path.relative_to(workspace().root)
                    report.problems.append(f"{name} is in no spec")
    for notebook in catalog.notebooks():
        if not documents.notebook_of(notebook).is_file():
            report.problems.append(f"'{notebook}' has a spec and no notebook")


def _sync_readme(report: Synced, check: bool) -> None:
    """Put the table of measured results between the README's markers, and all on their page."""
    text = workspace().readme.read_text(encoding="utf-8")
    head, begin, rest = text.partition(RESULTS_BEGIN)
    _, end, tail = rest.partition(RESULTS_END)
    if not (begin and end):
        report.problems.append(f"README.md has no {RESULTS_BEGIN} … {RESULTS_END}")
        return
    table = readme.readme_table().strip()
    report.write(workspace().readme, f"{head}{begin}\n{table}\n{end}{tail}", check)
    report.write(workspace().results / "README.md", readme.page(), check)


def _sync_picture(report: Synced, check: bool) -> None:
    """Draw the README's picture anew where the figures are no longer those it shows."""
    path = workspace().results / "ladder.svg"
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if not readme.in_step(before) and (picture := readme.picture()):
        report.write(path, picture, check)


def sync(check: bool = False) -> Synced:
    """Bring starters, notebooks and README in step with their sources; `check` writes nothing."""
    report = Synced()
    _sync_starters(report, check)
    for path in selection.notebooks():
        _sync_notebook(path, report, check)
    for path, text in model_files.texts():
        report.write(path, text, check)
    _sync_readme(report, check)
    _sync_picture(report, check)
    return report


def keep(text: str, name: str) -> Path:
    """Put a learner's text away in build/kept, under a name that nothing has yet."""
    folder = workspace().build / "kept"
    folder.mkdir(parents=True, exist_ok=True)
    stamp, n = time.strftime("%Y%m%d-%H%M%S"), 1
    while True:
        path = folder / f"{stamp}{f'-{n}' if n > 1 else ''}-{name}.cu"
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            return path
        except FileExistsError:
            n += 1


def reset(exercise: Exercise) -> Path | None:
    """Restore the starter in the learner's notebook. Returns where the replaced text is kept, or
    None where the cell was untouched."""
    path = documents.path_of(exercise)
    notebook = documents.read(path)
    cell = documents.cuda_cells(notebook).get(exercise.id)
    if cell is None:
        raise WorkbookError(f"{path} has no cell that begins with '%%cuda {exercise.id}'")
    new = cell_source(exercise)
    if cell.source == new:
        return None
    kept = keep(documents.cuda_text(cell), exercise.name)
    cell.source, cell.outputs, cell.execution_count = new, [], None
    cell.metadata.setdefault("workbook", {})["sha"] = sha(new)
    files.write_text(path, documents.to_text(notebook))
    return kept
