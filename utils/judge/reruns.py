"""A kernel that was found wrong, called again: at other sizes, for as long as there is time."""

import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from torch import Generator, Tensor

from utils.course import case_calls, case_sizes, cases
from utils.course.answers import Answer
from utils.course.cases import Case
from utils.course.exercise import Exercise, Sizes
from utils.ground.errors import WorkbookError
from utils.judge import oracle
from utils.judge.mismatch import wrong
from utils.judge.oracle import Expected
from utils.watch import diagnosis

MOST = 28_000  # elements of a larger call: matrices of three tiles of 32 in each direction
SEVERAL = 3  # groups in place of one, of which any index may be that
TIMEOUT = 2.0  # for one
SIDES = 4096, 1024, 256, 128, 96, 64, 32  # whole tiles, blocks and warps in each direction


class Wrong(NamedTuple):
    """An output of a call that is wrong somewhere, where `bad` says."""

    case: Case
    got: Tensor
    expected: Expected
    bad: Tensor


class Reruns:
    """Diagnosed calls with values of any size, until the time is up."""

    def __init__(self, kernel: Answer, seconds: float):
        self.kernel, self.end = kernel, time.monotonic() + seconds

    def computed(self, case: Case) -> Mapping[str, Tensor] | None:
        """The tensors after a call; None where a hazard, or want of time, leaves them open."""
        if time.monotonic() > self.end:
            return None
        arguments = case_calls.arguments(self.kernel, case)
        try:
            seen = diagnosis.diagnose_call(self.kernel, arguments, timeout=TIMEOUT)
        except (WorkbookError, RuntimeError, ValueError):
            return None
        return None if seen.hazards or seen.error else seen.after

    def call(self, case: Case) -> dict[str, Wrong] | None:
        """What is wrong, by output; None where that is left open."""
        exercise, dtypes = self.kernel.exercise, self.kernel.dtypes
        if (after := self.computed(case)) is None:
            return None
        try:
            expected = oracle.expect(exercise, case, dtypes, probes=2)
        except (WorkbookError, RuntimeError, ValueError):
            return None
        outputs = {n: (after[n], expected[n]) for n in expected}
        judged = {n: Wrong(case, *both, wrong(*both)) for n, both in outputs.items()}
        return {n: output for n, output in judged.items() if output.bad.any()}

    def sample(self, sizes: Sizes, family: str = "", seed: int = 0) -> Case:
        """A case of these sizes, by default of the usual kind of values."""
        exercise, generator = self.kernel.exercise, Generator().manual_seed(seed)
        family = family or cases.usual(exercise)
        return cases.sample(exercise, sizes, family, generator, self.kernel.dtypes)

    def larger(self, case: Case, name: str) -> Wrong | None:
        """The first larger call whose output `name` is wrong, too: if there is one, with more than
        NaN, which many mistakes give."""
        of_nan = None
        for sizes in larger_sizes(self.kernel.exercise, case.sizes):
            outputs = self.call(self.sample(sizes, case.family))
            if outputs and name in outputs:
                output = outputs[name]
                if not output.got[output.bad].isnan().all():
                    return output
                of_nan = of_nan or output
        return of_nan


def larger_sizes(exercise: Exercise, sizes: Sizes) -> Iterator[Sizes]:
    """Sizes above these: whole tiles first, where nothing is filled up, then ragged ones."""
    for side in SIDES:
        grown = _grown(exercise, sizes, {n: side * (s // side + 1) for n, s in sizes.items()})
        if case_sizes.elements(exercise, grown) <= MOST or side == SIDES[-1]:
            large = _deep(exercise) or case_sizes.elements(exercise, sizes) > MOST
            dear = case_sizes.elements(exercise, grown) > MOST and large
            yield _grown(exercise, sizes, {n: s + 1 for n, s in sizes.items()}) if dear else grown
            break
    yield _grown(exercise, sizes, {n: 2 * s + 3 for n, s in sizes.items()})
    for known in exercise.at.check:
        if known != sizes and all(known[n] >= s for n, s in sizes.items()):
            yield known


def _deep(exercise: Exercise) -> bool:
    """Whether a tensor has three dimensions: whole tiles in each have very many elements."""
    return any(len(shape.split()) > 2 for shape in exercise.shapes.values())


def _grown(exercise: Exercise, sizes: Sizes, grown: Mapping[str, int]) -> Sizes:
    """The sizes of tensors, grown; of what others follow, each of the parts."""
    follows = exercise.follows
    lengths = [n for n in case_sizes.lengths(exercise) if n not in follows]
    larger = {**sizes, **{n: grown[n] for n in lengths}}
    for follower, leader in follows.items():
        parts = larger[follower] = sizes[follower] if sizes[follower] > 1 else SEVERAL
        larger[leader] = parts * max(larger[leader] // parts, 1)
    return larger
