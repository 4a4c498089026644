"""How one call of a kernel is judged: by what it leaves behind, beside what was expected."""

import functools
import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import torch
from torch import Generator, Tensor

from utils.course import case_calls, case_sizes, cases
from utils.course.answers import Answer
from utils.course.cases import Case
from utils.course.exercise import Sizes, inputs_of
from utils.cuda import instrumented
from utils.cuda.kernel import Kernel
from utils.ground import settings
from utils.ground.errors import CheckFailed, KernelCrash, KernelTimeout, LaunchError, Reason
from utils.judge import explain, mismatch, oracle
from utils.judge.mismatch import bits
from utils.judge.oracle import Expected

TIMEOUT = 10.0  # seconds for one call
FEW = 2  # probes of the oracle, where values are not what a call is about
BENT = 1000  # one of so many values may lie at a bend, and is asked about again
OBJECT = 4096  # bytes that the emulator counts for one that CUDA has made
VANISHING = 2.0**-100  # any number of values below this is, too: float32 loses terms of 2**-126
FAULTS: dict[type[Exception], Reason] = {
    LaunchError: Reason.LAUNCH_ERROR,
    KernelCrash: Reason.CRASHED,
    KernelTimeout: Reason.TIMEOUT,
}


@dataclass(frozen=True)
class Remarks:
    """What a watched call has shown that may be why values are wrong, in any call."""

    values: tuple[str, ...] = ()  # beside values
    launches: str = ""  # beside every failure


