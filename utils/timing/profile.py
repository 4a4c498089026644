"""`profile(kernel)`: what a kernel does at its measured size, line by line, and what limits it.

    profile(gemm_tiled)

Requests, sectors and wavefronts are counted on the emulator at a small size and scaled to the
measured one (utils.timing.scaling); they agree with Nsight Compute's where both count
(results/calibration). Times are estimates (utils.timing.estimate); registers and machine code are
nvcc's, where it is installed. Nothing is measured, and no GPU is needed.
"""

import base64
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from html import escape

from utils.course.answers import Answer, attempted, exercise_of
from utils.course.case_sizes import bench_sizes, size_text
from utils.diagrams.picture import Picture
from utils.diagrams.table import Table
from utils.ground import settings
from utils.ground.errors import WorkbookError
from utils.ground.wording import in_notebook, many, show
from utils.process import card
from utils.timing import measure, profile_plot, roofline, sass
from utils.timing.bench import DEFAULT
from utils.timing.counters import OPCODES, SHARES, Counted, counted
from utils.timing.estimate import (
    NOT_COVERED,
    Estimate,
    Gpu,
    covers,
    estimate_of,
    executed,
    known_gpu,
    known_gpus,
    places,
    registers,
)
from utils.timing.roofline import Ceilings, quantity
from utils.timing.rows import digits
from utils.timing.sass import Instruction, Listing, Occupied
from utils.timing.scaling import Work, work
from utils.watch.access_patterns import SECTOR, WARP
from utils.watch.trace import GLOBAL, KINDS, SPACES

BANKS = 128  # bytes that shared memory gives in one wavefront
SHOWN = 48  # machine instructions of a line that a page has, at most
OUTSIDE = "(no line of the text)"
NO_CODE = "machine code needs nvcc and nvdisasm: CUDA's toolkit, or pip's nvidia-cuda-nvdisasm"
SAME = "Requests, sectors and bytes are the same on any."
WASTE = 1.2  # times the ideal: beyond that a line is worth a remark
# What the warps execute beside loads and stores, by the unit of a multiprocessor that does it.
UNITS = {
    "FMA: float sums and products": ("sum", "product", "fused"),
    "MUFU: roots, exponentials, quotients": (
        *(
            "root",
            "quotient",
            "quick quotient",
            "emu_quick_quotient",
            "expf",
            "exp2",
            "log2",
            "sin",
            "cos",
            "sqrtf",
        ),
    ),
    "ALU: integers, comparisons, jumps": ("other", "division", "fmaxf", "fminf"),
    "shuffles and barriers": ("emu_collective", "emu_barrier"),
}


@dataclass(frozen=True)
class Line:
    """The accesses of one kind that a source line makes to an array, in all of its launches."""

    number: int
    access: str  # such as "global load of x"
    requests: float  # of warps
    bytes: float  # that the lanes ask for
    pieces: float  # sectors of global memory, or wavefronts of shared memory
    ideal: float  # as many as the bytes need
    dram: float  # bytes that no access of the launch has touched before

    @property
    def kind(self) -> str:
        """Such as "global load"."""
        return self.access.partition(" of ")[0]

    @property
    def waste(self) -> float:
        """How many times the sectors or wavefronts that it needs."""
        return self.pieces / self.ideal


