"""What a launcher does at sizes that no call here can have: its launches are rehearsed, not run.

A rehearsal takes milliseconds, whatever the sizes are, so the whole range that an exercise promises
is looked at: whether the launcher launches anything there, whether it brings values to the host,
whether as many threads work as did at smaller sizes, whether calls leave memory behind. Launches of
a kind that no watched call has made are watched at the smallest size that makes them, where that
can be run.
"""

from collections.abc import Sequence
from functools import partial

from utils.course import case_calls, case_sizes
from utils.course.answers import Answer
from utils.course.case_sizes import size_text
from utils.course.case_values import uniform
from utils.course.cases import Case
from utils.course.exercise import Sizes
from utils.cuda.isolation import IsolatedRun
from utils.ground.errors import LaunchError, Reason
from utils.ground.wording import many
from utils.judge import launches, verdict
from utils.judge.diagnosed_calls import MANY, DiagnosedCalls
from utils.judge.launches import Launches
from utils.judge.verdict import FAULTS, Judge

MOST = 1 << 24  # elements of the tensors of a rehearsal; only what is touched takes memory
FEWER = 32  # times the threads of smaller sizes: a launcher that launches fewer leaves work undone
FEW = 4  # blocks: fewer leave a card idle, where there is work:
WORK = 1 << 16  # elements
SERIES = 64  # launches, one after the other, of fewer than so many blocks each: a card is idle
IN_A_ROW = 4  # of one size: what each leaves behind is seen from the third on
HALVINGS = 10  # between two sizes, to find where launches of another kind begin
DEAR = 1e7  # of a call that is watched there, by case_sizes.cost: half a second


class Rehearsals(Judge):
    """The launches of a kernel at large sizes, beside those of watched calls."""

    def __init__(self, kernel: Answer, seed: int, diagnosed: DiagnosedCalls):
        super().__init__(kernel, seed, stream=2)
        self.diagnosed = diagnosed
        self.known: list[tuple[Sizes, Launches]] = list(diagnosed.launched)

    def judge_all(self) -> None:
        """Raises CheckFailed."""
        for number, names in enumerate(self._ways()):
            share = 1.0
            while case_sizes.elements(self.exercise, self._at(names, share)) > MOST:
                share *= 0.995
            share *= 1 - uniform((), self.generator).item() * (0.4 if number else 0.01)
            self._rehearse(names, share, all_large=not number)

    def _ways(self) -> list[list[str]]:
        """The sizes that grow, in each of the rehearsals: all of them, then one by one."""
        at = self.exercise.at
        names = [name for name in at.check[-1] if name not in at.choices and at.anywhere]
        return [names, *([name] for name in names)] if names else []

    def _at(self, names: Sequence[str], share: float) -> Sizes:
        return case_sizes.grown(self.exercise, names, share)

    def _rehearse(self, names: list[str], share: float, all_large: bool) -> None:
        sizes = self._at(names, share)
        made = self._launches(sizes, IN_A_ROW)
        self._judge_threads(sizes, made)
        if all_large and self.exercise.gates and not self.exercise.multiprocessors:
            self._judge_blocks(sizes, made)
        new = made.kinds - self._kinds()
        if not new:
            return
        low, high = 0.0, share  # below, such launches are not made
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            there = self._launches(self._at(names, middle))
            low, high = (low, middle) if new <= there.kinds else (middle, high)
            made = there if high == middle else made
        sizes = self._at(names, high)
        if case_sizes.cost(self.exercise, sizes) <= DEAR and made.threads <= MANY:
            self.diagnosed.look(sizes)

    def _kinds(self) -> frozenset[tuple[str, int]]:
        return frozenset().union(*(made.kinds for _, made in self.diagnosed.launched))

    def _launches(self, sizes: Sizes, calls: int = 1) -> Launches:
        """Those that would be made. Raises CheckFailed where CUDA would refuse them, where the work
        is not left to kernels, and where some of so many calls leave memory behind."""
        case = case_calls.nothing(self.kernel, sizes)
        runs = self._runs(case, calls)
        if not runs[0].launches:
            message = "at this size the launcher launches no kernel"
            self.fail(Reason.NO_KERNEL, case, message)
        if runs[0].detour:
            message = "at this size the launcher brings values to the host"
            self.fail(Reason.NO_KERNEL, case, message)
        self.judge_leak(case, verdict.leaked([run.live for run in runs]))
        return launches.of(runs[0].launches)

    def _runs(self, case: Case, calls: int) -> list[IsolatedRun]:
        arguments = case_calls.arguments(self.kernel, case, copy=False)
        run = partial(self.kernel.isolated, arguments, timeout=verdict.TIMEOUT, rehearsal=True)
        try:
            return [run() for _ in range(calls)]
        except LaunchError as error:
            self.fail(Reason.LAUNCH_ERROR, case, str(error))
        except tuple(FAULTS) as error:
            self.fail(FAULTS[type(error)], case, str(error))

    def _judge_blocks(self, sizes: Sizes, made: Launches) -> None:
        """Where all sizes are large, there is work for many blocks, of the kernel that reads most:
        others may be launched for show."""
        blocks = made.of_kernels.get(self.diagnosed.reader, made.blocks)
        if blocks < FEW and case_sizes.elements(self.exercise, sizes) >= WORK:
            message = (
                f"{many(blocks, 'block')} for all of it\nhint: one block keeps one "
                "multiprocessor busy, and a card has more than a hundred: share the work out"
            )
            self.fail(Reason.GATE, case_calls.nothing(self.kernel, sizes), message)
        if made.count > SERIES and made.blocks < SERIES * made.count:
            message = (
                f"{many(made.count, 'launch')} for all of it, of {made.blocks / made.count:.3g} "
                "blocks on the average\nhint: they wait for each other, and so few blocks leave "
                "most of a card idle: let one launch have the blocks of all"
            )
            self.fail(Reason.GATE, case_calls.nothing(self.kernel, sizes), message)

    def _judge_threads(self, sizes: Sizes, made: Launches) -> None:
        """Larger sizes need no fewer threads, or not many fewer."""
        smaller = [
            (other, before)
            for other, before in self.known
            if all(other[name] <= value for name, value in sizes.items())
        ]
        most = max(smaller, key=lambda one: one[1].threads, default=None)
        self.known.append((sizes, made))
        if most and self.exercise.gates and FEWER * made.threads < most[1].threads:
            message = (
                f"{many(made.threads, 'thread')} for all of it; with {size_text(most[0])} there "
                f"were {most[1].threads:,}\nhint: let the number of blocks follow the size"
            )
            self.fail(Reason.GATE, case_calls.nothing(self.kernel, sizes), message)
