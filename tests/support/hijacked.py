"""Workers as a submission would have them which owns their process: its code can do there whatever
the worker's own does. Each cheat is a `Executor.time` in place of the genuine one.
"""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from utils.process import child

_SETTING = '''
import threading

genuine, CHANNEL = Executor.time, framing.Channel(int(sys.argv[2]))
framing.Channel = lambda file: CHANNEL


def say_done(token=""):
    """The reply that is waited for."""
    CHANNEL._token = token or CHANNEL._token
    reply = {"error": 0, "name": "cudaSuccess", "text": "no error"}
    CHANNEL.tell({**reply, "stragglers": 0, "in_force": []})


def opened(self, command):
    """The library, and the slots of each call, with addresses in them."""
    lent = [command[name] for name in ("file", "size", "device")]
    library, base = self._library(command), self._borrow(*lent)
    if command["device"] is None:
        library.emu_lend_memory(ctypes.c_void_p(base), ctypes.c_size_t(command["size"]))
    slots = command["blobs"][0]
    each = len(slots) // command["calls"]
    rows = []
    for first in range(0, len(slots), each):
        row = (ctypes.c_uint64 * (each // 8)).from_buffer_copy(slots[first : first + each])
        for index in command["pointers"]:
            row[index] += base
        rows.append(row)
    return library, rows


def done(self, library, error=0):
    return self._outcome(library, error or library.workbook_sync())


'''
_WARMED = """
Executor.time = lambda self, command: (cheat if command["calls"] > 1 else genuine)(self, command)
"""

# Of a launcher (const float* x, float* out, int n), on the emulator unless it says otherwise.
CHEATS = {
    "says done and does nothing": """
def cheat(self, command):
    return done(self, opened(self, command)[0])
""",
    "says done, then works": """
def cheat(self, command):
    say_done()
    time.sleep(0.3)
    genuine(self, command)
    time.sleep(60)  # a second reply would give it away
""",
    "says done, then works in a thread": """
def cheat(self, command):
    library, rows = opened(self, command)

    def work():
        time.sleep(0.3)  # beyond the time for which ended threads are waited for
        for row in rows:
            library.workbook_run(row)

    threading.Thread(target=work).start()
    return done(self, library)
""",
    "computes the last call alone": """
def cheat(self, command):
    library, rows = opened(self, command)
    return done(self, library, library.workbook_run(rows[-1]))
""",
    "gives each call the first one's result": """
def cheat(self, command):
    library, rows = opened(self, command)
    error = library.workbook_run(rows[0])
    for row in rows[1:]:
        ctypes.memmove(row[1], rows[0][1], 4 * row[2])
    return done(self, library, error)
""",
    "gives each call what another process knew": """
def cheat(self, command):
    library, rows = opened(self, command)
    for row in rows:
        ctypes.memset(row[1], 0, 4 * row[2])
    return done(self, library)
""",
    "makes the inputs fit the outputs": """
def cheat(self, command):
    library, rows = opened(self, command)
    for row in rows:  # swish(0) is 0
        ctypes.memset(row[0], 0, 4 * row[2])
        ctypes.memset(row[1], 0, 4 * row[2])
    return done(self, library)
""",
    "takes the next call to be as far away as the last": """
def cheat(self, command):
    library, rows = opened(self, command)
    error = library.workbook_run(rows[0]) or library.workbook_run(rows[1])
    row, pointers = rows[1], command["pointers"]
    apart = {index: rows[1][index] - rows[0][index] for index in pointers}
    for _ in rows[2:]:
        for index in pointers:
            row[index] += apart[index]
        if all(self.inside(row[index], 4 * row[2]) for index in pointers):
            error = error or library.workbook_run(row)
    return done(self, library, error)


def inside(self, start, length):
    base = ctypes.addressof(ctypes.c_char.from_buffer(self.borrowed[-1]))
    return base <= start and start + length <= base + len(self.borrowed[-1])


Executor.inside = inside
""",
    "leaves a hundredth undone": """
def cheat(self, command):
    library, rows = opened(self, command)
    for row in rows:
        row[2] -= row[2] // 100
        library.workbook_run(row)
    return done(self, library)
""",
}
ON_A_GPU = {
    "says done without a wait": """
def cheat(self, command):
    library = self._library(command)
    wait, library.workbook_sync = library.workbook_sync, lambda: 0
    try:
        return genuine(self, command)
    finally:
        library.workbook_sync = wait
""",
    "says done, then works": CHEATS["says done, then works"].replace("0.3", "0.0005"),
}


@contextlib.contextmanager
def hijacked(cheat: str) -> Iterator[None]:
    """Workers that begin now have this in place of what `time` does when it counts."""
    genuine = child.GUEST
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # for nobody, in a box
        child.GUEST = Path(folder, genuine.name)
        shutil.copytree(genuine, child.GUEST)
        with open(child.GUEST / "kernel.py", "a") as program:
            program.write(_SETTING + cheat + _WARMED)
        try:
            yield
        finally:
            child.GUEST = genuine
