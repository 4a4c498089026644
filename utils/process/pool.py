"""Which worker process a call is made in. Each backend has three kinds of slots, which work side by
side: for calls of kernels as they are, for watched calls, and for rehearsals, whose kernels do not
run: what a launcher keeps from one of them must not reach a call. A worker that is not to be
trusted any more is replaced.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeVar, get_args

from utils.emulator.build import runtime_library
from utils.ground import paths, settings
from utils.process import card
from utils.process.child import Gone
from utils.process.workers import Worker

MAX_LIBRARIES = 200  # loaded into one worker; none is ever unloaded

T = TypeVar("T")

_elsewhere: set[Path] = set()  # folders of libraries beside the cache as it is now


class Slot:
    """A worker, mostly: none before the first call. It does one thing at a time."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.worker: Worker | None = None
        self.lock = threading.RLock()
        self.waiting = 0  # the thread that waits for an answer of its worker
        self._background: ThreadPoolExecutor | None = None
        self._other: Future[Worker] | None = None  # the worker that the next `restart` takes

    def prestart(self) -> None:
        """Start the worker now, in the background, so that the first call need not wait for it."""
        if not settings.boxed():  # a box is made for one library
            self._started()

    def _started(self) -> Worker:
        with self.lock:
            if self.worker is None:
                self.worker = Worker(self.backend, [paths.cache(), *_elsewhere])
            return self.worker

    def discard(self) -> None:
        """End the worker, if there is one, and its context."""
        with card.together(self.backend), self.lock:
            if self.worker:
                self.worker.stop()
                self.worker = None

    def restart(self) -> None:
        """Replace the worker by the one that was made ready, or by a fresh one."""
        if not self._exchanged():
            self.discard()
            self.prestart()

    @contextmanager
    def with_another(self, library: str, ready: Callable[[Worker], object]) -> Iterator[None]:
        """Meanwhile a worker for `library` is made `ready`, which the next `restart` takes, and the
        one before is ended. Beside a GPU each of them takes tenths of a second."""
        with ThreadPoolExecutor(1, thread_name_prefix="worker") as self._background:
            self._other = self._background.submit(self._made, library, ready)
            try:
                yield
            finally:  # an interrupt may come at any time: first nobody knows of it any more
                other, self._other, self._background = self._other, None, None
                if other:
                    other.add_done_callback(self._unused)

    def _made(self, library: str, ready: Callable[[Worker], object]) -> Worker:
        worker = Worker(self.backend, self._reach(library))
        try:
            with card.together(self.backend):
                ready(worker)
        except BaseException:
            worker.stop()
            raise
        return worker

    def _unused(self, other: Future[Worker]) -> None:
        if not other.exception():
            self._end(other.result())

    def _end(self, worker: Worker) -> None:
        with card.together(self.backend):
            worker.stop()

    def _reach(self, library: str) -> set[Path]:
        """The folders that a worker for this library may read: in a box these alone, else as well
        those of all that may be called later."""
        needed = _folders(self.backend, library)
        return needed if settings.boxed() else {paths.cache(), *_elsewhere, *needed}

    def _exchanged(self) -> bool:
        """Whether there was another worker, which is now that of this slot."""
        other, self._other = self._other, None
        if other is None or self._background is None:
            return False
        try:
            worker = other.result()
        except Exception:  # if there is more than chance to it, the next one fails, too
            return False
        except BaseException:
            other.add_done_callback(self._unused)
            self.discard()
            raise
        with self.lock:
            before, self.worker = self.worker, worker
        if before:
            self._background.submit(self._end, before)
        return True

    def safely(self, library: str, action: Callable[[Worker], T]) -> T:
        """`action(worker)`, which calls `library`. A worker not to be trusted after it is replaced.

        Raises Gone, and what the action raises.
        """
        with self.lock, self._waited_for():
            while True:
                worker = self._usable(library)
                suspect = bool(worker.libraries - {library})
                try:
                    done = action(worker)
                except Gone as gone:
                    self.discard()  # first: it may still be at work
                    self.restart()
                    if not suspect or gone.late:
                        raise
                    # another kernel may have damaged that worker: ask a fresh one
                except BaseException:  # after a fault, or an interrupt, nothing in it is certain
                    self.discard()
                    self.restart()
                    raise
                else:
                    if self.worker is worker and not worker.settle():
                        self.restart()
                    return done

    @contextmanager
    def _waited_for(self) -> Iterator[None]:
        self.waiting = threading.get_ident()
        try:
            yield
        finally:
            self.waiting = 0

    def _usable(self, library: str) -> Worker:
        if settings.boxed():
            return self._boxed(library)
        worker = self._started()
        reached = library in worker.libraries or worker.reaches(
            needed := _folders(self.backend, library)
        )
        if not reached:  # the cache has moved
            _elsewhere.update(needed)
        many = len(worker.libraries) >= MAX_LIBRARIES
        if not reached or many or worker.process.poll() is not None:
            self.discard()
        return self._started()

    def _boxed(self, library: str) -> Worker:
        """A worker in a box in which there is this library and no other."""
        needed = _folders(self.backend, library)
        if not (self.worker and self.worker.process.poll() is None and self.worker.reaches(needed)):
            self.discard()
            self.worker = Worker(self.backend, needed)
        return self.worker


Use = Literal["calls", "watched", "rehearsals"]

# By backend and use. The second of a kind is for what is called while the first is waited for.
_slots: dict[tuple[str, Use], list[Slot]] = {}
_making = threading.Lock()


def slot(backend: str, use: Use = "calls") -> Slot:
    """The slot of a backend's calls, watched ones or rehearsals: one that this thread does not wait
    for."""
    with _making:
        slots = _slots.setdefault((backend, use), [])
        for known in slots:
            if known.waiting != threading.get_ident():
                return known
        slots.append(Slot(backend))
        return slots[-1]


def prestart() -> None:
    """Start the workers that the first call and the first check will need."""
    slot(settings.backend()).prestart()
    slot("emulator", "watched").prestart()
    slot("emulator", "rehearsals").prestart()


def discard(backend: str) -> None:
    """End a backend's workers, if there are any."""
    for use in get_args(Use):
        for known in _slots.get((backend, use), []):
            known.discard()


def fresh(backend: str, library: str) -> Worker:
    """A worker for this library alone, which is whose asks for it: to be stopped by him."""
    return Worker(backend, _folders(backend, library))


def _folders(backend: str, library: str) -> set[Path]:
    """Where a library is, and what it is linked with."""
    runtime = [runtime_library()] if backend == "emulator" else []
    return {path.resolve().parent for path in (Path(library), *runtime)}


def _forget() -> None:
    """In a forked process: the workers are the parent's, and a lock may be held there."""
    global _making
    _making = threading.Lock()
    _slots.clear()


os.register_at_fork(after_in_child=_forget)
