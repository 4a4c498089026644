"""A small table: HTML in a notebook, text in a terminal."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import repeat

WIDE = 5  # columns, from which on workbook.css writes each row in two lines where there is no room
SHORT = 60  # characters of source text in a terminal
UNDERSCORE = "_<wbr>"  # in the first column of such a table a long name may be broken behind it


@dataclass(frozen=True)
class Table:
    """Cells as text. The first columns, as many as `left`, are set left, the others right."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()  # lines below
    left: int = 1
    code: Sequence[int] = ()  # columns that hold source text
    folded: Sequence[str] = ()  # in HTML, what the source text of each row unfolds to
    wide: bool = False  # though its columns are fewer than WIDE

    def __str__(self) -> str:
        lines = [self.head, *map(self._shortened, self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.head))]
        text = []
        for line in lines:
            cells = [
                c.ljust(w) if i < self.left else c.rjust(w)
                for i, (c, w) in enumerate(zip(line, widths, strict=True))
            ]
            text.append("  ".join(cells).rstrip())
        return "\n".join([self.caption, "", *text, "", *self.notes]).rstrip()

    def _shortened(self, row: Sequence[str]) -> list[str]:
        """Without the end of long source text: a terminal would break the whole row."""
        long = {i for i in self.code if len(row[i]) > SHORT}
        return [f"{cell[: SHORT - 1]}…" if i in long else cell for i, cell in enumerate(row)]

    def _repr_html_(self) -> str:
        head = self._html_row("th", self.head)
        folded = self.folded or [""] * len(self.rows)
        rows = "".join(map(self._html_row, repeat("td"), self.rows, folded))
        notes = "<br>".join(escape(note) for note in self.notes)
        kind = "workbook-table workbook-wide" if self._wide else "workbook-table"
        return (
            f'<div class="{kind}"><table><caption>{escape(self.caption)}</caption>'
            f"<thead>{head}</thead><tbody>{rows}</tbody></table><p>{notes}</p></div>"
        )

    @property
    def _wide(self) -> bool:
        return self.wide or len(self.head) >= WIDE

    def _html_row(self, tag: str, row: Sequence[str], folded: str = "") -> str:
        cells = []
        for i, (cell, name) in enumerate(zip(row, self.head, strict=True)):
            text, title = escape(cell), ""
            if self._wide and i == 0:
                text = text.replace("_", UNDERSCORE)
            if cell and tag == "td" and i in self.code:
                text = f'<code style="white-space: pre-wrap">{escape(cell)}</code>'
                if folded:
                    text = f"<summary>{text}</summary><pre>{escape(folded)}</pre>"
                    text = f"<details>{text}</details>"
            if cell and tag == "td" and name:
                title = f' title="{escape(name)}"'  # what the cell is, where no head stands above
            side = "left" if i < self.left else "right"
            cells.append(f'<{tag} style="text-align: {side}"{title}>{text}</{tag}>')
        return f"<tr>{''.join(cells)}</tr>"
