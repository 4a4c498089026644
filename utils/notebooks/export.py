"""Executed notebooks to look at: HTML pages with CUDA colours, and the plots as files."""

import copy
import html
import re
from pathlib import Path

from nbformat import NotebookNode

from utils.ground.files import write_text
from utils.ground.paths import workspace
from utils.notebooks import pictures
from utils.notebooks.lab import STATIC

PAGE = """<!doctype html>
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>CUDA workbook</title>
<style>body {{ font: 16px/1.6 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto }}</style>
<h1>CUDA workbook</h1>
<ul>
{items}
</ul>
"""


def plots(notebook: NotebookNode, stem: str) -> list[Path]:
    """Write the PNG and SVG outputs of a notebook to build/plots, numbered in their order."""
    folder = workspace().build / "plots"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{stem}-*"):
        old.unlink()
    written: list[Path] = []
    for picture in pictures.shown(notebook):
        path = folder / f"{stem}-{len(written) + 1:02}.{picture.suffix}"
        path.write_bytes(picture.content)
        written.append(path)
    return written


def page(notebook: NotebookNode, stem: str) -> Path:
    """Write build/<stem>.html. Raises ImportError where nbconvert is missing."""
    notebook = copy.deepcopy(notebook)
    pictures.embed(notebook)
    from nbconvert import HTMLExporter
    from traitlets.config import Config

    config = Config()
    for script in ("mathjax_url", "require_js_url"):  # of other hosts
        config.HTMLExporter[script] = ""
    config.HighlightMagicsPreprocessor.enabled = True
    config.HighlightMagicsPreprocessor.languages = {"%%cuda": "cuda"}
    text, _ = HTMLExporter(config=config).from_notebook_node(
        notebook, resources={"metadata": {"name": stem}}
    )
    sheet = f"<style>{(STATIC / 'workbook.css').read_text()}</style>"
    text = text.replace("</head>", f"{sheet}</head>", 1)
    path = workspace().build / f"{stem}.html"
    write_text(path, re.sub(r'href="(\d\d_\w+)\.ipynb"', r'href="\1.html"', text))
    return path


def index() -> Path:
    """Write build/index.html, with a link to every page that was exported so far."""
    pages = sorted(workspace().build.glob("[0-9][0-9]_*.html"))
    items = "\n".join(
        f'<li><a href="{html.escape(path.name)}">'
        f"{html.escape(path.stem.replace('_', ' '))}</a></li>"
        for path in pages
    )
    path = workspace().build / "index.html"
    write_text(path, PAGE.format(items=items))
    return path
