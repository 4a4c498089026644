"""Where else the workbook is opened: the files say the same two commands."""

import json
import os
import subprocess

import pytest

from utils.ground.paths import ROOT

INSTALL, LAB = "pip install -e . -c constraints.txt", "workbook lab"


def test_everywhere_the_same_two_commands():
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    assert container["postCreateCommand"] == INSTALL
    assert container["postAttachCommand"].startswith(LAB)
    assert (
        "pip install --no-cache-dir -e . -c constraints.txt"
        in (ROOT / ".binder/postBuild").read_text()
    )
    assert f"`{INSTALL}`, then `{LAB}`" in (ROOT / ".devcontainer/README.md").read_text()
    assert ".devcontainer/README.md" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("words", [["jupyter", "notebook"], ["jupyter-lab"], []])
def test_binder_gets_our_jupyterlab_with_the_options_that_it_asks_for(tmp_path, words):
    fake = tmp_path / "workbook"
    fake.write_text('#!/bin/sh\necho "$@"\n')
    fake.chmod(0o755)
    command = [ROOT / ".binder/start", *words, "--ip=0.0.0.0", "--port=8888"]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "lab -- --ip=0.0.0.0 --port=8888\n"
    assert os.access(ROOT / ".binder/postBuild", os.X_OK)
