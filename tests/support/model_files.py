"""The model files of tests/models: cheats, honest ones, and cheats against the clock."""

from pathlib import Path

from utils.ground.paths import ROOT

FILES = ROOT / "tests/models"
NO_HEAD = {"no_kernel_at_all"}  # what compiles nothing


def head() -> str:
    """What the files share: an honest model, and kernels to cheat with."""
    return (FILES / "head.py").read_text().replace("@CUDA@", (FILES / "kernels.cu").read_text())


def text_of(path: Path) -> str:
    """A whole file."""
    whole = head()
    if path.stem in NO_HEAD:
        whole = whole.partition("ext = load_inline")[0] + whole.partition("FUNCTIONS)\n")[2]
    return whole + "\n\n" + path.read_text()


def of(kind: str) -> list[Path]:
    """The files of a kind: cheats, honest or timed."""
    return sorted((FILES / kind).glob("*.py"))


def reasons(path: Path) -> list[str]:
    """What a file is rejected for: one of these; none where it passes."""
    first = path.read_text().partition("\n")[0]
    return first.partition(": ")[2].split(", ") if "rejected" in first else []


def for_a_card(path: Path) -> bool:
    """Whether it takes a card to find out."""
    return "on a card" in path.read_text().partition("\n")[0]
