"""A kernel is called as it is: values and sizes that are known and others, in buffers that it has
met before, and in a process that has never called it.
"""

import contextlib
import itertools
from collections.abc import Generator, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from utils.course import case_calls, case_sizes, cases
from utils.course.answers import Answering
from utils.course.cases import Case
from utils.course.exercise import Sizes, dimensions
from utils.errors import CheckFailed, KernelCrash, KernelTimeout, LaunchError, Reason
from utils.judge import judging, oracle
from utils.judge.judging import FAULTS, FEW, Judging
from utils.judge.mismatch import bits
from utils.process import card, child, pool
from utils.wording import many

AGAIN = 3  # sizes that a second process is tried on
REHEARSED = 4_000_000  # elements
# Where a size or an index of 16 bits shows; the second where a grid cannot be so long.
LONG = ((65_537, 70_000), (32_769, 36_000))
MANY = 1_200_000  # threads: with barriers they take the emulator a quarter of a second
PART, LONGEST = 16, 2.5  # a call that is so much shorter says whether it would take more seconds
GRID = 65_535  # blocks along y or z
CALLS = 41, 60  # and so many calls of small ones: who counts further is not found


Result = TypeVar("Result")
Steps = Generator[None, None, Result]


def take(steps: Steps[Result]) -> Result:
    """Take all steps. Raises CheckFailed."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


class Tried(NamedTuple):
    """What a kernel was tried on."""

    cases: int  # of known sizes
    sizes: tuple[Sizes, ...]  # that are known
    drawn: int  # sizes that were drawn, a case each
    families: tuple[str, ...]  # kinds of values


class Called(Judging):
    """Calls of a kernel, and what they leave behind."""

    def __init__(self, kernel: Answering, seed: int):
        super().__init__(kernel, seed, stream=1)
        self.timeout = judging.TIMEOUT
        self._paces: dict[str, float] = {}  # seconds for each element along a size
        self._live: list[int] = []  # bytes of device memory after each call of a size

    def steps(self) -> Steps[Tried]:
        """Each known size with several kinds of values, sizes that are drawn, and some of it again
        in another process: a call or two at a step."""
        sizes = self.exercise.at.check
        if self.kernel.backend == "cuda":
            sizes = (*sizes, *self.exercise.at.card)
        drawn = case_sizes.drawn(self.exercise, self.generator)
        kinds, count = dict.fromkeys([]), 0
        for size, families in cases.plan(self.exercise, sizes):
            kinds.update(dict.fromkeys(families))
            count += yield from self.try_size(size, families)
        for size in drawn:
            self.call(self.case(size), probes=FEW)
            yield
        if self.kernel.backend == "emulator":
            drawn += self._beyond_16_bits()
            self._rehearse()
            yield
        yield from self.again(self.exercise.at.check)
        return Tried(count, sizes, len(drawn), tuple(kinds))

    def try_size(self, sizes: Sizes, families: list[str]) -> Steps[int]:
        """All kinds of values at one size, in the same buffers, and the last of them twice."""
        before: dict[str, Tensor] = {}
        drawn = [self.case(sizes, family) for family in families]
        self._live = []
        for case in drawn:
            before = self.call(case, before)
            yield
        self.call(drawn[-1], again=True)
        yield
        self._judge_leak(case)
        return len(drawn)

    def call(
        self,
        case: Case,
        before: Mapping[str, Tensor] = MappingProxyType({}),
        again: bool = False,
        calls: int = 1,
        probes: int = oracle.PROBES,
    ) -> dict[str, Tensor]:
        """Run one case, or the last of so many calls of it, and judge it. `before` are the outputs
        of the call before this one."""
        with card.together(self.kernel.backend):  # what is expected is worked out there, too
            return self._call(case, before, again, calls, probes)

    def _call(
        self, case: Case, before: Mapping[str, Tensor], again: bool, calls: int, probes: int
    ) -> dict[str, Tensor]:
        given = case_calls.arguments(self.kernel, case)
        expecting = self.expecting(case, self.device, probes)
        beside = child.meanwhile(lambda answered: expecting())
        # On a GPU, the reference would wait for a kernel that hangs.
        with beside if self.device == "cpu" else contextlib.nullcontext():
            run = self._isolated(given, calls)
        self._live.append(run.live)
        self._judge_strays(case, run.strays)
        self.judge_inputs(case, run.after)
        got = {name: run.after[name].to(self.device) for name in self.exercise.outputs}
        expected = expecting()
        for name in self.exercise.outputs:
            same = bits(run.after[name]) == bits(given[name])
            self.judge(case, name, got[name], expected[name], same, before.get(name), again)
        return got

    def _judge_leak(self, case: Case) -> None:
        """Each call of one size after the first must leave as much memory as it found."""
        grown = [after - before for before, after in itertools.pairwise(self._live)]
        if len(grown) >= 2 and min(grown) > 0:
            message = (
                f"each call leaves {min(grown):,} bytes of device memory behind\n"
                "hint: cudaFree what the launcher has allocated, once the kernels are done"
            )
            self.fail(Reason.LEAK, case, message)

    def _judge_strays(self, case: Case, strays) -> None:
        if not strays:
            return
        lines = []
        for name, side in dict.fromkeys((stray.parameter, stray.side) for stray in strays):
            places = [s.offset for s in strays if (s.parameter, s.side) == (name, side)]
            edge = "its end" if side == "after" else "its beginning"
            lines.append(
                f"wrote outside of {name}: {many(len(places), 'element')} {side} {edge}, "
                f"the first at offset {min(places, key=abs)}"
            )
        lines.append("hint: which threads need a guard?")
        self.fail(Reason.OUT_OF_BOUNDS, case, "\n".join(lines))

    def adds(self, case: Case, name: str, unwritten: Tensor) -> bool:
        """Whether the kernel adds to what an output held, which leaves a NaN as it was."""
        if name in case.tensors or not unwritten.any():
            return False
        given = case_calls.arguments(self.kernel, case)
        given[name].fill_(1)
        return not (self._isolated(given).after[name] == 1)[unwritten.cpu()].any()

    def again(self, sizes: tuple[Sizes, ...]) -> Steps[None]:
        """A process that has called the kernel never before: a part of the sizes in another order,
        then so many calls of small ones that whoever counts them gives himself away."""
        pool.post(self.kernel.backend).restart()
        random = self.generator
        for i in torch.randperm(len(sizes), generator=random)[:AGAIN].tolist():
            self.call(self.case(sizes[i]))
            yield
        small = self.ascending()[1:3]
        for size in (*small, *small[:1]):
            calls = int(torch.randint(*CALLS, (), generator=random))
            self.call(self.case(size), calls=calls)
            yield

    def _beyond_16_bits(self) -> list[Sizes]:
        """Judge a call that is long in one size, another one each time, and short in the others.
        Not where that would take long, or CUDA refuse it: `at.card` says how far a kernel must go.
        """
        names = case_sizes.lengths(self.exercise)
        for i in torch.randperm(len(names), generator=self.generator).tolist():
            for span in LONG:
                sizes = case_sizes.long_sizes(self.exercise, names[i], span, self.generator)
                with contextlib.suppress(LaunchError):
                    if self._launched(sizes) <= MANY and self._soon(names[i], span):
                        self.call(self.case(sizes), probes=FEW)
                        return [sizes]
        return []

    def _soon(self, name: str, span: tuple[int, int]) -> bool:
        """Whether a call that is long in one size ends soon, by the pace of a shorter one."""
        if name not in self._paces:
            shorter = (span[0] // PART, span[1] // PART)
            sizes = case_sizes.long_sizes(self.exercise, name, shorter, self.generator)
            given = case_calls.arguments(self.kernel, self.case(sizes))
            self._paces[name] = PART * self._isolated(given).seconds / span[1]
        return self._paces[name] * span[1] <= LONGEST

    def _rehearse(self) -> None:
        """Would CUDA take the launches at sizes that only a card can do?"""
        for sizes in self.exercise.at.card:
            too_many = case_sizes.elements(self.exercise, sizes) > REHEARSED
            if too_many or max(sizes.values()) <= GRID:
                continue
            try:
                self._launched(sizes)
            except LaunchError as error:
                self.fail(Reason.LAUNCH_ERROR, self._nothing(sizes), str(error))

    def _launched(self, sizes: Sizes) -> int:
        """How many threads a call of these sizes would launch. Raises LaunchError."""
        given = case_calls.arguments(self.kernel, self._nothing(sizes))
        try:
            return self.kernel.isolated(given, timeout=self.timeout, rehearsal=True).threads
        except (KernelCrash, KernelTimeout) as error:
            raise CheckFailed(FAULTS[type(error)], str(error)) from error

    def _nothing(self, sizes: Sizes) -> Case:
        """A case whose values do not matter."""
        shapes = {n: dimensions(text, sizes) for n, text in self.exercise.shapes.items()}
        zeros = {n: torch.zeros(shape) for n, shape in shapes.items()}
        return Case(sizes, "no", zeros, {n: span[0] for n, span in self.exercise.scalars.items()})

    def _isolated(self, given: dict, calls: int = 1):
        try:
            return self.kernel.isolated(given, timeout=self.timeout, calls=calls)
        except tuple(FAULTS) as error:
            raise CheckFailed(FAULTS[type(error)], str(error)) from error
