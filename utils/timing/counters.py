"""What a card counted of a kernel, by Nsight Compute: totals of each launch, and counts by line.

    {"gpu": "NVIDIA H200", "date": "2026-11-26", "ncu": "2025.3.1.0", ..., "kernels": {
        "00_start_here/swish": {"sizes": {"n": 134217728}, "text": DIGEST, "launches": [
            {"kernel": "swish_kernel", "registers": 16, "nanoseconds": 503776, ...}], "lines": [
                {"7": {"LDG": {"instructions": 4194304, "global_sectors": 16777216}}}]}}}

`benchmarks/profile_beside_ncu.py` writes results/profiles/<GPU>.json. Counts are those of the text
that was counted: of another one nothing is known here.
"""

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from utils.course.answers import Answer
from utils.cuda import toolchain
from utils.ground.paths import workspace
from utils.process import card
from utils.timing import measure, ncu, sass
from utils.timing.launch_once import LaunchOnce

FOLDER = "profiles"
BUSY = 0.6  # of the time: below that Nsight Compute calls a kernel bound by latency
CLOSE = 10  # percent: shares that are no further apart it calls well balanced
LIMIT = 120  # seconds that a kernel may take under Nsight Compute
# Machine instructions that access memory, by space and kind.
ACCESSES = {
    ("global", "load"): ("LDG", "LD"),
    ("global", "store"): ("STG", "ST"),
    ("global", "atomic"): ("ATOMG", "ATOM", "REDG", "RED"),
    ("shared", "load"): ("LDS", "LDSM"),
    ("shared", "store"): ("STS", "STSM"),
    ("shared", "atomic"): ("ATOMS",),
}
# The others, by the names that `profile` has for units.
OPCODES = {
    "FMA": ("FFMA", "FADD", "FMUL", "FFMA2", "FADD2", "FMUL2"),
    "MUFU": ("MUFU",),
    "ALU": (),
    "shuffles": ("SHFL", "BAR", "VOTE", "REDUX", "WARPSYNC", "MATCH"),
}
# Of a launch, the share of the time, in percent, in which a part of the GPU was busy.
SHARES = {
    "L1 and shared memory": "l1_share",
    "L2": "l2_share",
    "DRAM": "dram_share",
    "instructions": "issue_share",
}
Lines = Mapping[int, Mapping[str, Mapping[str, float]]]  # line of the text, opcode, counter


@dataclass(frozen=True)
class Counted:
    """What a card counted of one call of a kernel."""

    gpu: str
    date: str
    tool: str
    launches: Sequence[Mapping[str, Any]]  # in order, by our names of counters
    lines: Lines  # of all launches together; 0: of no line of the text

    def __str__(self) -> str:
        return f"Nsight Compute {self.tool} on an {self.gpu}, {self.date}"

    def accesses(self, line: int, space: str, kind: str) -> tuple[float, float]:
        """(requests of warps, sectors or wavefronts) of what a line accesses."""
        counts = self._of(line, ACCESSES[space, kind])
        pieces = "shared_wavefronts" if space == "shared" else "global_sectors"
        return counts["instructions"], counts[pieces]

    def executed(self, unit: str) -> float:
        """Instructions of warps, in all lines; "ALU": those that no other unit has."""
        opcodes = OPCODES[unit] or self._others
        return sum(self._of(line, opcodes)["instructions"] for line in self.lines)

    @property
    def _others(self) -> list[str]:
        known = {
            opcode for table in (ACCESSES, OPCODES) for row in table.values() for opcode in row
        }
        seen = {opcode for opcodes in self.lines.values() for opcode in opcodes}
        return sorted(seen - known)

    @property
    def nanoseconds(self) -> float:
        """Of all launches, under the profiler."""
        return float(sum(launch["nanoseconds"] for launch in self.launches))

    @property
    def dram(self) -> float:
        """Bytes that all launches read from DRAM and wrote to it."""
        names = "dram_read_bytes", "dram_write_bytes"
        return float(sum(launch.get(name, 0) for launch in self.launches for name in names))

    def share(self, part: str) -> float:
        """Of the time: how busy a part of the GPU was, from 0 to 1."""
        busy = sum(launch["nanoseconds"] * launch.get(SHARES[part], 0) for launch in self.launches)
        return float(busy / self.nanoseconds / 100)

    @property
    def limit(self) -> str:
        """The part of the GPU that limits it, by Nsight Compute's own rule: the busiest, "latency"
        where none is busy for much of the time."""
        memory, computing, shares = self._longest
        if max(memory, computing) < 100 * BUSY:
            return "latency"
        if computing > memory:
            return "instructions"
        parts = ("L1 and shared memory", "DRAM")
        return next((p for p in parts if abs(shares.get(SHARES[p], 0) - memory) < 1), "L2")

    @property
    def rule(self) -> str:
        """The same, as that rule says it."""
        memory, computing, _ = self._longest
        match self.limit:
            case "latency":
                return (
                    "latency, where neither instructions nor L1 nor DRAM are busy for "
                    f"{BUSY:.0%} of the time"
                )
            case limit if abs(memory - computing) < CLOSE:
                other = "memory" if limit == "instructions" else "instructions"
                return f"{limit} and {other}, nearly balanced"
            case limit:
                return limit

    @property
    def _longest(self) -> tuple[float, float, Mapping[str, Any]]:
        """Of the longest launch, in percent: how busy memory was, how busy the multiprocessors."""
        shares = max(self.launches, key=lambda launch: launch["nanoseconds"])
        return shares.get("memory_share", 0), shares.get("sm_share", 0), shares

    def _of(self, line: int, opcodes: Sequence[str]) -> Mapping[str, float]:
        sums: dict[str, float] = defaultdict(float)
        for opcode in opcodes:
            for name, count in self.lines.get(line, {}).get(opcode, {}).items():
                sums[name] += count
        return sums


