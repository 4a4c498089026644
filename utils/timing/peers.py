"""PyTorch's ways to the result of a kernel: what bench times beside it."""

import contextlib
import functools
import io
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from utils.course.exercise import Exercise, Sizes, reads
from utils.course.precision import Precision, plain, precision_of, under
from utils.process import card
from utils.timing import rested

COMPILED = "torch.compile"
MODE = "max-autotune-no-cudagraphs"
LONG = 20.0  # ms of a kernel that PyTorch tries: two calls are enough


@dataclass(frozen=True)
class Peer:
    """A function of the reference's inputs by name. `kind` is as in a results.Row."""

    label: str
    kind: str
    function: Callable[..., object]
    precision: Precision = Precision.FP32


def of(exercise: Exercise, sizes: Sizes) -> Iterator[Peer]:
    """The peers of the spec, what PyTorch compiles in the kernel's precision, the library last."""
    functions = dict(exercise.peers) or {"PyTorch": exercise.reference}
    wanted = exercise.precision_of(sizes).peer
    # First: it forgets what was compiled before, and a peer of the spec may compile something, too.
    compiled = _compiled(_to_compile(exercise, wanted))
    library = functions.pop(exercise.library, None)
    for label, function in functions.items():
        yield Peer(label, "eager", function, precision_of(function))
    label = COMPILED if wanted is Precision.FP32 else f"{COMPILED} {wanted}"
    yield Peer(label, "compile", under(wanted, compiled), wanted)
    if library:
        yield Peer(exercise.library, "library", library, precision_of(library))


def _to_compile(exercise: Exercise, wanted: Precision) -> Callable[..., object]:
    """The reference; where that imitates what a kernel rounds, a peer that PyTorch rounds for."""
    alike = [f for f in exercise.peers.values() if precision_of(f) is wanted]
    rounds = wanted is not Precision.FP32
    return plain(alike[0]) if rounds and alike else exercise.reference


def _compiled(function: Callable[..., object]) -> Callable[..., object]:
    """Compiled when it is first called: PyTorch tries many kernels and keeps the fastest."""
    _same_ptxas()
    _tries_alone()
    _tries_once()
    torch._dynamo.reset()  # else a session with many sizes ends in its limit of recompilations
    compiled = torch.compile(function, mode=MODE, dynamic=False)

    @functools.wraps(function)
    def call(**values: object) -> object:
        return compiled(**reads(function, values))

    return call


@functools.cache
def _same_ptxas() -> None:
    """Let this process find what PyTorch's compile workers have built.

    They set TRITON_PTXAS_PATH to PyTorch's own ptxas, which is part of the key that Triton keeps
    its builds by. Without it here, each kernel that is tried is compiled once more, one by one:
    38 s in place of 2 for a matrix product (torch 2.11, H200 with 16 cores, 2026-11-22).
    """
    ptxas = Path(torch.__file__).parent / "bin" / "ptxas"
    if os.access(ptxas, os.X_OK):
        os.environ.setdefault("TRITON_PTXAS_PATH", str(ptxas))


@functools.cache
def _tries_alone() -> None:
    """While PyTorch times the kernels that it tries, nobody else uses the GPU.

    It compiles for seconds and times for a fraction of one, so only the timing waits for the card:
    for all configurations of a kernel at once, since each asking waits for all who check. A
    PyTorch that does this elsewhere compiles and times beside others.
    """
    from torch._inductor import select_algorithm
    from torch._inductor.runtime import benchmarking, triton_heuristics

    tries = getattr(select_algorithm, "AlgorithmSelectorCache", None)
    tuner = getattr(triton_heuristics, "CachingAutotuner", None)
    for owner, name in (
        (tries, "benchmark_in_current_process"),  # makes inputs, too
        (tries, "benchmark_choices"),
        (tuner, "benchmark_all_configs"),
    ):
        _wrap(owner, name, card.alone())
    _long_tries_twice(benchmarking.benchmarker)
    # Between two tries it may compile the next one, for a tenth of a second or several.
    _wrap(tuner, "_precompile_config", card.released())


def _long_tries_twice(benchmarker: Any) -> None:
    """Take the shorter of two timed calls where one takes LONG, alone on the GPU: PyTorch makes
    seven or more."""
    plain = getattr(benchmarker, "benchmark_gpu", None)
    if plain is None:
        return

    @functools.wraps(plain)
    def benchmark_gpu(call: Callable[[], object], *rest: Any, **more: Any) -> Any:
        with card.alone():
            try:
                call()  # what is loaded at the first call
                taken = [rested.timed(call, lambda: None).milliseconds]
            except Exception:  # PyTorch knows which of them only rule out this kernel
                return plain(call, *rest, **more)
            if taken[0] < LONG or more.get("return_mode", "min") != "min" or "quantiles" in more:
                return plain(call, *rest, **more)
            return min(*taken, rested.timed(call, lambda: None).milliseconds)

    benchmarker.benchmark_gpu = benchmark_gpu


def _wrap(owner: object, name: str, context: contextlib.ContextDecorator) -> None:
    """Have a method of PyTorch's run in a context, where that PyTorch has it."""
    if function := getattr(owner, name, None):
        wrapped = context(function)
        bound = isinstance(vars(owner).get(name), classmethod | staticmethod)
        setattr(owner, name, staticmethod(wrapped) if bound else wrapped)


@functools.cache
def _tries_once() -> None:
    """Notebooks that run at the same time, of which several multiply matrices of one shape, find
    what the first of them has tried: PyTorch keeps that on disk, and looks there first."""
    from torch._inductor import select_algorithm

    tries = getattr(select_algorithm, "AlgorithmSelectorCache", None)
    plain = getattr(tries, "lookup", None)
    if tries is None or plain is None:  # a PyTorch that does this elsewhere tries each time
        return

    @functools.wraps(plain)
    def lookup(self: object, choices: object, op: str, inputs: str, *rest: Any, **more: Any) -> Any:
        with card.in_turn(f"{op} {inputs}"):
            return plain(self, choices, op, inputs, *rest, **more)

    tries.lookup = lookup


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """For the first call of what is compiled: that runs it as well, and alone on the GPU, since the
    first launch of a kernel may try others. What is compiled before is compiled beside others."""
    from torch._inductor import output_code

    graph = output_code.CompiledFxGraph
    plain = graph.__call__

    @functools.wraps(plain)
    def run(self: output_code.CompiledFxGraph, inputs: Sequence[Any]) -> object:
        with card.alone():
            return plain(self, inputs)

    setattr(graph, "__call__", run)  # noqa: B010  # a method of PyTorch's, which mypy guards
    try:
        yield
    finally:
        setattr(graph, "__call__", plain)  # noqa: B010


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the tables and complaints that PyTorch prints while it tries kernels."""
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(logging.NOTSET)
