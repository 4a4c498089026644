"""Nsight Compute's pages, read: what it counted of each machine instruction, by source line.

    ncu --import REPORT --csv --page source --print-source sass

prints a table for each launch, with a row for each instruction in the order of addresses. Its own
source lines are not used: of what is inlined, nvdisasm says which line of the text calls it
(utils.timing.sass).
"""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from utils.timing.sass import Instruction, Listing, opcode

RAW = ("--csv", "--print-units", "base", "--page", "raw")
DETAILS = ("--csv", "--page", "details")
SOURCE = ("--csv", "--page", "source", "--print-source", "sass")
_OF_TIME = "avg.pct_of_peak_sustained_elapsed"
TOTALS = {  # of a launch, our name: Nsight Compute's
    "nanoseconds": "gpu__time_duration.sum",
    "registers": "launch__registers_per_thread",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "l1_share": f"l1tex__throughput.{_OF_TIME}",
    "l2_share": f"lts__throughput.{_OF_TIME}",
    "dram_share": f"dram__throughput.{_OF_TIME}",
    "issue_share": f"sm__inst_issued.{_OF_TIME}",
    "sm_share": f"sm__throughput.{_OF_TIME}",
    "memory_share": f"gpu__compute_memory_throughput.{_OF_TIME}",
}
COLLECT = (
    *("--clock-control", "none", "--section", "SourceCounters"),
    *("--metrics", ",".join(TOTALS.values())),
)
COLUMNS = {  # what Nsight Compute calls a counter of an instruction, in whichever version
    "instructions": r"(# )?inst(ruction)?s? executed",
    "global_sectors": r"l2 theoretical sectors global",
    "global_ideal_sectors": r"l2 theoretical sectors global ideal",
    "global_requests": r"l1 tag requests global",
    "shared_wavefronts": r"l1 wavefronts shared",
    "shared_ideal_wavefronts": r"l1 wavefronts shared ideal",
    "samples": r"(# samples|warp stall sampling)( \(all samples\))?",
}
Counts = Mapping[str, float]


@dataclass(frozen=True)
class Launch:
    """A launch, and what was counted of each of its instructions."""

    kernel: str  # without namespace, template's arguments and parameters
    instructions: list[tuple[str, Counts]]  # each with its text, in the order of addresses


def totals(page: str, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Of each launch its kernel and those of its counters that the raw page has, by our names."""
    read: list[dict[str, Any]] = []
    for row in list(rows(page))[1:]:  # the first holds the units
        values = {ours: number(row.get(its, "")) for ours, its in names.items()}
        known = {ours: value for ours, value in values.items() if value is not None}
        read.append({"kernel": plain(row["Kernel Name"])} | known)
    return read


def rows(page: str) -> Iterator[dict[str, str]]:
    """A table, whose lines begin with a quotation mark."""
    yield from csv.DictReader(io.StringIO(page[page.find('"') :]))


def launches(page: str) -> list[Launch]:
    """What such a page says, launch after launch."""
    read: list[Launch] = []
    head: list[str] = []
    for row in csv.reader(page.splitlines()):
        if row and row[0] == "Kernel Name":
            read.append(Launch(plain(row[1]), []))
            head = []
        elif "Address" in row and "Source" in row:
            head = row
        elif read and head and len(row) == len(head):
            cells = dict(zip(head, row, strict=True))
            read[-1].instructions.append((cells["Source"].strip(), dict(_counts(cells))))
    return read


def _counts(cells: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    for column, cell in cells.items():
        value = number(cell)
        for name, pattern in COLUMNS.items():
            if value and re.fullmatch(pattern, column.strip().lower()):
                yield name, value


def number(cell: str) -> float | None:
    """A cell's number, if it is one; a whole one as such."""
    try:
        value = float((cell or "").replace(",", ""))
    except ValueError:
        return None
    return int(value) if value.is_integer() else value


def plain(kernel: str) -> str:
    """A kernel's name without its template's arguments, namespace or parameters."""
    return re.sub(r"^void |\w+::", "", re.split(r"[(<]", kernel)[0]).strip()


def by_line(launch: Launch, listing: Listing) -> dict[str, dict[str, dict[str, float]]]:
    """Counts by line and opcode, added up.

    Raises ValueError where nvcc makes other code here than the card had.
    """
    code = _same(launch, listing)
    sums: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for instruction, (_, counts) in zip(code, launch.instructions, strict=False):
        if counts.get("instructions"):
            total = sums[str(instruction.line)][instruction.opcode]
            for name, count in counts.items():
                total[name] = total.get(name, 0) + count
    return {line: dict(opcodes) for line, opcodes in sums.items()}


def _same(launch: Launch, listing: Listing) -> Sequence[Instruction]:
    """The kernel, of all instances of its template, that has the launch's instructions."""
    seen = [opcode(text) for text, _ in launch.instructions if text]
    while seen and seen[-1] == "NOP":  # after the end
        seen.pop()
    part = f"{len(launch.kernel)}{launch.kernel}"
    for symbol, code in listing.items():
        if part in symbol and seen and [i.opcode for i in code][: len(seen)] == seen:
            return code
    raise ValueError(
        f"none of {', '.join(listing) or 'no kernels'} has the {len(seen)} instructions of "
        f"{launch.kernel}: {seen[:8]} …"
    )
