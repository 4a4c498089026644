"""All that can be said of wrong values: which, from what, in which pattern, and why perhaps.

Many mistakes give the same values at a small size. So why is said only where a second, larger call
that is wrong has values of the same kind.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType

from torch import Tensor

from utils.course import case_sizes
from utils.course.answers import Answer
from utils.course.case_values import NORMAL
from utils.course.cases import Case
from utils.course.exercise import Exercise, Sizes
from utils.cuda import instrumented, suspicions
from utils.judge import mismatch, smallest, statements
from utils.judge.cue import cue
from utils.judge.mistakes.displaced import displaced
from utils.judge.mistakes.hypotheses import kind, mistakes
from utils.judge.mistakes.ties import ties
from utils.judge.mixed import mixed
from utils.judge.oracle import Expected
from utils.judge.reruns import Reruns, Wrong

THOROUGH = True  # whether to compile, run and reckon for a message; tests of thousands do not
UNSET = (
    "a local variable that nobody has set holds -1.69e38 on the emulator (any value on a GPU): "
    "is one read before it is written?"
)
NOTHING = (
    "a NaN comes of 0 / 0, inf / inf, inf - inf, 0 * inf, the root of a negative number, or bits "
    "that were set in another way"
)
UNSET_NAMED = "these are values of the variable that the warning names: nobody has set it"
SECONDS = 2.0  # for larger calls, until one is wrong
HUGE, USUAL = 1e30, 1e20  # what locals are filled with is the one, what values are is the other


def several_first(
    sizes: tuple[Sizes, ...], follows: Mapping[str, str] = MappingProxyType({})
) -> tuple[Sizes, ...]:
    """The same sizes, but for the first that tells much, which comes first. Those that are 1 in
    every direction tell little, and those with as many groups as channels, as `follows` has them,
    or a single group.
    """

    def little(at: Sizes) -> int:
        if set(at.values()) == {1} or any(at[a] == at[b] for a, b in follows.items()):
            return 2
        return int(any(at[a] == 1 for a in follows))

    first = min(sizes, key=little)
    return (first, *(at for at in sizes if at is not first))


def wrong_values(
    kernel: Answer, case: Case, name: str, got: Tensor, expected: Expected, bad: Tensor
) -> str:
    """The mismatches of one output, and what they hang on.

    May run the kernel again at other sizes.
    """
    exercise = kernel.exercise
    unset = because = ""
    if THOROUGH:
        unset = _unset(kernel, got, expected)
        because = unset or _searched(partial(cause, kernel, case, name, got, expected, bad))
    beside = cue(exercise, case, name, got)
    lines = [mismatch.explain(name, got, expected, bad, exercise.eps, beside, because)]
    if fine := exercise.outputs[: exercise.outputs.index(name)]:
        lines.append(f"{' and '.join(fine)} {'is' if len(fine) == 1 else 'are'} right")
    if THOROUGH and not unset:
        lines.append(_searched(partial(smallest.contrast, kernel, case)))
    return "\n".join(filter(None, lines))


class HintFailed(UserWarning):
    """A search for a cause has failed: there is no hint, and the verdict stands."""


def _searched(search: Callable[[], str]) -> str:
    """What a search finds; nothing where it fails, which must not cost a learner the verdict."""
    try:
        return search()
    except Exception as error:
        warnings.warn(f"no hint: {type(error).__name__}: {error}", HintFailed, stacklevel=2)
        return ""


def cause(
    kernel: Answer, case: Case, name: str, got: Tensor, expected: Expected, bad: Tensor
) -> str:
    """What gives just these values. Where the fault is for the learner to name, not before that."""
    exercise = kernel.exercise
    if exercise.faulty and not statements.right(exercise, kernel.source):
        return ""
    output = Wrong(case, got, expected, bad)
    known = confirmed(
        causes(exercise, name, output),
        lambda: _again(exercise, name, Reruns(kernel, SECONDS).larger(case, name)),
    )
    none = got.is_floating_point() and bool(got.isnan().all() and expected.value.isfinite().any())
    if known or none:
        return known or _nothing(kernel, case, name)
    patterned = mismatch.hint(got, expected, bad, exercise.eps)
    return "" if patterned else mixed(Reruns(kernel, SECONDS), case, name, bad)


def _nothing(kernel: Answer, case: Case, name: str) -> str:
    """What a NaN comes of, and the call of `trace` that meets it, where it is met there, too."""
    reruns = Reruns(kernel, SECONDS)
    if case_sizes.elements(kernel.exercise, case.sizes) > smallest.MOST:
        return NOTHING
    after = reruns.computed(reruns.sample(case.sizes, NORMAL))  # what `trace` draws of these sizes
    if after is None or not after[name].isnan().any():
        return NOTHING
    sizes = ", ".join(f"{size}={value}" for size, value in case.sizes.items())
    return f"{NOTHING}; trace({kernel.name}, {sizes}) shows what thread 0 computes at these sizes"


def confirmed(causes: Iterator[str], others: Callable[[], Iterator[str]]) -> str:
    """The first of the causes whose kind is among the others, which are looked for where there is
    a cause at all; "" for none."""
    seen: set[str] = set()
    more: Iterator[str] | None = None
    for words in causes:
        more = others() if more is None else more
        while kind(words) not in seen and (other := next(more, "")):
            seen.add(kind(other))
        if kind(words) in seen:
            return words
    return ""


def causes(exercise: Exercise, name: str, output: Wrong) -> Iterator[str]:
    """All that gives these values, the likeliest first."""
    case, got, expected, bad = output
    yield from mistakes(exercise, case, name, got, expected)
    if words := ties(exercise, case, name, got, expected.value):
        yield words
    if got[bad].any() and (words := displaced(got, expected, bad)):
        yield words
    if words := mismatch.turned(got, expected):
        yield words


def _again(exercise: Exercise, name: str, output: Wrong | None) -> Iterator[str]:
    return causes(exercise, name, output) if output else iter(())


def _unset(kernel: Answer, got: Tensor, expected: Expected) -> str:
    """That a variable has no value, where values look like it."""
    if not got.is_floating_point():
        return ""
    wild = ~got.isfinite() | (got.abs() > HUGE)
    tame = expected.value.isfinite() & (expected.value.abs() < USUAL)
    if not bool((wild & tame).any()):
        return ""
    if suspicions.NO_VALUE in instrumented.warnings(kernel):
        return UNSET_NAMED
    left = wild & tame & got.isfinite()  # what is infinite, a minimum may have begun with
    return UNSET if bool(left.any()) else ""
