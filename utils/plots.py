"""Bars of times, as an SVG that is the same byte for byte whenever the figures are the same."""

import io
import re
from collections.abc import Sequence
from html import escape

from utils.results import Row, digits

COLOURS = {"ours": "#4c78a8", "eager": "#b8b8b8", "compile": "#8c8c8c", "library": "#e0903a"}


def bars(rows: Sequence[Row], title: str, predicted_ms: float | None = None) -> str:
    """An SVG of one bar a row, with its 20 to 80 % range; a dashed line at the predicted time.

    The axis is logarithmic where the slowest row takes over twenty times as long as the fastest.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style = {"svg.hashsalt": "workbook", "svg.fonttype": "none", "font.size": 9}
    with rc_context(style):
        figure = Figure(figsize=(6.4, 0.6 + 0.34 * len(rows)), layout="constrained")
        axes = figure.subplots()
        medians = [row.median_ms for row in rows]
        ranges = [
            [max(row.median_ms - row.p20_ms, 0) for row in rows],
            [max(row.p80_ms - row.median_ms, 0) for row in rows],
        ]
        axes.barh(
            range(len(rows)),
            medians,
            xerr=ranges,
            color=[COLOURS[row.kind] for row in rows],
            ecolor="#444444",
            height=0.7,
        )
        axes.set_yticks(range(len(rows)), [row.label for row in rows])
        axes.invert_yaxis()
        unit = "milliseconds"
        if max(medians) > 20 * min(medians):
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")
            unit += " on a logarithmic scale"
        for y, row in enumerate(rows):
            axes.annotate(
                digits(row.median_ms),
                (row.p80_ms, y),
                (4, 0),
                textcoords="offset points",
                va="center",
            )
        axes.margins(x=0.12)
        if predicted_ms:
            axes.axvline(predicted_ms, color="#c03030", linestyle="--", linewidth=1)
        axes.set_xlabel(unit + (" (dashed: predicted)" if predicted_ms else ""))
        axes.set_title(title, loc="left", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return described(buffer.getvalue(), describe(rows, title))


def describe(rows: Sequence[Row], title: str) -> str:
    """The plot in words, for whoever cannot see it."""
    return f"{title}: " + ", ".join(f"{row.label} {digits(row.median_ms)} ms" for row in rows)


def described(svg: str, text: str) -> str:
    """The SVG as one image with a text alternative."""
    attributes = f'role="img" aria-label="{escape(text)}"'
    svg = svg[svg.index("<svg") :]
    return re.sub(
        r"<svg ([^>]*)>", rf"<svg {attributes} \1><title>{escape(text)}</title>", svg, count=1
    )
