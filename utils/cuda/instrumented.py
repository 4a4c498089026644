"""The instrumented build of a kernel's text, in which every access is seen."""

import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from utils.cuda import compiler, toolchain
from utils.cuda.compiler import Build
from utils.cuda.kernel import Kernel
from utils.ground.errors import WorkbookError

KEEP = 64  # builds that are remembered; a forgotten one is found in the cache on disk

_builder = ThreadPoolExecutor(1, thread_name_prefix="instrumented-build")
_builds: dict[str, Future[Kernel]] = {}  # by the digest of all that a build depends on
_lock = threading.Lock()


def prepare(source: str, name: str, first_line: int = 1, filename: str | None = None) -> None:
    """Begin the instrumented build of a text in the background; arguments are compile_cuda's.

    So it is ready, or nearly, when the plain build beside it is. A text that is no CUDA is passed
    over here: the plain build says what is wrong with it.
    """
    place = compiler.How(first_line=first_line, filename=filename, instrumented=True)
    with suppress(WorkbookError):
        _begin(compiler.plan(source, name, **place))


def instrumented(kernel: Kernel, counted: bool = False) -> Kernel:
    """The instrumented build of a kernel's text, of the headers as they are now.

    `counted`: one in which basic blocks are seen beside accesses.

    Raises what `compile_cuda` raises.
    """
    built, multiprocessors = _begin(_plan(kernel, counted)).result(), kernel.multiprocessors
    same = built.multiprocessors == multiprocessors
    return built if same else replace(built, multiprocessors=multiprocessors)


def warnings(kernel: Kernel) -> str:
    """What g++ warns of in a kernel's text, a plain sentence a line: for nvcc speaks otherwise, and
    a text that it takes need not compile for the CPU."""
    with suppress(WorkbookError):
        return instrumented(kernel).warnings
    return ""


def _plan(kernel: Kernel, counted: bool = False) -> Build:
    """What is built of a kernel's text. To translate that once more takes as long as to run it."""
    place = kernel.first_line, kernel.filename, counted
    return _planned(kernel.source, kernel.name, *place, toolchain.cxx(), compiler.headers())


@functools.lru_cache(KEEP)
def _planned(
    source: str, name: str, first_line: int, filename: str, counted: bool, *_state: object
) -> Build:
    place = compiler.How(first_line=first_line, filename=filename)
    place |= compiler.How(instrumented=True, counted=counted)
    return compiler.plan(source, name, **place)


def begin(kernel: Kernel) -> Callable[[], bool]:
    """Begin the instrumented build of a kernel's text where that was not done, and return what
    tells whether it is done. A text that cannot be built fails where the build is needed."""
    try:
        return _begin(_plan(kernel)).done
    except WorkbookError:
        return lambda: True


def _begin(build: Build) -> Future[Kernel]:
    """The build of that digest, begun where it was not before, or has failed."""
    with _lock:
        begun = _builds.pop(build.digest, None)
        if begun is None or (begun.done() and begun.exception()):
            begun = _builder.submit(build.kernel)
        _builds[build.digest] = begun  # the latest last
        for digest in list(_builds)[:-KEEP]:
            del _builds[digest]
    return begun