@dataclass(frozen=True, repr=False)
class Profile:
    """What a kernel does at a size. Displays itself as a picture with tables."""

    estimate: Estimate
    limits: Ceilings
    lines: Sequence[Line]  # the source's order
    units: Mapping[str, float]  # instructions of warps
    launches: Sequence[tuple[str, str]]  # of each its kernel and what it occupies
    source: Mapping[int, str]  # by line number
    code: Mapping[int, Sequence[Instruction]]  # that nvcc makes of each line, where it is known
    bytes: int  # that the exercise must move,
    flops: int  # and its operations
    counted: Counted | None = None  # what a card counted of it
    note: str = ""  # on whose figures they are
    local: int = 0  # bytes of a thread's local memory, the most of all launches; with nvcc

    def verdict(self) -> str:
        """What limits it, and what could be tried next."""
        return " ".join(filter(None, (self._limit(), self._advice(), self._outside())))

    def picture(self) -> Picture:
        """Where the time goes, with the verdict as caption."""
        return profile_plot.picture(
            self.estimate, self.limits, self.bytes, self.flops, self.verdict()
        )

    def _limit(self) -> str:
        ms = 1e3 * self.estimate.seconds
        part = 1e3 * self.estimate.parts[self.estimate.bound]
        least = roofline.predict(self.limits, self.bytes, self.flops)
        text = (
            f"Limited by {self.estimate.bound}: {digits(part)} of about {digits(ms)} ms on an "
            f"{self.estimate.gpu}."
        )
        if least:
            what = "bytes that it must move" if least.bound == "memory" else "operations"
            text += f" The {what} alone need {digits(least.milliseconds)} ms."
        return text

    def _advice(self) -> str:
        worst = max(self.lines, key=lambda line: line.pieces - line.ideal, default=None)
        moved = sum(line.dram for line in self.lines if line.access.startswith("global"))
        match self.estimate.bound:
            case "DRAM" if moved > WASTE * self.bytes:
                return f"It moves {digits(moved / self.bytes)} times the bytes that it must."
            case "DRAM":
                return (
                    "It moves little more than it must, so only fewer bytes help: fuse it with its "
                    "neighbours, or take a smaller type."
                )
            case "L1 and shared memory" | "L2" if worst and worst.waste > WASTE:
                return (
                    f"The {worst.access} in line {worst.number} takes {digits(worst.waste)} times "
                    f"the {_piece(worst.access)}s that its bytes need: let neighbouring lanes "
                    "touch neighbouring addresses."
                )
            case "L1 and shared memory" | "L2":
                return "Ask for less: keep what is used again in registers or in a larger tile."
            case "instructions":
                return (
                    "Execute fewer instructions: let a thread own several elements, load quads, "
                    "and take quick functions where their error is allowed."
                )
            case "latency":
                return (
                    "Too few loads are in flight: give each thread several independent ones, such "
                    "as a quad, or let more warps fit."
                )
            case "atomics":
                return "Updates of one address wait for each other: add up in the block first."
            case "block starts":
                return "Its blocks do little each: let every block do more, in a grid-stride loop."
            case _:
                return "The launch itself takes longest: give it more to do, or fuse it."

    def _outside(self) -> str:
        if not self.local:
            return ""
        return (
            f"A thread has {self.local} bytes of local memory, which is no register: values that "
            "found none, or an array with an index that is not known when it is compiled."
        )

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{escape(text)}</p>" for text in (self.verdict(), self.note) if text)
        return said + "".join(table._repr_html_() for table in self.tables())

    def __repr__(self) -> str:
        said = filter(None, (self.verdict(), self.note))
        return "\n\n".join([*said, *map(str, self.tables())])

    def body(self) -> str:
        """Of a page that needs no other file: the picture first, the tables below."""
        picture = self.picture()
        source = base64.b64encode(picture.svg().encode()).decode()
        image = (
            f'<img alt="{escape(picture.description)}" src="data:image/svg+xml;base64,{source}">'
        )
        return f"<h1>{escape(self._of_what())}</h1>\n{image}\n{self._repr_html_()}\n"

    def tables(self) -> list[Table]:
        """Where its time goes, its lines, what beside loads and stores it executes, what it
        occupies, its machine code."""
        tables = [self._of_parts(), self._of_lines(), self._of_units(), self._of_launches()]
        return [*tables, self._of_code()] if self.code else tables

    def machine_code(self) -> str:
        """All of its machine instructions, below their lines; where there are none, why."""
        if not self.code:
            return NO_CODE
        return "\n".join(
            f"{number:>5}  {self.source.get(number, OUTSIDE)}\n{_indented(self.code[number])}"
            for number in sorted(self.code)
        )

    def _of_parts(self) -> Table:
        parts = sorted(
            ((n, s) for n, s in self.estimate.parts.items() if s), key=lambda part: -part[1]
        )
        rows = [[part, digits(1e3 * seconds), *self._busy(part)] for part, seconds in parts]
        head = ["part of the GPU", "ms, as if alone"] + ["busy, counted"] * self._is_counted
        notes = []
        if self.counted:
            ms, moved = digits(self.counted.nanoseconds / 1e6), quantity(self.counted.dram, "B")
            notes = [
                f"counted: {self.counted}; {ms} ms under the profiler, {moved} from DRAM and to "
                f"it; its own rule names {self.counted.rule}"
            ]
        return Table("Where the time goes, estimated", head, rows, notes)

    @property
    def _is_counted(self) -> bool:
        return self.counted is not None

    def _busy(self, part: str) -> list[str]:
        if not self.counted:
            return []
        return [f"{self.counted.share(part):.0%}" if part in SHARES else "–"]

    def _of_lines(self) -> Table:
        shown: set[int] = set()  # lines whose number and text stand above already
        above: set[tuple[int, str]] = set()  # what a card counted stands above already
        rows = [
            [
                *self._place(line.number, shown),
                line.access,
                _count(line.requests),
                f"{digits(line.pieces / line.requests)} ({digits(line.ideal / line.requests)})",
                *self._accesses(line, above),
                quantity(line.bytes, "B"),
                quantity(line.dram, "B") if line.dram else "–",
            ]
            for line in self.lines
        ]
        head = ["line", "source", "access", "requests", "each (ideal)"]
        head += ["counted"] * self._is_counted + ["asked for", "from DRAM at least"]
        notes = [
            "each: sectors of 32 bytes that a warp's request takes in global memory, wavefronts in "
            "shared memory; from DRAM at least: what no earlier access of the launch has touched"
        ]
        if self.counted:
            notes.append("counted: requests × each, of all accesses of a kind in a line together")
        return Table(f"Memory, line by line: {self._of_what()}", head, rows, notes, 3, (1,))

    def _accesses(self, line: Line, above: set[tuple[int, str]]) -> list[str]:
        if not self.counted:
            return []
        key = line.number, line.kind
        if key in above:
            return ['"']
        above.add(key)
        space, kind = line.kind.split()
        requests, pieces = self.counted.accesses(line.number, space, kind)
        return [f"{_count(requests)} × {digits(pieces / requests)}" if requests else "–"]

    def _place(self, number: int, shown: set[int]) -> tuple[str, str]:
        if number in shown:
            return "", ""
        shown.add(number)
        return str(number), self.source.get(number, "")

    def _of_units(self) -> Table:
        rows = [
            [
                unit,
                _count(count),
                *self._executed(unit),
                digits(count * WARP / self.flops) if self.flops else "–",
            ]
            for unit, count in self.units.items()
        ]
        head = ["beside loads and stores", "instructions of warps"]
        head += ["counted"] * self._is_counted + ["for each operation"]
        notes = ["read from the build for this machine: nvcc makes about as many"]
        if self.counted:
            notes.append(
                "counted: FMAs with those that exponentials, roots and quotients are made of, "
                "ALU's with moves and addresses"
            )
        return Table("Instructions", head, rows, notes, wide=bool(self.counted))

    def _executed(self, unit: str) -> list[str]:
        if not self.counted:
            return []
        short = unit.partition(":")[0].partition(" ")[0]
        return [_count(self.counted.executed(short)) if short in OPCODES else "–"]

    def _of_launches(self) -> Table:
        return Table("Launches", ["kernel", "occupies"], self.launches, left=2)

    def _of_code(self) -> Table:
        numbers = sorted(self.code)
        rows = [
            [
                str(number or "–"),
                self.source.get(number, OUTSIDE),
                f"{len(self.code[number]):,}",
                _most(self.code[number]),
            ]
            for number in numbers
        ]
        head = ["line", "source", "instructions", "most of them"]
        note = "as nvcc makes them; a loop that is unrolled stands there as often as it is"
        folded = [_indented(self.code[number], SHOWN) for number in numbers]
        return Table("Machine code, line by line", head, rows, [note], 2, (1,), folded, wide=True)

    def _of_what(self) -> str:
        return f"{self.estimate.kernel} with {size_text(self.estimate.sizes)}"


