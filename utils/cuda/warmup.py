"""What the first cell needs, made ready in the background from `%load_ext` on.

Whatever fails here fails again in the cell that needs it, and there it is told.
"""

import contextlib
import importlib
import threading
from collections.abc import Callable

from utils.cuda import toolchain
from utils.emulator import build
from utils.ground import settings


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
    importlib.import_module("torch.utils.cpp_extension")  # half a second


# Also where there is a GPU: kernels are diagnosed on the emulator.
_EMULATOR = build.runtime_library, build.precompile_headers
