"""A finished picture, as notebooks show it."""

import base64
import io
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import matplotlib.style
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from utils.ground.errors import ArgumentValueError


def own_style(**settings: object) -> AbstractContextManager[None]:
    """A context without the reader's own settings of matplotlib: they must not change a picture.

    `settings` are more of ours, such as font_size=9.
    """
    more = {name.replace("_", "."): value for name, value in settings.items()}
    return matplotlib.style.context(["default", {"svg.hashsalt": "workbook", **more}])


@dataclass(frozen=True)
class Picture:
    """Shown as SVG, or as PNG where SVG is not: JupyterLab shows none of a notebook that was
    executed elsewhere. The same figures give the same bytes."""

    figure: Figure
    title: str
    alt: str  # what the picture looks like, for those who cannot see it
    caption: str = ""  # what there is to see, with numbers; stands below the picture
    text: str = "path"  # words of the SVG: "path" draws them, "none" leaves that to the reader
    # What a page may add, by MIME type.
    more: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    @property
    def description(self) -> str:
        """All of it in words, for those who cannot see it."""
        return " ".join(filter(None, (f"{self.title}.", self.alt, self.caption)))

    def svg(self) -> str:
        """The picture as SVG, with its description."""
        metadata = {"Date": None, "Creator": None, "Type": None, "Format": None}
        text = self._saved("svg", metadata).decode()
        head, tag, rest = text.partition("<svg ")
        attributes, _, body = rest.partition(">")
        words = f"<title>{escape(self.title)}</title>\n <desc>{escape(self.description)}</desc>"
        label = f'role="img" aria-label="{escape(self.description)}"'
        return f"{head}{tag}{label} {attributes}>\n{words}{_without_bulk(body)}"

    def png(self) -> bytes:
        """The picture as PNG, with its description."""
        image = Image.open(io.BytesIO(self._saved("png"))).convert("RGB")
        # 256 colours, which is a quarter of the size; the other methods lose rare colours.
        image = image.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        words, file = PngInfo(), io.BytesIO()
        words.add_itxt("Description", self.description)
        image.save(file, "PNG", optimize=True, pnginfo=words)
        return file.getvalue()

    def _saved(self, format: str, metadata: Mapping[str, None] | None = None) -> bytes:
        file = io.BytesIO()
        with own_style(svg_fonttype=self.text):
            self.figure.savefig(file, format=format, dpi=100, facecolor="white", metadata=metadata)
        return file.getvalue()

    def save(self, path: str | Path) -> None:
        """Write it to a file whose name ends in .svg or .png. Raises ArgumentError for another."""
        path = Path(path)
        if path.suffix == ".svg":
            path.write_text(self.svg())
        elif path.suffix == ".png":
            path.write_bytes(self.png())
        else:
            raise ArgumentValueError(f"'{path.name}' must end in .svg or .png")

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, object], dict[str, object]]:
        data = {
            "image/svg+xml": self.svg(),
            "image/png": base64.b64encode(self.png()).decode(),
            "text/plain": repr(self),
        }
        alt = {"alt": self.description}
        return {**data, **self.more}, {"image/svg+xml": alt, "image/png": alt}

    def __repr__(self) -> str:
        return f"{self.title}\n{self.caption or self.alt}"


def _without_bulk(svg: str) -> str:
    """An SVG's text without comments, indentation and the names of groups."""
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    return re.sub(r"\s*\n\s*", "\n", svg)
