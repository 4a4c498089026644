"""`workbook judge` on a card: how long a `ModelNew` takes beside eager PyTorch and torch.compile.

The file owns the process in which it runs, so nothing that is said there counts. The time is this
process's own, as in cuda/stopwatch.py: from lending the memory, in which inputs and parameters are,
to having looked at secret places of all outputs, which must be in that memory by then.

* A run is many calls, each with inputs and parameters of its own, which nobody has had before. What
  a run costs without them is measured with a process that can be trusted, and taken off all times.
* Eager, torch.compile and the file are clocked by one protocol, in turns, with as many calls.
* The file has a fresh process for each run. It has ended before anybody else is clocked, and before
  what is expected is worked out.
* Every output of every run of the file is held against float64, all of it, and that its inputs and
  parameters are as they were. A time that no card can reach is none.
"""

import math
import secrets
import statistics
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor
from torch.utils.flop_counter import FlopCounterMode

from utils.cuda.arrays import Arrays
from utils.cuda.model_box import boxed, capability_for, unboxed
from utils.ground.errors import WorkbookError
from utils.judge import oracle
from utils.judge.models import accuracy, evaluation, probe, requests
from utils.judge.models.calls import KINDS, randomised
from utils.judge.models.task import Size, Task
from utils.judge.models.verdict import Rejected, Runtime, Verdict, Why
from utils.process import card
from utils.process.box import Box, Session
from utils.process.child import Gone
from utils.timing import measure, rested, roofline

ROUNDS = 3  # of eager, torch.compile and the file, in turn
IDLE = 3  # runs that call nothing, of which the shortest counts
RUN = 0.1  # seconds of a run of eager, where memory allows as many calls
CALLS = 3, 32  # of a run, at least and at most
WARM = 2  # runs before one that counts, of as many calls
LIMIT = 20.0  # seconds that any run may take, beside twenty times eager's
COMPILING = 300.0  # seconds for torch.compile
USUAL = "uniform", "normal"  # values of timed calls
# float32 by tensor cores takes three products of halves; with two, the values are not right.
PRODUCTS, PART = 2, 0.8  # and a time below this part of what those take is no time
LONG = 200  # characters of a kernel's name
UNTIMED = "Runtime: not measured; {}"

_ITSELF = "\n\nModelNew = Model\n"
STEADY = 1.5  # PyTorch's own model as a file, over the same in a process that can be trusted
_COMPILED = """

class ModelNew(Model):
    def __init__(self, compiled, *arguments):
        super().__init__(*arguments)
        if compiled:
            self.compile()
"""


@card.apart()
def judge(
    path: Path,
    *,
    task: int | None = None,
    reference: Path | None = None,
    seed: int | None = None,
    backend: str = "emulator",
    forward_only: bool = False,
) -> Verdict:
    """The verdict on a file in KernelBench's format, and on a card its time if it has passed.

    Raises ToolError where there is no box, WorkbookError where it is not known what the file should
    compute.
    """
    text, wanted = evaluation.read_request(path, task, reference, forward_only)
    if backend != "emulator" and (why := probe.obstacle(backend)):
        with boxed(capability=capability_for(text)) as box:
            verdict = evaluation.judge_text(text, wanted, box, seed)
            note = f"This card is not used, for a model that is right is not found so: {why}"
            return replace(verdict, notes=[*verdict.notes, note])
    with boxed(backend, capability_for(text)) as box:
        verdict = evaluation.judge_text(text, wanted, box, seed)
        if not verdict.passed or backend == "emulator":
            return verdict
        try:
            with Peers(wanted, backend) as peers:
                return timed(verdict, text, wanted, box, peers)
        except Exception as error:  # whatever it is: the evaluation stands
            return untimed(verdict, error)


def timed(verdict: Verdict, text: str, task: Task, box: Box, peers: "Peers") -> Verdict:
    """A verdict with the file's time, or that on what came out when it was timed."""
    try:
        return replace(verdict, runtime=Race(text, task, box, peers).run())
    except Rejected as rejected:
        return replace(verdict, passed=False, reason=rejected.why, message=rejected.message)
    except Exception as error:  # whatever it is: the evaluation stands
        return untimed(verdict, error)


