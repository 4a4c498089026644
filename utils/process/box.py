"""The box in which a stranger's model file runs, from this side: started, spoken to, ended.

With the emulator, or on a card, whose nodes are then in the box. A file gets a process of its own
for each mode that it is tried in: forks of one that has imported PyTorch and loaded nothing else.
`guest/model.py` is what runs in them. The builds that a file asks for are made on this side, by
what was passed in for that.
"""

import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.emulator.build import runtime_library
from utils.ground import files
from utils.ground.errors import CompileError, KernelTimeout, ToolError
from utils.ground.paths import cache
from utils.process import card, proc, sandbox
from utils.process.child import GUEST, HINTS, MEMORY, Child, environment
from utils.process.guest import framing
from utils.process.guest.framing import Message

START = 120.0  # seconds to import PyTorch
BUILDS = 32  # that one file may ask for
BUILDING = 360.0  # seconds that they may take together
LARGEST = 256 << 20  # bytes of a library


# What a file finds as __main__ is this program.
# Of the emulator, PyTorch asks once, when it is imported, whether there is a card.
_MODEL = f"""import ctypes, runpy, sys
for path in sys.argv[3:5]:
    ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
sys.path.insert(0, {str(GUEST.parent)!r})
runpy.run_module("guest.model", run_name="__main__", alter_sys=True)"""


@dataclass(frozen=True)
class Wanted:
    """What a file gave to `load_inline`: texts, and the names of functions, each once."""

    cpp: list[str]
    cuda: list[str]
    functions: list[str]
    module: str
    bare: bool  # the texts name all headers themselves
    flags: tuple[list[str], list[str], list[str]]  # of the C++ compiler, of CUDA's, of the linker


# The library, for a backend. Raises CompileError, KernelTimeout.
Build = Callable[[str, Wanted], Path]
# Where there is no card: the library by which PyTorch has one, for a backend. Raises ToolError.
Device = Callable[[str], Path | None]


