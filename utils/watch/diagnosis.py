"""Watch a kernel on the emulator: what goes wrong, and what each line costs.

The kernel's own text is built once more, instrumented. `diagnose_call` runs that build on given
arguments and returns hazards and counters; `check` and `diagnose` are made of it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from torch import Tensor

from utils.cuda.arguments import Arguments
from utils.cuda.instrumented import instrumented
from utils.cuda.isolation import Covered
from utils.cuda.kernel import Kernel
from utils.emulator import reports, symbols
from utils.emulator.reports import Report
from utils.emulator.symbols import Code, SourceLine
from utils.emulator.traffic import LaunchTraffic, read_launches
from utils.ground.errors import LaunchError
from utils.ground.wording import many
from utils.watch import by_value
from utils.watch.trace import Trace, read_trace


@dataclass(frozen=True)
class Diagnosis:
    """What a diagnosing run of one call of a kernel found."""

    hazards: tuple[Report, ...]
    launches: tuple[LaunchTraffic, ...]
    error: LaunchError | None  # what ended the run early
    after: Mapping[str, Tensor]
    trace: Trace | None = None  # every access, where it was asked for and there are hazards
    remarks: tuple[Report, ...] = ()  # what looks wrong and has had no consequences
    covered: Mapping[str, Covered] = field(default_factory=dict)  # by tensor argument
    detour: bool = False  # values went to the host, and a launch or a copy back followed
    scattered: int = 0  # the launcher's copies, on the device, of less than a sector at a time
    unseen: tuple[str, ...] = ()  # functions some of whose loads nobody sees: see by_value.py

    def total(self, what: str, space: str, *accesses: str) -> int:
        """The sum of a field of Traffic over a space and kinds of access, in all launches."""
        return sum(launch.total(what, space, *accesses) for launch in self.launches)


SHOWN = 3  # hazards whose story is told; the rest are counted


def tell(hazards: Sequence[Report]) -> str:
    """The first few hazards in words, and how many more there are."""
    by_cause: dict[tuple[object, ...], Report] = {}
    for hazard in hazards:
        by_cause.setdefault(reports.cause(hazard), hazard)
    causes = list(by_cause.values())
    lines = reports.messages(causes[:SHOWN])
    if len(causes) > SHOWN:
        lines.append(f"and {many(len(causes) - SHOWN, 'more place')} like these")
    return "\n".join(lines)


def diagnose_call(
    kernel: Kernel,
    arguments: Arguments,
    *,
    unwritten: Collection[str] = (),
    order: int = 0,
    timeout: float = 10.0,
    most: int = 0,
    idle_products: bool = False,
) -> Diagnosis:
    """Diagnose one call of a kernel on copies of `arguments` (by parameter name).

    `unwritten` names tensors that hold nothing yet: to read them before writing is a hazard.
    `order` other than 0 runs the threads in another order. `most` accesses are recorded, for the
    picture of a hazard. With `idle_products`, products of tensor cores, and of four bytes at once,
    add nothing. Raises KernelCrash and KernelTimeout.
    """
    build = instrumented(kernel)
    seen = build.watched(
        arguments,
        unwritten=unwritten,
        most=most,
        order=order,
        timeout=timeout,
        idle_products=idle_products,
    )
    texts = _texts(kernel)
    hazards = tuple(
        _shaped(report, arguments)
        for report in reports.causes_first(reports.read(seen.events, texts))
    )
    launches = _launches(seen.events, build)
    trace = read_trace(seen, build, arguments) if most and hazards else None
    remarks = tuple(reports.remarks(seen.events, texts))
    return Diagnosis(
        hazards,
        launches,
        seen.error,
        seen.after,
        trace,
        remarks,
        seen.covered,
        seen.detour,
        seen.scattered,
        by_value.unseen(build.library, kernel.source),
    )


def _texts(kernel: Kernel) -> reports.Texts:
    """The lines of the kernel's own text, and of the headers that it includes."""
    lines = kernel.source.splitlines()

    def text(file: str, line: int) -> str:
        if file != kernel.filename:
            return reports.from_files(file, line)
        return lines[line - kernel.first_line] if 0 <= line - kernel.first_line < len(lines) else ""

    return text


def _shaped(report: Report, arguments: Arguments) -> Report:
    """The same with the shape of the tensor that it is about, where it is one."""
    tensor = arguments.get(report.array or "")
    if isinstance(tensor, Tensor) and report.space == "global":
        return replace(report, shape=tuple(tensor.shape))
    return report


def _launches(events: str, kernel: Kernel) -> tuple[LaunchTraffic, ...]:
    """The launches that the runtime told of, with the lines of the kernel's own text."""

    def places(codes: list[Code]) -> dict[Code, SourceLine]:
        offsets = sorted({offset for _, offset in codes})
        lines = symbols.resolve_lines(
            kernel.library, [int(o, 16) for o in offsets], kernel.filename
        )
        line_of = dict(zip(offsets, lines, strict=True))
        return {(module, offset): (kernel.filename, line_of[offset]) for module, offset in codes}

    return tuple(read_launches(events, places))
