"""The box: bubblewrap around a process that compiles or runs what a stranger wrote.

In it there is no network, no other process, no environment but what is given, and of the file
system the read-only system, what is lent, and an empty /tmp. Whoever judges stays outside.

WORKBOOK_BOX puts compilers and the workers of kernels into it. Inside, `guest/lockdown.py` holds,
too.
"""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from utils.ground.errors import ToolError

NOBODY = 65534
TMP = 256 << 20  # bytes of /tmp
PROCESSES = 1024  # of NOBODY's at once, threads counted
_SYSTEM = """/usr /bin /lib /lib64 /nix/store /etc/ld.so.cache /etc/alternatives /etc/localtime
    /sys/devices/system/cpu""".split()
_GPU = ("/dev", "nvidia*"), ("/dev", "dxg"), ("/dev/nvidia-caps", "*")
_ALONE = ["pid", "net", "ipc", "uts", "cgroup-try"]
_INSTALL = (
    "Install it: `sudo apt install bubblewrap` or `sudo dnf install bubblewrap`; in a container, "
    "allow it user namespaces (docker run --security-opt seccomp=unconfined)"
)


def command(
    words: Iterable[str | Path],
    *,
    readable: Iterable[str | Path] = (),
    writable: Iterable[str | Path] = (),
    environment: Mapping[str, str] | None = None,
    folder: str | Path = "/",
    other_user: bool = False,
    gpu: bool = False,
) -> list[str]:
    """How a program is started in a box; open files that are passed on stay open.

    `readable` and `writable` are lent at the paths that they have outside. It starts in `folder`.
    `other_user`: as nobody
    also to the system, where root asks: what it may write must then be nobody's. Otherwise the box
    has a user namespace, in which it is nobody. `gpu`: with the nodes of NVIDIA's devices.

    Raises ToolError, in words, where this machine has no box.
    """
    prefix = [*_prefix(other_user and os.geteuid() == 0), *_parents(_SYSTEM)]
    for path in _SYSTEM:
        prefix += ["--ro-bind-try", path, path]
    prefix += ["--proc", "/proc", "--dev", "/dev", "--size", str(TMP), "--tmpfs", "/tmp"]
    if gpu:
        for nodes, pattern in _GPU:
            for node in sorted(Path(nodes).glob(pattern)):
                prefix += ["--dev-bind", str(node), str(node)]
    lent = sorted(_lent(readable))  # an outer one first
    prefix += _parents(lent)
    for path in lent:
        prefix += ["--ro-bind", path, path]
    for path in map(os.path.abspath, writable):
        prefix += ["--bind", path, path]
    prefix.append("--clearenv")
    for name, value in (environment or {}).items():
        prefix += ["--setenv", name, value]
    return [*prefix, "--chdir", str(folder), "--", *_becoming_nobody(other_user), *map(str, words)]


def _lent(paths: Iterable[str | Path]) -> set[str]:
    """What the system does not show already: also of a link in it, such as /usr/local/cuda."""
    whole = [os.path.abspath(path) for path in paths]
    ends = [os.path.realpath(path) if _of_system(path) else path for path in whole]
    return {path for path in ends if not _of_system(path)}


def _of_system(path: str) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in _SYSTEM)


def _parents(paths: Iterable[str]) -> list[str]:
    """Make the folders on the way to these, which else root alone could pass."""
    folders = {str(parent) for path in paths for parent in Path(path).parents}
    folders = {folder for folder in folders if not folder.startswith(("/usr", "/lib", "/bin"))}
    words = [["--perms", "0755", "--dir", folder] for folder in sorted(folders - {"/"})]
    return [word for group in words for word in group]


def python_folders() -> list[str]:
    """What must be readable for this Python to start."""
    return [sys.prefix, sys.base_prefix]


def require() -> None:
    """Raises ToolError, in words, where this machine has no box."""
    _prefix(os.geteuid() == 0)


def _becoming_nobody(other_user: bool) -> list[str]:
    limits = ["prlimit", f"--nproc={PROCESSES}", "--core=0", "--"]
    if not (other_user and os.geteuid() == 0):
        return limits
    ids = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return ["setpriv", *ids, "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", *limits]


@functools.cache
def _prefix(as_root: bool) -> tuple[str, ...]:
    program = shutil.which("bwrap")
    if program is None:
        raise ToolError(f"there is no bubblewrap, and without a box nothing is judged. {_INSTALL}")
    own = [program, "--die-with-parent", "--new-session", "--hostname", "box"]
    own += [f"--unshare-{what}" for what in _ALONE]
    if as_root:  # no namespace of users: the kernel itself is told of another one
        kept = ("SETUID", "SETGID", "SETPCAP")
        own += ["--cap-drop", "ALL", *(w for cap in kept for w in ("--cap-add", f"CAP_{cap}"))]
    else:
        own += ["--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY), "--cap-drop", "ALL"]
    system = [word for path in _SYSTEM for word in ("--ro-bind-try", path, path)]
    words = [*own, *system, "--proc", "/proc", "--dev", "/dev", "--", "true"]
    tried = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if tried.returncode:
        said = (tried.stderr.strip() or f"exit status {tried.returncode}").splitlines()[-1]
        raise ToolError(f"bubblewrap makes no box here ({said}). {_INSTALL}")
    return tuple(own)
