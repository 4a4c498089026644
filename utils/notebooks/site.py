"""`workbook site`: the executed notebooks as pages to read, in build/site.

Sphinx builds them, with MyST-NB for the notebooks and Furo for their looks: links from notebook to
notebook become links from page to page and are checked, there is a search, and nothing is fetched
from another host. mkdocs-jupyter has nbconvert make its pages, whose links nobody checks; Jupyter
Book is these same three with more around them, and its newer version asks for node.
"""

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from pathlib import Path

import nbformat
from pygments.lexers import CudaLexer, PythonLexer
from pygments.token import Comment, _TokenType

from utils.ground import files
from utils.ground.errors import ToolError, WorkbookError
from utils.ground.paths import workspace
from utils.notebooks import documents, pictures
from utils.notebooks.lab import STATIC

# Of these pages alone. On a phone a table of the text has small cells, and a picture is enlarged by
# a touch: it links to itself.
CSS = """
details { margin: 1em 0 }
.highlight .nn { text-decoration: none !important }  /* a module's name is no link */
summary { cursor: pointer; padding: 0.3em 0 }
.cell_output pre { white-space: pre-wrap; overflow-wrap: break-word }
@media (prefers-color-scheme: dark) {
  body:not([data-theme="light"]) :is(.cell_output img, .workbook-choice svg) {
    filter: var(--workbook-dark) }
}
@media (min-width: 82em) {  /* beside the contents: room for a line of 100 characters of code */
  .content { width: 50em }
  article .highlight pre { font-size: 0.78rem }
}
@media (max-width: 500px) {
  .table-wrapper table.docutils { font-size: 0.7rem }
  .table-wrapper table.docutils :is(td, th) { padding: 0.2em 0.3em }
  .table-wrapper code { overflow-wrap: anywhere }
}
"""
SHEET = STATIC / "workbook.css"
SCRIPTS = [STATIC / name for name in ("interactive.js", "requests.js", "steps.js")]
# What may scroll can be reached by the keyboard.
SCROLLS = re.compile(r"<(pre)([^>]*)>")
INDEX = """# CUDA workbook

From the first CUDA thread to fused kernels that beat PyTorch, one notebook at a time. These pages
show each notebook solved and run; beside a time stands the GPU that it was measured on. To work
through the notebooks yourself: `make lab`.

{entries}

```{{toctree}}
:hidden:

{names}
```
"""


class CellLexer(PythonLexer):  # type: ignore[misc]  # its stubs say Any
    """Colours of a code cell: CUDA below a line that begins with %%cuda, else Python."""

    name, aliases = "a cell of the workbook", ["workbook"]

    def get_tokens_unprocessed(
        self, text: str, stack: Iterable[str] = ("root",)
    ) -> Iterator[tuple[int, _TokenType, str]]:
        """As documented in Pygments: index, kind and text of each token."""
        if not text.startswith(documents.MAGIC):
            yield from super().get_tokens_unprocessed(text, stack)
            return
        magic, _, rest = text.partition("\n")
        yield 0, Comment.Preproc, f"{magic}\n"
        for index, kind, token in CudaLexer().get_tokens_unprocessed(rest):
            yield index + len(magic) + 1, kind, token


def pages() -> list[Path]:
    """What is shown: each executed notebook, and what stands beside the learner's chapters."""
    executed = sorted(workspace().solutions.glob("[0-9][0-9]_*.ipynb"))
    beside = [
        path
        for path in sorted(workspace().notebooks.iterdir())
        if path.suffix in (".ipynb", ".md") and not path.stem[:2].isdigit()
    ]
    return executed + beside


