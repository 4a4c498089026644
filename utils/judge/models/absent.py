"""What the emulator lacks, and a card would have: for that no file is told that it is wrong."""

import re

# Of libraries and headers that are CUDA's or PyTorch's, and not here.
_OURS = r"(cuda|cublas|cudnn|curand|cusparse|cufft|nvrtc|nvtx|nccl|wmma|nvcuda|cub|thrust|cu[A-Z])"
_ABSENT = re.compile(
    r"(?P<header>\S+): No such file or directory"
    rf"|'(?P<name>{_OURS}\w*)' (was not declared|has not been declared|is not a|does not)"
    r"|'(?P<member>\w+)' is not a member of '(?P<space>(at|c10|torch)::[\w:]*cuda[\w:]*|wmma|cub)'"
    r"|undefined (symbol|reference to)[: `']+(?P<symbol>[\w:]*cu[\w:]+)"
    r"|(?P<ptx>impossible constraint in 'asm'|invalid 'asm'|Error: (no such instruction|"
    r"too many memory ref|bad reg|junk|expecting operand|operand|unbalanced))"
    r"|(?P<said>[^.;/]*(the emulator has no|operation not supported)[^.;/]*)"
)
_THEIRS = re.compile(
    r"(cu\w*|cub|thrust|mma|nv\w*|cooperative_groups|cutlass|cute|ATen|c10|torch|nccl|math)\b.*"
)


def absent(text: str) -> str:
    """What a build or an exception says is not there; "" where nothing of CUDA's is missed."""
    for match in _ABSENT.finditer(text):
        if (header := match["header"]) and _THEIRS.match(header):
            return f"the emulator has no header {header}"
        if name := match["name"] or match["symbol"]:
            return f"the emulator has no {name}"
        if match["member"]:
            return f"the emulator has no {match['space']}::{match['member']}"
        if match["ptx"]:
            return "the emulator has no PTX, which the file has in asm"
        if match["said"]:
            return match["said"].strip()
    return ""