class Box:
    """A process in a box, which forks. Close it. Raises ToolError where there is no box.

    `capability`: of the card that the emulator poses as. It has what each of them has.
    """

    how = "limited"

    def __init__(
        self, build: Build, device: Device, backend: str, capability: tuple[int, int] = (8, 0)
    ):
        self.build, self.backend, self.capability = build, backend, capability
        self._device = device
        self._process: subprocess.Popen[bytes] | None = None
        self._require()

    def _require(self) -> None:
        sandbox.require()

    def __enter__(self) -> "Box":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        self._control, theirs = socket.socketpair()
        device = self._device(self.backend)
        libraries = [runtime_library(), device] if device else []
        words = [sys.executable, "-I", "-c", _MODEL, str(theirs.fileno()), self.how]
        words += map(str, (*libraries, *self.capability) if device else ())
        with theirs:
            self._process = subprocess.Popen(
                self._around(words, [GUEST, *(path.parent for path in libraries)]),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd="/",
                start_new_session=True,
            )
        self._control.settimeout(START)
        if self._control.recv(1) != b"r":
            self.close()
            raise ToolError("PyTorch does not start in a box on this machine")
        self._own = len(proc.descendants(self._process.pid))

    def _around(self, words: list[str], readable: list[Path]) -> list[str]:
        """How the program is started."""
        return sandbox.command(
            words,
            readable=[*readable, *sandbox.python_folders()],
            environment=environment(self.backend) | {"EMU_THREADS": "1", "OMP_NUM_THREADS": "1"},
            other_user=True,
            gpu=self.backend == "cuda",
        )

    def open(self) -> "Session":
        """A fresh process, for one file."""
        if not self.running():
            self._start()
        ours, theirs = socket.socketpair()
        with theirs, suppress(BrokenPipeError):  # of one that has just ended: answers tell
            socket.send_fds(self._control, [b"f"], [theirs.fileno()])
        return Session(self, ours)

    def status(self, within: float = 1.0) -> int | None:
        """With which the fork has ended; None where it has not, after so many seconds."""
        if self._process is None:
            return None
        self._control.settimeout(within)
        try:
            reply = self._control.recv(4)
        except TimeoutError:
            return None
        return struct.unpack("<i", reply)[0] if len(reply) == 4 else None

    def running(self) -> bool:
        """Whether it is there, with a file in it or none."""
        return self._process is not None and self._process.poll() is None

    def pids(self) -> list[int]:
        """The processes in it."""
        return [] if self._process is None else proc.descendants(self._process.pid)

    def usage(self) -> tuple[int, int]:
        """(bytes of memory, processes that files have or are)."""
        if self._process is None:
            return 0, 0
        inside = self.pids()
        memory = sum(proc.usage(pid)[0] for pid in inside)
        return memory, max(0, len(inside) - self._own)

    def close(self) -> None:
        """End all that is in it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._control.close()
            self._process = None


class Unboxed(Box):
    """The same for a text of the workbook's own, such as a peer's: as this user, in no box."""

    how = "trusted"

    def _require(self) -> None:
        pass

    def _around(self, words: list[str], readable: list[Path]) -> list[str]:
        kept = cache() / "peers"
        kept.mkdir(parents=True, exist_ok=True)
        own = [f"TORCHINDUCTOR_CACHE_DIR={kept}", f"TRITON_CACHE_DIR={kept / 'triton'}"]
        own.append("TORCHINDUCTOR_COMPILE_THREADS=1")  # no processes of its own
        return ["env", *own, *words]


class Session(Child):
    """A conversation with one process. It is over after the first thing that goes wrong."""

    def __init__(self, box: Box, channel: socket.socket):
        super().__init__(channel)
        self._box, self._builds, self._over = box, 0, False
        self._built = 0.0  # seconds
        self.backend = box.backend
        self.built: list[Path] = []  # the libraries, in order
        self.source = ""  # of the CUDA that it had built

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()
        ended = self._over or self._box.status() is not None
        if not ended or self._box.running() and self._box.usage()[1]:  # with it goes its box
            self._box.close()

    def ask(
        self,
        within: float,
        do: str,
        blobs: Sequence[bytes] = (),
        most: int = HINTS,
        file: int | None = None,
        **command: Any,
    ) -> Message:
        """As of any child. Builds that it asks for meanwhile are made, and their time is not
        counted."""
        while True:
            with card.together(self._box.backend):
                answer, values = super().ask(within, do, blobs, most, file, **command)
            if "build" not in answer:
                return answer, values
            try:
                command, blobs = self._build(answer["build"])
            except framing.Garbled:
                raise self._end(None, self.forged) from None
            do, file = "built", None

    def processes(self) -> int:
        """How many processes it has started that still run, as seen from outside."""
        return max(0, self._box.usage()[1] - 1)

    def status(self, within: float) -> int | None:
        """With which it has ended; None where it has not after `within` seconds."""
        status = self._box.status(within)
        self._over = status is not None
        return status

    def _pids(self) -> list[int]:
        return self._box.pids()

    def _excess(self) -> str:
        memory = self._box.usage()[0]
        return f"used more than {MEMORY / 1e9:.3g} GB of memory" if memory > MEMORY else ""

    def _kill(self) -> None:
        self._box.close()

    def _build(self, wanted: Any) -> Message:
        """What is answered to the wish for a build, a library at best."""
        self._builds += 1
        try:
            flags = tuple(wanted[f"extra_{what}flags"] for what in ("c", "cuda_c", "ld"))
            lists = [wanted["cpp"], wanted["cuda"], wanted["functions"], *flags]
            strings = [text for words in lists for text in words] + [wanted["module"]]
            if not all(isinstance(text, str) for text in strings):
                raise TypeError
            "".join(strings).encode()  # no halves of characters: UnicodeError is a ValueError
            names, bare = [*wanted["functions"], wanted["module"]], wanted["bare"] is True
            if self._builds > BUILDS or not all(name.isidentifier() for name in names):
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise framing.Garbled from None
        self.source += "\n".join(wanted["cuda"])
        functions = list(dict.fromkeys(wanted["functions"]))
        texts = wanted["cpp"], wanted["cuda"], functions, wanted["module"], bare, flags
        if self._built > BUILDING:
            raise self._end(None)
        started = time.monotonic()
        try:
            path = self._box.build(self._box.backend, Wanted(*texts))
            library = files.read_bytes(path, LARGEST)
            self.built.append(path)
        except (CompileError, KernelTimeout, OSError) as error:
            return {"error": "build", "text": str(error)}, []
        finally:
            self._built += time.monotonic() - started
        return {}, [library]
