"""A JupyterLab on a copy of the workbook, as `workbook lab` starts it, and a browser."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from utils.ground import paths
from utils.ground.paths import ROOT

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
SLOW = 40_000  # milliseconds that a busy machine may take


def copy_of_the_workbook(folder: Path) -> Path:
    """What a learner clones, with a git repository of its own, without tests."""

    def git(*words: str) -> str:
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words]
        return subprocess.run(
            command, cwd=folder, check=True, capture_output=True, text=True
        ).stdout

    for name in ("utils", "kernels", "notebooks", "solutions", "results"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / ".gitignore", folder)
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "as given")
    return folder


def changed(folder: Path) -> list[str]:
    """What git says has changed."""
    command = ["git", "status", "--porcelain"]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return [line[3:] for line in done.stdout.splitlines()]


@contextmanager
def serve(folder: Path):
    """The address of `workbook lab` in a folder that holds the workbook."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "utils.cli", "lab", "--", "--no-browser", f"--port={port}"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "JUPYTER_CONFIG_DIR": str(folder / "build/config"),
        "JUPYTER_DATA_DIR": str(folder / "build/data"),
        "WORKBOOK_CACHE": str(paths.cache()),
        "WORKBOOK_BACKEND": "emulator",
        "WORKBOOK_SOLUTIONS": "",
    }
    (folder / "build").mkdir(exist_ok=True)
    with open(folder / "build/lab.log", "w") as log:
        server = subprocess.Popen(
            [*command, "--IdentityProvider.token="],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=log,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(480):
            try:
                urllib.request.urlopen(f"{address}/api")
                break
            except urllib.error.URLError:
                time.sleep(0.25)
        yield address
    finally:
        server.terminate()
        server.wait(30)


@contextmanager
def browser():
    """Chromium."""
    from playwright import sync_api

    with sync_api.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()
