"""What the basic blocks of a kernel compute, from its library for the CPU.

A GPU's compiler makes other instructions of a text, but about as many: additions, products,
comparisons, jumps. Loads, stores and moves are not counted here: registers are few on a CPU. Nor
is what makes a loop go round: a GPU's compiler unrolls it.
"""

import functools
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

BEGIN = "__sanitizer_cov_trace_pc"  # what is called where a basic block begins
_LINE = re.compile(r"\s*([0-9a-f]+):\s+(?:(?:lock|rep|bnd|notrack) )?([\w.]+)\s*(.*)")
_STACK = re.compile(r"%rsp$|^sp, sp")  # room for a function's variables is made, or given back
_TARGET = re.compile(r"([0-9a-f]+) <([^>+@]*)")

# By mnemonic, of x86-64 and of AArch64.
_KINDS = {
    "move": r"v?mov(?!sk).*|lea.*|nop.*|xchg|push|pop|endbr64|cl?tq|cl?td|cqto|cwtl|leave|data16|cs"
    r"|v?unpck.*|v?shufps|v?cvtps2pd|str.*|ldr.*|ldp|stp|ldur.*|stur.*|adrp?|bti|paciasp|autiasp"
    r"|fmov|[su]xtw",
    "division": r"i?div[bwlq]?|[su]div",  # of integers
    "quotient": r"v?divss|fdivs",
    "quick quotient": r"v?divsd|fdivd",  # the headers' rsqrtf, in double
    "root": r"v?sqrts[sd]|fsqrt",
    "product": r"v?mulss|fmul",
    "sum": r"v?(add|sub)ss|fadd|fsub",
    "fused": r"v?fn?m(add|sub)(\d+ss)?",
    "end": r"jmp|ret|b|br",
}


def computed(library: Path) -> Mapping[int, Counter[str]]:
    """What each basic block computes, by its place in the library: instructions by kind.

    Functions that are called, such as `expf`, are kinds by their name. Empty without objdump.
    """
    return _blocks(library)[0]


def functions(library: Path) -> Mapping[int, str]:
    """The function that each basic block is of, by the name that the C++ ABI gives it."""
    return _blocks(library)[1]


@functools.lru_cache(64)
def _blocks(library: Path) -> tuple[Mapping[int, Counter[str]], Mapping[int, str]]:
    tool = shutil.which("objdump")
    if not tool:
        return {}, {}
    command = [tool, "-d", "--no-show-raw-insn", str(library)]
    text = subprocess.run(command, capture_output=True, text=True).stdout
    blocks: dict[int, Counter[str]] = {}
    owners: dict[int, str] = {}
    block: Counter[str] = Counter()
    begins, owner = False, ""
    for line in text.splitlines():
        match = _LINE.match(line)
        if not match:
            if line.endswith(">:"):  # another function
                block, owner = Counter(), line[line.index("<") + 1 : -2]
            continue
        place, mnemonic = int(match[1], 16), match[2]
        if begins:
            block = blocks[place] = Counter()
            owners[place] = owner
        target = _TARGET.search(match[3])
        called = target[2] if target and mnemonic in ("call", "bl") else None
        begins = called == BEGIN
        if called:
            block[called] += not begins
        elif target and mnemonic not in ("jmp", "b") and int(target[1], 16) < place:
            del block["other"]  # the end of a loop
        else:
            of = match[3][:1] if mnemonic == "fdiv" else ""  # AArch64 says it with the register
            kind = "move" if _STACK.search(match[3]) else _kind(mnemonic + of)
            block[kind] += 1
            if block["end"]:
                block = Counter()
    for block in blocks.values():  # x += a * b is one instruction
        both = min(block["product"], block["sum"])
        block.update({"fused": both, "product": -both, "sum": -both})
    return blocks, owners


@functools.cache
def _kind(mnemonic: str) -> str:
    return next((k for k, pattern in _KINDS.items() if re.fullmatch(pattern, mnemonic)), "other")
