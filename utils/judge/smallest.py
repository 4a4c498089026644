"""The smallest size at which a kernel still computes something wrong, found by trying."""

from collections.abc import Callable, Collection, Mapping

from utils.course import case_sizes, cases
from utils.course.answers import Answer
from utils.course.case_sizes import size_text
from utils.course.cases import Case
from utils.judge.reruns import Reruns

MOST = 50_000  # elements of a call that is tried again
SECONDS = 2.0  # for all tries together; the last begun is finished
SEEDS = 3  # of values on which what is told must hold
EDGE = 4  # sizes below tell little
HELD = 32  # a block, tile or warp holds a multiple of it


def contrast(kernel: Answer, case: Case) -> str:
    """Which sizes or values the wrong ones of a case hang on, as a line; "" where nothing is found.

    Runs the kernel again at smaller sizes; what it says passes has passed, on values of one seed.
    """
    usual, tried = cases.usual(kernel.exercise), _Tries(kernel)
    if case_sizes.elements(kernel.exercise, case.sizes) > MOST or case.note:
        return ""
    if not tried.is_wrong(case) or (at := tried.fails(case.sizes)) is None:
        return ""
    if not at:
        if case.family == usual and not case.order:  # others of its kind pass by chance
            return ""
        return f"at these sizes, {usual} values pass: it is a matter of the values"
    follows, choices = kernel.exercise.follows, kernel.exercise.at.choices
    staying = {*follows, *follows.values(), *choices}
    least, passing = shrink(tried.fails, case.sizes, staying)
    passing = {name: value for name, value in passing.items() if value >= EDGE}
    passes = [f"{name} = {value} passes" for name, value in passing.items()]
    if not passes or not tried.hold(least, passing):
        return ""
    text = f"the smallest that fails: {size_text(least)}; {', '.join(passes)}"
    edges = [name for name, value in passing.items() if value % HELD == 0]
    if edges:
        text += f": what is different in the second block, tile or round along {edges[0]}?"
    return text


class _Tries:
    """Calls of other sizes, and whether they are wrong."""

    def __init__(self, kernel: Answer):
        self.reruns = Reruns(kernel, SECONDS)

    def hold(self, least: Mapping[str, int], passing: Mapping[str, int]) -> bool:
        """Whether the one fails and the others pass on other values, too."""
        return all(
            self.fails(least, seed)
            and all(self.fails({**least, k: n}, seed) is False for k, n in passing.items())
            for seed in range(1, SEEDS)
        )

    def fails(self, sizes: Mapping[str, int], seed: int = 0) -> bool | None:
        """Whether an output is wrong; None where a hazard, or want of time, leaves it open."""
        return self.is_wrong(self.reruns.sample(sizes, seed=seed))

    def is_wrong(self, case: Case) -> bool | None:
        """The same of a case, with its own values."""
        wrong = self.reruns.call(case)
        return None if wrong is None else bool(wrong)


def shrink(
    fails: Callable[[Mapping[str, int]], bool | None],
    sizes: Mapping[str, int],
    staying: Collection[str],
) -> tuple[dict[str, int], dict[str, int]]:
    """(the smallest failing sizes, and of each that is not 1 the largest value below that passes).

    One size after the other is halved towards 1, as if all that is larger than what fails failed,
    too. Those `staying` are left as they are: sizes that hang together, such as channels and
    groups, and those of which there is a choice of a few.
    """
    least, passing = dict(sizes), {}
    for name in sizes:
        if name in staying:
            continue
        good, bad = 0, least[name]
        while bad - good > 1:
            middle = 1 if good == 0 else (good + bad) // 2
            verdict = fails({**least, name: middle})
            if verdict is None:
                break
            good, bad = (good, middle) if verdict else (middle, bad)
        least[name] = bad
        if 0 < good == bad - 1:
            passing[name] = good
    return least, passing
