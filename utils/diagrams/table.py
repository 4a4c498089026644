"""A small table: HTML in a notebook, text in a terminal."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Table:
    """Cells as text. The first columns, as many as `left`, are set left, the others right."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()  # lines below
    left: int = 1
    code: Sequence[int] = ()  # columns that hold source text

    def __str__(self) -> str:
        lines = [self.head, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.head))]
        text = []
        for line in lines:
            cells = [
                c.ljust(w) if i < self.left else c.rjust(w)
                for i, (c, w) in enumerate(zip(line, widths, strict=True))
            ]
            text.append("  ".join(cells).rstrip())
        return "\n".join([self.caption, "", *text, "", *self.notes]).rstrip()

    def _repr_html_(self) -> str:
        head = self._html_row("th", self.head)
        rows = "".join(self._html_row("td", row) for row in self.rows)
        notes = "<br>".join(escape(note) for note in self.notes)
        return (
            f"<table><caption>{escape(self.caption)}</caption><thead>{head}</thead>"
            f"<tbody>{rows}</tbody></table><p>{notes}</p>"
        )

    def _html_row(self, tag: str, row: Sequence[str]) -> str:
        cells = []
        for i, cell in enumerate(row):
            text = escape(cell)
            if cell and tag == "td" and i in self.code:
                text = f'<code style="white-space: pre">{text}</code>'
            side = "left" if i < self.left else "right"
            cells.append(f'<{tag} style="text-align: {side}">{text}</{tag}>')
        return f"<tr>{''.join(cells)}</tr>"
