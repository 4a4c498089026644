"""What /proc says of processes, to whoever watches them from outside."""

import os

_PAGE = os.sysconf("SC_PAGE_SIZE")


def usage(pid: int) -> tuple[int, int]:
    """Bytes of memory that a process has in use, and its threads; zeros where it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0, 0
    return int(fields[21]) * _PAGE, int(fields[17])


def runs(pid: int) -> bool:
    """Whether a process is there, and no mere entry that nobody has asked for."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have, and so on."""
    pids: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return pids
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                children = [int(word) for word in file.read().split()]
        except OSError:
            continue
        for child in children:
            pids += [child, *descendants(child)]
    return pids
