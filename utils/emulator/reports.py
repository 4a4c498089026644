"""What the emulator's runtime reports, in words that a beginner can act on."""

import functools
import json
import re
import shutil
import subprocess
from dataclasses import dataclass

from utils.emulator import include_dir

# kind -> what happened, and one sentence of advice
_WORDS = {
    "illegal-address": (
        "illegal memory access",
        "Compare the index at this line with the array's size, and check that the pointer came "
        "from cudaMalloc and has not been freed.",
    ),
    "misaligned": (
        "misaligned memory access",
        "A float4 must start at a multiple of 16 bytes, a float2 at a multiple of 8: check the "
        "offset that was added to the pointer.",
    ),
    "deadlock": (
        "the threads wait for each other for ever",
        "Every thread of the block must reach the same __syncthreads(), and every lane of the mask "
        "the same warp function: take it out of the `if` or loop that only some of them enter.",
    ),
    "divergent-barrier": (
        "the block's threads wait at different barriers",
        "Move __syncthreads() to where all threads of the block come by, out of any `if` that "
        "depends on threadIdx.",
    ),
    "invalid-mask": (
        "a warp function with a wrong mask",
        "The mask must have a bit for every lane that makes the call, the caller's own among them; "
        "0xffffffff is right where the whole warp makes it.",
    ),
    "timeout": (
        "stopped at the time limit",
        "If a loop is here, check that its condition becomes false for every thread; if not, try "
        "a smaller size.",
    ),
    "assert": (
        "an assertion failed",
        "Print the values that the condition compares, from this thread alone.",
    ),
    "trap": (
        "the kernel stopped itself",
        "Look at the condition that led to __trap().",
    ),
    "stack-overflow": (
        "a thread ran out of stack",
        "Make the local arrays smaller, move them to shared memory, or end the recursion.",
    ),
    "shared-memory": (
        "too much shared memory",
        "Use smaller tiles, or `extern __shared__` memory, whose size the launch gives.",
    ),
    "invalid-configuration": (
        "a launch with an impossible configuration",
        "A block has 1 to 1024 threads, a grid at least one block.",
    ),
    "not-supported": (
        "something that the emulator cannot do",
        "Run this program on a GPU, or do without it here.",
    ),
    "crash": (
        "the host code crashed",
        "Device memory belongs to kernels: check that the host uses no pointer it did not allocate "
        "or that has been freed, and no index outside of an array.",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Report:
    """One event of a run. Parts that nobody knows are None."""

    kind: str
    message: str
    kernel: str | None = None
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    file: str | None = None
    line: int | None = None
    address: str | None = None  # "0x1f30 in program", where there is no line

    @property
    def place(self) -> str:
        """`file:line`, or the address."""
        if self.file:
            return f"{self.file}:{self.line}" if self.line else self.file
        return f"at address {self.address}" if self.address else ""

    def __str__(self) -> str:
        title, advice = _WORDS.get(self.kind, (self.kind.replace("-", " "), ""))
        head = f"{self.place}: {title}" if self.file else title
        head += f" in kernel '{self.kernel}'" if self.kernel else ""
        head += f" {self.place}" if self.place and not self.file else ""
        who = f"block {self.block}, thread {self.thread}: " if self.block and self.thread else ""
        return "\n  ".join(filter(None, (head, who + self.message, advice)))


def read(text: str) -> list[Report]:
    """The reports in what the runtime wrote; a line that broke off is passed over."""
    reports = []
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and "kind" in event:
            reports.append(_report(event))
    return reports


def _report(event: dict) -> Report:
    file, line, address = event.get("file"), event.get("line"), None
    if file is None and event.get("module"):
        place = locate(event["module"], event["offset"])
        file, line = place or (None, None)
        module = event["module"].rpartition("/")[2]
        address = None if place else f"{event['offset']} in {module}"
    block, thread = event.get("block"), event.get("thread")
    return Report(
        kind=event["kind"],
        message=event.get("message", ""),
        kernel=event.get("kernel"),
        block=tuple(block) if block else None,
        thread=tuple(thread) if thread else None,
        file=file,
        line=line,
        address=address or event.get("pc"),
    )


@functools.lru_cache(maxsize=1024)
def locate(module: str, offset: str) -> tuple[str, int] | None:
    """The source line of an offset such as "0x1f30" in a library or program with debug info.

    Where it was inlined, the line of the caller's own source. None without binutils' addr2line.
    """
    tool = shutil.which("addr2line")
    if tool is None:
        return None
    command = [tool, "-i", "-e", module, offset]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    frames = re.findall(r"^(.+):(\d+)", done.stdout, re.MULTILINE)
    frames = [(file, int(line)) for file, line in frames if file != "??"]
    own = [f for f in frames if not f[0].startswith(("/usr/", str(include_dir())))]
    return (own or frames or [None])[0]
