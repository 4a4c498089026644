"""What nvcc makes of a text: machine code by source line, and what a thread of it occupies.

    code = compiled(kernel.source, "sm_90")
    code["_Z12swish_kernelPKfPfi"].registers
    disassembled(kernel.source, "sm_90")["_Z12swish_kernelPKfPfi"][8]    # instructions of line 8

Lines are those of the text; what is inlined, such as a header's function, belongs to the line that
calls it. Kernels have the names of the C++ ABI, which say a template's arguments: g++ gives the
emulator's kernels the same.
"""

import functools
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from utils.cuda import toolchain
from utils.cuda.compiler import NVCC_FLAGS
from utils.ground.errors import ToolError
from utils.ground.paths import workspace

FILE = "kernel.cu"  # what the text is called where it is compiled


@dataclass(frozen=True)
class Occupied:
    """What a thread of a kernel has of its own."""

    registers: int
    spilled: int  # bytes that it stores outside of them for want of room
    stack: int = 0  # bytes of local memory, with what is spilled and with arrays that are there


@dataclass(frozen=True)
class Instruction:
    """One machine instruction of a kernel."""

    offset: int  # in bytes from the kernel's start
    text: str  # such as "@!P0 LDG.E R22, desc[UR8][R8.64]"
    line: int  # of the text; 0 if of none

    @property
    def opcode(self) -> str:
        """What it does, without its variants: LDG."""
        return opcode(self.text)


def opcode(instruction: str) -> str:
    """LDG of "@!P0 LDG.E.128 R8, desc[UR8][R10.64]"."""
    words = instruction.split()
    return words[words[0].startswith("@")].partition(".")[0].rstrip(";")


Listing = Mapping[str, tuple[Instruction, ...]]  # by kernel


def compiled(source: str, architecture: str) -> Mapping[str, Occupied]:
    """What each kernel's threads occupy, by kernel; nothing where there is no nvcc, or where the
    text does not compile."""
    return _compiled(source, architecture)[0]


@functools.lru_cache(16)
def disassembled(source: str, architecture: str) -> Listing:
    """The machine code of each kernel, in the order of addresses; nothing without nvcc or nvdisasm.

    nvdisasm comes with CUDA's toolkit, and as pip's nvidia-cuda-nvdisasm.
    """
    tool, cubin = toolchain.nvdisasm(), _compiled(source, architecture)[1]
    if not (tool and cubin):
        return {}
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [tool, "--print-line-info-inline", "--print-code", file.name]
        return listing(subprocess.run(command, capture_output=True, text=True).stdout)


def listing(text: str) -> Listing:
    """nvdisasm's text, read."""
    kernels: dict[str, list[Instruction]] = defaultdict(list)
    kernel, line = "", 0
    for row in text.splitlines():
        if start := _START.match(row):
            kernel, line = start[1], 0
        elif place := _PLACE.search(row):
            # Of what is inlined the outermost place comes last, and says nothing of inlining.
            if not place[3]:
                line = int(place[2]) if Path(place[1]).name == FILE else 0
        elif code := _INSTRUCTION.match(row):
            kernels[kernel].append(Instruction(int(code[1], 16), code[2], line))
    return {kernel: tuple(instructions) for kernel, instructions in kernels.items()}


_START = re.compile(r"\.text\.(\S+):$")
_PLACE = re.compile(r'//## File "(.*?)", line (\d+)( inlined at)?')
_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")


@functools.lru_cache(16)
def _compiled(source: str, architecture: str) -> tuple[Mapping[str, Occupied], bytes]:
    """What the kernels occupy, and the cubin."""
    try:
        nvcc = toolchain.cuda_home() / "bin/nvcc"
    except ToolError:
        return {}, b""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, FILE)
        path.write_text(source)
        command = [str(nvcc), *NVCC_FLAGS, f"-arch={architecture}", f"-I{workspace().include}"]
        command += ["-cubin", "-Xptxas", "-v", str(path), "-o", str(path.with_suffix(".cubin"))]
        done = subprocess.run(command, capture_output=True, text=True)
        cubin = path.with_suffix(".cubin")
        used = {
            kernel: Occupied(int(registers), int(spilled), int(stack))
            for kernel, stack, spilled, registers in re.findall(_USED, done.stderr, re.DOTALL)
        }
        return used, cubin.read_bytes() if cubin.is_file() else b""


_USED = (
    r"entry function '(\S+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores"
    r".*?Used (\d+) registers"
)
