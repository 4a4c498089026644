"""`check(kernel)`: does it compute what PyTorch computes, everywhere, every time, and nothing else?

Each call runs apart from the notebook, between guarded memory: fresh values from a seed, outputs
full of NaN, inputs compared with their copies afterwards. What is expected is worked out meanwhile,
where the kernel's process cannot look into this one, or after the call. A second set of values in
the same buffers, and the same values twice, show what a kernel keeps between calls.

First it is watched: one that races, hangs, leaves its arrays or computes something else never
reaches a card. Without a card it is called as it is while the check waits for that (see
schedule.py), and what diagnosed calls show is told first. With one, nvcc takes seconds, and the
check is begun meanwhile (`begin`): calls that are watched need no card.
"""

import hashlib
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from weakref import WeakSet

from utils.course import catalog
from utils.course.answers import Answer, exercise_of
from utils.course.case_sizes import size_text
from utils.course.exercise import Exercise
from utils.cuda import instrumented, signature
from utils.cuda.signature import Parameter
from utils.ground import events, settings
from utils.ground.errors import CheckFailed, DeclarationError, Reason
from utils.judge import oracle, statements, verdict
from utils.judge.diagnosed_calls import DiagnosedCalls
from utils.judge.rehearsal import Rehearsals
from utils.judge.schedule import SOON, Schedule
from utils.judge.summary import Passed, tell
from utils.process import card

PAUSE = 0.01  # seconds between looks at a build


def check(kernel: Answer, *, seed: int | None = None) -> None:
    """Compare a kernel with PyTorch on many sizes and kinds of values; print a verdict.

    Values are fresh each time; the message of a failure names the `seed` that repeats them.
    Sets `kernel.trusted`. Raises CheckFailed.
    """
    exercise = exercise_of(kernel)
    start = time.perf_counter()
    outcome = "error"
    trial = kernel.begun if seed is None else None
    kernel.begun = None
    try:
        with oracle.one_thread(), card.apart():
            if not isinstance(trial, Trial):
                trial = Trial(kernel, _seed(exercise) if seed is None else seed)
            passed = trial.run()
        outcome = "passed"
    except CheckFailed as failure:
        outcome = failure.reason
        raise
    finally:
        kernel.trusted = outcome == "passed"
        events.log("check", exercise, verdict=outcome, seconds=time.perf_counter() - start)
    tell(kernel, passed)


def begin(kernel: Answer, until: Callable[[], bool]) -> None:
    """Do what a check will do without a card, until it is so; the first `check(kernel)` goes on
    with that. Of several kernels the last one is begun."""
    for before in _begun:  # what is expected of it may take a gigabyte
        before.begun = None
    _begun.clear()
    if kernel.untouched:
        return
    trial = Trial(kernel, _seed(kernel.exercise))
    # Whatever fails here, for want of memory too, fails again in the check, and there it is told.
    with suppress(Exception), oracle.one_thread(), card.apart():
        if trial.begin(until):
            kernel.begun = trial
            _begun.add(kernel)


_begun = WeakSet[Answer]()


def _seed(exercise: Exercise) -> int:
    """A fresh one, or that of WORKBOOK_SEED and this exercise."""
    if not (text := settings.seed()):
        return secrets.randbits(32)
    return int.from_bytes(hashlib.sha256(f"{text} {exercise.id}".encode()).digest()[:4])


def _declared(exercise: Exercise) -> tuple[Parameter, ...]:
    """The launcher's parameters as the workbook gives them."""
    if not catalog.kernel_path(exercise).is_file():
        return ()
    return signature.parse_launcher(catalog.starter_text(exercise), exercise.name)


class Trial:
    """A kernel, and a seed of the values and sizes that it is tried on."""

    def __init__(self, kernel: Answer, seed: int):
        self.kernel, self.exercise, self.seed = kernel, kernel.exercise, seed
        self._schedule, self._diagnosed = Schedule(kernel, seed), DiagnosedCalls(kernel, seed)
        if kernel.backend == "cuda":  # no call is made before its turn
            self._diagnosed.meanwhile = self._schedule.prepare
        elif kernel.built:  # most that is not, such as a mutant, fails before it need be
            self._diagnosed.meanwhile = self._schedule.make_early
        self._failure: CheckFailed | None = None

    def run(self) -> Passed:
        """What a kernel that passes has passed. Raises CheckFailed."""
        starter, stands = self.kernel.untouched, ""
        if not starter or self.exercise.faulty:
            try:
                passed = self._try()
            except CheckFailed as failure:
                if not starter:
                    note = statements.beside(failure, self.exercise, self.kernel.source)
                    raise self._warned(note) from failure.__cause__
                stands = f"\nas it stands: {failure}"
            finally:
                self._schedule.close()
        if starter:
            effort = f" ({self.exercise.effort})" if self.exercise.effort else ""
            raise CheckFailed(
                Reason.NOT_ATTEMPTED,
                f"{self.kernel.name} is still as it was given; write your part{effort}, run the "
                f"cell, then check again{stands}",
            )
        statements.judge(self.exercise, self.kernel.source)
        return passed

    def _warned(self, failure: CheckFailed) -> CheckFailed:
        """The failure with what g++ warns of, in front of a report that may point elsewhere."""
        if not (warnings := instrumented.warnings(self.kernel)):
            return failure
        first, *others = str(failure).removeprefix(f"{failure.reason}: ").splitlines()
        return CheckFailed(failure.reason, "\n".join([first, warnings, *others]))

    def begin(self, until: Callable[[], bool]) -> bool:
        """Take steps until it is so. Whether the trial can go on from there: not if a call was late
        for the short while that it has here. May raise, and is of no use after that."""
        self._same_types()
        self._diagnosed.timeout = SOON
        built = instrumented.begin(self.kernel)
        self._diagnosed.meanwhile(lambda: built() or until())
        while not (built() or until()):
            time.sleep(PAUSE)
        try:
            while not until():
                next(self._diagnosed.steps)
        except StopIteration:
            self._schedule.prepare(until)
        except CheckFailed as failure:
            self._failure = failure
        self._diagnosed.timeout = verdict.TIMEOUT
        return not (self._failure and verdict.only_late(self._failure))

    def _try(self) -> Passed:
        """What a kernel has passed whose values are right; what it says of itself is not read."""
        self._same_types()
        if self._failure:
            raise self._failure
        self._diagnosed.meanwhile(instrumented.begin(self.kernel))
        seen, tried = self._diagnosed.all(), self._schedule.judge(self._diagnosed.remarks)
        if self.kernel.backend == "emulator":
            Rehearsals(self.kernel, self.seed, self._diagnosed).judge_all()
        details = (
            f"{len(tried.sizes)} sizes up to {size_text(tried.sizes[-1])}, {tried.drawn} "
            f"drawn; {', '.join(tried.families)} values; inputs intact; {seen}"
        )
        return Passed(tried.cases + tried.drawn, seen, details)

    def _same_types(self) -> None:
        """A kernel that was declared on floats must stay on floats, to be compared with them. It
        keeps its parameters: one that is left out is a rule that is."""
        kept = {parameter.name for parameter in self.kernel.parameters}
        for p in _declared(self.exercise):
            if p.name not in kept:
                raise DeclarationError(
                    f"{self.kernel.name} was declared with '{p.ctype} {p.name}'; "
                    "leave its parameters as they were"
                )
            if p.is_tensor and self.kernel.dtypes.get(p.name, p.dtype) != p.dtype:
                raise DeclarationError(
                    f"{self.kernel.name}: '{p.name}' was declared '{p.ctype}'; leave it so"
                )
