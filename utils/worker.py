"""The process in which kernels run, so that a fault never reaches the notebook's own.

Started by `isolation.py` as `python -I -S worker.py COMMANDS REPLIES ARENA`, with three file
descriptors. Standard library only: without PyTorch it starts in 20 ms. Commands and replies are
JSON lines:

    {"do": "load", "library": path, "device": index or null}        -> {}
    {"do": "run", "library": path, "slots": hex, "pointers": [slot indices], "size": bytes,
     "limit": seconds, "device": index or null}      -> {"error": code, "name", "text", "seconds"}

Pointer slots hold offsets into the arena, which is shared memory. With a device, the arena is
copied to it, and back after the launch; without one the launcher works on the arena itself.
"""

import ctypes
import json
import mmap
import os
import resource
import select
import sys
import threading
import time

MAX_OUTPUT = 64 << 20  # bytes that a kernel may print, to memory; the rest is dropped


class Device:
    """The arena's copy in a GPU's memory, kept between calls."""

    def __init__(self):
        self.pointer, self.size = ctypes.c_void_p(), 0

    def reserve(self, library, size: int) -> int:
        """CUDA's error code. The memory holds `size` bytes or more afterwards."""
        if size <= self.size:
            return 0
        error = library.workbook_free(self.pointer)
        self.pointer, self.size = ctypes.c_void_p(), 0
        error = error or library.workbook_malloc(ctypes.byref(self.pointer), ctypes.c_ulong(size))
        self.size = 0 if error else size
        return error


class Worker:
    def __init__(self, arena: int):
        self.arena_fd, self.arena, self.libraries, self.device = arena, None, {}, Device()

    def load(self, command: dict) -> dict:
        library = self._library(command)
        if command["device"] is None:
            return {}
        # Frees nothing, but creates the context, which takes a second.
        error = library.workbook_device(command["device"]) or library.workbook_free(None)
        return self._outcome(library, error)

    def run(self, command: dict) -> dict:
        library, size, start = self._library(command), command["size"], time.perf_counter()
        if self.arena is None or len(self.arena) != size:
            self.arena = mmap.mmap(self.arena_fd, size)
        base = here = ctypes.addressof(ctypes.c_char.from_buffer(self.arena))
        slots = bytearray.fromhex(command["slots"])
        error = 0
        if on_device := command["device"] is not None:
            error = self.device.reserve(library, size) or library.workbook_upload(
                self.device.pointer, ctypes.c_void_p(here), ctypes.c_ulong(size)
            )
            base = self.device.pointer.value
        if not error:
            array = (ctypes.c_uint64 * (len(slots) // 8)).from_buffer(slots)
            for index in command["pointers"]:
                array[index] += base
            self._limit(library, command["limit"])
            start = time.perf_counter()
            error = library.workbook_run(array) or library.workbook_sync()
            self._limit(library, 0.0)
        seconds = time.perf_counter() - start
        if on_device and not error:
            error = library.workbook_download(
                ctypes.c_void_p(here), self.device.pointer, ctypes.c_ulong(size)
            )
        return {**self._outcome(library, error), "seconds": seconds}

    def _library(self, command: dict):
        path = command["library"]
        if path not in self.libraries:
            library = self.libraries[path] = ctypes.CDLL(path)
            library.workbook_error_name.restype = ctypes.c_char_p
            library.workbook_error_text.restype = ctypes.c_char_p
        return self.libraries[path]

    @staticmethod
    def _limit(library, seconds: float) -> None:
        """Let the emulator stop a launch that hangs, and say where; 0 is no limit."""
        if hasattr(library, "emu_set_time_limit"):
            library.emu_set_time_limit(ctypes.c_double(seconds))

    @staticmethod
    def _outcome(library, error: int) -> dict:
        name, text = library.workbook_error_name(error), library.workbook_error_text(error)
        return {"error": error, "name": name.decode(), "text": text.decode()}


def leave_with(parent: int) -> None:
    """End this process as soon as the other end of `parent` is closed, whatever it is doing."""
    poll = select.poll()
    poll.register(parent, 0)
    poll.poll()
    os._exit(0)


def main() -> None:
    commands, replies, arena = map(int, sys.argv[1:])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_OUTPUT, MAX_OUTPUT))
    libc = ctypes.CDLL(None)
    by_line = 1  # _IOLBF: what was printed before a crash is not lost
    libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, by_line, ctypes.c_size_t(0))
    threading.Thread(target=leave_with, args=(commands,), daemon=True).start()
    worker = Worker(arena)
    with os.fdopen(commands, closefd=False) as lines:
        for line in lines:
            command = json.loads(line)
            reply = getattr(worker, command["do"])(command)
            libc.fflush(None)
            os.write(replies, json.dumps(reply).encode() + b"\n")


if __name__ == "__main__":
    main()
