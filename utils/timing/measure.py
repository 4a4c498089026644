"""Time kernels on the GPU: a flushed L2, several input sets, every timed output verified."""

import functools
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date

import torch
from torch import Generator, Tensor

from utils import settings
from utils.course import cases
from utils.course.answers import Answering
from utils.course.cases import Case
from utils.course.exercise import reads
from utils.cuda import card
from utils.errors import CheckFailed, Reason, WorkbookError
from utils.judge import mismatch, oracle
from utils.judge.oracle import Expected
from utils.paths import ROOT
from utils.timing import peers
from utils.timing.peers import Peer
from utils.timing.results import Entry, Row

BUDGET = 0.6  # seconds of GPU time for each row
CALLS = 5, 200  # at least and at most
LATE = 0.2  # ms; an idle device answers much sooner
FLUSHES = 4  # writes of the buffer: about 0.5 ms
SETS = 3  # input sets in rotation, where memory allows


@dataclass
class Set:
    """One set of inputs on the GPU, and what the kernel must make of them."""

    case: Case
    given: dict[str, Tensor | int | float]  # the kernel's arguments
    expected: dict[str, Expected]


def gpu() -> str:
    """The name of the GPU in use, such as `NVIDIA H200`; empty where there is none."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else ""


def measure(kernel: Answering, sizes: Mapping[str, int]) -> tuple[Entry, list[str]]:
    """Time a trusted kernel beside its peers at one size, in one run; also remarks on what failed.

    Raises CheckFailed where a timed call gave a wrong result, WorkbookError where memory is short.
    """
    exercise, notes = kernel.exercise, []
    try:
        with oracle.full_precision():
            with card.together():
                sets, flush = _sets(kernel, sizes), flusher()
            rows = [_ours(kernel, sets, flush)]
            for peer in peers.of(exercise):
                try:
                    with peers.quiet():
                        rows.append(_theirs(peer, sets, flush))
                except torch.OutOfMemoryError:
                    raise
                except Exception as error:  # a peer's failure is no reason to show nothing
                    reason = str(error).strip().partition("\n")[0]
                    notes.append(f"{peer.label} failed here: {type(error).__name__}: {reason}")
    except torch.OutOfMemoryError:
        raise WorkbookError(
            f"this GPU has too little memory for {exercise.name} with {cases.size_text(sizes)}; "
            f"give bench smaller sizes, as in bench({exercise.name}, {next(iter(sizes))}=...)"
        ) from None
    finally:
        torch.cuda.empty_cache()
    entry = Entry(
        dict(sizes), exercise.bytes(**sizes), exercise.flops(**sizes), tuple(rows), **provenance()
    )
    return entry, notes


def provenance() -> dict[str, str]:
    """With what, when and at which commit something is measured; empty where it is not known.

    A copy without .git is told its commit by WORKBOOK_COMMIT.
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


def _sets(kernel: Answering, sizes: Mapping[str, int]) -> list[Set]:
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
        given = cases.arguments(kernel, case, "cuda")
        kernel(**given)
        torch.cuda.synchronize()
        expected = oracle.expect(exercise, case, kernel.dtypes, "cuda", probes=2)
        for name, right in expected.items():
            bad = mismatch.wrong(given[name], right)
            if bad.any():
                message = mismatch.explain(name, given[name], right, bad, exercise.eps)
                raise CheckFailed(Reason.WRONG_VALUES, f"{kernel.name} with {case}\n{message}")
            # What every timed call is compared with: float32 is enough beside the bound.
            value = right.value.to(given[name].dtype)
            expected[name] = Expected(value, right.bound.float())
        sets.append(Set(case, given, expected))
        used = free - torch.cuda.mem_get_info()[0]
        if used * (len(sets) + 1) > free * len(sets) * 0.7:
            break
    return sets


def flusher() -> Callable[[], None]:
    """A function that drives everything out of the L2 cache, and keeps the GPU busy for so long
    that the call behind it is queued before its turn comes, Python's overhead and all."""
    cache = torch.cuda.get_device_properties().L2_cache_size
    buffer = torch.empty(max(256 << 20, 8 * cache), dtype=torch.uint8, device="cuda")

    def flush() -> None:
        for value in range(FLUSHES):
            buffer.fill_(value)

    return flush


