"""A link in a notebook leads somewhere: to a file, and to a heading where it names one."""

import re
from pathlib import Path

import pytest

from utils.ground.paths import ROOT, workspace
from utils.notebooks import documents

LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
CODE = re.compile(r"```.*?```", re.DOTALL)
PAGES = sorted(workspace().notebooks.glob("*.ipynb"))


def prose(notebook: Path) -> str:
    """The Markdown of a notebook, without its listings."""
    cells = (cell for cell in documents.read(notebook).cells if cell.cell_type == "markdown")
    return CODE.sub("", "\n\n".join(cell.source for cell in cells))


def headings(notebook: Path) -> set[str]:
    """What a link can name in a notebook: JupyterLab puts a hyphen for each space of a heading."""
    return {heading.strip().replace(" ", "-") for heading in HEADING.findall(prose(notebook))}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_link_of_a_notebook_leads_somewhere(page):
    astray = []
    for name, heading in LINK.findall(prose(page)):
        target = page.parent / name if name else page
        if not target.exists() or (heading and heading not in headings(target)):
            astray.append(f"{name}#{heading}")
    assert astray == []


def test_the_page_on_cpp_is_in_the_form_that_git_holds():
    path = ROOT / "notebooks/cpp.ipynb"
    assert path.read_text(encoding="utf-8") == documents.to_text(
        documents.canonical(documents.read(path))
    )
