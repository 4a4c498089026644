"""Where things live, and the three switches in the environment."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KERNELS = ROOT / "kernels"
SOLUTIONS = ROOT / "solutions"
NOTEBOOKS = ROOT / "notebooks"
RESULTS = ROOT / "results"
BUILD = ROOT / "build"
INCLUDE = KERNELS / "include"
MUTANTS = ROOT / "tests" / "mutants"


def cache() -> Path:
    """Folder for compiled kernels; `WORKBOOK_CACHE` moves it."""
    folder = Path(os.environ.get("WORKBOOK_CACHE") or BUILD / "cache")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def use_solutions() -> bool:
    """Whether `%%cuda` cells compile `solutions/` in place of their own text."""
    return os.environ.get("WORKBOOK_SOLUTIONS", "") not in ("", "0")