class Judge:
    """A kernel, and what it is tried on, drawn from a seed: of `stream`s each has its own draws."""

    def __init__(self, kernel: Answer, seed: int, stream: int = 0):
        self.timeout = TIMEOUT  # seconds for one call
        self.kernel, self.exercise, self.seed = kernel, kernel.exercise, seed
        self.device = kernel.device
        self.generator = Generator().manual_seed((stream << 32) + seed)  # a seed has 32 bits
        self.dtypes = kernel.dtypes
        self.remarks = Remarks()

    def case(self, sizes: Sizes, family: str = "") -> Case:
        """A call of these sizes, by default of the usual kind of values."""
        family = family or cases.usual(self.exercise)
        return cases.sample(self.exercise, sizes, family, self.generator, self.dtypes)

    def any_case(self, sizes: Sizes) -> Case:
        """A call of sizes that were drawn: every second time of another kind of values, or of these
        in an order that draws hardly ever have."""
        case = self.case(sizes, cases.any_family(self.exercise, self.generator))
        own = random.Random(f"{self.seed} {case}")  # a seed goes on with what it would have drawn
        return cases.arranged(self.exercise, case, own)

    def ascending(self) -> list[Sizes]:
        """The known sizes, that of the fewest elements first."""
        return sorted(self.exercise.at.check, key=lambda s: case_sizes.elements(self.exercise, s))

    def threads(self, sizes: Sizes) -> int:
        """How many threads a call of these sizes would launch, on the emulator. Raises LaunchError
        where CUDA would refuse that."""
        kernel: Kernel = self.kernel
        if kernel.backend == "cuda":
            kernel = instrumented.instrumented(kernel)
        case = case_calls.nothing(self.kernel, sizes)
        arguments = case_calls.arguments(self.kernel, case, copy=False)
        try:
            run = kernel.isolated(arguments, timeout=self.timeout, rehearsal=True)
        except (KernelCrash, KernelTimeout) as error:
            raise CheckFailed(FAULTS[type(error)], str(error)) from error
        return sum(launch.blocks * launch.threads for launch in run.launches)

    def expecting(self, case: Case, device: str, probes: int) -> Callable[[], dict[str, Expected]]:
        """What works out what a call should leave behind, when it is first asked."""
        work = functools.partial(oracle.expect, self.exercise, case, self.dtypes, device, probes)
        return functools.cache(work)

    def judge_leak(self, case: Case, leaked: int) -> None:
        """Calls may leave no bytes of device memory behind, and nothing else that CUDA has made;
        `leaked` says how many one has."""
        if leaked:
            message = f"each call leaves {leaked:,} bytes of device memory behind\n"
            hint = "hint: cudaFree what the launcher has allocated, once the kernels are done"
            if leaked % OBJECT == 0:
                hint += (
                    ", or cudaFreeHost; a stream, an event, a texture or a pool that is not "
                    f"destroyed counts as {OBJECT:,} bytes"
                )
            self.fail(Reason.LEAK, case, message + hint)

    def judge_inputs(self, case: Case, after: Mapping[str, Tensor]) -> None:
        """Inputs must hold what they held before the call."""
        for name in sorted(set(inputs_of(self.exercise)) - set(self.exercise.outputs)):
            before = case.tensors[name]
            changed = (bits(after[name]) != bits(before)).reshape(-1).nonzero()
            if len(changed):
                place = mismatch.index(name, int(changed[0]), before.shape)
                message = f"{name} is an input, but the kernel wrote to it, first to {place}"
                self.fail(Reason.INPUT_MODIFIED, case, message)

    def judge(
        self,
        case: Case,
        name: str,
        got: Tensor,
        expected: Expected,
        unchanged: Tensor,
        previous: Tensor | None = None,
        repeated: bool = False,
    ) -> None:
        """Judge one output. `unchanged`: where it holds the bits that it held before the call.

        `previous`: what the call before this one left there. `repeated`: whether this is a second
        call with the same values.
        """
        bad = mismatch.wrong(got, expected)
        if asked_again(bad, expected):
            device = bad.device.type
            expected = oracle.expect(self.exercise, case, self.dtypes, device, bends=True)[name]
            bad &= mismatch.wrong(got, expected)
        if got.is_floating_point() and name not in case.tensors:  # poison is a NaN, but not a value
            bad |= unchanged.to(bad.device) & got.isnan()
        if not bad.any():
            return
        unwritten = bad & unchanged.to(bad.device)
        if unwritten.any():
            if self.adds(case, name, unwritten):
                advice = (
                    f"the kernel adds to what {name} held before; set it to its initial value first"
                )
                seen = mismatch.explain(name, got, expected, bad, because=advice)
                self.fail(Reason.NAN, case, seen)
            self.fail(Reason.NOT_WRITTEN, case, mismatch.missing(name, unwritten))
        message = explain.wrong_values(self.kernel, case, name, got, expected, bad)
        message = "\n".join([message, *self.remarks.values])
        # Who reads the wrong inputs gets the NaN that these hold.
        if got.is_floating_point() and (bad & got.isnan()).any() and not _holds_nan(case):
            self.fail(Reason.NAN, case, message)
        if previous is not None and _left(got, previous.to(got.device), bad):
            advice = "these are the values of the call before, whose inputs were others"
            self.fail(Reason.STALE_OUTPUT, case, f"{message}\nhint: {advice}")
        if repeated:
            message += "\nhint: the same call gave the right values a moment ago: a race?"
        self.fail(Reason.WRONG_VALUES, case, message)

    def adds(self, case: Case, name: str, unwritten: Tensor) -> bool:
        """Whether the kernel adds to what an output held, which leaves a NaN as it was. One that
        is watched has been told of a read before a write."""
        return False

    def fail(self, reason: Reason, case: Case, message: str) -> NoReturn:
        """Raises CheckFailed."""
        replay = f"to repeat it: check({self.kernel.name}, seed={self.seed})"
        lines = [f"{self.kernel.name} with {case}", message, self.remarks.launches]
        if not settings.seed():  # that one is a secret
            lines.append(replay)
        raise CheckFailed(reason, "\n".join(filter(None, lines)))


def only_late(failure: CheckFailed) -> bool:
    """Whether a call was only stopped for being late, and nothing says that it would not end."""
    cause = failure.__cause__
    return isinstance(cause, KernelTimeout) and not cause.certain


def leaked(live: Sequence[int]) -> int:
    """Bytes that a call of one size has left behind, from what the process held after each. What
    a first call allocates may be kept, and by the next one a second buffer."""
    grown = [after - before for before, after in itertools.pairwise(live)]
    return max([0, *grown[1:]])


def asked_again(bad: Tensor, expected: Expected) -> bool:
    """Whether values are wrong, and may yet be right: see `oracle.expect`, `bends`."""
    wrong = expected.value[bad]
    few = len(wrong) <= 1 + bad.numel() // BENT
    return bool(len(wrong)) and (few or bool((wrong.abs() < VANISHING).all()))


def _holds_nan(case: Case) -> bool:
    return any(x.is_floating_point() and bool(x.isnan().any()) for x in case.tensors.values())


def _left(got: Tensor, before: Tensor, bad: Tensor) -> bool:
    """Whether all that is wrong was left by the call before. A value that right elements have, too,
    such as a limit that many are clamped to, is there by chance."""
    same = bool(((got == before) | ~bad).all())
    return same and not bool(torch.isin(got[bad], got[~bad]).all())
