"""How fast an answer is beside the workbook's solution, on this GPU, for points.

Both run in turn, each time in a fresh process, by the same clock, which neither can reach: see
cuda/stopwatch.py. Every call has values of its own, drawn when its kernel was compiled already, and
every output of every timed call of the answer is compared with the reference in float64. How many
calls a run has follows from the solution's time alone.
"""

import math
import secrets
import statistics
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from typing import Any, Self

import torch
from torch import Generator, Tensor

from utils.course import case_calls, cases, catalog
from utils.course.answers import Answer, as_answer
from utils.course.case_sizes import size_text
from utils.course.cases import Case
from utils.course.exercise import Exercise, Sizes
from utils.cuda import stopwatch
from utils.cuda.arrays import Arrays
from utils.cuda.compiler import compile_cuda
from utils.ground.errors import CheckFailed, Reason, WorkbookError
from utils.judge import mismatch, oracle
from utils.judge.oracle import Expected
from utils.process import card, pool
from utils.timing import measure

FULL, NOTHING = 1.2, 10.0  # of the solution's time: up to there all tenths, from there none
ROUNDS = 3  # of each, in turn
IDLE = 3  # runs that call nothing, of which the shortest counts
RUN = 0.1  # seconds of a run, where memory allows as many calls
CALLS = 3, 256  # of a run, at least and at most
LINE = 300  # characters of a message: some are a submission's own words
LIMIT = 5.0  # seconds that any run may take, beside twenty times the solution's


@dataclass(frozen=True)
class Speed:
    """An answer's time beside the solution's. Where `tenths` is None, nothing was timed."""

    gpu: str  # its name
    tenths: float | None = None  # of the points for speed
    seconds: float = 0.0  # a call, of the answer, where it was timed to the end
    reference: float = 0.0  # a call, of the solution
    calls: int = 0  # of a run
    overhead: float = 0.0  # seconds of a run that are no call's, and that no time above has in it
    message: str = ""  # why nothing was timed, or why there are no points

    @property
    def ratio(self) -> float:
        """How often the solution's time it took; 0 where it has none."""
        return self.seconds / self.reference if self.reference else 0.0

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """From what to_json gave."""
        return cls(**{name: value for name, value in data.items() if name != "ratio"})

    def to_json(self) -> dict[str, Any]:
        """As JSON has it, with the ratio."""
        return asdict(self) | {"ratio": self.ratio}


def tenths(ratio: float) -> float:
    """Of the points: all up to FULL times the reference, then 7 / ratio, from NOTHING on none.

    Stanford's CS149 has the same bounds; between them it gives all points / ratio.
    """
    if ratio >= NOTHING:
        return 0.0
    return 10.0 if ratio <= FULL else 7 / ratio


def beside_the_solution(answer: Answer, sizes: Sizes | None = None) -> Speed:
    """Time an answer that has passed its check, at the size of `bench` unless others are given.

    What goes wrong with the solution before the answer has ever run is no fault of the answer:
    then nothing is timed. Whatever goes wrong afterwards is.
    """
    exercise, name = answer.exercise, measure.gpu()
    sizes = sizes or exercise.at.bench
    for backend in ("cuda", "emulator"):  # processes that its check has left: they could hinder
        pool.discard(backend)
    try:
        with card.alone(), oracle.full_precision():
            pair = _Pair(answer, solution(exercise, answer.backend), sizes)
            return pair.raced(name)
    except _NotTimed as reason:
        return Speed(name, message=str(reason))


def solution(exercise: Exercise, backend: str) -> Answer:
    """The workbook's own kernel, which stands for what can be reached."""
    text = catalog.solution_text(exercise)
    made = compile_cuda(text, exercise.name, shapes=exercise.shapes, backend=backend)
    return as_answer(exercise, made)


class _NotTimed(Exception):
    """Why nothing can be timed here, for nobody's fault."""


# Whatever may go wrong in a run; RuntimeError is PyTorch's, also where memory runs out.
_TROUBLE = (WorkbookError, MemoryError, OSError, RuntimeError)


class _Pair:
    def __init__(self, answer: Answer, reference: Answer, sizes: Sizes) -> None:
        """Raises _NotTimed where not even the reference can be timed."""
        self.answer, self.reference, self.sizes = answer, reference, sizes
        try:
            self.bounds = bounds(reference, sizes)
            self.calls = _fitting(reference, sizes, self.bounds)
            self.idle = clocked(reference, sizes, self.calls, idle=True)
        except _TROUBLE as error:
            raise _NotTimed(f"the solution cannot be timed here: {_line(error)}") from error

    def raced(self, gpu: str) -> Speed:
        """Both in turn, so that what changes on the machine changes for both."""
        ours: list[float] = []
        theirs: list[float] = []
        failed = ""
        try:
            for _ in range(ROUNDS):
                ours.append(clocked(self.reference, self.sizes, self.calls))
                within = 2 * NOTHING * max(ours)
                theirs.append(clocked(self.answer, self.sizes, self.calls, self.bounds, within))
        except _TROUBLE as error:
            failed = f"it was not timed to the end: {_line(error)}"
        # A part of each run that whoever owns a process cannot change; at most half of any.
        idle = min(self.idle, *(t / 2 for t in (*ours, *theirs))) if ours else 0.0
        seconds, reference = (
            (statistics.median(times or [0.0]) - idle) / self.calls for times in (theirs, ours)
        )
        if failed:
            return Speed(gpu, 0.0, 0.0, max(reference, 0.0), self.calls, idle, failed)
        points = tenths(seconds / reference)
        return Speed(gpu, points, seconds, reference, self.calls, idle)


