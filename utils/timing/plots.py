"""Bars of times or rates."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from utils.diagrams.parts.canvas import BLUE
from utils.diagrams.picture import Picture, own_style
from utils.timing.rows import ESTIMATE, Row, digits

COLOURS = {
    ESTIMATE: "#ffffff",
    "ours": BLUE,
    "eager": "#949494",  # three times as dark as white, as all of them
    "compile": "#6e6e6e",
    "library": "#c98200",
}


def bars(
    rows: Sequence[Row], title: str, predicted_ms: float | None = None, bytes: int = 0
) -> Picture:
    """One bar a row, with its 20 to 80 % range; a dashed line at the predicted time.

    The bars are milliseconds; with `bytes`, what each call moves at least, they are GB/s. The axis
    is logarithmic where the longest, or the prediction, is over twenty times the shortest.
    """
    with own_style(font_size=9):
        figure = Figure(figsize=(6.4, 0.6 + 0.34 * len(rows)), layout="constrained")
        axes = figure.subplots()
        lengths = [_length(row.median_ms, bytes) for row in rows]
        ends = [
            sorted(_length(ms, bytes) for ms in (row.p20_ms, row.median_ms, row.p80_ms))
            for row in rows
        ]
        ranges = [
            [length - low for length, (low, _, _) in zip(lengths, ends, strict=True)],
            [high - length for length, (_, _, high) in zip(lengths, ends, strict=True)],
        ]
        axes.barh(
            range(len(rows)),
            lengths,
            xerr=ranges,
            color=[COLOURS[row.kind] for row in rows],
            ecolor="#444444",
            hatch=["////" if row.kind == ESTIMATE else "" for row in rows],
            edgecolor=COLOURS["ours"],  # which is the hatch's colour, too
            linewidth=[0.8 if row.kind == ESTIMATE else 0 for row in rows],
            height=0.7,
        )
        axes.set_yticks(range(len(rows)), [row.label for row in rows])
        axes.invert_yaxis()
        unit = "GB/s" if bytes else "milliseconds"
        place = _length(predicted_ms, bytes) if predicted_ms else lengths[0]
        share = max(*lengths, place) / min(*lengths, place)
        if share > 20:
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if share < 200 else (1,)))
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter("")  # its labels would stand on each other
            unit += " on a logarithmic scale"
        for y, (length, (_, _, high)) in enumerate(zip(lengths, ends, strict=True)):
            axes.annotate(
                digits(length),
                (high, y),
                (4, 0),
                textcoords="offset points",
                va="center",
            )
        axes.margins(x=0.12)
        if predicted_ms:
            axes.axvline(place, color="#c03030", linestyle="--", linewidth=1)
        axes.set_xlabel(unit + (" (dashed: predicted)" if predicted_ms else ""))
        figure.suptitle(title, x=0.01, ha="left", fontsize=9)  # long names need its whole width
        axes.spines[["top", "right"]].set_visible(False)
    return Picture(figure, title, describe(rows, bytes), text="none")


def _length(milliseconds: float, bytes: int) -> float:
    """Of a bar: the time, or GB/s."""
    return bytes / milliseconds / 1e6 if bytes else milliseconds


def describe(rows: Sequence[Row], bytes: int = 0) -> str:
    """The bars in words, for whoever cannot see them."""
    unit = "GB/s" if bytes else "ms"
    said = (f"{row.label} {digits(_length(row.median_ms, bytes))} {unit}" for row in rows)
    return f"{', '.join(said)}."
