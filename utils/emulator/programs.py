"""Complete CUDA programs on the CPU: built with g++, run like any program.

A program is one source or several, as nvcc takes them: `.cu` holds CUDA and is rewritten, any other
ending is C++ for the host alone.
"""

import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from utils.emulator import outcome
from utils.emulator.build import compile_flags, compiler, digest, link_flags
from utils.emulator.messages import FLAGS, missing, readable
from utils.emulator.reports import read
from utils.emulator.translate.rewriter import Unit, collect, rewrite
from utils.ground import files, paths
from utils.ground.errors import CompileError, ToolError

_FOREIGN = re.compile(r"\bEMU_ELSEWHERE\b")
TIMED_OUT = 124  # the exit status of a program that was stopped at its time limit
PATIENCE = 4  # time limits, at most, for a program that is given no core


@dataclass(frozen=True)
class Watch:
    """How a program is diagnosed."""

    json: Path | None = None  # where to write the outcome
    order: int = 0  # of the threads: 0 ascending, any other number another one
    volatile_atomic: bool = False  # volatile accesses count as relaxed atomic ones


def emulate(
    sources: Path | Sequence[Path],
    *,
    include: Sequence[str] = (),
    define: Sequence[str] = (),
    opt: str = "2",
    std: str = "c++17",
    flags: Sequence[str] = (),
    timeout: float | None = None,
    args: Sequence[str] = (),
    watch: Watch | None = None,
) -> int:
    """Build and run a CUDA program; returns its exit status, and says on stderr what went wrong.

    128 + the signal's number for a crash, 124 at the time limit (seconds), 1 where the program
    does not compile, 2 where there is no such file, no compiler, or where it needs what the
    emulator has not. With `watch` it is diagnosed,
    and the status is 1 where there are hazards.
    """
    try:
        program = build_program(sources, include, define, opt, std, flags, watch=watch)
    except CompileError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"cannot read {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except ToolError as error:
        print(error, file=sys.stderr)
        return 2
    if watch:
        return diagnose_program(program, watch, args, timeout)
    return run_program(program, args, timeout)


@dataclass(frozen=True)
class _Part:
    """A source file, as it is compiled."""

    path: Path
    unit: Unit
    command: list[str]  # flags of its own


def build_program(
    sources: Path | Sequence[Path],
    includes: Sequence[str] = (),
    defines: Sequence[str] = (),
    opt: str = "2",
    std: str = "c++17",
    flags: Sequence[str] = (),
    cache: Path | None = None,
    watch: Watch | None = None,
) -> Path:
    """The executable of one CUDA source file or several, built unless the same was built before.

    `includes`, `defines`, `opt` and `std` are nvcc's -I, -D, -O and -std, `flags` are for g++ and
    the linker. Raises CompileError with the files' own lines, ToolError without a compiler or where
    the emulator lacks what they need, OSError where a file cannot be read.
    """
    paths_ = [Path(sources)] if isinstance(sources, (str, Path)) else [Path(s) for s in sources]
    common = [*FLAGS, "-pthread", f"-std={std}", *flags]
    if watch is None:
        common.append(f"-O{opt}")
    elif watch.volatile_atomic:
        common += ["--param", "tsan-distinguish-volatile=1"]
    common += [f"-I{folder}" for folder in includes]
    # What both kinds of source define is taken from the instrumented one, which comes first.
    paths_.sort(key=lambda path: not _is_cuda(path))
    watched = watch is not None
    parts = [_part(path, includes, defines, common, watched) for path in paths_]
    if any(_FOREIGN.search("".join([p.unit.text, *p.unit.headers.values()])) for p in parts):
        parts = [_part(path, includes, defines, common, watched, True) for path in paths_]
    program = (cache or paths.cache()) / "programs" / _key(parts) / paths_[0].stem
    if not program.exists():
        _build(parts, flags, program)
    return program


def _is_cuda(path: Path) -> bool:
    return path.suffix not in (".cpp", ".cc", ".cxx", ".c++", ".C")


def _part(
    path: Path,
    includes: Sequence[str],
    defines: Sequence[str],
    common: list[str],
    watched: bool,
    linked: bool = False,
) -> _Part:
    """`linked`: a file may mean another's __constant__ variables, as with nvcc's -rdc=true."""
    source = path.read_text(encoding="utf-8", errors="surrogateescape")
    folders = [Path(i) for i in includes]
    if _is_cuda(path):
        try:
            unit = rewrite(
                source,
                filename=str(path),
                include_dirs=folders,
                base_dir=path.parent,
                own_constants=not linked,
            )
        except CompileError as error:
            raise CompileError(f"{error}\n{path} does not compile") from None
        late = [name for name in defines if not _early(name)]
        unit = Unit(_define(unit.text, late), unit.headers)
        early = [name for name in defines if _early(name)]
        command = compile_flags(instrumented=watched)
    else:
        unit = collect(source, filename=str(path), include_dirs=folders, base_dir=path.parent)
        early = list(defines)
        command = [*compile_flags(), "-DEMU_HOST_SOURCE"]
        command += ["-DEMU_INSTRUMENTED"] if watched else []
    command = [*command, *common, f"-iquote{path.parent}", *(f"-D{name}" for name in early)]
    return _Part(path, unit, command)


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
    status, events = _run(program, args, timeout, {})
    reports = read(events)
    for report in reports:
        print(report, file=sys.stderr)
    return _ended(status, timeout, bool(reports))


