"""Plain calls of a kernel, without instruments: values and sizes that are known and others, in
buffers that it has met before, and in a process that has never called it.

Calls are planned from a seed. Each has an outcome, which can be judged at any later time.
"""

import contextlib
import functools
import itertools
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from utils.course import case_calls, case_changes, case_sizes, cases
from utils.course.answers import Answer
from utils.course.case_values import WHOLE, whole_number
from utils.course.cases import Case
from utils.course.exercise import Exercise, Sizes
from utils.cuda import isolation
from utils.cuda.arguments import Arguments
from utils.cuda.isolation import IsolatedRun
from utils.ground import settings
from utils.ground.errors import CheckFailed, LaunchError, Reason
from utils.ground.wording import many
from utils.judge import oracle, verdict
from utils.judge.mismatch import bits
from utils.judge.oracle import Expected
from utils.judge.outcomes import Failed, Outcome, Outcomes, Refused, Returned
from utils.judge.verdict import FAULTS, FEW, Judge
from utils.process import card, pool, workers
from utils.process.arena import OutOfBoundsWrite

IN_ANOTHER = 3  # sizes that a second process is tried on
UNKNOWN = 2  # of them that are drawn
AGAIN = 3  # more calls of a small size that was drawn, behind those of large ones
REHEARSED = 4_000_000  # elements
# Where a size or an index of 16 bits shows; the second where a grid cannot be so long.
LONG = ((65_537, 70_000), (32_769, 36_000))
MANY = 1_200_000  # threads: with barriers they take the emulator a quarter of a second
PART, LONGEST = 16, 2.5  # a call that is so much shorter says whether it would take more seconds
GRID = 65_535  # blocks along y or z
CHEAP, DEAR = 2e5, 1e7  # of calls of any size, by case_sizes.cost: 10 ms each, 150 ms together
FAR = 2e9  # of a call that is long in one size: above, its cost grows with the square of that
AHEAD = 1 << 26  # elements of the tensors of calls that are drawn before their turn
SLIGHT = 1 << 15  # elements that a core has judged before a GPU has made its many launches
TELLS = 1e5  # a call that costs less does not say how long a dear one takes
MULTIPROCESSORS = 17, 149  # of the emulator's card, in one call
SQUARE = 1e6  # by case_sizes.cost, of a call in which two sizes are equal, and large
EQUAL = 0.4  # of calls of a second process, in which some sizes are
NEAR = 5e5  # by case_sizes.cost, of each of the calls that are nearly the same
OF_SEVERAL = 3  # draws of a size that is called in a row
IN_A_ROW = 3, 6  # calls of one large size, but for the last one, which is made twice
CALLS = 41, 60  # and so many calls of small ones: a kernel that counts further is not caught


class Planned(NamedTuple):
    """A call that is to be made."""

    case: Case
    expecting: Callable[[], dict[str, Expected]]  # worked out when it is first asked
    late: tuple[str, ...] = ()  # tensors that begin where quads may begin, and nothing longer
    one: tuple[
        str, ...
    ] = ()  # inputs of one tensor, of which those behind the first are all or rows
    multiprocessors: int = 0  # of the emulator's card; 0: the kernel's own


class OneTensor(NamedTuple):
    """A way in which inputs are one tensor."""

    inputs: Callable[[Exercise, Case], list[tuple[str, ...]]]
    most: int  # calls
    note: str  # of the call


ONE_TENSOR = (
    OneTensor(cases.alike, 3, "{0} and {1} are one tensor"),
    OneTensor(cases.all_alike, 1, "{all} are one tensor"),
    OneTensor(cases.parts, 1, "{1} is {0}[0]"),
)
FEWER_ROWS = OneTensor(cases.beginnings, 1, "{1} is the beginning of {0}")


class Group(NamedTuple):
    """Calls of one size, in the same buffers."""

    calls: list[Planned]
    again: bool  # whether the last one is made twice


class Tried(NamedTuple):
    """What a kernel was tried on."""

    cases: int  # of known sizes
    sizes: tuple[Sizes, ...]  # that are known
    drawn: int  # sizes that were drawn, a case each
    families: tuple[str, ...]  # kinds of values


