"""The workbook's Python is typed: mypy, strict, objects to nothing in the rooms that are clean."""

import os
import subprocess
import sys

import pytest

from utils.ground.paths import ROOT

pytest.importorskip("mypy")
ROOMS = "grading notebooks timing diagrams course watch cuda process emulator ground".split()
DOORS = "cli.py magics.py doctor.py __init__.py".split()


def test_mypy_objects_to_nothing(tmp_path):
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path)]
    command += ["--follow-imports", "silent", *(f"utils/{room}" for room in ROOMS + DOORS)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
