"""What bench shows: a small table, as HTML in a notebook and as text in a terminal."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from utils import roofline
from utils.course.cases import size_text
from utils.course.exercise import Exercise, Sizes
from utils.results import Entry, Row, digits
from utils.roofline import Ceilings, quantity


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
            if tag == "td" and i in self.code:
                text = f"<code>{text}</code>"
            side = "left" if i < self.left else "right"
            cells.append(f'<{tag} style="text-align: {side}">{text}</{tag}>')
        return f"<tr>{''.join(cells)}</tr>"


def comparison(
    exercise: Exercise,
    entry: Entry,
    rows: Sequence[Row],
    limits: Ceilings,
    notes: Iterable[str] = (),
) -> Table:
    """The ladder as a table: the library last, speed-up over the first row."""
    least = roofline.predict(limits, entry.bytes, entry.flops)
    moves = roofline.waits_for_memory(limits, entry.bytes, entry.flops)
    amount, unit, scale = (entry.bytes, "GB/s", 1e6) if moves else (entry.flops, "TFLOP/s", 1e9)
    library = entry.library()
    head = ["", "ms", "p20–p80", unit]
    head += [f"% of {library.label}"] if library else []
    head += ["% of ceiling"] if least else []
    lines = []
    for row in rows:
        line = [
            row.label + (" *" if row.stored else ""),
            digits(row.median_ms),
            f"{digits(row.p20_ms)}–{digits(row.p80_ms)}",
            digits(amount / row.median_ms / scale),
        ]
        line += [digits(100 * library.median_ms / row.median_ms)] if library else []
        line += [digits(100 * least.milliseconds / row.median_ms)] if least else []
        lines.append([*line, f"{digits(rows[0].median_ms / row.median_ms)}×"])
    caption = f"{exercise.name} on {limits.gpu}, {entry.date}, {size_text(entry.sizes)}"
    remarks = [*notes, *_prediction(entry, limits)]
    if any(row.stored for row in rows):
        remarks.append("* stored figures of the workbook's own kernels on this GPU")
    return Table(caption, [*head, "speed-up"], lines, remarks)


def _prediction(entry: Entry, limits: Ceilings) -> list[str]:
    least = roofline.predict(limits, entry.bytes, entry.flops)
    if least is None:
        return []
    line = _words(least, entry.bytes, entry.flops, limits)
    ours = entry.ours()
    if ours:
        times = ours.median_ms / least.milliseconds
        line += f" It took {digits(ours.median_ms)} ms, {digits(times)} × as long."
    return [line]


def _words(least: roofline.Prediction, bytes: int, flops: int, limits: Ceilings) -> str:
    what = (
        f"{quantity(flops, 'FLOP')} at {quantity(limits.flops_per_second, 'FLOP/s')}"
        if least.bound == "arithmetic"
        else f"{quantity(bytes, 'B')} at {quantity(limits.bytes_per_second, 'B/s')}"
    )
    return f"Predicted: {digits(least.milliseconds)} ms, for {what}."


def estimate(exercise: Exercise, sizes: Sizes, notes: Sequence[str]) -> Table:
    """What is left to show where nothing was measured: the least time, where it can be known."""
    bytes, flops = exercise.bytes(**sizes), exercise.flops(**sizes)
    lines = []
    for limits in roofline.known():
        least = roofline.predict(limits, bytes, flops)
        lines.append([limits.gpu, digits(least.milliseconds), least.bound])
    moved = f"{quantity(bytes, 'B')} moved, {quantity(flops, 'FLOP')}"
    return Table(
        f"{exercise.name}, {size_text(sizes)}: {moved}",
        ["estimate, not measured", "at least, ms", "bound by"],
        lines,
        [*notes, "There are no stored figures for these sizes either."],
    )
