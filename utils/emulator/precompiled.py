"""`cuda_runtime.h`, parsed once: reading it is most of the time of a small kernel's build.

g++ takes `cuda_runtime.h.gch` from a folder on its search path if it fits the flags, and passes it
over if not. So a build never depends on it.
"""

import os
import subprocess
import tempfile
from pathlib import Path

from utils import emulator
from utils.paths import cache

_HEADER = "cuda_runtime.h"


def folder(instrumented: bool) -> Path:
    """Where the header for the plain or the instrumented build is, or would be."""
    return cache() / f"emulator-{emulator.digest()}" / ("instrumented" if instrumented else "plain")


def build() -> None:
    """Make what is missing of both. Failing to is no error: builds are only slower."""
    for instrumented in (False, True):
        path = folder(instrumented) / f"{_HEADER}.gch"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        header = emulator.include_dir() / _HEADER
        with tempfile.TemporaryDirectory(dir=path.parent.parent) as work:
            made = Path(work) / path.name
            command = [emulator.compiler(), *emulator.compile_flags(instrumented)]
            command += ["-x", "c++-header", str(header), "-o", str(made)]
            if subprocess.run(command, capture_output=True).returncode == 0:
                os.replace(made, path)
