"""How our JupyterLab saves the workbook's notebooks: git sees what the learner wrote, nothing else.

JupyterLab adds the versions of Python to a notebook when it is opened, and keeps outputs in it. So
each notebook of the workbook is written in the canonical form, which is that of git, and the
outputs of the learner's own beside it, to build/outputs/, where they are found when it is opened
again. So nobody needs a filter in git's configuration, and `git diff` shows work. Other notebooks
are saved as everywhere.
"""

import json
from pathlib import Path
from typing import Any

import nbformat
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager

from utils.course import catalog
from utils.ground import files
from utils.ground.paths import workspace
from utils.notebooks import documents


class WorkbookFiles(AsyncLargeFileManager):
    """The files that JupyterLab shows; `workbook lab` starts it with this one."""

    def run_pre_save_hooks(self, model: dict[str, Any], path: str, **kwargs: Any) -> None:
        """As documented in Jupyter: called first of all with what is to be saved."""
        if model.get("type") == "notebook" and _ours(Path(self._get_os_path(path))):
            notebook = nbformat.from_dict(model["content"])
            model["content"] = _canonical(notebook)
        super().run_pre_save_hooks(model=model, path=path, **kwargs)

    async def _save_notebook(
        self, os_path: str, nb: nbformat.NotebookNode, capture_validation_error: Any = None
    ) -> None:
        path = Path(os_path)
        if _ours(path) and path.parent.samefile(workspace().notebooks):
            _put_away(path, nb)
            nb = documents.canonical(nb)
        await super()._save_notebook(os_path, nb, capture_validation_error)

    async def _read_notebook(self, os_path: str, *args: Any, **kwargs: Any) -> Any:
        read = await super()._read_notebook(os_path, *args, **kwargs)
        path = Path(os_path)
        if _ours(path) and path.parent.samefile(workspace().notebooks):
            _bring_back(path, read[0] if isinstance(read, tuple) else read)
        return read


def _ours(path: Path) -> bool:
    """Whether it is one of the workbook's notebooks, the learner's or an executed copy."""
    home = path.parent.resolve()
    folders = [workspace().notebooks.resolve(), workspace().solutions.resolve()]
    first = (workspace().kernels / path.stem / "spec.py").is_file()
    later = catalog.topic_of(path.stem) and (workspace().solutions / path.name).is_file()
    return home in folders and bool(first or later)


def _canonical(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """With outputs, and with what Jupyter notes of their trust until it has signed them."""
    saved = documents.canonical(notebook, outputs=True)
    for before, cell in zip(notebook.cells, saved.cells, strict=True):
        if "trusted" in before.metadata:
            cell.metadata["trusted"] = before.metadata["trusted"]
    return saved


def _home(path: Path) -> Path:
    return workspace().build / "outputs" / f"{path.stem}.json"


def _put_away(path: Path, notebook: nbformat.NotebookNode) -> None:
    """Write the outputs to their own file, each with the text that it is of."""
    cells = {
        cell.id: {key: cell[key] for key in ("source", "outputs", "execution_count")}
        for cell in notebook.cells
        if cell.cell_type == "code" and (cell.outputs or cell.execution_count)
    }
    files.write_text(_home(path), json.dumps(cells))


def _bring_back(path: Path, notebook: nbformat.NotebookNode) -> None:
    """Put the outputs into the cells that still have the text they are of."""
    try:
        kept = json.loads(_home(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    for cell in notebook.cells:
        saved = kept.get(cell.id, {})
        if cell.cell_type == "code" and saved.get("source") == cell.source:
            cell.outputs = nbformat.from_dict(saved["outputs"])
            cell.execution_count = saved["execution_count"]
