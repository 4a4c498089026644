"""Processes that begin with their imports done: forks of one that has imported them.

pytest and a notebook's kernel import PyTorch, Jupyter and the workbook: three and two seconds of a
processor for each submission, and what they do with it takes about four. So one process imports it
all and then does nothing but fork, when it is asked. What it forks runs a module, as `python -m`
does. A fork lives as long as who asked for it, who keeps its connection open; all of them end with
the process that began it all, however that ends.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from utils.ground.paths import environment

VARIABLE = "WORKBOOK_FORKS"  # of a fork that may ask for others: the descriptor to ask at
MESSAGE = 1 << 20  # bytes: more than an environment has
PARENT_DIED = 1  # prctl's PR_SET_PDEATHSIG


class Fork:
    """A process, with as much of Popen's face as its users look at."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int, connection: socket.socket):
        self.pid, self._connection = pid, connection
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit status; None while it runs."""
        return self._status(0)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, once it has ended. Raises subprocess.TimeoutExpired."""
        status = self._status(timeout)
        if status is None:
            raise subprocess.TimeoutExpired("a fork", timeout or 0.0)
        return status

    def _status(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._connection], [], [], timeout)[0]:
            reply = self._connection.recv(MESSAGE)
            self._connection.close()
            self.returncode = json.loads(reply) if reply else -signal.SIGKILL
        return self.returncode

    def send_signal(self, number: int) -> None:
        """To its group: it leads one."""
        if self.poll() is None:
            os.killpg(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it, and all of its group."""
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The process that forks; `modules` are what it imports first. It ends when it is
    closed, or with the process that has this object."""

    def __init__(self, modules: Sequence[str], **variables: str):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            numbers = str(theirs.fileno()), str(ours.fileno())
            command = [sys.executable, "-P", "-m", "utils.process.forkserver", *numbers, *modules]
            self._process = subprocess.Popen(
                command,
                env=environment(**variables),
                stdin=subprocess.PIPE,
                pass_fds=[theirs.fileno(), ours.fileno()],
                start_new_session=True,
            )
        self._asking = ours

    @property
    def alive(self) -> bool:
        """Whether it still forks."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it, and all that it forked."""
        self._process.communicate()  # the end of its input is the word
        self._asking.close()

    def kill(self) -> None:
        """End it, and all that it forked, even while it still imports."""
        self._process.kill()

    def run(self, arguments: Sequence[str], *, env: Mapping[str, str], cwd: str, log: str) -> Fork:
        """`python -m` with these arguments, that may ask for forks of its own: see inherited().
        Raises OSError where this one has ended."""
        env = {**env, VARIABLE: str(self._asking.fileno())}
        return _ask(self._asking, arguments, env, cwd, log)


def inherited(arguments: Sequence[str], *, env: Mapping[str, str], cwd: str) -> Fork | None:
    """The same from within a fork: a process beside it, that ends with it. None where this process
    is no fork."""
    if VARIABLE not in os.environ:
        return None
    asking = socket.socket(fileno=os.dup(int(os.environ[VARIABLE])))
    with asking:
        env = {name: value for name, value in env.items() if name != VARIABLE}
        return _ask(asking, arguments, env, cwd, os.devnull)


def _ask(
    asking: socket.socket, arguments: Sequence[str], env: Mapping[str, str], cwd: str, log: str
) -> Fork:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        request = {"arguments": list(arguments), "env": dict(env), "cwd": str(cwd), "log": log}
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MESSAGE)
        with contextlib.suppress(BrokenPipeError):
            socket.send_fds(asking, [json.dumps(request).encode()], [theirs.fileno()])
    reply = ours.recv(MESSAGE)
    if not reply:
        raise OSError("the process that forks has ended")
    return Fork(json.loads(reply), ours)


# --- the process that forks

Request = dict[str, Any]  # of `_ask`


def _serve(requests: socket.socket) -> Request | None:
    """Fork, and look after the forks. Returns in a fork, with its request; in the process itself
    when its parent is gone."""
    children: dict[int, socket.socket] = {}
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        listening: list[int | socket.socket] = [0, woken, requests, *children.values()]
        ready, _, _ = select.select(listening, [], [])
        if 0 in ready:
            signal.set_wakeup_fd(-1)  # its socket is closed before all of these have ended
            for pid in children:
                _kill(pid)
            return None
        if woken in ready:
            woken.recv(MESSAGE)
            _reap(children)
        for pid in [pid for pid, connection in children.items() if connection in ready]:
            _kill(pid)  # nobody has anything to say but to leave
        if requests in ready:
            message, (number,), _, _ = socket.recv_fds(requests, MESSAGE, 1)
            connection = socket.socket(fileno=number)
            if pid := os.fork():
                children[pid] = connection
                with contextlib.suppress(OSError):
                    connection.send(json.dumps(pid).encode())
                continue
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for each in (woken, wake, requests, connection, *children.values()):
                each.close()
            request: Request = json.loads(message)
            return request


def _reap(children: dict[int, socket.socket]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        _kill(pid)  # what is left of its group
        with contextlib.suppress(OSError), children.pop(pid) as connection:
            connection.send(json.dumps(os.waitstatus_to_exitcode(status)).encode())


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _become(request: Request, asking: int, parent: int) -> None:
    """Run what was asked for, in the fork."""
    os.setsid()
    ctypes.CDLL(None).prctl(PARENT_DIED, signal.SIGKILL)
    if os.getppid() != parent:  # it has died already
        return
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    if VARIABLE not in request["env"]:
        os.close(asking)
    with open(os.devnull) as nothing, open(request["log"], "a") as log:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    module, *sys.argv[1:] = request["arguments"]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        _leave(end.code)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        _leave(1)
    _leave(0)


def _leave(code: object) -> NoReturn:
    """End as Python does, but for taking down all that was imported: a second, in which each
    object of the process that forked is touched, and so copied."""
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # private; waits for non-daemon threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit((code or 0) & 0xFF)


def main() -> None:
    """The command: descriptors to serve and to ask at, modules to import."""
    serving, asking, *modules = sys.argv[1:]
    for module in modules:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # a fork's collector leaves alone what it shares
    parent = os.getpid()
    if request := _serve(socket.socket(fileno=int(serving))):
        _become(request, int(asking), parent)


if __name__ == "__main__":
    main()
