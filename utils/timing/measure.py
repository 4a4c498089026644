"""Time kernels on the GPU beside their peers, rested and sustained: several input sets, every timed
output verified, and its error against float64.
"""

import contextlib
import functools
import statistics
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import torch
from torch import Generator, Tensor

from utils.course import case_calls, cases
from utils.course.answers import Answer
from utils.course.case_sizes import size_text
from utils.course.cases import Case
from utils.course.exercise import reads
from utils.course.precision import Precision
from utils.cuda.arguments import Argument
from utils.ground import settings
from utils.ground.errors import CheckFailed, OutOfMemory, Reason
from utils.ground.paths import ROOT
from utils.judge import mismatch, oracle
from utils.judge.oracle import Expected
from utils.process import card
from utils.timing import peers, rested
from utils.timing.peers import Peer
from utils.timing.rows import Entry, Row
from utils.timing.sustained import Looks, Sustained, looking, sustained

SETS = 3  # input sets in rotation, where memory allows
FEWER = 0.5  # of the calls, where the times are printed and not kept


@dataclass
class Set:
    """One set of inputs on the GPU, and what the kernel must make of them."""

    case: Case
    arguments: dict[str, Argument]  # the kernel's arguments
    expected: dict[str, Expected]
    truth: dict[str, Tensor]  # in float64, of the first set
    error: float | None  # of the kernel's outputs against that

    def output(self, name: str) -> Tensor:
        """One that the kernel writes."""
        return case_calls.tensors(self.arguments)[name]


@dataclass(frozen=True)
class Ready:
    """What becomes a row: compiled, judged once, and not timed yet."""

    label: str
    kind: str
    precision: Precision
    error: float | None
    single: Callable[[float], list[float]]  # ms of calls on a rested card; a share of all calls
    again: Callable[[Looks | None, float], Sustained | None]  # back to back; of about so many ms

    def rested(self, share: float) -> Row:
        """Of single calls."""
        times = self.single(share)
        fifths = statistics.quantiles(times, n=5, method="inclusive")
        spread = statistics.median(times), fifths[0], fifths[-1]
        return Row(self.label, self.kind, *spread, precision=self.precision, error=self.error)

    def sustained(self, row: Row, looks: Looks | None) -> Row:
        """That row with its time under load, where it can be known."""
        looked = self.again(looks, row.median_ms)
        if looked is None:
            return row
        return replace(
            row,
            sustained_ms=looked.milliseconds,
            clock_mhz=looked.clock_mhz,
            watts=looked.watts,
        )


def gpu() -> str:
    """The name of the GPU in use, such as `NVIDIA H200`; empty where there is none."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else ""


def measure(
    kernel: Answer, sizes: Mapping[str, int], *, both_ways: bool = True
) -> tuple[Entry, list[str]]:
    """Time a trusted kernel beside its peers at one size, in one run; also remarks on what failed.
    Rested, and where `both_ways` sustained, too.

    Raises CheckFailed where a timed call gave a wrong result, OutOfMemory where memory is short.
    """
    exercise, notes = kernel.exercise, list[str]()
    try:
        with oracle.full_precision():
            with card.together():
                sets, flush = _sets(kernel, sizes), rested.flusher()
            ready = [_ours(kernel, sets, flush)]
            for peer in peers.of(exercise, sizes):
                with _remarks(peer.label, notes), peers.quiet():
                    ready.append(_theirs(peer, sets, flush))
            rows = _rows(ready, notes, both_ways)
    except torch.OutOfMemoryError:
        raise OutOfMemory(
            f"this GPU has too little memory for {exercise.name} with {size_text(sizes)}; "
            f"give bench smaller sizes, as in bench({exercise.name}, {next(iter(sizes))}=...)"
        ) from None
    finally:
        torch.cuda.empty_cache()
    entry = Entry(
        dict(sizes), exercise.bytes(**sizes), exercise.flops(**sizes), tuple(rows), **provenance()
    )
    return entry, notes


def _rows(ready: Sequence[Ready], notes: list[str], both_ways: bool) -> list[Row]:
    """All rows in a turn of the card for each way: each turn waits for whoever uses it."""
    timed = list[tuple[Ready, Row]]()
    share = 1.0 if both_ways else FEWER
    with card.alone():
        for one in ready:
            with _remarks(one.label, notes) if one.kind != "ours" else contextlib.nullcontext():
                timed.append((one, one.rested(share)))
    if not both_ways:
        return [row for _, row in timed]
    # The card is looked at only after all that is timed rested: looking takes a moment of it.
    with looking() as looks, card.alone():
        return [one.sustained(row, looks) for one, row in timed]


@contextlib.contextmanager
def _remarks(label: str, notes: list[str]) -> Iterator[None]:
    """A peer's failure is no reason to show nothing: it is noted."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        notes.append(f"{label} failed here: {type(error).__name__}: {reason}")


