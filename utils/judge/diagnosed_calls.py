"""A kernel is watched on the emulator: for hazards, for its gates, and for who did the work."""

import contextlib
import itertools
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch

from utils.course import case_calls, case_sizes, cases
from utils.course.answers import Answer
from utils.course.case_values import SELDOM, whole_number
from utils.course.cases import Case
from utils.course.exercise import Sizes, inputs_of
from utils.cuda.arguments import Arguments
from utils.ground import settings
from utils.ground.errors import CheckFailed, LaunchError, Reason, ToolError
from utils.judge import explain, gates, launches, mismatch, oracle, provenance
from utils.judge.launches import Launches
from utils.judge.mismatch import bits
from utils.judge.oracle import Expected
from utils.judge.verdict import FAULTS, FEW, Judge, Remarks
from utils.process import workers
from utils.watch import diagnosis
from utils.watch.diagnosis import Diagnosis

# What CUDA refused outright; hazards that follow are its consequence, not its cause.
_REFUSED = ("cudaErrorInvalidConfiguration", "cudaErrorInvalidValue")
_WHY_REFUSED = ("shared-memory",)  # hazards that say more than its error
_CAUSES = ("divergent-barrier",)  # hazards that others may follow from, such as races

CHEAP = 5e5  # of calls of any size, by case_sizes.cost: 20 ms
MANY = 60_000  # threads: with barriers they take 50 ms
CHEAPER, FEW_THREADS = 5e4, 12_000  # of calls of any size that are watched for hazards alone
TRIES = 3  # to draw sizes for which so many are enough

SOON = 1.0  # seconds: while a call takes longer, no others are begun
CORES = os.cpu_count() or 1
AT_ONCE = 4  # diagnosed calls at most, beside a card; on half of the cores

Meanwhile = Callable[[Callable[[], bool]], object]  # does something until it is so


class Planned(NamedTuple):
    """A call that is to be watched."""

    case: Case
    arguments: Arguments
    expecting: Callable[[], dict[str, Expected]]  # worked out when it is first asked
    judged: bool  # whether its values are


