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
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from utils.course.answers import Answer
from utils.ground.paths import workspace

FOLDER = "profiles"
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
        """Instructions of warps, in all lines."""
        return sum(self._of(line, OPCODES[unit])["instructions"] for line in self.lines)

    @property
    def nanoseconds(self) -> float:
        """Of all launches, under the profiler."""
        return float(sum(launch["nanoseconds"] for launch in self.launches))

    def share(self, part: str) -> float:
        """Of the time: how busy a part of the GPU was, from 0 to 1."""
        busy = sum(launch["nanoseconds"] * launch[SHARES[part]] for launch in self.launches)
        return float(busy / self.nanoseconds / 100)

    def _of(self, line: int, opcodes: Sequence[str]) -> Mapping[str, float]:
        sums: dict[str, float] = defaultdict(float)
        for opcode in opcodes:
            for name, count in self.lines.get(line, {}).get(opcode, {}).items():
                sums[name] += count
        return sums


def digest(text: str) -> str:
    """Of a kernel's text: counts by line are those of this text."""
    return hashlib.sha256(text.strip().encode()).hexdigest()[:16]


def stored(kernel: Answer, sizes: Mapping[str, int], gpu: str) -> Counted | None:
    """What is stored of this text at these sizes: of this GPU, else of another; else None."""
    files = sorted((workspace().results / FOLDER).glob("*.json"))
    cards = [json.loads(path.read_text()) for path in files]
    for card in sorted(cards, key=lambda card: card["gpu"] != gpu):
        entry = card["kernels"].get(kernel.exercise.id)
        if entry and entry["sizes"] == dict(sizes) and entry["text"] == digest(kernel.source):
            lines = _together(entry["lines"], kernel.first_line)
            return Counted(card["gpu"], card["date"], card["ncu"], entry["launches"], lines)
    return None


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