def digest(text: str) -> str:
    """Of a kernel's text: counts by line are those of this text."""
    return hashlib.sha256(text.strip().encode()).hexdigest()[:16]


def counted(kernel: Answer, sizes: Mapping[str, int], gpu: str) -> Counted | None:
    """What was counted of this text at these sizes: on this GPU and stored, else now on the card
    that is here, else on another GPU and stored; else None."""
    known = stored(kernel, sizes)
    return known.get(gpu) or now(kernel, sizes) or next(iter(known.values()), None)


def stored(kernel: Answer, sizes: Mapping[str, int]) -> dict[str, Counted]:
    """What is stored of this text at these sizes, by GPU."""
    known = {}
    for path in sorted((workspace().results / FOLDER).glob("*.json")):
        file = json.loads(path.read_text())
        entry = file["kernels"].get(kernel.exercise.id)
        if entry and entry["sizes"] == dict(sizes) and entry["text"] == digest(kernel.source):
            lines = _together(entry["lines"], kernel.first_line)
            known[file["gpu"]] = Counted(
                file["gpu"], file["date"], file["ncu"], entry["launches"], lines
            )
    return known


def now(kernel: Answer, sizes: Mapping[str, int]) -> Counted | None:
    """Counted by the card that is here: a program of the kernel, run under Nsight Compute. None
    where there is no card, no Nsight Compute, or where it may not read counters."""
    tool = shutil.which("ncu")
    if kernel.backend != "cuda" or not tool:
        return None
    architecture = "sm_" + toolchain.card_architecture().replace(".", "")
    with tempfile.TemporaryDirectory() as folder:
        program = LaunchOnce(kernel.exercise, kernel.source, sizes, Path(folder))
        report = str(Path(folder, "report"))

        def ask(command: Sequence[str]) -> str:
            done = subprocess.run(
                command, capture_output=True, text=True, cwd=program.folder, timeout=LIMIT
            )
            return done.stdout

        try:
            ask(program.build_command(architecture))
            with card.alone():
                ask([tool, *ncu.COLLECT, "--export", report, *program.command])
            raw, source = (
                ask([tool, "--import", f"{report}.ncu-rep", *page])
                for page in (ncu.RAW, ncu.SOURCE)
            )
            version = ask([tool, "--version"])
        except (OSError, subprocess.TimeoutExpired):
            return None
        return _read(kernel, architecture, raw, source, version)


def _read(kernel: Answer, architecture: str, raw: str, source: str, version: str) -> Counted | None:
    launches = ncu.totals(raw, ncu.TOTALS)
    if not launches:
        return None
    code = sass.disassembled(kernel.source, architecture)
    try:
        lines = [ncu.by_line(launch, code) for launch in ncu.launches(source)]
    except ValueError:  # without nvdisasm: the totals are worth something, too
        lines = []
    number = re.search(r"[Vv]ersion ([\d.]+)", version)
    tool, today = number[1] if number else "", date.today().isoformat()
    return Counted(measure.gpu(), today, tool, launches, _together(lines, kernel.first_line))


def _together(launches: Sequence[Mapping[str, Any]], first_line: int) -> Lines:
    """The counts of all launches, by line as the kernel's messages count them."""
    sums: dict[int, Any] = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    for lines in launches:
        for line, opcodes in lines.items():
            number = int(line) + first_line - 1 if int(line) else 0
            for opcode, counts in opcodes.items():
                for name, count in counts.items():
                    sums[number][opcode][name] += count
    return sums
