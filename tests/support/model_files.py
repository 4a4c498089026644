"""The model files of tests/models: cheats, honest ones, and cheats against the clock."""

import os
import re
import subprocess
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


MORE = """
torch::Tensor shared_tail(torch::Tensor y, torch::Tensor w, torch::Tensor b, torch::Tensor s,
                          int64_t groups, bool barriers);
void touch(torch::Tensor x, int64_t at, int64_t how, int64_t blocks);
torch::Tensor to_host(torch::Tensor x, int64_t how);
torch::Tensor in_cpp(torch::Tensor y, torch::Tensor w, torch::Tensor b, torch::Tensor s,
                     int64_t groups, int64_t how);
torch::Tensor one_pass(torch::Tensor y, torch::Tensor w, torch::Tensor b, torch::Tensor s,
                       int64_t groups);
torch::Tensor last_block(torch::Tensor x, bool fence);
torch::Tensor asks_a_lot(torch::Tensor y, torch::Tensor w, torch::Tensor b, torch::Tensor s,
                         int64_t groups);
torch::Tensor by_accessors(torch::Tensor x);
"""


def more_head() -> str:
    """The same with the kernels of more.cu, too."""
    cuda = (FILES / "more.cu").read_text()
    names = " ".join(re.findall(r"(\w+)\(", MORE))
    text = head().replace('"""\nCPP = """', f'{cuda}"""\nCPP = """{MORE}', 1)
    return text.replace('FUNCTIONS = "', f'FUNCTIONS = "{names} ', 1)


def parts(name: str) -> dict[str, tuple[list[str], str]]:
    """The files of a file of many: by name, what each is rejected for, and its whole text."""
    groups = {}
    for part in (FILES / name).read_text().split("\n# --- ")[1:]:
        title, _, text = part.partition("\n")
        stem, _, reasons = title.partition(": ")
        groups[stem] = (reasons.split(", ") if reasons else [], f"{more_head()}\n\n{text}")
    return groups


def share(name: str, of: int = 3) -> list[str]:
    """Names of files in a file of many: one in three, which ones follows from the commit. All where
    WORKBOOK_ALL_MODELS is set, in about four minutes."""
    names = list(parts(name))
    if os.environ.get("WORKBOOK_ALL_MODELS"):
        return names
    done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=ROOT)
    return names[int(done.stdout.strip() or "0", 16) % of :: of]
