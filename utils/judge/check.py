"""`check(kernel)`: does it compute what PyTorch computes, everywhere, every time, and nothing else?

Each call runs apart from the notebook, between guarded memory: fresh values from a seed, outputs
full of NaN, inputs compared with their copies afterwards. What is expected is worked out meanwhile,
where the kernel's process cannot look into this one, or after the call. A second set of values in
the same buffers, and the same values twice, show what a kernel keeps between calls.
"""

import contextlib
import functools
import hashlib
import itertools
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import torch
from torch import Generator, Tensor

from utils import events, settings
from utils.course import cases, catalog
from utils.course.answers import Answering, exercise_of
from utils.course.cases import Case
from utils.course.exercise import Exercise, Sizes, dimensions
from utils.cuda import signature, workers
from utils.cuda.signature import Parameter
from utils.errors import (
    CheckFailed,
    DeclarationError,
    KernelCrash,
    KernelTimeout,
    LaunchError,
    Reason,
    ToolError,
)
from utils.judge import explain, floors, gates, launches, mismatch, oracle, statements
from utils.judge.mismatch import bits
from utils.judge.oracle import Expected
from utils.judge.passed import Passed, tell
from utils.watch import diagnosis
from utils.wording import many

TIMEOUT = 10.0  # seconds for one call
AGAIN = 3  # sizes that a second process is tried on
REHEARSED = 4_000_000  # elements
# Where a size or an index of 16 bits shows; the second where a grid cannot be so long.
LONG = ((65_537, 70_000), (32_769, 36_000))
MANY = 1_200_000  # threads: with barriers they take the emulator a quarter of a second
PART, LONGEST = 16, 2.5  # a call that is so much shorter says whether it would take more seconds
GRID = 65_535  # blocks along y or z
FEW = 2  # probes of the oracle, where values are not what a call is about
BENT = 1000  # one of so many values may lie at a bend, and is asked about again
CALLS = 41, 60  # and so many calls of small ones: who counts further is not found
# What CUDA refused outright; hazards that follow are its consequence, not its cause.
_REFUSED = ("cudaErrorInvalidConfiguration", "cudaErrorInvalidValue")
_WHY_REFUSED = ("shared-memory",)  # hazards that say more than its error
_FAULTS = {
    LaunchError: Reason.LAUNCH_ERROR,
    KernelCrash: Reason.CRASHED,
    KernelTimeout: Reason.TIMEOUT,
}
_CAUSES = ("divergent-barrier",)  # hazards that others may follow from, such as races
# A hazard's kind -> the reason of the verdict; any other kind is a launch error.
_HAZARDS = {
    "race": Reason.RACE,
    "async-race": Reason.RACE,
    "early-read": Reason.RACE,
    "early-write": Reason.RACE,
    "missing-fence": Reason.RACE,
    "missing-commit": Reason.RACE,
    "out-of-bounds": Reason.OUT_OF_BOUNDS,
    "illegal-address": Reason.OUT_OF_BOUNDS,
    "use-after-free": Reason.OUT_OF_BOUNDS,
    "misaligned": Reason.MISALIGNED,
    "uninitialized": Reason.UNINITIALIZED,
    "divergent-barrier": Reason.DIVERGENT_BARRIER,
    "deadlock": Reason.TIMEOUT,
    "invalid-mask": Reason.INVALID_MASK,
    "absent-lane": Reason.INVALID_MASK,
    "bad-free": Reason.OUT_OF_BOUNDS,
    "host-call": Reason.HOST_FUNCTION,
}


def check(kernel: Answering, *, seed: int | None = None) -> None:
    """Compare a kernel with PyTorch on many sizes and kinds of values; print a verdict.

    Values are fresh each time; the message of a failure names the `seed` that repeats them.
    Sets `kernel.trusted`. Raises CheckFailed.
    """
    exercise = exercise_of(kernel)
    start = time.perf_counter()
    verdict = "error"
    try:
        with oracle.one_thread():
            passed = Trial(kernel, _seed(exercise) if seed is None else seed).run()
        verdict = "passed"
    except CheckFailed as failure:
        verdict = failure.reason
        raise
    finally:
        kernel.trusted = verdict == "passed"
        events.log("check", exercise, verdict=verdict, seconds=time.perf_counter() - start)
    tell(kernel, passed)