@card.apart()
def profile(kernel: Answer, **sizes: int) -> Profile | None:
    """What a kernel does at its measured size, or at `sizes`: a picture, tables, a verdict.

    Nothing is measured. A starter that nobody has touched is not run: a line says so. Raises
    WorkbookError where the model does not cover the kernel, and what a run of it raises.
    """
    exercise = exercise_of(kernel)
    if not attempted(kernel, "profile"):
        return None
    chosen = bench_sizes(exercise, sizes)
    here = measure.gpu()
    made = profiled(kernel, chosen, settings.gpu() or (here if here in known_gpus() else DEFAULT))
    if foreign := roofline.foreign(here):
        made = replace(made, note=f"{foreign} {SAME}")
    if in_notebook():
        show(made.picture())
    return made


def profiled(kernel: Answer, sizes: Mapping[str, int], gpu: str) -> Profile:
    """The profile of a kernel at these sizes, on a GPU that is known. Raises as `profile` does."""
    model = known_gpu(gpu)
    if not covers(kernel):
        raise WorkbookError(
            f"{kernel.name} has no profile: {NOT_COVERED}; check shows its gates, draw its accesses"
        )
    with ThreadPoolExecutor(1) as beside:
        made = beside.submit(sass.disassembled, kernel.source, model.architecture)
        launches = work(kernel, sizes)
        listing = made.result()
    code = sass.compiled(kernel.source, model.architecture)
    return Profile(
        estimate_of(kernel, model, sizes, launches),
        roofline.ceilings(gpu),
        _lines(launches),
        _units(launches),
        [(launch.kernel, _occupied(model, launch, code)) for launch in launches],
        {n: text.strip() for n, text in enumerate(kernel.source.splitlines(), kernel.first_line)},
        _by_line(launches, listing, kernel.first_line),
        kernel.exercise.bytes(**sizes),
        kernel.exercise.flops(**sizes),
        counted(kernel, sizes, gpu),
        local=max((code[la.symbol].stack for la in launches if la.symbol in code), default=0),
    )


