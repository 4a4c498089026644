"""The instrumented build of a kernel's text, in which every access is seen."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor

from utils.cuda import compiler
from utils.cuda.compiler import Build
from utils.cuda.kernel import Kernel
from utils.errors import WorkbookError

KEEP = 64  # builds that are remembered; a forgotten one is found in the cache on disk

_builder = ThreadPoolExecutor(1, thread_name_prefix="instrumented-build")
_builds: dict[str, Future[Kernel]] = {}  # by the digest of all that a build depends on
_lock = threading.Lock()


def prepare(source: str, name: str, **place) -> None:
    """Begin the instrumented build of a text in the background; `place` is as for compile_cuda.

    So it is ready, or nearly, when the plain build beside it is. A text that is no CUDA is passed
    over here: the plain build says what is wrong with it.
    """
    try:
        _begin(compiler.plan(source, name, instrumented=True, **place))
    except WorkbookError:
        pass


def instrumented(kernel: Kernel) -> Kernel:
    """The instrumented build of a kernel's text, of the headers as they are now.

    Raises what `compile_cuda` raises.
    """
    place = {"first_line": kernel.first_line, "filename": kernel.filename}
    build = compiler.plan(kernel.source, kernel.name, instrumented=True, **place)
    return _begin(build).result()


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
