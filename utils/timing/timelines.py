"""The five models part by part, as measured by `benchmarks/timeline.py`: figures and picture.

    {"gpu": "NVIDIA H200", "date": "2026-11-21", ..., "models": {"gn_min_bias": {
        "eager": [["linear", 2.7], ["group_norm", 0.2], ...], "fused": [["linear", 2.7], ...],
        "whole": {"PyTorch": 3.08, "torch.compile": 2.74, "linear + our tail": 2.75}}}}

Milliseconds, medians. Parts are measured within a run of the whole, one after the other.
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from utils.course.models import MODELS
from utils.diagrams.parts.canvas import BLUE, GREEN, INK, MID, ORANGE, PURPLE, RED, SKY, YELLOW
from utils.diagrams.picture import Picture, own_style
from utils.ground.errors import WorkbookError
from utils.ground.paths import workspace
from utils.timing.rows import digits

FOLDER = "timelines"
LINEAR = "linear"
# Told apart by any eye, and by their hatches without colours.
_COLOURS = {LINEAR: (MID, ""), "group_norm": (BLUE, "")}
_FUSED = RED, "xx"
_OTHERS = (
    (ORANGE, "//"),
    (GREEN, "\\\\"),
    (PURPLE, "||"),
    (SKY, "--"),
    (YELLOW, "++"),
    (INK, ""),
)
FONT = 9  # points
Parts = Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Timeline:
    """One model: its parts in PyTorch and with a fused tail, and the whole by each way."""

    name: str  # of the tail, a key of MODELS
    eager: Parts
    fused: Parts
    whole: Mapping[str, float]

    @property
    def linear(self) -> float:
        """Milliseconds of the linear layer."""
        return dict(self.eager)[LINEAR]

    @property
    def tail(self) -> float:
        """All that follows the linear layer, in PyTorch."""
        return sum(ms for label, ms in self.eager if label != LINEAR)


@dataclass(frozen=True)
class Timelines:
    """Those of one GPU, by the tail's name."""

    gpu: str
    date: str
    torch: str
    models: Mapping[str, Timeline]


def stored() -> Timelines:
    """The ones that were measured last. Raises WorkbookError where there are none."""
    lines = [_read(path) for path in sorted((workspace().results / FOLDER).glob("*.json"))]
    if not lines:
        raise WorkbookError(f"no figures in results/{FOLDER}; benchmarks/timeline.py makes them")
    return max(lines, key=lambda timelines: timelines.date)


def _read(path: Path) -> Timelines:
    try:
        data = json.loads(path.read_text())
        models = {
            name: Timeline(
                name,
                tuple((label, float(ms)) for label, ms in parts["eager"]),
                tuple((label, float(ms)) for label, ms in parts["fused"]),
                {label: float(ms) for label, ms in parts["whole"].items()},
            )
            for name, parts in data["models"].items()
        }
        return Timelines(data["gpu"], data["date"], data["torch"], models)
    except (ValueError, KeyError, TypeError) as error:
        raise WorkbookError(f"{path.name} is no file of timelines: {error!r}") from None


def show(*names: str) -> None:
    """Draw the time lines of some models, or of all: the whole, and on its right the tail alone.

    Raises WorkbookError for a name that has none.
    """
    from IPython.display import display

    display(picture(stored(), names))


def picture(timelines: Timelines, names: Sequence[str] = ()) -> Picture:
    """What `show` draws."""
    chosen = [_chosen(timelines, name) for name in names] or list(timelines.models.values())
    looks = _looks(chosen)
    with own_style(font_size=FONT, hatch_linewidth=0.6):
        figure = Figure(figsize=(8.6, 1.3 + 0.8 * len(chosen)), layout="constrained")
        whole, tail = figure.subplots(1, 2, sharey=True)
        labels = []
        for number, timeline in enumerate(chosen):
            task = MODELS[timeline.name].task
            for y, (word, parts) in enumerate(
                (("eager", timeline.eager), ("fused", timeline.fused)), 2 * number
            ):
                labels.append(f"{task} {word}")
                _bar(whole, y + 0.2 * number, parts, looks, write=False)
                _bar(tail, y + 0.2 * number, parts[1:], looks, write=True)
        places = [y + 0.2 * (y // 2) for y in range(len(labels))]
        whole.set_yticks(places, labels)
        whole.set_ylim(places[-1] + 0.5, -0.8)  # the first bar on top, with room for its words
        title = f"{timelines.gpu}, {timelines.date}, torch {timelines.torch}"
        whole.set_title(title, loc="left", fontsize=FONT)
        tail.set_title("after the linear layer", loc="left", fontsize=FONT)
        for axes in (whole, tail):
            axes.set_xlabel("milliseconds")
            axes.spines[["top", "right"]].set_visible(False)
        named = {
            label if label not in MODELS else "fused tail": look for label, look in looks.items()
        }
        swatches = [
            Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=label)
            for label, (colour, hatch) in named.items()
        ]
        figure.legend(handles=swatches, loc="outside lower left", ncols=5, frameon=False)
    return Picture(figure, title, describe(chosen), text="none")


def _chosen(timelines: Timelines, name: str) -> Timeline:
    if name not in timelines.models:
        raise WorkbookError(f"no time line of '{name}'; there are {', '.join(timelines.models)}")
    return timelines.models[name]


def _looks(chosen: Sequence[Timeline]) -> dict[str, tuple[str, str]]:
    """Colour and hatch of each part by its name, in the order in which they come."""
    looks, others = {}, itertools.cycle(_OTHERS)
    for label, _ in (part for one in chosen for part in (*one.eager, *one.fused)):
        if label not in looks:
            looks[label] = _FUSED if label in MODELS else _COLOURS.get(label) or next(others)
    return looks


def _bar(
    axes: Axes, y: float, parts: Parts, looks: Mapping[str, tuple[str, str]], write: bool
) -> None:
    """Parts one after the other. `write`: their times above them."""
    start = 0.0
    for label, ms in parts:
        colour, hatch = looks[label]
        axes.barh(y, ms, 0.6, start, color=colour, hatch=hatch, edgecolor="white", linewidth=0.5)
        if label == LINEAR:
            axes.annotate(digits(ms), (ms / 2, y), ha="center", va="center")
        start += ms
    if write:
        axes.annotate(" + ".join(digits(ms) for _, ms in parts), (0, y - 0.34))


def describe(chosen: Sequence[Timeline]) -> str:
    """The picture in words, for whoever cannot see it."""
    words = [
        f"task {MODELS[timeline.name].task} {word}: "
        + ", ".join(f"{label} {digits(ms)} ms" for label, ms in parts)
        for timeline in chosen
        for word, parts in (("eager", timeline.eager), ("fused", timeline.fused))
    ]
    return f"{'; '.join(words)}."
