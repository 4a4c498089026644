"""What a check does side by side: watched calls, calls as they are, and those in a process of their
own. It waits for a build, then for one core, and there are more.
"""

from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType

from utils.course.answers import Answering
from utils.cuda import posts
from utils.errors import CheckFailed
from utils.judge.called import Afresh, Called, Tried
from utils.judge.watched import Watched


class Beside:
    """Calls of a kernel in a thread of their own, where `begin` was called, while its watched calls
    and then those afresh are made in this one.

    What is told does not hang on who is first: of several failures, that of a watched call; else
    one of the calls as they are. Where a watched call fails, the others are ended.
    """

    def __init__(self, kernel: Answering, seed: int) -> None:
        self.watched = Watched(kernel, seed)
        self._called, self._afresh = Called(kernel, seed), Afresh(kernel, seed)
        self.watched.failing, self._called.failing = self._end, self._wait
        self._afresh.failing = self._tries
        self._seen: Future[None] = Future()  # done once all is watched
        self._tried: Future[Tried] | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="calls")

    def __enter__(self) -> "Beside":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._end()
        self._pool.shutdown()

    def begin(self) -> None:
        """Call the kernel from now on, and not once all is watched."""
        self._tried = self._pool.submit(self._called.all)

    def result(self) -> Tried:
        """What it was tried on, once all is watched. Raises CheckFailed."""
        self._called.remarks = self._afresh.remarks = self.watched.remarks
        self._seen.set_result(None)
        if self._tried is None:
            tried = self._called.all()
            self._afresh.all()
            return tried
        try:
            self._afresh.all()
        except CheckFailed:
            self._tries()
            raise
        return self._tries()

    def _wait(self) -> None:
        self._seen.result()

    def _tries(self) -> Tried | None:
        """What the calls as they are have shown. Raises CheckFailed."""
        return self._tried.result() if self._tried else None

    def _end(self) -> None:
        if self._tried is None or self._tried.done():
            return
        self._seen.cancel()
        post = posts.post(self._called.kernel.backend, self._called.role)
        post.dismiss()
        wait([self._tried])
        post.reopen()
