"""What a kernel does of what an exercise asks, beside whether it passes: for partial credit.

`check` ends at the first fault. Here each part is tried by itself, on sizes and values that nobody
knows before, too. A right value counts only where kernels read the inputs and wrote the outputs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from utils.course import case_calls, case_sizes, cases, catalog
from utils.course.answers import Answer, compile_wrong
from utils.course.exercise import Exercise, Sizes, inputs_of
from utils.ground.errors import CheckFailed, KernelCrash, KernelTimeout, LaunchError
from utils.judge import mismatch, oracle, provenance, statements
from utils.judge.diagnosed_calls import DiagnosedCalls
from utils.judge.plain_calls import PlainCalls
from utils.judge.verdict import FEW
from utils.watch.diagnosis import Diagnosis

UNKNOWN = 3  # times each of the sizes that a spec leaves open is drawn
SMALL = 2  # so many of the sizes, from the smallest


@dataclass(frozen=True)
class Credit:
    """Of a kernel that compiles. Where it passes its check, all but perhaps `all` holds."""

    works: bool = False  # kernels read the inputs and write outputs, half right; not like_starter
    small: bool = False  # right on the smaller sizes, by the kernels' own work
    all: bool = False  # right on all, and on those that nobody knows
    clean: bool = False  # small, and no hazard there
    gates: bool = False  # small, and the technique is there
    named: bool = False  # what is wrong with a kernel that was given is named
    unknown: str = ""  # what failed on sizes that nobody knows, without their values
    like_starter: bool = False  # the starter does as much: `works` is for more than that


def of_passed(kernel: Answer, seed: int) -> Credit:
    """Of a kernel that has passed its check: hold it against more sizes. `seed` is a secret."""
    with oracle.one_thread():
        unknown = _unknown(PlainCalls(kernel, seed))
    named = statements.named(kernel.exercise, kernel.source)
    return Credit(True, True, not unknown, True, True, named, unknown)


def of_failed(kernel: Answer, seed: int) -> Credit:
    """Of a kernel that has not: see what holds of it. `seed` is a secret."""
    exercise = kernel.exercise
    named = statements.named(exercise, kernel.source)
    diagnosed, plain = DiagnosedCalls(kernel, seed), PlainCalls(kernel, seed)
    few = diagnosed.ascending()[:SMALL]
    with oracle.one_thread():
        seen = _seen(diagnosed, few)
        whole = len(seen) == len(few)
        works = any(_works(exercise, call) for call in seen)
        diagnoses = [call.diagnosis for call in seen]
        largest = _seen(diagnosed, diagnosed.ascending()[-1:])  # where a launcher has more to do
        left = all(_left_to_kernels(call.diagnosis) for call in largest)
        own = whole and left and all(provenance.violation(exercise, s) is None for s in diagnoses)
        small = own and _holds(lambda: _try(plain, few))
        clean = small and not any(s.hazards or s.error for s in diagnoses)
        like_starter = works and not small and _starter_works(diagnosed, few)
        gates = small and _holds(diagnosed.judge_gates)
        known = small and _holds(lambda: _try(plain, exercise.at.check))
        unknown = _unknown(plain) if known else ""
        right = known and not unknown and _holds(lambda: _fresh(plain))
    # Where all of this holds, the check objects to what is tried there alone, or to a statement.
    unnamed = statements.required(exercise) is not None and not named
    right = right and (unnamed or not (clean and gates))
    return Credit(
        works and not like_starter, small, right, clean, gates, named, unknown, like_starter
    )


def _holds(trying: Callable[[], None]) -> bool:
    try:
        trying()
    except CheckFailed:
        return False
    return True


@dataclass(frozen=True)
class _Call:
    """What a watched call showed, and whether half of what it computed is right."""

    diagnosis: Diagnosis
    right: bool


def _seen(diagnosed: DiagnosedCalls, few: list[Sizes]) -> list[_Call]:
    """Watched calls, to the first that comes to no end."""
    seen = []
    for sizes in few:
        case = diagnosed.case(sizes)
        try:
            diagnosis = diagnosed.diagnosis_of(case_calls.arguments(diagnosed.kernel, case))
        except (KernelCrash, KernelTimeout, LaunchError):
            break
        expected = diagnosed.expecting(case, "cpu", FEW)()
        wrong = [mismatch.wrong(diagnosis.after[name], values) for name, values in expected.items()]
        every = sum(values.numel() for values in wrong)
        seen.append(_Call(diagnosis, 2 * sum(int(values.sum()) for values in wrong) <= every))
    return seen


def _works(exercise: Exercise, call: _Call) -> bool:
    """Whether kernels read something and wrote something, right for the half of it, and the
    launcher left it to them."""
    seen, read = call.diagnosis, inputs_of(exercise)
    covered = seen.covered
    writes = any(covered[n].by_kernels and covered[n].written for n in exercise.outputs)
    reads = not read or any(covered[name].read for name in read)
    return writes and reads and call.right and _left_to_kernels(seen)


def _left_to_kernels(seen: Diagnosis) -> bool:
    copies = seen.detour or seen.scattered > provenance.SCATTERED
    return bool(seen.launches) and not copies


def _starter_works(diagnosed: DiagnosedCalls, few: list[Sizes]) -> bool:
    """Whether what was given to begin with does as much: then it is not the learner's work."""
    exercise = diagnosed.exercise
    starter = compile_wrong(exercise, catalog.starter_text(exercise), "starter")
    shown = _seen(DiagnosedCalls(starter, diagnosed.seed), few)
    return any(_works(exercise, call) for call in shown)


def _try(plain: PlainCalls, sizes: Sequence[Sizes]) -> None:
    """All kinds of values at each size. Raises CheckFailed."""
    for size, families in cases.plan(plain.exercise, sizes):
        plain.judge_all(plain.of_size(size, families))


def _fresh(plain: PlainCalls) -> None:
    """Calls in a process that has never called the kernel. Raises CheckFailed."""
    plain.judge_all(plain.in_another_process(plain.exercise.at.check))


def _unknown(plain: PlainCalls) -> str:
    """What is wrong on sizes that nobody knows, in words that give no value away; or nothing."""
    drawn = [s for _ in range(UNKNOWN) for s in case_sizes.drawn(plain.exercise, plain.generator)]
    for sizes in drawn:
        try:
            plain.judge_outcome(plain.call(plain.case(sizes), probes=FEW))
        except CheckFailed as failure:
            names = ", ".join(sizes)
            return f"{failure.reason} at a size ({names}) that the notebook does not try"
    return ""