class PlainCalls(Judge):
    """Plain calls of a kernel, and their outcomes. `timeout`: seconds for one call."""

    def __init__(self, kernel: Answer, seed: int, timeout: float | None = None):
        super().__init__(kernel, seed, stream=1)
        if timeout is not None:
            self.timeout = timeout
        self.tried = Tried(0, (), 0, ())  # once all calls have been made
        self.meanwhile: workers.Action = lambda until: None  # while a call is waited for
        self._drawing = self._all_groups()
        self._ahead: deque[Group] = deque()  # that have been drawn before their turn
        self._unready: deque[Planned] = deque()  # of them, of which nothing is worked out
        self._ready: list[Planned] = []
        self._room = AHEAD
        self._paces: dict[str, float] = {}  # seconds for each element along a size
        self._pace = 0.0  # seconds by case_sizes.cost, of the slowest call that tells

    def outcomes(self) -> Outcomes:
        """Make all calls, each when its outcome is asked for; a failure is the last. Who asks for
        no more has to close it."""
        try:
            with self._with_another_process():
                yield from self._all()
        except CheckFailed as failure:
            yield Failed(failure)

    def _with_another_process(self) -> contextlib.AbstractContextManager[None]:
        """Meanwhile a GPU's driver makes the second process ready; another one is soon there."""
        if self.kernel.backend != "cuda":
            return contextlib.nullcontext()
        library, device = str(self.kernel.library), isolation.current_device()

        def ready(worker: workers.Worker) -> None:
            isolation.make_ready(worker, library, device, self.timeout)

        return pool.slot("cuda").with_another(library, ready)

    def _all(self) -> Iterator[Outcome]:
        """Each known size with several kinds of values, sizes that are drawn, and some of it again
        in another process."""
        for group in self._groups:
            yield from self._made(group)
        yield from self._of_one_tensor()
        for _ in range(settings.rounds()):
            yield from self._anywhere()  # how many, its pace decides: they are not counted
            for outcome in self._beyond_16_bits():
                self._drawn.append(outcome.case.sizes)
                yield outcome
        if self.kernel.backend == "emulator":
            yield from self._rehearse()
        unknown = UNKNOWN if self.exercise.at.anywhere else 0
        yield from self.in_another_process(self.exercise.at.check, unknown)
        kinds = dict.fromkeys(itertools.chain.from_iterable(families for _, families in self._plan))
        count = sum(len(families) for _, families in self._plan)
        sizes = tuple(size for size, _ in self._plan)
        self.tried = Tried(count, sizes, len(self._drawn), tuple(kinds))

    def _all_groups(self) -> Iterator[Group]:
        """Calls of known sizes, then of sizes that are drawn. Nothing is drawn from the seed but in
        their order, whenever that is."""
        at = self.exercise.at
        plan = [*cases.plan(self.exercise, at.check)]
        plan += [(sizes, [family]) for family, sizes in at.corners.items()]
        self._drawn = case_sizes.drawn(self.exercise, self.generator)
        if self.kernel.backend == "cuda":
            plan += cases.large_plan(self.exercise, self.generator)
        self._plan = plan
        for size, families in plan:
            yield self._group(size, families)
        for number, size in enumerate(self._drawn):
            case = self.any_case(size)
            late = case_changes.late(self.exercise, case) if not number else ()
            if late:
                who = late if len(late) < len(self.exercise.shapes) else ("each tensor",)
                note = case_calls.late_text(who, "16 bytes late, as x[4:] does")
                case = replace(case, note=note)
            calls = [self._planned(case, FEW)._replace(late=late)]
            if case.family != cases.usual(self.exercise) or case.order:
                # Infinities, and elements that cancel, can hide an error in a sum, and no other
                # call may be as large.
                usual = case_changes.with_usual_values(self.exercise, case, self.dtypes)
                calls.append(self._planned(usual, FEW))
            yield Group(calls, again=False)
        if not self.exercise.hang_together:
            known = self.ascending()[1:-1] or self.ascending()
            yield self._nearly_the_same(known[whole_number(0, len(known), self.generator)])

    def _nearly_the_same(self, sizes: Sizes) -> Group:
        """Calls of one size, each with nearly the values of the one before. The last one is made
        twice: such a size may be one that no other call has twice."""
        first, other = self.case(sizes), self.case(sizes)
        own = case_changes.seeded(first)
        second = case_changes.in_one_element(first, other, self.generator)
        made = [first, second, *case_changes.one_after_the_other(second, other, own)]
        if case_changes.has_another_order(self.exercise):
            ordered = self.case(sizes, WHOLE)
            made += [ordered, case_changes.in_another_order(self.exercise, ordered, own)]
        return Group([self._planned(case, FEW) for case in made], again=True)

    def prepare(self, until: Callable[[], bool]) -> None:
        """Draw values of calls, and work out what these should leave behind, until it is so; where
        no more is to be drawn, also bounds that only some of them will need."""
        later = self._later()
        while not until():
            if self._room > 0 and self._unready:
                planned = self._unready.popleft()
                planned.expecting()
                self._ready.append(planned)
            elif self._room > 0 and (group := next(self._drawing, None)):
                self._ahead.append(group)
                self._unready += group.calls
                self._room -= sum(
                    case_sizes.elements(self.exercise, planned.case.sizes)
                    for planned in group.calls
                )
            elif step := next(later, None):
                sizes, bound = step
                with self._turn(sizes):
                    bound()
            else:
                return

    def _later(self) -> Iterator[tuple[Sizes, Callable[[], Tensor]]]:
        """The bounds behind the first one, but for the last, which few right kernels need."""
        for number in range(1, len(oracle.STEPS) - 1):
            for planned in self._ready:
                for expected in planned.expecting().values():
                    for bound in expected.bounds[number:-1][:1]:
                        yield planned.case.sizes, bound

    def _turn(self, sizes: Sizes) -> contextlib.AbstractContextManager[None]:
        """Takes the card where a reference of this size is evaluated on it."""
        on_card = self._device(sizes) != "cpu"
        return card.together(self.kernel.backend) if on_card else contextlib.nullcontext()

    @property
    def _groups(self) -> Iterator[Group]:
        self._unready.clear()
        self._ready.clear()
        while self._ahead:
            yield self._ahead.popleft()
        yield from self._drawing

    def _group(self, sizes: Sizes, families: list[str]) -> Group:
        usual = FEW if sizes in self.exercise.at.card else oracle.PROBES  # they are about sizes
        with oracle.threads(case_sizes.elements(self.exercise, sizes)):
            first, *others = (self.case(sizes, family) for family in families)
        made = [self._planned(first, usual), *map(self._planned, others)]
        return Group(made, again=True)

    def _planned(self, case: Case, probes: int = oracle.PROBES) -> Planned:
        work = self.expecting(case, self._device(case.sizes), probes)

        @functools.cache
        def expecting() -> dict[str, Expected]:
            with self._turn(case.sizes):
                return work()

        return Planned(case, expecting)

    def of_size(self, sizes: Sizes, families: list[str]) -> Iterator[Returned]:
        """All kinds of values at one size, in the same buffers, and the last of them twice. Each
        call after the first must leave as much memory as it found."""
        return self._made(self._group(sizes, families))

    def _made(self, group: Group) -> Iterator[Returned]:
        previous: Mapping[str, Tensor] = {}
        live = []
        for planned in group.calls:
            outcome = self._call(planned, previous)
            previous = {name: outcome.after[name] for name in self.exercise.outputs}
            live.append(outcome.live)
            yield outcome
        if group.again:
            outcome = self._call(planned, repeated=True)
            yield replace(outcome, leaked=verdict.leaked([*live, outcome.live]))

    def call(self, case: Case, probes: int = oracle.PROBES) -> Returned:
        """Run one case. Raises CheckFailed."""
        return self._call(self._planned(case, probes))

    def _last(self, case: Case, calls: int) -> Returned:
        """Run one case, as the last of so many calls of its size: those before have other values,
        whose result is no use here. Raises CheckFailed."""
        others = case_calls.arguments(self.kernel, self.case(case.sizes))
        earlier = {n: t for n, t in case_calls.tensors(others).items() if n in case.tensors}
        return self._call(self._planned(case, FEW), calls=calls, earlier=earlier)

    def _call(
        self,
        planned: Planned,
        previous: Mapping[str, Tensor] = MappingProxyType({}),
        repeated: bool = False,
        calls: int = 1,
        earlier: Mapping[str, Tensor] = MappingProxyType({}),
        order: int = 0,
    ) -> Returned:
        case, expecting, late, one, multiprocessors = planned
        many = oracle.threads(case_sizes.elements(self.exercise, case.sizes))
        with many:
            arguments = case_calls.arguments(self.kernel, case)
            if late:
                arguments = case_calls.a_quad_late(arguments, late)
            arguments |= _of_one(case_calls.tensors(arguments), *one)
            beside = workers.meanwhile(lambda answered: (expecting(), self.meanwhile(answered)))
            # On a GPU, the reference would wait for a kernel that hangs.
            with beside if self._device(case.sizes) == "cpu" else contextlib.nullcontext():
                run = self._isolated(arguments, calls, earlier, multiprocessors, order)
            if (cost := case_sizes.cost(self.exercise, case.sizes)) >= TELLS:
                self._pace = max(self._pace, run.seconds / cost)
            before, after = case_calls.tensors(arguments), run.after
            unchanged = {n: bits(after[n]) == bits(before[n]) for n in self.exercise.outputs}
            outside = run.out_of_bounds
            return Returned(
                case, after, outside, unchanged, expecting(), previous, repeated, run.live
            )

    def _device(self, sizes: Sizes) -> str:
        """Where the reference is evaluated. What is small takes a GPU longer than a core: it waits
        for hundreds of launches."""
        small = case_sizes.elements(self.exercise, sizes) <= SLIGHT
        return "cpu" if small else self.device

    def judge_all(self, outcomes: Iterable[Outcome]) -> None:
        """Judge each as it comes. Raises CheckFailed."""
        for outcome in outcomes:
            self.judge_outcome(outcome)

    def judge_outcome(self, outcome: Outcome) -> None:
        """Raises CheckFailed."""
        if isinstance(outcome, Failed):
            raise outcome.failure
        if isinstance(outcome, Refused):
            self.fail(Reason.LAUNCH_ERROR, outcome.case, outcome.why)
        with self._turn(outcome.case.sizes):
            self._judge_returned(outcome)

    def _judge_returned(self, outcome: Returned) -> None:
        case = outcome.case
        self._judge_out_of_bounds(case, outcome.out_of_bounds)
        self.judge_inputs(case, outcome.after)
        for name in self.exercise.outputs:
            expected = outcome.expected[name]
            got = outcome.after[name].to(expected.value.device)
            unchanged, previous = outcome.unchanged[name], outcome.previous.get(name)
            self.judge(case, name, got, expected, unchanged, previous, outcome.repeated)
        self.judge_leak(case, outcome.leaked)

    def _judge_out_of_bounds(self, case: Case, out_of_bounds: list[OutOfBoundsWrite]) -> None:
        if not out_of_bounds:
            return
        lines = []
        for name, side in dict.fromkeys((write.parameter, write.side) for write in out_of_bounds):
            places = [s.offset for s in out_of_bounds if (s.parameter, s.side) == (name, side)]
            edge = "its end" if side == "after" else "its beginning"
            lines.append(
                f"wrote outside of {name}: {many(len(places), 'element')} {side} {edge}, "
                f"the first at offset {min(places, key=abs)}"
            )
        lines.append("hint: which threads need a guard?")
        self.fail(Reason.OUT_OF_BOUNDS, case, "\n".join(lines))

    def adds(self, case: Case, name: str, unwritten: Tensor) -> bool:
        """Whether the kernel adds to what an output held, which leaves a NaN as it was. What is
        unusual about a call is not so in the one that is made here."""
        if name in case.tensors or case.note or not unwritten.any():
            return False
        arguments = case_calls.arguments(self.kernel, case)
        case_calls.tensors(arguments)[name].fill_(1)
        return not bool((self._isolated(arguments).after[name] == 1)[unwritten.cpu()].any())

    def in_another_process(
        self, sizes: tuple[Sizes, ...], unknown: int = 0
    ) -> Iterator[Returned | Refused]:
        """A process that has never called the kernel: a few of the sizes, so many of which are
        drawn instead, then so many calls of small ones that a kernel that counts its calls gives
        itself away."""
        pool.slot(self.kernel.backend).restart()
        random = self.generator
        few = IN_ANOTHER - unknown
        known, *others = torch.randperm(len(sizes), generator=random)[:few].tolist()
        for i in others:
            yield self.call(self.case(sizes[i]), probes=FEW)
        yield self._on_another_card(sizes[known])
        names = case_sizes.leaders(self.exercise)
        for i in torch.randint(len(names), (unknown,), generator=random).tolist():
            any_sizes = case_sizes.anywhere(self.exercise, random, CHEAP, names[i])
            yield from self._at(case_sizes.as_met(self.exercise, any_sizes, CHEAP, EQUAL))
        small = self.exercise.at.counted or self.ascending()[1:3]
        for size in (*small, *small[:1]):
            calls = int(torch.randint(*CALLS, (), generator=random))
            yield self._last(self.case(size), calls)
        if self.kernel.backend == "emulator":
            yield self._by_other_blocks_first(sizes)

    def _by_other_blocks_first(self, sizes: tuple[Sizes, ...]) -> Returned:
        """A call on the emulator in which blocks, and the warps of each, begin in another order, at
        the largest of these sizes: there are several blocks."""
        largest = max(sizes, key=lambda size: case_sizes.cost(self.exercise, size))
        case = replace(self.case(largest), note="blocks and warps in another order")
        return self._call(self._planned(case, FEW), order=whole_number(1, 1 << 31, self.generator))

    def _on_another_card(self, sizes: Sizes) -> Returned:
        """A call on the emulator with another number of multiprocessors, where that may be any."""
        case, count = self.case(sizes), whole_number(*MULTIPROCESSORS, self.generator)
        if self.kernel.backend == "cuda" or self.exercise.multiprocessors:
            return self.call(case, probes=FEW)
        case = replace(case, note=f"on a card of {count} multiprocessors")
        return self._call(self._planned(case, FEW)._replace(multiprocessors=count))

    def _anywhere(self) -> Iterator[Returned | Refused]:
        """Calls of sizes that nobody knows, from all that the exercise promises: one that costs
        nothing, then one for each size, in which that is far beyond what is known, and one in
        which none is small, each with a tiny one behind it. At last the first size again, a few
        times, a large one several times, and calls of one size that are nearly the same."""
        if not self.exercise.at.anywhere:
            return
        names = case_sizes.leaders(self.exercise)
        sizes = case_sizes.anywhere(self.exercise, self.generator, CHEAP)
        first = self._as_met(sizes, CHEAP, len(names) > 1)
        yield from self._at(first)
        if len(names) == 1:
            costs = [(DEAR, names[0]), (2 * DEAR, names[0])]
        else:
            costs = [(DEAR / 2 / len(names), name) for name in names]
        for most, far in costs:
            yield from self._at(case_sizes.anywhere(self.exercise, self.generator, most, far))
            yield from self._at(case_sizes.tiny(self.exercise, self.generator))
        if len(names) > 1:
            sizes = case_sizes.all_large(self.exercise, self.generator, DEAR / 2)
            yield from self._at(case_sizes.as_met(self.exercise, sizes, DEAR / 2, rounded=0))
            yield from self._at(case_sizes.tiny(self.exercise, self.generator))
        for _ in range(AGAIN):
            yield from self._at(first)
        far = names[whole_number(0, len(names), self.generator)]
        large = case_sizes.dearest_of(OF_SEVERAL, self.exercise, self.generator, DEAR / 6, far)
        yield from self._if_soon(large, lambda: self._made(self._in_a_row(large)))
        if not self.exercise.hang_together:
            sizes = case_sizes.anywhere(self.exercise, self.generator, NEAR, far)
            yield from self._if_soon(sizes, lambda: self._made(self._nearly_the_same(sizes)))

    def _in_a_row(self, sizes: Sizes) -> Group:
        """Calls of one size, several, so that what each of them leaves behind is seen."""
        calls = whole_number(*IN_A_ROW, self.generator)
        planned = [self._planned(self.any_case(sizes), FEW) for _ in range(calls)]
        return Group(planned, again=True)

    def _of_one_tensor(self) -> Iterator[Returned]:
        """A call for each two inputs that may be one tensor; of many, for a few. And two in which
        an input is the first row of another, or its first few rows."""
        drawn = case_sizes.of_one_side(self.exercise, self.generator)
        for sizes in case_sizes.with_each_flag(self.exercise, drawn):
            case = self.case(sizes)
            for way in ONE_TENSOR:
                yield from self._of_one_tensor_in(case, way)
        if self.exercise.at.anywhere:
            case = self.case(case_sizes.with_fewer_rows(self.exercise, drawn))
            yield from self._of_one_tensor_in(case, FEWER_ROWS)

    def _of_one_tensor_in(self, case: Case, way: OneTensor) -> Iterator[Returned]:
        chosen, own = way.inputs(self.exercise, case), case_changes.seeded(case)
        for names in own.sample(chosen, min(way.most, len(chosen))):
            tensors = {**case.tensors, **_of_one(case.tensors, *names)}
            note = way.note.format(*names, all=", ".join(names))
            of_one = replace(case, tensors=tensors, note=note)
            yield self._call(self._planned(of_one, FEW)._replace(one=names))

    def _as_met(self, sizes: Sizes, most: float, several: bool) -> Sizes:
        """Sizes that were drawn, made such as people have; or every second time a square."""
        # So that a seed goes on with what it would draw.
        own = Generator().manual_seed(random.Random(f"{self.seed} {sizes}").getrandbits(32))
        if several and whole_number(0, 2, own):
            return case_sizes.square(self.exercise, own, SQUARE)
        return case_sizes.as_met(self.exercise, sizes, most)

    def _at(self, sizes: Sizes) -> Iterator[Returned | Refused]:
        """A call of these sizes, unless it would take long."""
        yield from self._if_soon(sizes, lambda: [self.call(self.any_case(sizes), probes=FEW)])

    def _if_soon(
        self, sizes: Sizes, made: Callable[[], Iterable[Returned]]
    ) -> Iterator[Returned | Refused]:
        """Calls of these sizes, unless one would take long."""
        soon = self._pace * case_sizes.cost(self.exercise, sizes) <= LONGEST
        try:
            if soon and (self.kernel.backend == "cuda" or self.threads(sizes) <= MANY):
                yield from made()
        except LaunchError as error:
            yield Refused(case_calls.nothing(self.kernel, sizes), str(error))

    def _beyond_16_bits(self) -> Iterator[Returned]:
        """A call that is long in one size, another one each time, and short in the others.
        Not where that would take long, or CUDA refuse it: `at.card` says how far a kernel must go.
        """
        if self.kernel.backend != "emulator":
            return
        names = case_sizes.lengths(self.exercise)
        for i in torch.randperm(len(names), generator=self.generator).tolist():
            for span in LONG:
                sizes = case_sizes.long_sizes(self.exercise, names[i], span, self.generator)
                if case_sizes.cost(self.exercise, sizes) > FAR:
                    continue
                with contextlib.suppress(LaunchError):
                    # To ask takes as much memory as to call: a part of the length comes first.
                    few = all(self.threads(s) <= MANY for s in (self._part(names[i], span), sizes))
                    if few and self._soon(names[i], span):
                        yield self.call(self.case(sizes), probes=FEW)
                        return

    def _part(self, name: str, span: tuple[int, int]) -> Sizes:
        shorter = (span[0] // PART, span[1] // PART)
        return case_sizes.long_sizes(self.exercise, name, shorter, self.generator)

    def _soon(self, name: str, span: tuple[int, int]) -> bool:
        """Whether a call that is long in one size ends soon, by the pace of a shorter one."""
        if name not in self._paces:
            arguments = case_calls.arguments(self.kernel, self.case(self._part(name, span)))
            self._paces[name] = PART * self._isolated(arguments).seconds / span[1]
        return self._paces[name] * span[1] <= LONGEST

    def _rehearse(self) -> Iterator[Refused]:
        """Would CUDA take the launches at sizes that only a card can do?"""
        for sizes in self.exercise.at.card:
            too_many = case_sizes.elements(self.exercise, sizes) > REHEARSED
            if too_many or max(sizes.values()) <= GRID:
                continue
            try:
                self.threads(sizes)
            except LaunchError as error:
                yield Refused(case_calls.nothing(self.kernel, sizes), str(error))

    def _isolated(
        self,
        arguments: Arguments,
        calls: int = 1,
        earlier: Mapping[str, Tensor] = MappingProxyType({}),
        multiprocessors: int = 0,
        order: int = 0,
    ) -> IsolatedRun:
        try:
            return self.kernel.isolated(
                arguments,
                timeout=self.timeout,
                calls=calls,
                earlier=earlier,
                multiprocessors=multiprocessors,
                order=order,
            )
        except tuple(FAULTS) as error:
            raise CheckFailed(FAULTS[type(error)], str(error)) from error


def _of_one(tensors: Mapping[str, Tensor], whole: str = "", *parts: str) -> dict[str, Tensor]:
    """As many elements of `whole` as each of the others has, in its shape."""
    shapes = {part: tensors[part].shape for part in parts}
    return {n: tensors[whole].view(-1)[: s.numel()].view(s) for n, s in shapes.items()}
