"""The switches in the environment: twelve variables, read here and nowhere else.

WORKBOOK_BACKEND    "cuda" or "emulator"; else what this machine has
WORKBOOK_CACHE      folder of compiled kernels; else build/cache
WORKBOOK_SOLUTIONS  `%%cuda` cells compile the solutions in place of their own text
WORKBOOK_LOG        file to which `check` and `bench` append what they found
WORKBOOK_PASSED     folder of what was passed; else build/passed
WORKBOOK_RESULTS    file to which `bench` adds what it measured
WORKBOOK_RESTED     `bench` times single calls, and none back to back
WORKBOOK_BOX        compilers and kernels are put into a box: see process/sandbox.py
WORKBOOK_SEED       what `check` draws from; else another draw each time
WORKBOOK_ROUNDS     how often `check` draws sizes that nobody knows, else once; more than once:
                    gates are read at edges in any case
WORKBOOK_GPU        whose stored figures `bench` shows without a GPU; else those with the most
WORKBOOK_COMMIT     the commit that figures are of, where there is no .git
"""

import os
from pathlib import Path

from utils.ground.errors import ToolError


def backend() -> str:
    """`cuda` where PyTorch sees a GPU, else `emulator`, unless one is forced. Raises ToolError."""
    forced = os.environ.get("WORKBOOK_BACKEND", "")
    if forced not in ("", "cuda", "emulator"):
        raise ToolError(f"WORKBOOK_BACKEND is '{forced}'; it can be 'cuda' or 'emulator'")
    if forced:
        return forced
    import torch  # takes a second: only where it has to be asked

    return "cuda" if torch.cuda.is_available() else "emulator"


def device() -> str:
    """Where tensors must be for kernels of this backend: `cuda` or `cpu`."""
    return "cuda" if backend() == "cuda" else "cpu"


def use_solutions() -> bool:
    """Whether WORKBOOK_SOLUTIONS is on."""
    return os.environ.get("WORKBOOK_SOLUTIONS", "") not in ("", "0")


def boxed() -> bool:
    """Whether WORKBOOK_BOX is on."""
    return os.environ.get("WORKBOOK_BOX", "") not in ("", "0")


def seed() -> str:
    """WORKBOOK_SEED, or "" where it is not set."""
    return os.environ.get("WORKBOOK_SEED", "")


def rounds() -> int:
    """WORKBOOK_ROUNDS, or 1 where it is not set. Raises ToolError."""
    text = os.environ.get("WORKBOOK_ROUNDS", "") or "1"
    if not text.isdecimal() or not 1 <= int(text) <= MOST_ROUNDS:
        raise ToolError(f"WORKBOOK_ROUNDS is '{text}'; it can be 1 to {MOST_ROUNDS}")
    return int(text)


MOST_ROUNDS = 100


def cache() -> Path | None:
    """The folder of WORKBOOK_CACHE, where it is set."""
    return _path("WORKBOOK_CACHE")


def log() -> Path | None:
    """The file of WORKBOOK_LOG, where it is set."""
    return _path("WORKBOOK_LOG")


def passed() -> Path | None:
    """The folder of WORKBOOK_PASSED, where it is set."""
    return _path("WORKBOOK_PASSED")


def results() -> Path | None:
    """The file of WORKBOOK_RESULTS, where it is set."""
    return _path("WORKBOOK_RESULTS")


def rested() -> bool:
    """Whether WORKBOOK_RESTED is on."""
    return os.environ.get("WORKBOOK_RESTED", "") not in ("", "0")


def gpu() -> str:
    """WORKBOOK_GPU, such as "NVIDIA H200", or "" where it is not set."""
    return os.environ.get("WORKBOOK_GPU", "")


def commit() -> str:
    """WORKBOOK_COMMIT, or "" where it is not set."""
    return os.environ.get("WORKBOOK_COMMIT", "")


def _path(name: str) -> Path | None:
    return Path(value) if (value := os.environ.get(name)) else None
