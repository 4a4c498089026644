"""Waiting for what happens to processes, as tests of boxes, limits and forks do."""

import time
from collections.abc import Callable
from pathlib import Path

from utils.process import proc


def wait_until(holds: Callable[[], object], within: float = 20.0) -> None:
    """Until it holds; fails where that takes longer."""
    end = time.monotonic() + within
    while not holds():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.02)


def ended(pid: int, within: float = 10.0) -> bool:
    """Within some seconds; one that nobody has waited for yet has ended, too."""
    end = time.monotonic() + within
    while proc.runs(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not proc.runs(pid)


def sleeping(argument: str) -> bool:
    """Whether somebody runs `sleep` with that argument."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:  # gone meanwhile
            continue
        if Path(words[0].decode()).name == "sleep" and words[1] == argument.encode():
            return True
    return False