def _lines(launches: Iterable[Work]) -> list[Line]:
    """Accesses of one array by one line are one, whatever the launch."""
    sums: dict[tuple[int, str], list[float]] = defaultdict(lambda: [0.0] * 5)
    for launch, cost in ((la, cost) for la in launches for cost in la.instructions.values()):
        shared = cost.space != GLOBAL
        pieces = cost.wavefronts if shared else cost.sectors
        ideal = max(cost.requests, cost.bytes / (BANKS if shared else SECTOR))
        dram = 0.0 if shared else SECTOR * cost.distinct
        own = (cost.requests, cost.bytes, pieces, min(ideal, pieces), dram)
        array = f" of {launch.arrays[cost.array]}" if cost.array >= 0 else ""
        key = cost.line, f"{SPACES[cost.space]} {KINDS[cost.kind]}{array}"
        sums[key] = [one + more for one, more in zip(sums[key], own, strict=True)]
    return [Line(number, access, *counts) for (number, access), counts in sorted(sums.items())]


def _units(launches: Iterable[Work]) -> dict[str, float]:
    """Instructions of warps by unit; functions that are called stand by their own names."""
    names = {kind: unit for unit, kinds in UNITS.items() for kind in kinds}
    counts: dict[str, float] = dict.fromkeys(UNITS, 0.0)
    for launch in launches:
        for kind, count in executed(launch).items():
            plain = kind[1] if isinstance(kind, tuple) else kind
            if plain in ("move", "end") or plain not in names and plain.startswith(("_", "emu_")):
                continue
            unit = names.get(plain, f"calls of {plain}")
            counts[unit] = counts.get(unit, 0.0) + count
    return {unit: count for unit, count in counts.items() if count}


def _by_line(
    launches: Iterable[Work], listing: Listing, first_line: int
) -> dict[int, list[Instruction]]:
    """The machine code of the kernels that are launched, each once; 0: of no line of the text."""
    lines: dict[int, list[Instruction]] = defaultdict(list)
    for symbol in dict.fromkeys(launch.symbol for launch in launches):
        for instruction in listing.get(symbol, ()):
            if instruction.opcode != "NOP":  # after the end
                line = instruction.line
                lines[line + first_line - 1 if line else 0].append(instruction)
    return lines


def _most(instructions: Sequence[Instruction]) -> str:
    """The opcodes that are most frequent."""
    counts = Counter(instruction.opcode for instruction in instructions).most_common(4)
    return ", ".join(f"{count} {opcode}" for opcode, count in counts)


def _indented(instructions: Sequence[Instruction], most: int | None = None) -> str:
    rows = [f"       {i.offset:04x}  {i.text}" for i in instructions[:most]]
    left = len(instructions) - len(rows)
    return "\n".join([*rows, f"       … {left:,} more"] if left else rows)


def _occupied(gpu: Gpu, launch: Work, code: Mapping[str, Occupied]) -> str:
    """In words: its blocks, what each needs, how many a multiprocessor holds, and why no more."""
    used = registers(launch, code)
    spilled = code[launch.symbol].spilled if launch.symbol in code else 0
    limits = places(gpu, launch, used)
    reason = min(limits, key=limits.__getitem__)
    warps = int(limits[reason] * -(-launch.threads // WARP))
    most = gpu.threads // WARP
    needs = [f"{launch.threads:.0f} threads"]
    needs += [f"{quantity(launch.shared, 'B')} of shared memory"] if launch.shared else []
    needs += [f"{used} registers a thread"] if used else ["registers unknown without nvcc"]
    stack = code[launch.symbol].stack if launch.symbol in code else 0
    needs += [f"{stack} bytes of local memory a thread"] if stack else []
    needs += [f"{spilled} bytes a thread spilled"] if spilled else []
    return (
        f"{many(round(launch.blocks), 'block')} of {', '.join(needs)}; a multiprocessor holds "
        f"{limits[reason]}, {warps} of {most} warps, limited by its {reason}"
    )


def _piece(access: str) -> str:
    return "sector" if access.startswith("global") else "wavefront"


def _count(value: float) -> str:
    return f"{value:,.0f}"