def untimed(verdict: Verdict, error: BaseException) -> Verdict:
    """The same verdict: that nothing can be timed is no fault of the file."""
    said = str(error).strip().partition("\n")[0] or type(error).__name__
    return replace(verdict, notes=[*verdict.notes, UNTIMED.format(said[:LONG])])


class NotTimed(WorkbookError):
    """Why nothing can be timed here, for no fault of the file."""


class Peers:
    """Eager PyTorch and torch.compile, in a process that can be trusted. Close it."""

    EAGER, COMPILED = 0, 1

    def __init__(self, task: Task, backend: str):
        """Without a card, there is no torch.compile beside it. Raises NotTimed."""
        if not task.usual:
            raise NotTimed("only tasks whose inputs are all float32 and drawn freely are timed")
        self.task, self.device = task, 0 if backend == "cuda" else None
        self._box = unboxed(backend)
        self._session = self._box.open()
        self.names = ["eager"]
        self.failed = ""  # why there is no torch.compile
        try:
            requests.load(self._session, task.text + _COMPILED, "trusted")
            self._make(compiled=False)
            if backend == "cuda":
                with card.together():
                    self._compile()
        except (Gone, Rejected) as error:
            raise NotTimed(f"PyTorch's own model does not run here: {error}") from error

    def __enter__(self) -> "Peers":
        return self

    def __exit__(self, *_: object) -> None:
        self._session.__exit__()
        self._box.close()

    def _make(self, compiled: bool) -> None:
        arguments = requests.encoded([compiled, *self.task.own.arguments])
        request(self._session, COMPILING, "make", arguments=arguments, seed=0, values=False)

    def _compile(self) -> None:
        try:
            self._make(compiled=True)
            with closing(filled(self.task, self.task.own, seeds(1), self.device)) as arrays:
                clock(self._session, self.COMPILED, arrays, self.task.own, COMPILING)
            self.names.append("compiled")
        except Rejected as error:
            self.failed = str(error)
        request(self._session, LIMIT, "release")

    def clocked(self, made: int, count: int, idle: bool = False) -> float:
        """Seconds of a run; `idle`: the shortest of some that call nothing."""
        size = self.task.own
        try:
            with closing(filled(self.task, size, seeds(count), self.device)) as arrays:
                runs = IDLE if idle else 1
                taken = []
                for _ in range(runs):
                    taken.append(clock(self._session, made, arrays, size, COMPILING, idle))
                    request(self._session, LIMIT, "release")
                return min(taken)
        except (Gone, Rejected) as error:
            raise NotTimed(f"PyTorch's own model does not run here: {error}") from error