def diagnose_program(
    program: Path, watch: Watch, args: Sequence[str] = (), timeout: float | None = None
) -> int:
    """Run an instrumented program; hazards and traffic go to stderr, and to `watch.json`.

    Returns 1 where there are hazards, else the program's own status.
    """
    variables = {"EMU_DIAGNOSE": "1", "EMU_ORDER": str(watch.order)}
    if watch.volatile_atomic:
        variables["EMU_VOLATILE_ATOMIC"] = "1"
    status, events = _run(program, args, timeout, variables)
    result = outcome.read_outcome(status if status >= 0 else 128 - status, events)
    outcome.show(result, Console(stderr=True, highlight=False))
    status = _ended(status, timeout, bool(result.hazards))
    if watch.json:
        outcome.write_json(result, watch.json)
    return 1 if result.hazards else status


def _run(
    program: Path, args: Sequence[str], timeout: float | None, variables: Mapping[str, str]
) -> tuple[int, str]:
    """The status of a program, negative for a signal, and what the runtime wrote."""
    sys.stdout.flush()
    with tempfile.TemporaryFile() as log:
        environment = os.environ | {
            "EMU_REPORT_FD": str(log.fileno()),
            "EMU_PROGRAM": str(timeout or 0),
            **variables,
        }
        command = [str(program.resolve()), *args]
        process = subprocess.Popen(command, env=environment, pass_fds=(log.fileno(),))
        status = _wait(process, timeout)
        log.seek(0)
        return status, log.read().decode(errors="replace")


def _ended(status: int, timeout: float | None, explained: bool) -> int:
    """The exit status, after saying what ended the program where nothing has said so yet."""
    if status < 0:
        print(f"the program was ended by {signal.Signals(-status).name}", file=sys.stderr)
        return 128 - status
    if status == TIMED_OUT and timeout and not explained:
        print(f"the program was stopped after {timeout:g} s", file=sys.stderr)
    return status


def _wait(process: subprocess.Popen[bytes], timeout: float | None) -> int:
    """The status of a process, negative for a signal; the process is gone afterwards."""
    try:
        # The runtime ends the program itself and says where it was, on a busy machine later
        # (runtime/watchdog.cpp); this is for when it cannot.
        return process.wait(None if timeout is None else PATIENCE * timeout + 8)
    except subprocess.TimeoutExpired:
        return TIMED_OUT
    except KeyboardInterrupt:
        return -signal.SIGINT
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _key(parts: Iterable[_Part]) -> str:
    """Hash of all that an executable depends on."""
    pieces = [digest(), compiler()]
    for part in parts:
        pieces += [*part.command, part.unit.text]
        pieces += [piece for header in part.unit.headers.items() for piece in header]
    text = "\0".join(pieces)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:24]


def _build(parts: Sequence[_Part], flags: Sequence[str], program: Path) -> None:
    with files.publish(program) as made:
        folders = [made.with_name(f"{made.name}.parts{i}") for i in range(len(parts))]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            things = list(pool.map(_compile, parts, folders))
        # A program that calls nothing of CUDA needs the runtime all the same: it reports crashes.
        needed = [flag.replace("--as-needed", "--no-as-needed") for flag in link_flags()]
        # Linked apart: g++ would add its own library to what -fsanitize instrumented.
        own = [flag for flag in flags if flag.startswith(("-l", "-L", "-fopenmp"))]
        linked = ["-pthread", *map(str, things), *own, *needed]
        _call([compiler(), *linked, "-o", str(made)], parts[0].path)


def _compile(part: _Part, folder: Path) -> Path:
    """The object file of a source, in a folder of its own."""
    folder.mkdir()
    for key, text in {"main.cpp": part.unit.text, **part.unit.headers}.items():
        (folder / key).parent.mkdir(exist_ok=True)
        (folder / key).write_text(text, encoding="utf-8", errors="surrogateescape")
    thing = folder / "main.o"
    command = [compiler(), f"-I{folder}", *part.command, "-c", str(folder / "main.cpp")]
    _call([*command, "-o", str(thing)], part.path)
    return thing


def _call(command: Sequence[str], path: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode and (lacking := missing(done.stderr)):
        raise ToolError(lacking)
    if done.returncode:
        raise CompileError(f"{readable(done.stderr)}\n{path} does not compile")
