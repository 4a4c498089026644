"""A profile's picture: where the time goes, and where that is below the roofline."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from utils.diagrams.parts.canvas import BLUE
from utils.diagrams.picture import Picture, own_style
from utils.timing.estimate import Estimate
from utils.timing.roofline import Ceilings
from utils.timing.roofline_plot import draw_roof
from utils.timing.rows import digits

OTHER = "#949494"  # of parts that do not decide
LEAST = 0.001  # of the longest part: a shorter one is not shown


def picture(estimate: Estimate, limits: Ceilings, bytes: int, flops: int, verdict: str) -> Picture:
    """Left, the kernel's point below the ceilings, if it has operations; right, a bar for each part
    of the GPU that could hold it up, as if there were nothing else. The decisive one is blue."""
    title = (
        f"{estimate.kernel} on an {estimate.gpu}, estimated: {digits(1e3 * estimate.seconds)} ms"
    )
    longest = max(estimate.parts.values())
    parts = {n: s for n, s in estimate.parts.items() if s > LEAST * longest}
    pointed = bool(flops and limits.bytes_per_second and limits.flops_per_second)
    with own_style(font_size=9):
        figure = Figure(figsize=(8.0, 1.2 + 0.3 * max(5, len(parts))), layout="constrained")
        if pointed:
            point, bars = figure.subplots(1, 2, width_ratios=(1, 1.3))
            _point(point, estimate, limits, bytes, flops)
        else:
            bars = figure.subplots()
        _bars(bars, estimate, parts)
        figure.suptitle(title, x=0.01, ha="left", fontsize=9)
    said = ", ".join(f"{name} {digits(1e3 * s)} ms" for name, s in parts.items())
    return Picture(figure, title, f"Parts, each as if alone: {said}.", verdict, text="none")


def _point(axes: Axes, estimate: Estimate, limits: Ceilings, bytes: int, flops: int) -> None:
    density, rate = flops / bytes, flops / estimate.seconds / 1e9
    corner = limits.flops_per_second / limits.bytes_per_second
    ends = [min(density, corner) / 30, corner, 4 * max(density, corner)]
    draw_roof(axes, ends, limits)
    axes.loglog(density, rate, "o", color=BLUE)
    axes.set(xlabel="operations for each byte", ylabel="GFLOP/s")
    axes.yaxis.set_minor_formatter("")  # its labels would stand beside those of powers of ten
    axes.spines[["top", "right"]].set_visible(False)


def _bars(axes: Axes, estimate: Estimate, parts: dict[str, float]) -> None:
    names = sorted(parts, key=parts.__getitem__, reverse=True)
    lengths = [1e3 * parts[name] for name in names]
    colours = [BLUE if name == estimate.bound else OTHER for name in names]
    axes.barh(range(len(names)), lengths, color=colours, height=0.7)
    for y, length in enumerate(lengths):
        axes.annotate(
            digits(length),
            (length, y),
            (4, 0),
            textcoords="offset points",
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )
    axes.axvline(1e3 * estimate.seconds, color="#c03030", linestyle="--", linewidth=1, zorder=0)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.margins(x=0.14)
    axes.set_xlabel("ms, each part as if alone (dashed: together)")
    axes.spines[["top", "right"]].set_visible(False)
