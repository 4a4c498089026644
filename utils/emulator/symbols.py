"""Offsets in libraries and programs as lines of source, by binutils' addr2line."""

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from utils.emulator.build import include_dir

Code = tuple[str, str]  # a module, and an offset in it such as "0x1f30"
SourceLine = tuple[str, int]  # file and line
Frames = tuple[SourceLine, ...]  # of the innermost inlined function first

BEGINNING = 48  # bytes of machine code, in which what begins a thread is inlined before the kernel
KEPT = 1 << 14  # offsets whose frames are remembered
Version = tuple[str, int, int, int]  # path, inode, size and time of a module
_known: dict[tuple[Version, int], Frames] = {}  # by module as it was then, and offset
_lock = threading.Lock()


def places(codes: Iterable[Code]) -> dict[Code, SourceLine | None]:
    """The source line of each offset in a library or program with debug info.

    Where it was inlined, the line of the caller's own source. None without addr2line.
    """
    return {code: chain[0] if chain else None for code, chain in chains(codes).items()}


def chains(codes: Iterable[Code]) -> dict[Code, list[SourceLine]]:
    """For each offset its line and those of who called it inlined, without the emulator's own."""
    known: dict[Code, list[SourceLine]] = {}
    for module, group in groupby(sorted(set(codes)), key=lambda code: code[0]):
        offsets = [offset for _, offset in group]
        frames = _frames(module, [int(offset, 16) for offset in offsets])
        for offset, chain in zip(offsets, frames, strict=True):
            own = _own(chain)
            begins = _begins_a_thread(chain) and not own
            known[module, offset] = _next(module, int(offset, 16)) if begins else own
    return known


def _next(module: str, offset: int) -> list[SourceLine]:
    """The line that comes next in the machine code, as of a thread that has hardly begun."""
    behind = _frames(module, range(offset + 1, offset + BEGINNING))
    inlined = (_own(frames) for frames in behind if _begins_a_thread(frames))
    return next((own for own in inlined if own), [])


def _begins_a_thread(frames: Frames) -> bool:
    """Whether it is code of the function that begins a thread, or inlined there."""
    return bool(frames) and frames[-1][0] == f"{include_dir()}/emulator/launch.h"


def resolve_lines(module: str | Path, offsets: Sequence[int], filename: str) -> list[int]:
    """For each offset in a library, the line of `filename` that it comes from; 0 if of none."""
    return [
        next((line for file, line in frames if f"/{file}".endswith(f"/{filename}")), 0)
        for frames in _frames(str(module), offsets)
    ]


def _own(frames: Frames) -> list[SourceLine]:
    others = [f for f in frames if not f[0].startswith(str(include_dir()))]
    own = [f for f in others if not f[0].startswith("/usr/")]
    return [(file.removeprefix("./"), line) for file, line in own or others]


def _frames(module: str, offsets: Sequence[int]) -> list[Frames]:
    """For each offset its frames; none without addr2line, which is asked once for each."""
    tool, version = shutil.which("addr2line"), _version(module)
    if tool is None or version is None:
        return [()] * len(offsets)
    with _lock:
        known = {o: _known[version, o] for o in offsets if (version, o) in _known}
    if missing := [o for o in dict.fromkeys(offsets) if o not in known]:
        fresh = dict(zip(missing, _ask(tool, module, missing), strict=True))
        known |= fresh
        with _lock:
            _known.update({(version, o): frames for o, frames in fresh.items()})
            while len(_known) > KEPT:
                del _known[next(iter(_known))]
    return [known[o] for o in offsets]


def _version(module: str) -> Version | None:
    """Tells a module from another one that is later built at the same path; None: there is none."""
    try:
        now = os.stat(module)
    except OSError:
        return None
    return module, now.st_ino, now.st_size, now.st_mtime_ns


def _ask(tool: str, module: str, offsets: Sequence[int]) -> list[Frames]:
    command = [tool, "-a", "-i", "-e", module]
    addresses = "\n".join(map(hex, offsets))
    done = subprocess.run(command, input=addresses, capture_output=True, text=True, timeout=60)
    # "0x0000000000001f30", then "file:line" or "??:?" for each function.
    parts = re.split(r"^0x[0-9a-f]+$", done.stdout, flags=re.MULTILINE)[1:]
    places = [re.findall(r"^(.*[^?\n]):(\d+)", part, re.MULTILINE) for part in parts]
    places += [[]] * (len(offsets) - len(places))
    return [tuple((file, int(line)) for file, line in frames) for frames in places]
