"""The pictures among a notebook's outputs, as pages show them: with words, and whole."""

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from nbformat import NotebookNode

from utils.diagrams.parts import requests, stepping

INTERACTIVE = requests.MIME, stepping.MIME
MIMES = {"image/svg+xml": "svg", "image/png": "png"}  # the best first


@dataclass(frozen=True)
class Shown:
    """One picture, and what it shows in words."""

    output: NotebookNode
    mime: str
    content: bytes
    alt: str

    @property
    def suffix(self) -> str:
        """Of a file that holds it."""
        return MIMES[self.mime]

    def image(self, source: str) -> str:
        """It as HTML, from an address."""
        style = "max-width: 100%; height: auto; background: white"
        return f'<img src="{source}" alt="{escape(self.alt)}" loading="lazy" style="{style}">'

    @property
    def interactive(self) -> str:
        """What a page with interactive.js lets its reader choose, as HTML; "" where nothing is."""
        mime = next((mime for mime in INTERACTIVE if mime in self.output["data"]), None)
        if not mime:
            return ""
        text = json.dumps(self.output["data"][mime], separators=(",", ":")).replace("</", "<\\/")
        data = f'<script type="application/json">{text}</script>'
        return f'<div class="workbook-interactive" data-type="{mime}">{data}</div>'

    def replace(self, html: str) -> None:
        """Let the output be this HTML."""
        self.output["data"] = {"text/html": html}


def shown(notebook: NotebookNode) -> Iterator[Shown]:
    """Every picture of a notebook, in their order."""
    prose = ""
    for cell in notebook.cells:
        prose = cell.source if cell.cell_type == "markdown" else prose
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            mime = next((mime for mime in MIMES if mime in data), None)
            if mime:
                text = data[mime]
                content = text.encode() if "svg" in mime else base64.b64decode(text)
                yield Shown(output, mime, content, description(output) or _said(prose))


def embed(notebook: NotebookNode) -> None:
    """Put each picture with its words into its place, as a part of the page."""
    for picture in list(shown(notebook)):
        source = f"data:{picture.mime};base64,{base64.b64encode(picture.content).decode()}"
        picture.replace(picture.image(source))


def description(output: NotebookNode) -> str:
    """A picture's words: what Picture says of itself, in the metadata or in the SVG."""
    for mime in output.metadata.values():
        if isinstance(mime, dict) and mime.get("alt"):
            return str(mime["alt"])
    match = re.search(r"<desc>(.*?)</desc>", output["data"].get("image/svg+xml", ""), re.DOTALL)
    said = match[1] if match else output["data"].get("text/plain", "").partition("\n")[0]
    return "" if said.startswith("<Figure size") else said


def _said(prose: str) -> str:
    """What stands for the words of a plot that has none: the last paragraph before it."""
    last = re.sub(r"[*`#]|<[^>]*>|\|", "", prose).strip().split("\n\n")[-1]
    return f"A plot. The text before it: {last}" if last else "A plot"
