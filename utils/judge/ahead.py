"""Calls of a kernel that a check makes ahead of their turn, while it waits for something else: for
the diagnosing build, or for the end of a watched call. A wait leaves a core idle, and most of them
are as long as many calls.

What is told does not hang on it. A failure is kept and explained once it is its turn, by then with
all that watched calls have shown. A call that does not end soon is given up, and all are made anew
in their turn: it may be that a watched call has more to say. One that waits for itself has failed.
"""

from collections.abc import Callable
from typing import NoReturn

from utils.course.answers import Answering
from utils.errors import CheckFailed, KernelTimeout
from utils.judge import called, judging
from utils.judge.called import Called, Tried, take
from utils.judge.judging import Remarks

SOON = called.LONGEST  # seconds


class _NotYet(Exception):
    """Something has failed ahead of its turn. `again` judges it once more."""

    def __init__(self, again: Callable[[], NoReturn]):
        super().__init__()
        self.again = again


class _Ahead(Called):
    """A call that fails is not explained before `its_turn`."""

    its_turn = False

    def failing(self, again: Callable[[], NoReturn]) -> None:
        if not self.its_turn:
            raise _NotYet(again)


class Ahead:
    """The calls of a kernel, of which some are made by `take`, and the rest by `finish`."""

    def __init__(self, kernel: Answering, seed: int) -> None:
        self._kernel, self._seed = kernel, seed
        self._begin()
        self._called.timeout = min(SOON, judging.TIMEOUT)
        self._failed: _NotYet | CheckFailed | None = None
        self._tried: Tried | None = None
        self._late = False

    def _begin(self) -> None:
        self._called = _Ahead(self._kernel, self._seed)
        self._steps = self._called.steps()

    def take(self, until: Callable[[], bool]) -> None:
        """Make calls until it is so."""
        while not (self._tried or self._failed or self._late or until()):
            try:
                next(self._steps)
            except StopIteration as end:
                self._tried = end.value
            except _NotYet as failure:
                self._failed = failure
            except CheckFailed as failure:
                cause = failure.__cause__
                if isinstance(cause, KernelTimeout) and not cause.certain:
                    self._late = True
                else:
                    self._failed = failure

    def finish(self, remarks: Remarks) -> Tried:
        """What the kernel was tried on. Raises CheckFailed."""
        if self._late:
            self._begin()
        self._called.its_turn, self._called.timeout = True, judging.TIMEOUT
        self._called.remarks = remarks
        if isinstance(self._failed, _NotYet):
            self._failed.again()
            raise AssertionError("judged once more, what has failed is right")
        if self._failed:
            raise self._failed
        return self._tried or take(self._steps)
