"""A kernel's text, numbered, with what each line asks of memory and what is wrong with it."""

from collections import defaultdict

from utils.cuda.kernel import Kernel
from utils.diagrams.table import Table
from utils.emulator.hazards import HAZARDS
from utils.emulator.traffic import Traffic
from utils.watch.diagnosis import Diagnosis

GAP = "…"  # in place of lines that have nothing beside them


def listing(kernel: Kernel, seen: Diagnosis, sizes: str) -> Table:
    """The lines of a kernel's text that access memory or are wrong, and beside them requests of
    warps, what each costs, hazards."""
    traffic: dict[int, list[Traffic]] = defaultdict(list)  # by line; 0: of a header
    for launch in seen.launches:
        for entry in launch.traffic:
            traffic[entry.line].append(entry)
    wrong = _hazards(kernel, seen)
    source = dict(enumerate(kernel.source.splitlines(), kernel.first_line))
    head = [
        "line",
        "source",
        *(["hazard"] if wrong else []),
        "access",
        "requests",
        "each costs",
        "ideal",
    ]
    rows, last = [], None
    for line in sorted(traffic.keys() | wrong.keys(), key=lambda line: (line not in source, line)):
        text = source.get(line, "")
        if last is not None and any(_is_code(source.get(n, "")) for n in range(last + 1, line)):
            rows.append([GAP, *[""] * (len(head) - 1)])
        last = line
        place = [str(line or "?"), text]
        cells = [_costs(entry) for entry in traffic.get(line, [])] or [[""] * 4]
        for i, costs in enumerate(cells):
            first = i == 0
            hazards = [wrong.get(line, "") if first else ""] if wrong else []
            rows.append([*(place if first else ["", ""]), *hazards, *costs])
    return Table(
        caption=f"{kernel.name}, {sizes}: what each line asks of memory",
        head=head,
        rows=rows,
        notes=["A request is one access by a warp: 32 threads at once."],
        left=head.index("access") + 1,
        code=(1,),
    )


def _is_code(text: str) -> bool:
    """Whether a line has more than braces and comments."""
    return bool(text.strip(" \t{}();")) and not text.lstrip().startswith("//")


def _hazards(kernel: Kernel, seen: Diagnosis) -> dict[int, str]:
    """What is wrong, by line of the kernel's text."""
    by_line: dict[int, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for hazard in seen.hazards:
        words = HAZARDS[hazard.kind].words
        sides = {(hazard.file, hazard.line), (hazard.other_file, hazard.other_line)}
        lines = [line for file, line in sides if line and file == kernel.filename]
        for line in lines:
            by_line[line][words] |= set(lines) - {line}
    return {
        line: "; ".join(
            words + (f", with {_lines(others)}" if others else "")
            for words, others in by_kind.items()
        )
        for line, by_kind in by_line.items()
    }


def _lines(numbers: set[int]) -> str:
    """ "line 3", or "lines 3 and 5"."""
    return f"line{'s' * (len(numbers) > 1)} {' and '.join(map(str, sorted(numbers)))}"


def _costs(traffic: Traffic) -> list[str]:
    one = f"{traffic.per_request:.3g}" == "1"
    unit = traffic.unit.removesuffix("s") if one else traffic.unit
    return [
        f"{traffic.space} {traffic.access}",
        f"{traffic.requests:,}",
        f"{traffic.per_request:.3g} {unit}",
        f"{traffic.ideal_per_request:.3g}",
    ]