def build(paths: Sequence[Path] = (), out: Path | None = None) -> Path:
    """Build the site of these notebooks, or of all, and return its first page.

    Raises ToolError where Sphinx is missing, WorkbookError where a link leads nowhere.
    """
    try:
        from sphinx.application import Sphinx
        from sphinx.util.console import nocolor
    except ImportError as error:
        raise ToolError('the site needs Sphinx: pip install -e ".[site]"') from error
    out = out or workspace().build / "site"
    source = out.with_name(f"{out.name}-source")
    for folder in (out, source):
        shutil.rmtree(folder, ignore_errors=True)
    write_sources(source, paths or pages())
    said = StringIO()
    nocolor()
    app = Sphinx(
        source,
        None,
        out,
        out.with_name(f"{out.name}-trees"),
        "html",
        confoverrides=_settings(),
        status=None,
        warning=said,
        freshenv=True,
    )
    app.add_lexer("workbook", CellLexer)
    app.build()
    for page in out.glob("*.html"):
        page.write_text(SCROLLS.sub(r'<\1\2 tabindex="0">', page.read_text()))
    if text := said.getvalue().strip():
        raise WorkbookError(f"the site is not as it should be:\n{text}")
    return out / "index.html"


def _settings() -> dict[str, object]:
    return {
        "project": "CUDA workbook",
        "html_title": "CUDA workbook",
        "extensions": ["myst_nb"],
        "nb_execution_mode": "off",
        "myst_enable_extensions": [],  # "$" is a dollar: no formula is fetched from anywhere
        "myst_heading_anchors": 3,
        "myst_heading_slug_func": "utils.notebooks.site.anchor",
        "html_theme": "furo",
        "html_static_path": ["_static"],
        "html_css_files": [SHEET.name, "pages.css"],
        "html_js_files": [script.name for script in SCRIPTS],
        "html_copy_source": False,
        "html_show_copyright": False,
        "html_show_sphinx": False,
        "pygments_style": "default",
    }


def anchor(heading: str) -> str:
    """The part of a link behind "#", as JupyterLab makes it of a heading."""
    return heading.replace(" ", "-")


# --- what Sphinx reads


def write_sources(folder: Path, paths: Sequence[Path]) -> None:
    """Lay the pages out for Sphinx: notebooks with named pictures, and an index of them."""
    (folder / "_static").mkdir(parents=True)
    (folder / "_static/pages.css").write_text(CSS)
    for path in (SHEET, *SCRIPTS):
        shutil.copy(path, folder / "_static")
    entries = []
    for path in paths:
        if path.suffix == ".md":
            shutil.copy(path, folder)
            entries.append(_entry(path, path.read_text()))
            continue
        notebook = nbformat.read(path, as_version=4)
        notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "workbook"}
        _name_pictures(notebook, folder / "_static", path.stem)
        _take_along(notebook, folder)
        files.write_text(folder / path.name, documents.to_text(notebook))
        entries.append(_entry(path, "\n\n".join(c.source for c in notebook.cells[:2])))
    names = "\n".join(path.stem for path in paths)
    (folder / "index.md").write_text(INDEX.format(entries="\n\n".join(entries), names=names))


def _take_along(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Copy what the notebook links to beside notebooks, and let it link there."""

    def taken(link: re.Match[str]) -> str:
        path = workspace().root / link[1]
        if not path.is_file():
            return str(link[0])  # Sphinx names it
        name = link[1] + (".txt" if path.suffix == ".md" else "")  # no page of its own
        (folder / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / "files" / name)
        return f"](files/{name})"

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\]\(\.\./([^)#]+)\)", taken, cell.source)


def _entry(path: Path, beginning: str) -> str:
    """A page's entry in the index, from what stands at its head: goal and minutes."""
    title = re.match(r"# (.+)", beginning)
    time = re.search(r"\*\*Time\.\*\* (.+)", beginning)
    goal = re.search(r"\*\*Goal\.\*\* (.+)", beginning)
    minutes = " + ".join(re.findall(r"[Aa]bout (\d+)", time[1])) if time else ""
    link = f"**[{title[1] if title else path.stem}]({path.name})**"
    return "  \n".join([f"{link}, {minutes} minutes" if minutes else link, goal[1] if goal else ""])


def _name_pictures(notebook: nbformat.NotebookNode, folder: Path, stem: str) -> None:
    """Put each picture into a file, and a link to it with its description into its place."""
    for number, picture in enumerate(list(pictures.shown(notebook)), 1):
        name = f"{stem}-{number:02}.{picture.suffix}"
        (folder / name).write_bytes(picture.content)
        link = f'<a href="_static/{name}">{picture.image(f"_static/{name}")}</a>'
        picture.replace(link + picture.interactive)
