"""Calls of a kernel, in a thread of their own beside its watched calls: a check waits for a build,
then for one core, and there are more.
"""

from concurrent.futures import Future, ThreadPoolExecutor, wait

from utils.cuda import posts
from utils.judge.called import Called, Tried
from utils.judge.watched import Watched


class Beside:
    """What watched calls show is told first: a failing call waits for it, and is forgotten where
    one that was watched has failed. Before a failure is explained the other calls are ended."""

    def __init__(self, watched: Watched, called: Called) -> None:
        self._watched, self._called = watched, called
        watched.failing, called.failing = self._end, self._wait
        self._seen: Future[None] = Future()  # done once all is watched
        self._tried: Future[Tried] | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="calls")

    def __enter__(self) -> "Beside":
        return self

    def __exit__(self, *raised) -> None:
        self._end()
        self._pool.shutdown()

    def begin(self) -> None:
        """Call the kernel from now on, and not once all is watched."""
        self._tried = self._pool.submit(self._called.all)

    def result(self) -> Tried:
        """What it was tried on, once all is watched. Raises CheckFailed."""
        self._called.remarks = self._watched.remarks
        self._seen.set_result(None)
        return self._tried.result() if self._tried else self._called.all()

    def _wait(self) -> None:
        self._seen.result()

    def _end(self) -> None:
        if self._tried is None or self._tried.done():
            return
        self._seen.cancel()
        post = posts.post(self._called.kernel.backend)
        post.dismiss()
        wait([self._tried])
        post.reopen()
