"""What the first cell needs, made ready in the background from `%load_ext` on.

Whatever fails here fails again in the cell that needs it, and there it is told.
"""

import contextlib
import importlib
import threading
from collections.abc import Callable
from typing import Any

import torch

from utils.cuda import toolchain
from utils.emulator import build
from utils.ground import settings
from utils.process import card


def start() -> list[threading.Thread]:
    """Begin, and return the threads at work."""
    threads = [
        threading.Thread(target=_quietly, args=(task,), name="warming", daemon=True)
        for task in (_import_compiler, *_EMULATOR)
    ]
    for thread in threads:
        thread.start()
    return threads


def _quietly(task: Callable[[], object]) -> None:
    with contextlib.suppress(Exception):
        task()


def _import_compiler() -> None:
    toolchain.prepare(settings.backend())  # first: it reads the environment when it is imported
    extension: Any = importlib.import_module("torch.utils.cpp_extension")  # half a second
    if settings.backend() == "cuda":  # a cell that builds for a minute does not use the GPU
        extension._jit_compile = card.apart()(extension._jit_compile)


# Also where there is a GPU: kernels are diagnosed on the emulator.
_EMULATOR = build.runtime_library, build.precompile_headers


def create_context() -> None:
    """Have the driver make this process known to the GPU, a second or two with many processes:
    otherwise the first cell with a tensor does, and nobody can time anything meanwhile."""
    threading.Thread(target=_quietly, args=(_context,), name="context", daemon=True).start()


@card.together()
def _context() -> None:
    torch.cuda.synchronize()