class DiagnosedCalls(Judge):
    """Diagnosed calls of a kernel, and what they show. Some `steps` may be taken before `all` of
    them. While a call is waited for, `meanwhile` may do something else."""

    def __init__(self, kernel: Answer, seed: int):
        super().__init__(kernel, seed)
        self.meanwhile: Meanwhile = lambda until: None
        self.steps = self._steps()
        self._violations: list[tuple[Reason, Case, str]] = []  # to who did the work
        self.launched: list[tuple[Sizes, Launches]] = []  # by each call
        self.reader = ""  # the kernel that reads most, where gates were read

    def all(self) -> str:
        """Watch the kernel, then read its gates. Returns what the summary says of that."""
        try:
            deque(self.steps, maxlen=0)
        except ToolError as error:
            return f"not diagnosed: {error}"
        return "no hazards" + (", gates passed" if self.exercise.gates else "")

    def _steps(self) -> Iterator[None]:
        """Watch the kernel, then read its gates, a call or a few at each step."""
        ordered = explain.several_first(self.exercise.at.check, self.exercise.follows)
        for _ in self._watch_each(self._planned(sizes) for sizes in ordered):
            yield
        self._object()
        if self.exercise.gates:
            self.judge_gates()
            yield
        for sliced in self._slices():
            self._watch(self.exercise.at.draw, sliced=sliced)
            yield
        for _ in range(settings.rounds() if self.exercise.at.anywhere else 0):
            self._watch_anywhere()
            yield
        self._object()
        others = cases.families(self.exercise)[1:]  # out of bounds: the values may decide
        kinds = (family for family in others if family not in SELDOM)
        sizes = self._wandering()
        calls = (self._planned(next(sizes), family, probes=0) for family in kinds)
        for _ in self._watch_each(calls):
            yield

    def _slices(self) -> list[tuple[str, ...]]:
        """Tensors that begin late in a call of their own: each, then all of them."""
        names = tuple(self.exercise.shapes) if self.exercise.slices else ()
        return [*((name,) for name in names), *([names] if names else [])]

    def _watch_anywhere(self) -> None:
        """A call of sizes that nobody knows, from all that the exercise promises: any, with one of
        them large, or with none of them small."""
        names = case_sizes.leaders(self.exercise)
        draws: list[Callable[..., Sizes]]
        draws = [partial(case_sizes.anywhere, far=name) for name in (None, *names)]
        draws += [case_sizes.all_large] if len(names) > 1 else []
        draw = draws[whole_number(0, len(draws), self.generator)]
        for _ in range(TRIES):
            sizes = case_sizes.as_met(
                self.exercise, draw(self.exercise, self.generator, CHEAP), CHEAP
            )
            with contextlib.suppress(LaunchError):
                if self.threads(sizes) <= MANY:
                    self._watch(sizes, probes=FEW)
                    return

    def _wandering(self) -> Iterator[Sizes]:
        """Sizes of calls whose values are not judged: few known ones, and every second time some
        that nobody knows, one of them large in its turn."""
        large = itertools.cycle((*case_sizes.leaders(self.exercise), None))
        for known in itertools.cycle(self.few()):
            yield known
            if self.exercise.at.anywhere:
                sizes = case_sizes.anywhere(self.exercise, self.generator, CHEAPER, next(large))
                with contextlib.suppress(LaunchError):
                    if self.threads(sizes) <= FEW_THREADS:
                        yield sizes

    def look(self, sizes: Sizes) -> None:
        """Watch one more call, of these sizes."""
        self._watch(sizes, probes=FEW)
        self._object()

    def _object(self) -> None:
        """Say that kernels did not do the work, if so. Wrong values have been told before that."""
        for reason, case, message in self._violations:
            self.fail(reason, case, message)

    def judge_gates(self) -> None:
        """Read the gates at a size that nobody knows, in a call of a number that nobody knows."""
        for _ in range(int(torch.randint(0, 3, (), generator=self.generator))):
            self._watch(self.exercise.at.check[0], probes=0)
        for edges in self._edges():
            case = self._read_gates(case_sizes.gate_sizes(self.exercise, self.generator, edges))
        for gate in self.exercise.gates:
            if gate.metric in gates.PRODUCTS and not self._needs_products():
                self.fail(
                    Reason.GATE, case, f"{gate.metric}: {gates.FOR_SHOW}\nhint: {gate.advice}"
                )

    def _edges(self) -> tuple[bool, ...]:
        """Whether gates are read at sizes that are no whole tiles: in one of two checks, or in
        each where a spec says so. One that grades reads them at both."""
        if not self.exercise.at.edges:
            return (False,)
        if self.exercise.at.both or settings.rounds() > 1:
            return False, True
        return (bool(torch.randint(0, 2, (), generator=self.generator)),)

    def _read_gates(self, sizes: Sizes) -> Case:
        seen, case = self._watch(sizes, probes=FEW)
        self._object()
        reads_most = max(seen.launches, key=lambda launch: launch.distinct_read, default=None)
        self.reader = reads_most.kernel if reads_most else ""
        for gate in (*self.exercise.gates, *gates.of_every(self.exercise)):
            if message := gates.failing(gate, seen, sizes):
                self.fail(Reason.GATE, case, message)
        return case

    def _needs_products(self) -> bool:
        """Whether anything comes out wrong where products of tensor cores, and of bytes, give
        nothing."""
        at = self.exercise.at
        planned = self._planned({**at.check[-1], **at.gates}, probes=FEW)
        try:
            seen = self.diagnosis_of(planned.arguments, idle_products=True)
        except tuple(FAULTS):
            return True
        expected = planned.expecting()
        return any(bool(mismatch.wrong(seen.after[n], expected[n]).any()) for n in expected)

    def few(self) -> list[Sizes]:
        """The smaller half of the known sizes, but for the smallest, which is a mere corner."""
        known = self.ascending()
        return known[1 : 1 + len(known) // 2] or known

    def diagnosis_of(self, arguments: Arguments, idle_products: bool = False) -> Diagnosis:
        """What a call with these arguments shows. Raises what a call raises."""
        fresh = set(self.exercise.outputs) - set(inputs_of(self.exercise))
        return diagnosis.diagnose_call(
            self.kernel,
            arguments,
            unwritten=fresh,
            timeout=self.timeout,
            idle_products=idle_products,
        )

    def _planned(
        self,
        sizes: Sizes,
        family: str = "",
        sliced: tuple[str, ...] = (),
        probes: int = oracle.PROBES,
    ) -> Planned:
        """A call of these sizes, with values of its own.

        `probes` are the oracle's; with 0 of them the values are not judged.
        """
        case = self.case(sizes, family)
        arguments = case_calls.arguments(self.kernel, case)
        if sliced:
            note = case_calls.late_text(sliced, "4 bytes late, as y[1:] does")
            case = replace(case, note=note)
            arguments |= {
                name: case_calls.sliced(case_calls.tensors(arguments)[name]) for name in sliced
            }
        expecting = self.expecting(case, "cpu", probes) if probes else dict
        return Planned(case, arguments, expecting, bool(probes))

    def _watch(
        self,
        sizes: Sizes,
        family: str = "",
        sliced: tuple[str, ...] = (),
        probes: int = oracle.PROBES,
    ) -> tuple[Diagnosis, Case]:
        """Diagnose one call of these sizes, and judge what it computed and who did it."""
        (seen,) = self._watch_each([self._planned(sizes, family, sliced, probes)])
        return seen

    def _watch_each(self, calls: Iterable[Planned]) -> Iterator[tuple[Diagnosis, Case]]:
        """Diagnose calls, and judge them in their order. Beside a card there are cores for several
        at once: while one is waited for, the next one is made in another worker, and so on."""
        coming, ahead = iter(calls), deque[tuple[Planned, Future[Diagnosis]]]()

        def meanwhile(more: int, answered: Callable[[], bool]) -> None:
            end = time.monotonic() + SOON
            while not answered() and time.monotonic() < end and (following := next(coming, None)):
                outcome = Future[Diagnosis]()
                ahead.append((following, outcome))
                try:
                    outcome.set_result(self._diagnosis(following, beside(more - 1)))
                except Exception as error:
                    outcome.set_exception(error)
            self.meanwhile(answered)

        def beside(more: int) -> Meanwhile:
            """What is done while a call is waited for: up to `more` others beside it."""
            return partial(meanwhile, more) if more > 0 else self.meanwhile

        more = min(CORES // 2, AT_ONCE) - 1 if self.kernel.backend == "cuda" else 0
        while planned := ahead[0][0] if ahead else next(coming, None):
            seen = ahead.popleft()[1].result() if ahead else self._diagnosis(planned, beside(more))
            self._judge_seen(planned, seen)
            yield seen, planned.case

    def _diagnosis(self, planned: Planned, beside: Meanwhile) -> Diagnosis:
        def meanwhile(answered: Callable[[], bool]) -> None:
            planned.expecting()
            beside(answered)

        try:
            with workers.meanwhile(meanwhile):
                return self.diagnosis_of(planned.arguments)
        except tuple(FAULTS) as error:
            raise CheckFailed(FAULTS[type(error)], str(error)) from error

    def _judge_seen(self, planned: Planned, seen: Diagnosis) -> None:
        case = planned.case
        if seen.error and seen.error.name in _REFUSED:
            why = [h for h in seen.hazards if h.kind in _WHY_REFUSED]
            message = diagnosis.tell(why) if why else str(seen.error)
            raise CheckFailed(Reason.LAUNCH_ERROR, message) from seen.error
        self.launched.append((case.sizes, launches.of(seen.launches)))
        named = self.exercise.faulty  # where the learner is to name the fault
        self.remarks = Remarks(launches="" if named else launches.swapped(seen.launches))
        if seen.hazards:
            hazards = sorted(seen.hazards, key=lambda hazard: hazard.kind not in _CAUSES)
            self.fail(hazards[0].row.reason, case, diagnosis.tell(hazards))
        if seen.error:
            raise CheckFailed(Reason.LAUNCH_ERROR, str(seen.error)) from seen.error
        self.judge_inputs(case, seen.after)
        values = [str(remark) for remark in seen.remarks[:1]]
        values += [] if named else launches.reading(self.exercise, case, seen)
        self.remarks = replace(self.remarks, values=tuple(values))
        expected, before = planned.expecting(), case_calls.tensors(planned.arguments)
        for name in expected:
            unchanged = bits(seen.after[name]) == bits(before[name])
            self.judge(case, name, seen.after[name], expected[name], unchanged)
        problem = provenance.violation(self.exercise, seen)
        if problem and planned.judged:  # values that are not judged may be another call's
            self._violations.append((problem[0], case, problem[1]))
