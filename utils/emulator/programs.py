"""Complete CUDA programs on the CPU: built with g++, run like any program."""

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from utils import paths
from utils.emulator import compile_flags, compiler, digest, link_flags
from utils.emulator.messages import FLAGS, readable
from utils.emulator.reports import read
from utils.emulator.rewriter import Unit, rewrite
from utils.errors import CompileError, ToolError

TIMED_OUT = 124  # the exit status of a program that was stopped at its time limit


def emulate(
    path: Path,
    *,
    include: Sequence[str] = (),
    define: Sequence[str] = (),
    opt: str = "2",
    std: str = "c++17",
    timeout: float | None = None,
    args: Sequence[str] = (),
) -> int:
    """Build and run a CUDA program; returns its exit status, and says on stderr what went wrong.

    128 + the signal's number for a crash, 124 at the time limit (seconds), 1 where the program
    does not compile, 2 where there is no such file or no compiler.
    """
    try:
        program = build_program(path, include, define, opt, std)
    except CompileError as error:
        print(f"{error}\n{path} does not compile", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"cannot read {error.filename or path}: {error.strerror}", file=sys.stderr)
        return 2
    except ToolError as error:
        print(error, file=sys.stderr)
        return 2
    return run_program(program, args, timeout)


def build_program(
    path: Path,
    includes: Sequence[str] = (),
    defines: Sequence[str] = (),
    opt: str = "2",
    std: str = "c++17",
    cache: Path | None = None,
) -> Path:
    """The executable of a CUDA source file, built unless the same was built before.

    `includes`, `defines`, `opt` and `std` are nvcc's -I, -D, -O and -std. Raises CompileError with
    the file's own lines, ToolError without a compiler, OSError where the file cannot be read.
    """
    path = Path(path)
    source = path.read_text(encoding="utf-8", errors="surrogateescape")
    unit = rewrite(
        source, filename=str(path), include_dirs=[Path(i) for i in includes], base_dir=path.parent
    )
    flags = [*compile_flags(), *FLAGS, "-pthread", f"-O{opt}", f"-std={std}"]
    flags += [f"-iquote{path.parent}", *(f"-D{name}" for name in defines if _early(name))]
    flags += [f"-I{folder}" for folder in includes]
    text = _define(unit.text, [name for name in defines if not _early(name)])
    unit = Unit(text, unit.headers, unit.dependencies)
    program = (cache or paths.cache()) / "programs" / _key(unit, flags) / path.stem
    if not program.exists():
        _compile(unit, flags, program)
    return program


def _early(name: str) -> bool:
    """Whether a macro of the command line is meant for the headers of the system."""
    return name.startswith("_") or name.partition("=")[0] == "NDEBUG"


def _define(text: str, names: Sequence[str]) -> str:
    """Define macros behind the emulator's header: a -DN=1024 must not reach into that."""
    include, rest = text.split("\n", 1)
    lines = [f"#define {' '.join((*name.split('=', 1), '1')[:2])}" for name in names]
    return "\n".join((include, *lines, rest))


def run_program(program: Path, args: Sequence[str] = (), timeout: float | None = None) -> int:
    """Run a program that `build_program` made, with this process's stdin, stdout and stderr.

    Returns its exit status, 128 + the signal for a crash, 124 after `timeout` seconds. Afterwards
    whatever the emulator has to report, on kernels and on host code, goes to stderr.
    """
    sys.stdout.flush()
    with tempfile.TemporaryFile() as log:
        environment = os.environ | {
            "EMU_REPORT_FD": str(log.fileno()),
            "EMU_PROGRAM": str(timeout or 0),
        }
        command = [str(program.resolve()), *args]
        process = subprocess.Popen(command, env=environment, pass_fds=(log.fileno(),))
        status = _wait(process, timeout)
        log.seek(0)
        reports = read(log.read().decode(errors="replace"))
    for report in reports:
        print(report, file=sys.stderr)
    if status < 0:
        print(f"the program was ended by {signal.Signals(-status).name}", file=sys.stderr)
        return 128 - status
    if status == TIMED_OUT and timeout and not reports:
        print(f"the program was stopped after {timeout:g} s", file=sys.stderr)
    return status


def _wait(process: subprocess.Popen, timeout: float | None) -> int:
    """The status of a process, negative for a signal; the process is gone afterwards."""
    try:
        # The runtime ends the program itself and says where it was; this is for when it cannot.
        return process.wait(None if timeout is None else timeout + 5)
    except subprocess.TimeoutExpired:
        return TIMED_OUT
    except KeyboardInterrupt:
        return -signal.SIGINT
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _key(unit: Unit, flags: list[str]) -> str:
    """Hash of all that an executable depends on."""
    parts = [digest(), compiler(), *flags, unit.text]
    parts += [part for header in unit.headers.items() for part in header]
    text = "\0".join(parts)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:24]


def _compile(unit: Unit, flags: list[str], program: Path) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    # Built aside and renamed: another process may be building the same.
    with tempfile.TemporaryDirectory(dir=program.parent) as name:
        folder = Path(name)
        for key, text in {"main.cpp": unit.text, **unit.headers}.items():
            (folder / key).parent.mkdir(exist_ok=True)
            (folder / key).write_text(text, encoding="utf-8", errors="surrogateescape")
        made = folder / "program"
        command = [compiler(), f"-I{folder}", *flags, str(folder / "main.cpp"), "-o", str(made)]
        # A program that calls nothing of CUDA needs the runtime all the same: it reports crashes.
        command += [flag.replace("--as-needed", "--no-as-needed") for flag in link_flags()]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise CompileError(readable(done.stderr))
        os.replace(made, program)
