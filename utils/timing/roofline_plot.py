"""The roofline: what kernels reach, below what a GPU can do at best."""

import math
from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from utils.diagrams.parts.canvas import BLUE
from utils.diagrams.picture import Picture, own_style
from utils.timing.roofline import Ceilings
from utils.timing.rows import digits

NEAR = 1.1  # points closer than this factor are drawn on each other: their names stand together


def roofline(
    kernels: Mapping[str, tuple[int, int, float]], limits: Ceilings, title: str
) -> Picture:
    """Kernels by their operations a byte and their GFLOP/s, each with its name beside its point.

    `kernels` has operations, bytes and milliseconds by name. Both ceilings must be known.
    """
    points = {
        name: (flops / moved, flops / ms / 1e6) for name, (flops, moved, ms) in kernels.items()
    }
    corner = limits.flops_per_second / limits.bytes_per_second
    densities = [corner, *(x for x, _ in points.values())]
    with own_style(font_size=9):
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        draw_roof(axes, [min(densities) / 3, corner, 3 * max(densities)], limits)
        for names in _neighbours(points):
            for name in names:
                axes.loglog(*points[name], "o", color=BLUE, fillstyle="none")
            x, y = points[names[0]]
            side, away = ("left", 7) if x < corner else ("right", -7)
            text = "\n".join(names)
            axes.annotate(text, (x, y), (away, 0), textcoords="offset points", va="top", ha=side)
        axes.set(xlabel="operations for each byte", ylabel="GFLOP/s")
        axes.spines[["top", "right"]].set_visible(False)
        figure.suptitle(title, x=0.01, ha="left", fontsize=9)
    said = (f"{name} {digits(x)} and {digits(y)}" for name, (x, y) in points.items())
    alt = (
        f"Memory up to {digits(corner)} operations a byte, then arithmetic. "
        f"Operations a byte and GFLOP/s: {'; '.join(said)}."
    )
    return Picture(figure, title, alt, text="none")


def draw_roof(axes: Axes, densities: list[float], limits: Ceilings) -> None:
    """The ceiling through these operations a byte. On logarithmic axes its two parts are straight,
    so its ends and its corner are enough."""
    roof = [min(limits.bytes_per_second * x, limits.flops_per_second) / 1e9 for x in densities]
    axes.loglog(densities, roof, color="dimgrey")
    for part, text in enumerate(("memory", "arithmetic")):
        x, y = (math.sqrt(values[part] * values[part + 1]) for values in (densities, roof))
        axes.annotate(text, (x, y), (0, 6), textcoords="offset points", ha="right", color="dimgrey")


def _neighbours(points: Mapping[str, tuple[float, float]]) -> list[list[str]]:
    """The names, those whose points lie on each other together."""
    together: list[list[str]] = []
    for name, place in points.items():
        for names in together:
            there = points[names[0]]
            if all(1 / NEAR < a / b < NEAR for a, b in zip(place, there, strict=True)):
                names.append(name)
                break
        else:
            together.append([name])
    return together