def _ours(kernel: Answering, sets: list[Set], flush: Callable[[], None]) -> Row:
    wrong = torch.zeros((), dtype=torch.bool, device="cuda")

    def prepare(chosen: Set) -> None:
        for name in kernel.exercise.outputs:
            if name in chosen.case.tensors:  # read and written: it starts from its own values
                chosen.given[name].copy_(chosen.case.tensors[name])
            else:
                poison = cases.poison((), chosen.given[name].dtype, "cuda")
                chosen.given[name].copy_(poison.expand_as(chosen.given[name]))

    def verify(chosen: Set) -> None:
        for name, right in chosen.expected.items():
            got = chosen.given[name]
            near = (got - right.value).abs() <= right.bound
            nan = right.value.isnan() & got.isnan()
            wrong.logical_or_(~(near | (got == right.value) | nan).all())

    times = _times(lambda chosen: kernel(**chosen.given), sets, flush, prepare, verify)
    if wrong:
        raise CheckFailed(Reason.WRONG_VALUES, f"{kernel.name}: a timed call gave a wrong result")
    return _row(kernel.name, "ours", times)


def _theirs(peer: Peer, sets: list[Set], flush: Callable[[], None]) -> Row:
    calls = {id(s): reads(peer.function, s.case.values) for s in sets}
    if peer.kind == "compile":
        with peers.compiling():
            peer.function(**calls[id(sets[0])])
    times = _times(lambda chosen: peer.function(**calls[id(chosen)]), sets, flush)
    return _row(peer.label, peer.kind, times)


def _times(
    call: Callable[[Set], object],
    sets: list[Set],
    flush: Callable[[], None],
    prepare: Callable[[Set], None] = lambda chosen: None,
    verify: Callable[[Set], None] = lambda chosen: None,
) -> list[float]:
    """Milliseconds of each call, alone on the device, the sets in rotation.

    Where the CPU was too busy to queue a call in time, it is made again; as often as there are
    calls, lest a call that waits for the device itself is made for ever.
    """
    with card.alone():
        for chosen in [*sets, *sets]:  # loads, allocates
            call(chosen)
        once = _timed(lambda: call(sets[0]), flush).milliseconds
        least, most = CALLS
        count = int(min(max(BUDGET / (once / 1e3 + 1e-4), least), most))
        taken: list[_Timing] = []
        while sum(t.queued for t in taken) < count and len(taken) < 2 * count:
            chosen = sets[len(taken) % len(sets)]
            prepare(chosen)
            taken.append(_timed(lambda chosen=chosen: call(chosen), flush))
            verify(chosen)
    good = [t for t in taken if t.queued]
    return [t.milliseconds for t in (good if len(good) >= least else taken)]


@dataclass(frozen=True)
class _Timing:
    milliseconds: float
    queued: bool  # before its turn came: no gap in it is the CPU's


def _timed(call: Callable[[], object], flush: Callable[[], None]) -> _Timing:
    """One call, between two events on PyTorch's stream.

    Work that a call hides on another stream goes on after the second event; it is counted too.
    """
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    flush()
    start.record()
    call()
    stop.record()
    queued = not start.query()
    stop.synchronize()
    seen = time.perf_counter()
    torch.cuda.synchronize()
    late = 1e3 * (time.perf_counter() - seen)
    return _Timing(start.elapsed_time(stop) + (late if late > LATE else 0.0), queued)


def _row(label: str, kind: str, times: list[float]) -> Row:
    fifths = statistics.quantiles(times, n=5, method="inclusive")
    return Row(label, kind, statistics.median(times), fifths[0], fifths[-1])


@functools.cache
def copy_bandwidth() -> float:
    """Bytes per second of a large copy on this GPU, read plus written."""
    free, _ = torch.cuda.mem_get_info()
    with card.alone():
        source = torch.empty(min(4 << 30, free // 8), dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        timed = [_timed(lambda: target.copy_(source), lambda: None) for _ in range(12)]
    return 2e3 * source.numel() / statistics.median(t.milliseconds for t in timed[2:])