def _seed(exercise: Exercise) -> int:
    """A fresh one, or that of WORKBOOK_SEED and this exercise."""
    if not (given := settings.seed()):
        return secrets.randbits(32)
    return int.from_bytes(hashlib.sha256(f"{given} {exercise.id}".encode()).digest()[:4])


def _declared(exercise: Exercise) -> tuple[Parameter, ...]:
    """The launcher's parameters as the workbook gives them."""
    if not catalog.kernel_path(exercise).is_file():
        return ()
    return signature.parse_launcher(catalog.starter_text(exercise), exercise.name)


class Trial:
    """What a kernel is tried on, by values and sizes drawn from a seed. `run` is what `check` does;
    the parts of it raise CheckFailed."""

    def __init__(self, kernel: Answering, seed: int):
        self.kernel, self.exercise, self.seed = kernel, kernel.exercise, seed
        self.device = "cuda" if kernel.backend == "cuda" else "cpu"
        self.generator = Generator().manual_seed(seed)
        self.dtypes = kernel.dtypes
        self.objections: list[tuple[Reason, Case, str]] = []  # to who did the work
        self.remarks: list[str] = []  # on the last watched call
        self.launched = ""  # a remark on the launches of the last watched call
        self.paces: dict[str, float] = {}  # seconds for each element along a size
        self.live: list[int] = []  # bytes of device memory after each call of a size

    def run(self) -> Passed:
        """What a kernel that passes has passed."""
        starter, stands = self.kernel.untouched, ""
        if not starter or self.exercise.faulty:
            try:
                passed = self._try()
            except CheckFailed as failure:
                if not starter:
                    told = statements.beside(failure, self.exercise, self.kernel.source)
                    raise told from failure.__cause__
                stands = f"\nas it stands: {failure}"
        if starter:
            effort = f" ({self.exercise.effort})" if self.exercise.effort else ""
            raise CheckFailed(
                Reason.NOT_ATTEMPTED,
                f"{self.kernel.name} is still as it was given; write your part{effort}, run the "
                f"cell, then check again{stands}",
            )
        statements.judge(self.exercise, self.kernel.source)
        return passed

    def _try(self) -> Passed:
        """What a kernel has passed whose values are right; what it says of itself is not read."""
        self._same_types()
        watched = self._diagnose()
        sizes = self.exercise.at.check
        if self.kernel.backend == "cuda":
            sizes = (*sizes, *self.exercise.at.card)
        drawn = cases.drawn(self.exercise, self.generator)
        kinds, count = dict.fromkeys([]), 0
        for size, families in cases.plan(self.exercise, sizes):
            kinds.update(dict.fromkeys(families))
            count += self.try_size(size, families)
        for size in drawn:
            self.call(self._case(size, cases.usual(self.exercise)), probes=FEW)
        if self.kernel.backend == "emulator":
            drawn += self.beyond_16_bits()
            self._rehearse()
        self.again(self.exercise.at.check)
        details = (
            f"{len(sizes)} sizes up to {cases.size_text(sizes[-1])}, {len(drawn)} drawn; "
            f"{', '.join(kinds)} values; inputs intact; {watched}"
        )
        return Passed(count + len(drawn), watched, details)

    def _diagnose(self) -> str:
        """Watch the kernel on the emulator before anything else: one that races, strays or hangs,
        or computes something else, never reaches a card. Then its gates. Returns what the summary
        says of that.
        """
        try:
            ordered = explain.several_first(self.exercise.at.check, self.exercise.follows)
            for sizes in ordered:
                self._watch(sizes)
            self._object()
            if self.exercise.gates:
                self.judge_gates()
            if self.exercise.slices:
                for name in self.exercise.shapes:
                    self._watch(self.exercise.at.draw, sliced=(name,))
                self._watch(self.exercise.at.draw, sliced=tuple(self.exercise.shapes))
            few = itertools.cycle(self.few())
            for family in cases.families(self.exercise)[1:]:  # a stray may hang on the values
                self._watch(next(few), family, probes=0)
        except ToolError as error:
            return f"not diagnosed: {error}"
        return "no hazards" + (", gates passed" if self.exercise.gates else "")

    def _object(self) -> None:
        """Say that kernels did not do the work, if so. Wrong values have been told before that."""
        for reason, case, message in self.objections:
            self._fail(reason, case, message)

    def judge_gates(self) -> None:
        """Read the gates at a size that nobody knows, in a call of a number that nobody knows."""
        for _ in range(int(torch.randint(0, 3, (), generator=self.generator))):
            self._watch(self.exercise.at.check[0], probes=0)
        sizes = cases.gate_sizes(self.exercise, self.generator)
        seen, case = self._watch(sizes, probes=FEW)
        self._object()
        for gate in self.exercise.gates:
            if message := gates.failing(gate, seen, sizes):
                self._fail(Reason.GATE, case, message)

    def few(self) -> list[Sizes]:
        """The smaller half of the known sizes, but for the smallest, which is a mere corner."""
        known = self.ascending()
        return known[1 : 1 + len(known) // 2] or known

    def ascending(self) -> list[Sizes]:
        """The known sizes, that of the fewest elements first."""
        return sorted(self.exercise.at.check, key=lambda s: cases.elements(self.exercise, s))

    def _watch(
        self,
        sizes: Sizes,
        family: str = "",
        sliced: tuple[str, ...] = (),
        probes: int = oracle.PROBES,
    ) -> tuple[diagnosis.Diagnosis, Case]:
        """Diagnose one call of these sizes, and judge what it computed and who did it.

        `probes` are the oracle's; with 0 of them the values are not judged.
        """
        family = family or cases.usual(self.exercise)
        case = cases.sample(self.exercise, sizes, family, self.generator, self.dtypes)
        fresh = set(self.exercise.outputs) - set(cases.inputs(self.exercise))
        given = cases.arguments(self.kernel, case)
        if sliced:
            late = " and ".join(sliced) + (" begins" if len(sliced) == 1 else " begin")
            case = replace(case, note=f"{late} 4 bytes late, as y[1:] does")
            given = {n: cases.sliced(v) if n in sliced else v for n, v in given.items()}
        expecting = self._expecting(case, "cpu", probes) if probes else dict
        try:
            with workers.meanwhile(expecting):
                seen = diagnosis.diagnose_call(self.kernel, given, unwritten=fresh, timeout=TIMEOUT)
        except tuple(_FAULTS) as error:
            raise CheckFailed(_FAULTS[type(error)], str(error)) from error
        if seen.error and seen.error.name in _REFUSED:
            why = [h for h in seen.hazards if h.kind in _WHY_REFUSED]
            told = diagnosis.tell(why) if why else str(seen.error)
            raise CheckFailed(Reason.LAUNCH_ERROR, told) from seen.error
        named = self.exercise.faulty  # where the learner is to name the fault
        self.launched = "" if named else launches.swapped(seen.launches)
        if seen.hazards:
            hazards = sorted(seen.hazards, key=lambda hazard: hazard.kind not in _CAUSES)
            reason = _HAZARDS.get(hazards[0].kind, Reason.LAUNCH_ERROR)
            self._fail(reason, case, diagnosis.tell(hazards))
        if seen.error:
            raise CheckFailed(Reason.LAUNCH_ERROR, str(seen.error)) from seen.error
        self._judge_inputs(case, seen.after)
        self.remarks = [str(remark) for remark in seen.remarks[:1]]
        self.remarks += [] if named else launches.reading(self.exercise, case, seen)
        expected = expecting()
        for name in expected:
            same = bits(seen.after[name]) == bits(given[name])
            self._judge(case, name, seen.after[name], expected[name], same, None)
        found = floors.objection(self.exercise, seen)
        if found and probes:  # where values are not judged, they may be another call's
            self.objections.append((found[0], case, found[1]))
        return seen, case

    def _same_types(self) -> None:
        """A kernel that was declared on floats must stay on floats, to be compared with them. It
        keeps its parameters: one that is left out is a rule that is."""
        kept = {parameter.name for parameter in self.kernel.parameters}
        for given in _declared(self.exercise):
            if given.name not in kept:
                raise DeclarationError(
                    f"{self.kernel.name} was declared with '{given.ctype} {given.name}'; "
                    "leave its parameters as they were"
                )
            if given.is_tensor and self.dtypes.get(given.name, given.dtype) != given.dtype:
                raise DeclarationError(
                    f"{self.kernel.name}: '{given.name}' was declared '{given.ctype}'; leave it so"
                )

    def _rehearse(self) -> None:
        """Would CUDA take the launches at sizes that only a card can do?"""
        for sizes in self.exercise.at.card:
            too_many = cases.elements(self.exercise, sizes) > REHEARSED
            if too_many or max(sizes.values()) <= GRID:
                continue
            try:
                self._launched(sizes)
            except LaunchError as error:
                self._fail(Reason.LAUNCH_ERROR, self._nothing(sizes), str(error))

    def _launched(self, sizes: Sizes) -> int:
        """How many threads a call of these sizes would launch. Raises LaunchError."""
        given = cases.arguments(self.kernel, self._nothing(sizes))
        try:
            return self.kernel.isolated(given, timeout=TIMEOUT, rehearsal=True).threads
        except (KernelCrash, KernelTimeout) as error:
            raise CheckFailed(_FAULTS[type(error)], str(error)) from error

    def _nothing(self, sizes: Sizes) -> Case:
        """A case whose values do not matter."""
        shapes = {n: dimensions(text, sizes) for n, text in self.exercise.shapes.items()}
        zeros = {n: torch.zeros(shape) for n, shape in shapes.items()}
        return Case(sizes, "no", zeros, {n: span[0] for n, span in self.exercise.scalars.items()})

    def beyond_16_bits(self) -> list[Sizes]:
        """Judge a call that is long in one size, another one each time, and short in the others.
        Not where that would take long, or CUDA refuse it: `at.card` says how far a kernel must go.
        """
        names = cases.lengths(self.exercise)
        for i in torch.randperm(len(names), generator=self.generator).tolist():
            for span in LONG:
                sizes = cases.long_sizes(self.exercise, names[i], span, self.generator)
                with contextlib.suppress(LaunchError):
                    if self._launched(sizes) <= MANY and self._soon(names[i], span):
                        self.call(self._case(sizes, cases.usual(self.exercise)), probes=FEW)
                        return [sizes]
        return []

    def _soon(self, name: str, span: tuple[int, int]) -> bool:
        """Whether a call that is long in one size ends soon, by the pace of a shorter one."""
        if name not in self.paces:
            shorter = (span[0] // PART, span[1] // PART)
            sizes = cases.long_sizes(self.exercise, name, shorter, self.generator)
            given = cases.arguments(self.kernel, self._case(sizes, cases.usual(self.exercise)))
            self.paces[name] = PART * self._isolated(given).seconds / span[1]
        return self.paces[name] * span[1] <= LONGEST

    def again(self, sizes: tuple[Sizes, ...]) -> None:
        """A process that has called the kernel never before: a part of the sizes in another order,
        then so many calls of small ones that whoever counts them gives himself away."""
        workers.restart(self.kernel.backend)
        usual, random = cases.usual(self.exercise), self.generator
        for i in torch.randperm(len(sizes), generator=random)[:AGAIN].tolist():
            self.call(self._case(sizes[i], usual))
        small = self.ascending()[1:3]
        for size in (*small, *small[:1]):
            calls = int(torch.randint(*CALLS, (), generator=random))
            self.call(self._case(size, usual), calls=calls)

    def _case(self, sizes: Sizes, family: str) -> Case:
        return cases.sample(self.exercise, sizes, family, self.generator, self.dtypes)

    def try_size(self, sizes: Sizes, families: list[str]) -> int:
        """All kinds of values at one size, in the same buffers, and the last of them twice."""
        before: dict[str, Tensor] = {}
        drawn = [self._case(sizes, family) for family in families]
        self.live = []
        for case in drawn:
            before = self.call(case, before)
        self.call(drawn[-1], again=True)
        self._judge_leak(case)
        return len(drawn)

    def _judge_leak(self, case: Case) -> None:
        """Each call of one size after the first must leave as much memory as it found."""
        grown = [after - before for before, after in itertools.pairwise(self.live)]
        if len(grown) >= 2 and min(grown) > 0:
            message = (
                f"each call leaves {min(grown):,} bytes of device memory behind\n"
                "hint: cudaFree what the launcher has allocated, once the kernels are done"
            )
            self._fail(Reason.LEAK, case, message)

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
        given = cases.arguments(self.kernel, case)
        expecting = self._expecting(case, self.device, probes)
        # On a GPU, the reference would wait for a kernel that hangs.
        with workers.meanwhile(expecting) if self.device == "cpu" else contextlib.nullcontext():
            run = self._isolated(given, calls)
        self.live.append(run.live)
        self._judge_strays(case, run.strays)
        self._judge_inputs(case, run.after)
        got = {name: run.after[name].to(self.device) for name in self.exercise.outputs}
        expected = expecting()
        for name in self.exercise.outputs:
            same = bits(run.after[name]) == bits(given[name])
            self._judge(case, name, got[name], expected[name], same, before.get(name), again)
        return got

    def _expecting(self, case: Case, device: str, probes: int) -> Callable[[], dict[str, Expected]]:
        """What works out what a call should leave behind, when it is first asked."""
        work = functools.partial(oracle.expect, self.exercise, case, self.dtypes, device, probes)
        return functools.cache(work)

    def _judge_inputs(self, case: Case, after: dict[str, Tensor]) -> None:
        for name in sorted(set(cases.inputs(self.exercise)) - set(self.exercise.outputs)):
            before = case.tensors[name]
            changed = (bits(after[name]) != bits(before)).reshape(-1).nonzero()
            if len(changed):
                place = mismatch.index(name, int(changed[0]), before.shape)
                message = f"{name} is an input, but the kernel wrote to it, first to {place}"
                self._fail(Reason.INPUT_MODIFIED, case, message)

    def _isolated(self, given: dict, calls: int = 1):
        try:
            return self.kernel.isolated(given, timeout=TIMEOUT, calls=calls)
        except tuple(_FAULTS) as error:
            raise CheckFailed(_FAULTS[type(error)], str(error)) from error

    def _fail(self, reason: Reason, case: Case, message: str) -> None:
        replay = f"to repeat it: check({self.kernel.name}, seed={self.seed})"
        told = [f"{self.kernel.name} with {case}", message, self.launched]
        if not settings.seed():  # that one is a secret
            told.append(replay)
        raise CheckFailed(reason, "\n".join(filter(None, told)))

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
        self._fail(Reason.OUT_OF_BOUNDS, case, "\n".join(lines))

    def _judge(
        self,
        case: Case,
        name: str,
        got: Tensor,
        expected: Expected,
        same: Tensor,
        before: Tensor | None,
        again: bool | None = None,
    ) -> None:
        """Judge one output. `same`: where it still holds the bits that it held before the call.

        `again`: whether this is a second call with the same values; None in a diagnosing run, where
        a kernel that adds to what it finds has been told of a read before a write.
        """
        bad = mismatch.wrong(got, expected)
        if 0 < int(bad.sum()) <= 1 + bad.numel() // BENT:
            device = bad.device.type
            expected = oracle.expect(self.exercise, case, self.dtypes, device, bends=True)[name]
            bad &= mismatch.wrong(got, expected)
        if got.is_floating_point() and name not in case.tensors:  # poison is a NaN, but not a value
            bad |= same.to(bad.device) & got.isnan()
        if not bad.any():
            return
        unwritten = bad & same.to(bad.device)
        if unwritten.any():
            if again is not None and self._adds(case, name, unwritten):
                advice = (
                    f"the kernel adds to what {name} held before; set it to its first value first"
                )
                seen = mismatch.explain(name, got, expected, bad, because=advice)
                self._fail(Reason.NAN, case, seen)
            self._fail(Reason.NOT_WRITTEN, case, mismatch.missing(name, unwritten))
        message = explain.wrong_values(self.kernel, case, name, got, expected, bad)
        message = "\n".join([message, *self.remarks])
        if got.is_floating_point() and (bad & got.isnan()).any():
            self._fail(Reason.NAN, case, message)
        if before is not None and _left(got, before, bad):
            advice = "these are the values of the call before, whose inputs were others"
            self._fail(Reason.STALE_OUTPUT, case, f"{message}\nhint: {advice}")
        if again:
            message += "\nhint: the same call gave the right values a moment ago: a race?"
        self._fail(Reason.WRONG_VALUES, case, message)

    def _adds(self, case: Case, name: str, unwritten: Tensor) -> bool:
        """Whether the kernel adds to what an output held, which leaves a NaN as it was."""
        if name in case.tensors or not unwritten.any():
            return False
        given = cases.arguments(self.kernel, case)
        given[name].fill_(1)
        return not (self._isolated(given).after[name] == 1)[unwritten.cpu()].any()


def _left(got: Tensor, before: Tensor, bad: Tensor) -> bool:
    """Whether all that is wrong was left by the call before. A value that right elements have, too,
    such as a limit that many are clamped to, is there by chance."""
    same = bool(((got == before) | ~bad).all())
    return same and not bool(torch.isin(got[bad], got[~bad]).all())