def provenance() -> dict[str, str]:
    """With what, when and at which commit something is measured; empty where it is not known.

    A copy without .git gets its commit from WORKBOOK_COMMIT.
    """
    driver = _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    return {
        "driver": driver.partition("\n")[0],
        "cuda": torch.version.cuda or "",
        "torch": torch.__version__,
        "date": date.today().isoformat(),
        "commit": settings.commit()
        or _output("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"),
    }


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _sets(kernel: Answer, sizes: Mapping[str, int]) -> list[Set]:
    """Fresh input sets, each with the kernel's outputs judged once before anything is timed."""
    exercise = kernel.exercise
    generator = Generator("cuda")
    generator.seed()
    sets: list[Set] = []
    free, _ = torch.cuda.mem_get_info()
    while len(sets) < SETS:
        case = cases.sample(exercise, sizes, cases.usual(exercise), generator, kernel.dtypes)
        tensors = {name: tensor.cuda() for name, tensor in case.tensors.items()}
        case = Case(case.sizes, case.family, tensors, case.scalars)
        arguments = case_calls.arguments(kernel, case, "cuda")
        kernel(**arguments)
        torch.cuda.synchronize()
        expected = oracle.expect(exercise, case, kernel.dtypes, "cuda", probes=2)
        written = case_calls.tensors(arguments)
        for name, right in expected.items():
            got = written[name]
            bad = mismatch.wrong(got, right)
            if bad.any():
                message = mismatch.explain(name, got, right, bad, exercise.eps)
                raise CheckFailed(Reason.WRONG_VALUES, f"{kernel.name} with {case}\n{message}")
        truth: dict[str, Tensor] = {}
        error = None
        if not sets:
            true = replace(exercise, reference=exercise.truth(sizes))
            with torch.enable_grad():  # a reference may go backwards
                truth = oracle.evaluate(true, case, torch.float64, "cuda")
            error = accuracy([written[name] for name in exercise.outputs], truth)
        for name, right in expected.items():
            # What every timed call is compared with: float32 is enough beside the bound.
            value = right.value.to(written[name].dtype)
            expected[name] = Expected.known(value, right.bound.float())
        sets.append(Set(case, arguments, expected, truth, error))
        used = free - torch.cuda.mem_get_info()[0]
        if used * (len(sets) + 1) > free * len(sets) * 0.7:
            break
    return sets


def _ours(kernel: Answer, sets: list[Set], flush: Callable[[], None]) -> Ready:
    wrong = torch.zeros((), dtype=torch.bool, device="cuda")
    written = [name for name in kernel.exercise.outputs if name in sets[0].case.tensors]

    def call(chosen: Set) -> None:
        kernel(**chosen.arguments)

    def prepare(chosen: Set) -> None:
        for name in kernel.exercise.outputs:
            output = chosen.output(name)
            if name in written:  # read, too: it starts from its own values
                output.copy_(chosen.case.tensors[name])
            else:
                output.copy_(case_calls.poison((), output.dtype, "cuda").expand_as(output))

    def verify(chosen: Set) -> None:
        for name, right in chosen.expected.items():
            got = chosen.output(name)
            near = (got - right.value).abs() <= right.bound
            nan = right.value.isnan() & got.isnan()
            wrong.logical_or_(~(near | (got == right.value) | nan).all())

    def judge() -> None:
        if wrong:
            message = f"{kernel.name}: a timed call gave a wrong result"
            raise CheckFailed(Reason.WRONG_VALUES, message)

    def again(looks: Looks | None, once_ms: float) -> Sustained | None:
        if written:  # the values of a call would be those that the one before it left
            return None
        with card.together():
            for chosen in sets:
                prepare(chosen)
        calls = [lambda chosen=chosen: call(chosen) for chosen in sets]
        looked = sustained(calls, once_ms, looks)
        if looked:
            with card.together():
                for chosen in sets:
                    verify(chosen)
                judge()
        return looked

    def single(share: float) -> list[float]:
        times = rested.times(call, sets, flush, prepare, verify, share)
        judge()
        return times

    own = kernel.exercise.precision_of(sets[0].case.sizes)
    return Ready(kernel.name, "ours", own, sets[0].error, single, again)


def _theirs(peer: Peer, sets: list[Set], flush: Callable[[], None]) -> Ready:
    values = {id(s): reads(peer.function, s.case.values) for s in sets}

    def call(chosen: Set) -> Any:
        return peer.function(**values[id(chosen)])

    if peer.kind == "compile":
        with peers.compiling():
            call(sets[0])
    with card.together():
        error = accuracy(call(sets[0]), sets[0].truth)
    calls = [lambda chosen=chosen: call(chosen) for chosen in sets]
    return Ready(
        peer.label,
        peer.kind,
        peer.precision,
        error,
        lambda share: rested.times(call, sets, flush, share=share),
        lambda looks, once_ms: sustained(calls, once_ms, looks),
    )


def accuracy(results: Tensor | Iterable[Tensor], truth: Mapping[str, Tensor]) -> float | None:
    """How far outputs, in their order, are from float64, where that is finite: the Frobenius norm
    of the difference over that of the truth, of the output where it is largest. None where they do
    not fit, or are not finite where the truth is."""
    outputs = (results,) if isinstance(results, Tensor) else results
    largest = 0.0
    for got, right in zip(outputs, truth.values(), strict=False):
        if got.numel() != right.numel():
            return None
        right = right.detach().double()
        finite = right.isfinite()
        right, got = right[finite], got.detach().reshape(finite.shape)[finite].double()
        if not got.isfinite().all():
            return None
        if norm := float(right.norm()):
            largest = max(largest, float((got - right).norm()) / norm)
    return largest


@functools.cache
def copy_bandwidth() -> float:
    """Bytes per second of a large copy on this GPU, read plus written."""
    free, _ = torch.cuda.mem_get_info()
    with card.alone():
        source = torch.empty(min(4 << 30, free // 8), dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        timed = [rested.timed(lambda: target.copy_(source), lambda: None) for _ in range(12)]
    return 2e3 * source.numel() / statistics.median(t.milliseconds for t in timed[2:])
