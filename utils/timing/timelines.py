"""The five models part by part, as measured by `benchmarks/timeline.py`: figures and picture.

    {"gpu": "NVIDIA H200", "date": "2026-11-21", ..., "models": {"gn_min_bias": {
        "eager": [["linear", 2.7], ["group_norm", 0.2], ...], "fused": [["linear", 2.7], ...],
        "whole": {"PyTorch": 3.08, "torch.compile": 2.74, "linear + our tail": 2.75}}}}

Milliseconds, medians. Parts are measured within a run of the whole, one after the other.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from utils.course.models import MODELS
from utils.diagrams.picture import Picture, own_style
from utils.errors import WorkbookError
from utils.paths import workspace
from utils.timing.results import digits

FOLDER = "timelines"
LINEAR = "linear"
_COLOURS = {LINEAR: "#b8b8b8", "group_norm": "#4c78a8"}
_OTHERS = ("#e0903a", "#5a9e6f", "#9a6fb0")  # the activations, by their place
_FUSED = "#c05a5a"
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
    found = [_read(path) for path in sorted((workspace().results / FOLDER).glob("*.json"))]
    if not found:
        raise WorkbookError(f"no figures in results/{FOLDER}; benchmarks/timeline.py makes them")
    return max(found, key=lambda timelines: timelines.date)


def _read(path) -> Timelines:
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
    with own_style(font_size=9):
        figure = Figure(figsize=(8.4, 0.9 + 0.8 * len(chosen)), layout="constrained")
        whole, tail = figure.subplots(1, 2, sharey=True)
        labels = []
        for number, timeline in enumerate(chosen):
            task = MODELS[timeline.name].task
            for y, (word, parts) in enumerate(
                (("eager", timeline.eager), ("fused", timeline.fused)), 2 * number
            ):
                labels.append(f"{task} {word}")
                _bar(whole, y + 0.2 * number, parts, write=False)
                _bar(tail, y + 0.2 * number, parts[1:], write=True)
        places = [y + 0.2 * (y // 2) for y in range(len(labels))]
        whole.set_yticks(places, labels)
        whole.set_ylim(places[-1] + 0.5, -0.8)  # the first bar on top, with room for its words
        title = f"{timelines.gpu}, {timelines.date}, torch {timelines.torch}"
        whole.set_title(title, loc="left", fontsize=9)
        tail.set_title("after the linear layer", loc="left", fontsize=9)
        for axes in (whole, tail):
            axes.set_xlabel("milliseconds")
            axes.spines[["top", "right"]].set_visible(False)
    return Picture(figure, title, describe(chosen), text="none")


def _chosen(timelines: Timelines, name: str) -> Timeline:
    if name not in timelines.models:
        raise WorkbookError(f"no time line of '{name}'; there are {', '.join(timelines.models)}")
    return timelines.models[name]


def _bar(axes, y: float, parts: Parts, write: bool) -> None:
    """Parts one after the other. `write`: their names and times above them."""
    start, others = 0.0, list(_OTHERS)
    for label, ms in parts:
        colour = _FUSED if label in MODELS else _COLOURS.get(label) or others.pop(0)
        axes.barh(y, ms, left=start, color=colour, edgecolor="white", linewidth=0.5, height=0.6)
        if label == LINEAR:
            axes.annotate(
                f"{label} {digits(ms)}", (ms / 2, y), fontsize=7, ha="center", va="center"
            )
        start += ms
    if write:
        words = " + ".join(f"{label} {digits(ms)}" for label, ms in parts)
        axes.annotate(words, (0, y - 0.34), fontsize=7)


def describe(chosen: Sequence[Timeline]) -> str:
    """The picture in words, for whoever cannot see it."""
    words = [
        f"task {MODELS[timeline.name].task} {word}: "
        + ", ".join(f"{label} {digits(ms)} ms" for label, ms in parts)
        for timeline in chosen
        for word, parts in (("eager", timeline.eager), ("fused", timeline.fused))
    ]
    return f"{'; '.join(words)}."
