"""`workbook lab` without a browser: how it is started, and what it saves of a notebook."""

import asyncio
import json
import os
import shutil
import subprocess
import sys

import pytest
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_output
from support.pairs import ID

from utils.ground.paths import ROOT
from utils.notebooks import documents, lab, learner, sync
from utils.notebooks.contents import WorkbookFiles

PATH = "notebooks/01_pairs.ipynb"
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg"/>'


@pytest.fixture
def jupyter(root):
    """JupyterLab's file manager on a workbook that is in step: open(path), save(path, notebook)."""
    assert not sync.sync().problems

    class Jupyter:
        files = WorkbookFiles(
            root_dir=str(root), notary=NotebookNotary(db_file=":memory:", secret=b"of a test")
        )

        def open(self, path):
            return asyncio.run(self.files.get(path))["content"]

        def save(self, path, notebook):
            model = {"type": "notebook", "format": "json", "content": notebook}
            asyncio.run(self.files.save(model, path))

    return Jupyter()


def run_all(notebook):
    """What JupyterLab makes of a notebook when it is opened and all is run."""
    notebook.metadata.language_info = {"name": "python", "version": "3.99"}
    for number, cell in enumerate(notebook.cells):
        cell.metadata["scrolled"] = True
        if cell.cell_type == "code":
            cell.metadata["trusted"] = True
            cell.execution_count = number
            cell.outputs = [new_output("display_data", {"image/svg+xml": PICTURE})]
    return notebook


def test_running_and_saving_leaves_the_file_and_what_was_shown_returns(root, jupyter):
    before = (root / PATH).read_bytes()
    jupyter.save(PATH, run_all(jupyter.open(PATH)))
    assert (root / PATH).read_bytes() == before
    assert sync.sync(check=True) == sync.Synced()
    again = jupyter.open(PATH)
    assert again.cells[-1].outputs[0].data["image/svg+xml"] == PICTURE
    assert again.cells[-1].execution_count == 5
    assert again.cells[-1].metadata.trusted, "or JupyterLab would not show the picture"


def test_only_a_learners_own_cell_changes_the_file(root, jupyter):
    notebook = run_all(jupyter.open(PATH))
    notebook.cells[2].source = f"%%cuda {ID}\nmy own"
    before = (root / PATH).read_text().splitlines()
    jupyter.save(PATH, notebook)
    after = (root / PATH).read_text().splitlines()
    changed = [line for line in after if line not in before]
    assert [line.strip() for line in changed] == ['"my own"']
    assert jupyter.open(PATH).cells[2].outputs


def test_outputs_of_another_text_do_not_return(root, jupyter):
    jupyter.save(PATH, run_all(jupyter.open(PATH)))
    text = (root / PATH).read_text()
    (root / PATH).write_text(text.replace("print(1)", "print(2)"))  # as git may
    cells = jupyter.open(PATH).cells
    assert cells[-1].source == "print(2)" and not cells[-1].outputs
    assert cells[1].outputs


def test_an_executed_copy_that_is_only_looked_at_stays_as_it_is(root, jupyter):
    path = root / "solutions/01_pairs.ipynb"
    ran = documents.canonical(run_all(documents.read(root / PATH)), outputs=True)
    path.write_text(documents.to_text(ran))
    before = path.read_bytes()
    notebook = jupyter.open("solutions/01_pairs.ipynb")
    notebook.metadata.language_info = {"name": "python", "version": "3.99"}
    jupyter.save("solutions/01_pairs.ipynb", notebook)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["scratch", "01_pairs_mine"])
def test_a_notebook_of_ones_own_is_saved_as_everywhere(root, jupyter, name):
    path = f"notebooks/{name}.ipynb"
    shutil.copy(root / PATH, root / path)
    jupyter.save(path, run_all(jupyter.open(path)))
    text = (root / path).read_text()
    assert "3.99" in text and "<svg" in text


def test_the_second_notebook_of_a_topic_is_saved_as_the_first(root, jupyter):
    path = "notebooks/01_pairs_more.ipynb"
    shutil.copy(root / PATH, root / path)
    shutil.copy(root / PATH, root / "solutions/01_pairs_more.ipynb")
    before = (root / path).read_bytes()
    jupyter.save(path, run_all(jupyter.open(path)))
    assert (root / path).read_bytes() == before


def test_jupyterlab_finds_workbook_and_lets_root_in(monkeypatch):
    search = lab.variables()["PATH"]
    assert search.split(os.pathsep)[0] == os.path.dirname(sys.executable)
    for user, allowed in ((0, True), (1000, False)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        assert ("--allow-root" in lab.command()) == allowed
    assert lab.command(["--port=1"])[-1] == "--port=1", "what the caller says comes last, and wins"


def test_make_lab_takes_options():
    call = ["make", "-n", "lab", "OPTIONS=--port=9999", "STAMP="]
    assert (
        "workbook lab -- --port=9999"
        in subprocess.run(call, cwd=ROOT, capture_output=True, text=True).stdout
    )


def test_jupyterlab_finds_the_files_it_is_told_to_load():
    extension = lab.EXTENSION / "workbook-cuda"
    build = json.loads((extension / "package.json").read_text())["jupyterlab"]["_build"]
    script = (extension / build["load"]).read_text()
    assert 'window._JUPYTERLAB["workbook-cuda"] = ' in script
    assert f'"{learner.RESET}"' in script, "what reset() asks for is what the extension does"


def test_jupyterlab_starts_without_pytorch():
    """It would cost two seconds before the first cell, and 200 MB."""
    names = "sys, utils.notebooks.lab, utils.notebooks.contents"
    code = f"import {names}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "False\n"
