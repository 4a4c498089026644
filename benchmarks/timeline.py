"""Where the time of the five models goes: each part of the eager model, and of the fused one.

    python benchmarks/timeline.py [--json FILE]

Writes results/timelines/<GPU>.json, of which utils/timing/timelines.py says what is in it. All
parts of a model run in their order, as they do in the model, with an event between each two. The
whole is timed apart, without events in it. Every figure is a median, with a cold cache at the start
of each run.
"""

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import torch
import torch.nn.functional as F
import typer
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from utils.course import catalog
from utils.course.answers import compile_answer
from utils.course.models import EPS, MODELS, SLOPE, Model
from utils.ground import files
from utils.ground.paths import workspace
from utils.judge.check import check
from utils.timing import measure, rested, results

TOPIC = "08_fused_tails"
RUNS = 25
Part = tuple[str, Callable[[Tensor], Tensor]]


def eager_parts(name: str, groups: int, tensors: dict[str, Tensor]) -> list[Part]:
    """The operations that PyTorch does after the linear layer, in their order."""

    def norm(y: Tensor) -> Tensor:
        return F.group_norm(y, groups, tensors["weight"], tensors["bias"], EPS)

    parts: dict[str, list[Part]] = {
        "gn_leaky_relu_double": [
            ("group_norm", norm),
            ("leaky_relu", lambda y: F.leaky_relu(y, SLOPE)),
            ("x + x", lambda y: y + y),
        ],
        "gn_swish_multiply_swish": [
            ("group_norm", norm),
            ("swish", F.silu),
            ("multiply", lambda y: y * tensors["scale"]),
            ("swish again", F.silu),
        ],
        "bias_hardtanh_mish_gn": [
            ("add", lambda y: y + tensors["shift"]),
            ("hardtanh", F.hardtanh),
            ("mish", F.mish),
            ("group_norm", norm),
        ],
        "swish_bias_gn": [
            ("swish", F.silu),
            ("add", lambda y: y + tensors["shift"]),
            ("group_norm", norm),
        ],
        "gn_min_bias": [
            ("group_norm", norm),
            ("min", lambda y: y.min(dim=1, keepdim=True).values),
            ("add", lambda y: y + tensors["shift"].reshape(1, -1, 1, 1)),
        ],
    }
    return parts[name]


def fused_part(name: str, model: Model, tensors: dict[str, Tensor]) -> Part:
    """The same in one kernel: the solution of the exercise."""
    exercise = catalog.load(f"{TOPIC}/{name}")
    kernel = compile_answer(exercise, catalog.solution_text(exercise))
    check(kernel)  # and then it runs without a guard
    words = [model.sizes.get(word, word) for word in model.output.split()]
    shape = [int(word) for word in words]

    def call(y: Tensor) -> Tensor:
        out = torch.empty(shape, device=y.device)
        kernel(**tensors, y=y, out=out, **model.sizes)
        return out

    return name, call


def follow(parts: list[Part], x: Tensor, flush: Callable[[], None]) -> list[list]:
    """[label, median milliseconds] of each part, measured while all run one after the other."""
    times: list[list[float]] = [[] for _ in parts]
    for run in range(RUNS + 2):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(len(parts) + 1)]
        torch.cuda.synchronize()
        flush()
        y = x
        events[0].record()
        for (_, part), event in zip(parts, events[1:], strict=True):
            y = part(y)
            event.record()
        torch.cuda.synchronize()
        if run >= 2:
            for times_of_part, start, stop in zip(times, events, events[1:], strict=False):
                times_of_part.append(start.elapsed_time(stop))
    return [
        [label, rounded(times_of_part)]
        for (label, _), times_of_part in zip(parts, times, strict=True)
    ]


def rounded(times: list[float]) -> float:
    return float(f"{statistics.median(times):.4g}")


def chain(parts: list[Part]) -> Callable[[Tensor], Tensor]:
    def call(x: Tensor) -> Tensor:
        for _, part in parts:
            x = part(x)
        return x

    return call


def timed(name: str, model: Model, flush: Callable[[], None]) -> dict:
    """The entry of one model."""
    linear = torch.nn.Linear(model.features, model.channels, device="cuda")
    x = torch.rand(model.rows, model.features, device="cuda")
    words = ("weight", "bias", *model.extra)
    parameters = {word: torch.randn(model.channels, device="cuda") for word in words}
    eager = [("linear", linear), *eager_parts(name, model.groups, parameters)]
    fused = [("linear", linear), fused_part(name, model, parameters)]
    torch.testing.assert_close(chain(fused)(x), chain(eager)(x), atol=1e-4, rtol=1e-4)
    torch._dynamo.reset()
    ways = {
        "PyTorch": chain(eager),
        "torch.compile": torch.compile(
            lambda x: model.tail(linear(x), groups=model.groups, **parameters), dynamic=False
        ),
        "linear + our tail": chain(fused),
    }
    whole = {}
    for label, way in ways.items():
        whole[label] = follow([("", way)], x, flush)[0][1]
    return {"eager": follow(eager, x, flush), "fused": follow(fused, x, flush), "whole": whole}


def main(file: Annotated[Path | None, typer.Option("--json", help="where to write")] = None):
    gpu = measure.gpu()
    flush = rested.flusher()
    data = {"gpu": gpu, **measure.provenance(), "models": {}}
    path = file or workspace().results / "timelines" / results.path_of(gpu).name
    with torch.no_grad():
        for name, model in MODELS.items():
            data["models"][name] = timed(name, model, flush)
            print(name, data["models"][name], flush=True)
            torch.cuda.empty_cache()
            files.write_text(path, json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
