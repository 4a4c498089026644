"""What a kernel does of what an exercise asks, beside whether it passes: for partial credit.

`check` ends at the first fault. Here each part is tried by itself, on sizes and values that nobody
knows before, too. A right value counts only where kernels read the inputs and wrote the outputs.
"""

from collections.abc import Callable
from dataclasses import dataclass

from utils.course import cases
from utils.course.answers import Answer
from utils.course.cases import Case
from utils.course.exercise import Sizes
from utils.errors import CheckFailed, KernelCrash, KernelTimeout, LaunchError, ToolError
from utils.judge import floors, oracle, statements
from utils.judge.check import FEW, TIMEOUT, Trial
from utils.watch import diagnosis
from utils.watch.diagnosis import Diagnosis

UNKNOWN = 3  # times each of the sizes that a spec leaves open is drawn
SMALL = 2  # so many of the sizes, from the smallest


@dataclass(frozen=True)
class Credit:
    """Of a kernel that compiles. Where it passes its check, all but perhaps `all` holds."""

    works: bool = False  # kernels write to the outputs
    small: bool = False  # right on the smaller sizes, by the kernels' own work
    all: bool = False  # right on all, and on those that nobody knows
    clean: bool = False  # no hazard on the smaller sizes
    gates: bool = False  # small, and the technique is there
    named: bool = False  # what is wrong with a kernel that was given is named
    unknown: str = ""  # what failed on sizes that nobody knows, without their values


def of_passed(kernel: Answer, seed: int) -> Credit:
    """Of a kernel that has passed its check: hold it against more sizes. `seed` is a secret."""
    with oracle.one_thread():
        unknown = _unknown(Trial(kernel, seed))
    named = statements.right(kernel.exercise, kernel.source)
    return Credit(True, True, not unknown, True, True, named, unknown)


def of_failed(kernel: Answer, seed: int) -> Credit:
    """Of a kernel that has not: see what holds of it. `seed` is a secret."""
    exercise = kernel.exercise
    named = statements.right(exercise, kernel.source)
    trial = Trial(kernel, seed)
    few = trial.ascending()[:SMALL]
    with oracle.one_thread():
        seen = [_seen(trial, sizes) for sizes in few]
        works = any(s is not None and _writes(trial, s) for s in seen)
        clean = works and all(s is not None and not s.hazards and not s.error for s in seen)
        own = all(s is not None and floors.objection(exercise, s) is None for s in seen)
        small = own and _holds(lambda: _try(trial, few))
        unknown = (
            _unknown(trial) if small and _holds(lambda: _try(trial, exercise.at.check)) else "-"
        )
        gates = small and _holds(trial.judge_gates)
    return Credit(works, small, not unknown, clean, gates, named, unknown.removeprefix("-"))


def _holds(trying: Callable[[], None]) -> bool:
    try:
        trying()
    except (CheckFailed, ToolError):
        return False
    return True


def _seen(trial: Trial, sizes: Sizes) -> Diagnosis | None:
    """What a watched call showed; None where it came to no end."""
    case = _case(trial, sizes)
    given = cases.arguments(trial.kernel, case)
    fresh = set(trial.exercise.outputs) - set(cases.inputs(trial.exercise))
    try:
        return diagnosis.diagnose_call(trial.kernel, given, unwritten=fresh, timeout=TIMEOUT)
    except (KernelCrash, KernelTimeout, LaunchError):
        return None


def _writes(trial: Trial, seen: Diagnosis) -> bool:
    covered = [seen.covered[name] for name in trial.exercise.outputs if name in seen.covered]
    return bool(seen.launches) and any(c.by_kernels and c.written for c in covered)


def _try(trial: Trial, sizes: tuple[Sizes, ...] | list[Sizes]) -> None:
    """All kinds of values at each size. Raises CheckFailed."""
    for size, families in cases.plan(trial.exercise, sizes):
        trial.try_size(size, families)


def _unknown(trial: Trial) -> str:
    """What is wrong on sizes that nobody knows, in words that give no value away; or nothing."""
    drawn = [s for _ in range(UNKNOWN) for s in cases.drawn(trial.exercise, trial.generator)]
    for sizes in drawn:
        try:
            trial.call(_case(trial, sizes), probes=FEW)
        except CheckFailed as failure:
            names = ", ".join(sizes)
            return f"{failure.reason} at a size ({names}) that the notebook does not try"
    return ""


def _case(trial: Trial, sizes: Sizes) -> Case:
    usual = cases.usual(trial.exercise)
    return cases.sample(trial.exercise, sizes, usual, trial.generator, trial.dtypes)
