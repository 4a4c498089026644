"""The workbook's Python is typed: mypy, strict, objects to nothing."""

import os
import subprocess
import sys

import pytest

from utils.ground.paths import ROOT

pytest.importorskip("mypy")


def test_mypy_objects_to_nothing(tmp_path):
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), "utils"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
