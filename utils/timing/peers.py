"""PyTorch's ways to the result of a kernel: what bench times beside it."""

import contextlib
import io
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from utils.course.exercise import Exercise, reads

COMPILED = "torch.compile"
MODE = "max-autotune-no-cudagraphs"


@dataclass(frozen=True)
class Peer:
    """A function of the reference's inputs by name. `kind` is as in a results.Row."""

    label: str
    kind: str
    function: Callable[..., object]


def of(exercise: Exercise) -> Iterator[Peer]:
    """The peers of the spec, PyTorch's compiled reference, and the library last."""
    functions = dict(exercise.peers) or {"PyTorch": exercise.reference}
    library = functions.pop(exercise.library, None)
    for label, function in functions.items():
        yield Peer(label, "eager", function)
    yield Peer(COMPILED, "compile", _compiled(exercise.reference))
    if library:
        yield Peer(exercise.library, "library", library)


def _compiled(function: Callable) -> Callable:
    """Compiled when it is first called: PyTorch tries many kernels and keeps the fastest."""
    torch._dynamo.reset()  # else a session with many sizes ends in its limit of recompilations
    compiled = torch.compile(function, mode=MODE, dynamic=False)

    def call(**values):
        return compiled(**reads(function, values))

    return call


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the tables and complaints that PyTorch prints while it tries kernels."""
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(logging.NOTSET)