def _line(error: BaseException) -> str:
    """An error in a line."""
    return str(error).strip().partition("\n")[0][:LINE] or type(error).__name__


def _fitting(reference: Answer, sizes: Sizes, bounds: Mapping[str, float]) -> int:
    """How many calls make a run of RUN seconds, or as many as there is memory for."""
    least, most = CALLS
    like = case_calls.arguments(reference, _case(reference, sizes, 0), reference.device)
    tensors = [value for value in like.values() if isinstance(value, Tensor)]
    most = min(most, Arrays.room(tensors, reference.backend == "cuda"))
    if most < 1:
        raise _NotTimed(f"a call of {size_text(sizes)} needs more memory than there is")
    calls = min(least, most)
    del like, tensors  # memory
    seconds = clocked(reference, sizes, calls, bounds)
    for _ in range(2):  # of few calls, most may be overhead
        if seconds >= RUN or calls == most:
            break
        calls = max(calls, min(most, math.ceil(calls * RUN / seconds)))
        seconds = clocked(reference, sizes, calls, bounds)  # there is memory for that, too
    return calls


def clocked(
    kernel: Answer,
    sizes: Sizes,
    calls: int,
    bounds: Mapping[str, float] | None = None,
    within: float = 0.0,
    idle: bool = False,
) -> float:
    """Seconds that one run of so many calls took; with `bounds`, every output is verified; `idle`:
    the shortest of some runs that have the memory for them and make none.

    Raises CheckFailed, LaunchError, KernelCrash, KernelTimeout, MemoryError, OSError.
    """
    device = torch.cuda.current_device() if kernel.backend == "cuda" else None
    seeds = [secrets.randbits(63) for _ in range(calls + 1)]
    with ExitStack() as memory:
        with stopwatch.process(kernel, device) as worker:
            run, warming = (
                memory.enter_context(closing(filled(kernel, sizes, drawn, device)))
                for drawn in (seeds[:calls], seeds[calls:])
            )
            for _ in range(2):
                warming.clock(worker, LIMIT + within)
            runs = IDLE if idle else 1
            seconds = min(run.clock(worker, LIMIT + within, idle) for _ in range(runs))
        if bounds is not None:  # its process has ended
            _verify(kernel, sizes, run, seeds[:calls], bounds)
    return seconds


def filled(kernel: Answer, sizes: Sizes, seeds: list[int], device: int | None) -> stopwatch.Run:
    """A run with values from these seeds, and outputs that hold none."""
    run = None
    try:
        for call, seed in enumerate(seeds):
            arguments = case_calls.arguments(kernel, _case(kernel, sizes, seed), kernel.device)
            run = run or stopwatch.Run(kernel, arguments, len(seeds), device)
            run.fill(call, arguments)
    except BaseException:
        if run:
            run.close()
        raise
    if run is None:
        raise ValueError("a run has one call or more")
    return run


def _verify(
    kernel: Answer,
    sizes: Sizes,
    run: stopwatch.Run,
    seeds: list[int],
    bounds: Mapping[str, float],
) -> None:
    """Judge every output of a run. Raises CheckFailed.

    The inputs are drawn again: those in the memory were in the reach of who is judged.
    """
    if run.changed_since():
        raise CheckFailed(Reason.NOT_WRITTEN, "when it said that it was done, it was not")
    for call, seed in enumerate(seeds):
        case = _case(kernel, sizes, seed)
        for name, value in evaluated(kernel, case).items():
            got = run.tensor(call, name)
            bound = torch.full_like(value, bounds[name], dtype=torch.float64)
            right = Expected.known(value, bound)
            if mismatch.wrong(got, right).any():
                raise CheckFailed(
                    Reason.WRONG_VALUES, "a call that was timed did not give the right result"
                )


def evaluated(kernel: Answer, case: Case) -> dict[str, Tensor]:
    """The reference's outputs in float64."""
    with torch.inference_mode():
        return oracle.evaluate(kernel.exercise, case, torch.float64, kernel.device)


def bounds(kernel: Answer, sizes: Sizes) -> dict[str, float]:
    """How far off an output may be at these sizes: the largest bound of one call for all calls.

    Whether it is right to the last digit, its check has said.
    """
    case = _case(kernel, sizes, secrets.randbits(63))
    expected = oracle.expect(kernel.exercise, case, kernel.dtypes, kernel.device, probes=2)
    return {name: float(right.bound.max()) for name, right in expected.items()}


def _case(kernel: Answer, sizes: Sizes, seed: int) -> Case:
    """Usual values, the same ones from the same seed."""
    exercise, device = kernel.exercise, kernel.device
    generator = Generator(device).manual_seed(seed)
    case = cases.sample(exercise, sizes, cases.usual(exercise), generator, kernel.dtypes)
    tensors = {name: tensor.to(device) for name, tensor in case.tensors.items()}
    return Case(case.sizes, case.family, tensors, case.scalars)