class Race:
    """A file's time beside its peers'. `run` raises Rejected and NotTimed."""

    def __init__(self, text: str, task: Task, box: Box, peers: Peers):
        self.text, self.task, self.box, self.peers = text, task, box, peers
        self.device, self.size = peers.device, task.own
        self.kernels: list[str] = []

    def run(self) -> Runtime:
        """All in turns, so that what changes on the machine changes for all."""
        with card.alone(), oracle.full_precision(), oracle.one_thread():
            count = self._fitting()
            idle = self.peers.clocked(Peers.EAGER, count, idle=True)
            self._sound(count)
            rounds: list[dict[str, float]] = []
            for _ in range(ROUNDS):
                taken = {}
                for made, name in enumerate(self.peers.names):
                    taken[name] = self.peers.clocked(made, count)
                taken["file"] = self._clocked(count, LIMIT + 20 * taken["eager"])
                rounds.append(taken)
        shortest = min(time for taken in rounds for time in taken.values())
        idle = min(idle, shortest / 2)  # of any run, at most half is no call's
        each = [{n: 1e3 * (t - idle) / count for n, t in taken.items()} for taken in rounds]
        medians = {name: statistics.median(taken[name] for taken in each) for name in each[0]}
        self._believed(medians["file"])
        return Runtime(
            gpu=measure.gpu(),
            milliseconds=medians["file"],
            eager=medians["eager"],
            compiled=medians.get("compiled"),
            calls=count,
            overhead=1e3 * idle,
            rounds=each,
            kernels=self.kernels,
        )

    def _sound(self, count: int) -> None:
        """Clock PyTorch's own model as if it were the file: it must be found right, and as fast as
        it is. Raises NotTimed where the judge does not work as it should on this machine."""
        eager = self.peers.clocked(Peers.EAGER, count)
        itself = Race(self.task.text + _ITSELF, self.task, self.box, self.peers)
        try:
            seconds = itself._clocked(count, LIMIT + 20 * eager)
        except Rejected as rejected:
            raise NotTimed(f"PyTorch's own model is not found right: {rejected}") from rejected
        if self.device is not None and not 1 / STEADY < seconds / eager < STEADY:
            raise NotTimed(
                f"PyTorch's own model took {seconds:.3g} s as a file, {eager:.3g} s beside it"
            )

    def _fitting(self) -> int:
        """How many calls make a run of eager of RUN seconds, or as many as there is memory for."""
        least, most = CALLS
        like = arrays_of(self.task, self.size).values()
        if (most := min(most, Arrays.room(like, self.device is not None))) < 1:
            raise NotTimed(f"a call of {self.size} needs more memory than there is")
        count = min(least, most)
        self.peers.clocked(Peers.EAGER, count)
        idle = self.peers.clocked(Peers.EAGER, count, idle=True)
        each = max(self.peers.clocked(Peers.EAGER, count) - idle, 1e-6) / count
        return max(count, min(most, math.ceil(RUN / each)))

    def _clocked(self, count: int, within: float) -> float:
        """Seconds of one run of the file, in a process of its own, whose outputs are right."""
        drawn = seeds(count)
        with closing(filled(self.task, self.size, drawn, self.device)) as arrays:
            with self.box.open() as session:
                seconds = requests.safely(self._request, session, arrays, within)
            self._verify(arrays, drawn)
        return seconds

    def _request(self, session: Session, arrays: Arrays, within: float) -> float:
        requests.load(session, self.text)
        arguments = requests.encoded(self.size.arguments)
        request(session, requests.ANSWERING, "make", arguments=arguments, seed=0, values=False)
        for _ in range(WARM):
            with closing(filled(self.task, self.size, seeds(WARM), self.device)) as warming:
                clock(session, 0, warming, self.size, within)
        seconds = clock(session, 0, arrays, self.size, within)
        requests.surroundings(session)
        with suppress(Gone, Rejected):  # no part of the verdict
            reply = request(session, requests.ANSWERING, "kernels", made=0, shapes=self.size.shapes)
            if isinstance(names := reply.get("kernels"), list):
                self.kernels = [str(name)[:LONG] for name in names]
        return seconds

    def _verify(self, arrays: Arrays, drawn: Sequence[int]) -> None:
        """Judge every output of a run, once its process has ended. What was put in is drawn again:
        that in the memory was in the reach of who is judged. Raises Rejected."""
        if arrays.changed_since():
            raise Rejected(Why.CHANGED, "when it said that it was done, it was not")
        model = self.task.make(self.size, 0, _place(self.device))
        names = [name for name, _ in model.named_parameters()]
        for call, seed in enumerate(drawn):
            where = f"timed call {call + 1}"
            inputs, state = values(self.task, self.size, seed, self.device)
            for i, tensors in enumerate(inputs):
                if not torch.equal(arrays.tensor(call, f"input {i}"), tensors):
                    raise Rejected(Why.INPUT, f"{where}: input {i} was written to")
            for name, tensors in zip(names, state, strict=True):
                if not torch.equal(arrays.tensor(call, name), tensors):
                    raise Rejected(Why.PARAMETER, f"{where}: {name} was written to")
            truth = accuracy.truths(model, state, inputs)["output"]
            output = arrays.tensor(call, "output")
            if problem := accuracy.deviation(output, truth):
                self._objected(model, output, drawn, call, problem)

    def _objected(
        self,
        model: torch.nn.Module,
        output: Tensor,
        drawn: Sequence[int],
        call: int,
        problem: tuple[str, str],
    ) -> None:
        where = f"timed call {call + 1}"
        for other, seed in enumerate(drawn):
            inputs, state = values(self.task, self.size, seed, self.device)
            truth = accuracy.truths(model, state, inputs)["output"]
            if other != call and accuracy.deviation(output, truth) is None:
                raise Rejected(Why.STALE, f"{where}: it gave what call {other + 1} asks for")
        raise Rejected(Why(problem[0]), f"{where}: {problem[1]}")

    def _believed(self, milliseconds: float) -> None:
        """Raises Rejected where no card can be that fast."""
        least = least_milliseconds(self.task, self.size, measure.gpu())
        if milliseconds < least:
            raise Rejected(
                Why.TOO_FAST,
                f"{milliseconds:.4f} ms a call; what it reads, writes and multiplies takes at "
                f"least {least:.4f} ms on this card",
            )


