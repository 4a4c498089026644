"""What /proc says of processes, to whoever watches them from outside."""

import os
from collections.abc import Iterable

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")  # a second


def usage(pid: int) -> tuple[int, int]:
    """Bytes of memory that a process has in use, and its threads; zeros where it is gone."""
    fields = _stat(f"{pid}")
    return (int(fields[21]) * _PAGE, int(fields[17])) if fields else (0, 0)


def core_time(pids: Iterable[int]) -> float:
    """Seconds that processes have had on cores, and their threads that have ended."""
    times = [_stat(f"{pid}")[11:13] for pid in pids]
    return sum(int(ticks) for fields in times for ticks in fields) / _TICKS


def want_cores(pids: Iterable[int]) -> bool:
    """Whether a thread of processes runs, or would: waits for a core, or for a disk."""
    tasks = [f"{pid}/task/{task}" for pid in pids for task in _tasks(pid)]
    return any(fields[0] in "RD" for task in tasks if (fields := _stat(task)))


def runs(pid: int) -> bool:
    """Whether a process is there, and no mere entry that nobody has asked for."""
    fields = _stat(f"{pid}")
    return bool(fields) and fields[0] not in "ZX"


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have, and so on."""
    pids: list[int] = []
    for task in _tasks(pid):
        try:
            with open(f"/proc/{pid}/task/{task}/children") as file:
                children = [int(word) for word in file.read().split()]
        except OSError:
            continue
        for child in children:
            pids += [child, *descendants(child)]
    return pids


def _stat(who: str) -> list[str]:
    """What stands behind the name of a process, or of a thread; nothing where it is gone."""
    try:
        with open(f"/proc/{who}/stat") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _tasks(pid: int) -> list[str]:
    """The threads of a process; none where it is gone."""
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
