"""Where things live."""

import os
from dataclasses import dataclass
from pathlib import Path

from utils.ground import settings

ROOT = Path(__file__).resolve().parents[2]  # of the checkout that this code is in


@dataclass(frozen=True)
class Workspace:
    """The folders of a workbook: of this checkout, or of another that tests or a grader lay out."""

    root: Path
    kernels: Path
    include: Path  # headers that CUDA cells may include
    solutions: Path
    notebooks: Path
    results: Path
    mutants: Path
    build: Path

    @classmethod
    def of(cls, root: Path) -> "Workspace":
        """With each folder where the checkout has it."""
        names = {name: root / name for name in ("solutions", "notebooks", "results", "build")}
        kernels, mutants = root / "kernels", root / "tests/mutants"
        return cls(root, kernels=kernels, include=kernels / "include", mutants=mutants, **names)

    @property
    def readme(self) -> Path:
        """The file that holds the table of results."""
        return self.root / "README.md"


_workspace = Workspace.of(ROOT)


def workspace() -> Workspace:
    """The one that everything works on."""
    return _workspace


def cache() -> Path:
    """Folder for compiled kernels; `WORKBOOK_CACHE` moves it."""
    folder = settings.cache() or workspace().build / "cache"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def environment(**extra: str) -> dict[str, str]:
    """The environment of a notebook's process; `utils` is found without an installation too."""
    search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": search, **extra}