def least_milliseconds(task: Task, size: Size, gpu: str) -> float:
    """Milliseconds below which nobody can compute this; 0 where nothing is known of the card."""
    arrays = arrays_of(task, size)
    moved = sum(tensor.nbytes for tensor in arrays.values())
    with FlopCounterMode(display=False) as counted, torch.device("meta"), torch.no_grad():
        task.model(*size.arguments)(*(torch.empty(shape) for shape in size.shapes))
    ceilings = roofline.ceilings(gpu).by_tensor_cores(PRODUCTS)
    least = roofline.predict(ceilings, moved, counted.get_total_flops())
    return PART * least.milliseconds if least else 0.0


def request(session: Session, within: float, do: str, **command: Any) -> dict[str, Any]:
    """The answer to a command. Raises Gone; Rejected where it is an error."""
    reply, _ = session.ask(within, do, **command)
    if "error" in reply:
        raise Rejected(Why.RAISED, f"{reply['error']}: {reply.get('text', '')}"[:500])
    return reply


def clock(
    session: Session, made: int, arrays: Arrays, size: Size, within: float, idle: bool = False
) -> float:
    """Seconds that a run takes, from the memory's handing over to the look at its outputs."""
    command = {
        "made": made,
        "size": arrays.size,
        "shapes": arrays.shapes(),
        "calls": [list(arrays.offsets(call).values()) for call in range(arrays.calls)],
        "idle": idle,
    }
    _flush(arrays.device)
    arrays.hide()
    start = time.perf_counter()
    request(session, within, "clock", file=arrays.file, **command)
    arrays.look()
    return time.perf_counter() - start


def _flush(device: int | None) -> None:
    """Drive what was filled last out of the card's L2."""
    if device is not None:
        rested.flusher()()


def arrays_of(task: Task, size: Size) -> dict[str, Tensor]:
    """A call's arrays, without memory: inputs, parameters, output."""
    with torch.device("meta"), torch.no_grad():
        model, inputs = task.model(*size.arguments), [torch.empty(shape) for shape in size.shapes]
        output = model(*inputs)
    if not isinstance(output, Tensor) or output.dtype != torch.float32:
        raise NotTimed("only tasks with one float32 output are timed")
    arrays = {f"input {i}": tensor for i, tensor in enumerate(inputs)}
    return arrays | dict(model.named_parameters()) | {"output": output}


def filled(task: Task, size: Size, drawn: Sequence[int], device: int | None) -> Arrays:
    """Arrays with the values of these seeds, and outputs that hold none."""
    arrays = Arrays(arrays_of(task, size), ["output"], len(drawn), device)
    try:
        for call, seed in enumerate(drawn):
            inputs, state = values(task, size, seed, device)
            for name, value in zip(arrays.offsets(call), [*inputs, *state], strict=False):
                arrays.tensor(call, name).copy_(value)
            arrays.tensor(call, "output").view(torch.int32).fill_(accuracy.POISON)
    except BaseException:
        arrays.close()
        raise
    return arrays


def values(
    task: Task, size: Size, seed: int, device: int | None
) -> tuple[list[Tensor], list[Tensor]]:
    """Inputs and parameters of a call, the same ones from the same seed."""
    generator = Generator(_place(device)).manual_seed(seed)
    inputs = [KINDS[USUAL[seed % len(USUAL)]](shape, generator) for shape in size.shapes]
    model = task.make(size, seed, _place(device))
    return inputs, [randomised(p.detach(), generator) for p in model.parameters()]


def seeds(count: int) -> list[int]:
    """So many that nobody can foresee."""
    return [secrets.randbits(62) for _ in range(count)]


def _place(device: int | None) -> str:
    return "cpu" if device is None else f"cuda:{device}"
