"""When the plain calls of a kernel are made, beside its diagnosed ones.

They are planned from the seed, and whenever the check would wait, for the diagnosing build or for
the end of a diagnosed call, some are made early: a wait leaves a core idle, and most are as long as
many calls. Outcomes are only kept then. All are judged afterwards, in order, with what the
diagnosed calls have shown, so that a verdict does not depend on when a call was made. Nor does it
on when one is judged: that is done while the calls are waited for that are left to be made. Most of
the work is to find how large an error may be, and that is done while early calls are waited for.
"""

from collections import deque
from collections.abc import Callable

from utils.course import case_sizes
from utils.course.answers import Answer
from utils.ground.errors import CheckFailed
from utils.judge import mismatch, plain_calls, verdict
from utils.judge.outcomes import Failed, Outcome, Returned
from utils.judge.plain_calls import PlainCalls, Tried
from utils.judge.verdict import Remarks

SOON = plain_calls.LONGEST  # seconds for an early call
MOST = 8_000_000  # elements of the tensors of calls whose outcomes are kept


class Schedule:
    """The plain calls of a kernel. A failure ends them, early or not."""

    def __init__(self, kernel: Answer, seed: int) -> None:
        self._kernel, self._seed = kernel, seed
        self._kept = deque[Outcome]()
        self._unseen = deque[Returned]()  # of them, of which no bound is known
        self._room = MOST
        self._begin(SOON)

    def _begin(self, limit: float) -> None:
        self._calls = PlainCalls(self._kernel, self._seed, min(limit, verdict.TIMEOUT))
        self._outcomes = self._calls.outcomes()

    def make_early(self, until: Callable[[], bool]) -> None:
        """Make calls and keep their outcomes, until it is so, or there is no more to make."""
        self._calls.meanwhile = self._look_at_kept
        while self._room > 0 and not until() and (outcome := next(self._outcomes, None)):
            self._kept.append(outcome)
            if isinstance(outcome, Returned):
                self._room -= case_sizes.elements(self._kernel.exercise, outcome.case.sizes)
                self._unseen.append(outcome)
            elif isinstance(outcome, Failed) and verdict.only_late(outcome.failure):
                # A diagnosed call may have more to say of that; if none has, all are made anew,
                # with the whole time limit.
                self._room = 0
                self._kept.clear()
                self._unseen.clear()
                self._begin(verdict.TIMEOUT)

    def _look_at_kept(self, until: Callable[[], bool]) -> None:
        """Work out the bounds that judging what is kept needs, the oldest first, until it is so.
        Whether values keep to them is not asked yet."""
        while self._unseen and not until():
            outcome = self._unseen.popleft()
            for name, expected in outcome.expected.items():
                mismatch.wrong(outcome.after[name], expected)

    def close(self) -> None:
        """No more calls are made, nor is anything in the background."""
        self._outcomes.close()

    def prepare(self, until: Callable[[], bool]) -> None:
        """Plan calls, and work out what is expected of them, until it is so. None is made."""
        self._calls.prepare(until)

    def judge(self, remarks: Remarks) -> Tried:
        """Judge all calls, and make those that are left. Raises CheckFailed."""
        calls = self._calls
        calls.timeout, calls.remarks = verdict.TIMEOUT, remarks
        most = 0  # outcomes that are kept; a card may be needed to judge them, too
        if self._kernel.backend == "emulator":
            calls.meanwhile, most = self._judge_kept, max(len(self._kept), 1)
        for outcome in self._outcomes:
            self._kept.append(outcome)
            while len(self._kept) > most:
                self._judge_kept(lambda: True)
        self._judge_kept(lambda: False)
        return calls.tried

    def _judge_kept(self, until: Callable[[], bool]) -> None:
        """Judge what is kept, the oldest first: one at least, until it is so. Raises CheckFailed,
        and forgets what came after that."""
        try:
            while self._kept:
                self._calls.judge_outcome(self._kept.popleft())
                if until():
                    break
        except CheckFailed:
            self._kept.clear()
            raise
