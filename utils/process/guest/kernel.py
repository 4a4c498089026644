"""The process in which kernels run, so that a fault never reaches the notebook's own.

Started by `workers.py` by `python -I -S`, with the arguments BACKEND CHANNEL ARENA REPORTS
FOLDER...: three file descriptors and the folders that libraries are loaded from. Standard library
only, and few modules of that, so that it starts in 15 ms. Commands and replies are messages of
`framing.py`:

    {"do": "load", "library": path, "device": index or null}        -> {}
    {"do": "run", "library": path, "pointers": [slot indices], "size": bytes,
     "regions": [...], "limit": seconds, "device": index or null,
      "multiprocessors": of the emulator's card, 0 for as many as it has,
      "order": in which blocks begin and threads run, 0: ascending,
      "rehearsal": on the emulator, whether launches are only held against the device's limits},
     slots
                                -> {"error": code, "name", "text", "seconds", "live",
                                    "launches", "detour"}
    {"do": "time", "library", "device", "limit", "size": bytes of memory that is handed over now,
      "calls": how many, "pointers": [slot indices]}, slots of all, an open file
                                                            -> {"error": code, "name", "text"}
    {"do": "watch", ..., "tail": offset, "trace": n, "order": n, "idle_products": bool,
     "blocks": whether basic blocks are recorded, too}
                              -> {..., "bases", "covered", "detour", "scattered"}, launches

Each reply has "stragglers", the number of threads that the call has left behind. With the emulator,
the process can do no more than `lockdown.py` leaves it. A GPU's driver opens devices, maps memory
and starts threads and programs of its own as it sees fit, so there only the limits hold, and a
clean environment.

Pointer slots hold offsets into the arena, which is shared memory. With a device, the arena is
copied to it, and back after the launch; without one the launcher works on the arena itself, whose
regions the emulator then takes for device memory.
"""

from __future__ import annotations

import _thread
import ctypes
import itertools
import mmap
import os
import select
import sys
import time

from . import framing, lockdown
from .framing import TYPE_CHECKING, Header

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .device_memory import Piece


class Device:
    """The arena's copy in a GPU's memory, kept between calls."""

    def __init__(self) -> None:
        self.pointer, self.size = ctypes.c_void_p(), 0

    def reserve(self, library: ctypes.CDLL, size: int) -> int:
        """CUDA's error code. The memory holds `size` bytes or more afterwards."""
        if size <= self.size:
            return 0
        error: int = library.workbook_free(self.pointer)
        self.pointer, self.size = ctypes.c_void_p(), 0
        error = error or library.workbook_malloc(ctypes.byref(self.pointer), ctypes.c_ulong(size))
        self.size = 0 if error else size
        return error


class Executor:
    """Does what commands ask for: each is a method, which returns the reply."""

    def __init__(self, arena: int) -> None:
        self.arena_fd, self.device = arena, Device()
        self.arena: mmap.mmap | None = None
        self.libraries: dict[str, ctypes.CDLL] = {}
        self.borrowed: list[mmap.mmap | Piece] = []

    def load(self, command: Header) -> Header:
        """Load a library; with a device also create its context."""
        library = self._library(command)
        if command["device"] is None:
            return {}
        # Frees nothing, but creates the context, which takes a second.
        error = library.workbook_device(command["device"]) or library.workbook_free(None)
        return self._outcome(library, error)

    def run(self, command: Header) -> Header:
        """Call a launcher on the arena, or on its copy in the memory of the device."""
        library, size = self._library(command), command["size"]
        if self.arena is None or len(self.arena) != size:
            self.arena = mmap.mmap(self.arena_fd, size)
        error, seconds, live = self._once(library, command, self.arena)
        launches, detour = "", False
        if command["rehearsal"]:
            library.emu_rehearsed.restype = ctypes.c_char_p
            launches = library.emu_rehearsed().decode(errors="replace")
            detour = bool(library.emu_detour())
        said = {"seconds": seconds, "live": live, "launches": launches, "detour": detour}
        return {**self._outcome(library, error), **said}

    def _once(
        self, library: ctypes.CDLL, command: Header, arena: mmap.mmap
    ) -> tuple[int, float, int]:
        """Call a launcher: CUDA's error code, seconds, and bytes of device memory in use after.
        On the emulator a busy machine adds none: threads that wait for a core are not counted."""
        base = here = ctypes.addressof(ctypes.c_char.from_buffer(arena))
        size, start, worked = command["size"], time.perf_counter(), time.process_time()
        slots = bytearray(command["blobs"][0])
        error = 0
        if on_device := command["device"] is not None:
            error = self.device.reserve(library, size) or library.workbook_upload(
                self.device.pointer, ctypes.c_void_p(here), ctypes.c_ulong(size)
            )
            base = self.device.pointer.value or 0
        if not error:
            array = (ctypes.c_uint64 * (len(slots) // 8)).from_buffer(slots)
            for index in command["pointers"]:
                array[index] += base
            self._limit(library, command["limit"])
            lent = [] if on_device else [here + region["start"] for region in command["regions"]]
            for first, region in zip(lent, command["regions"], strict=False):
                length = region["stop"] - region["start"]
                library.emu_lend_memory(ctypes.c_void_p(first), ctypes.c_size_t(length))
            if not on_device:
                library.emu_rehearse(command["rehearsal"])
                library.emu_set_multiprocessors(command["multiprocessors"])
                library.emu_set_order(command["order"])
                library.emu_set_block_order(command["order"])
            start, worked = time.perf_counter(), time.process_time()
            wait = library.workbook_sync if on_device else library.emu_results_are_there
            error = library.workbook_run(array) or wait()
            self._limit(library, 0.0)
            for first in lent:
                library.emu_take_back_memory(ctypes.c_void_p(first))
        seconds = time.perf_counter() - start
        live = 0
        if not on_device:
            seconds = min(seconds, time.process_time() - worked)
            library.emu_live_bytes.restype = ctypes.c_size_t
            live = library.emu_live_bytes()
        if on_device and not error:
            error = library.workbook_download(
                ctypes.c_void_p(here), self.device.pointer, ctypes.c_ulong(size)
            )
        return error, seconds, live

    def time(self, command: Header) -> Header:
        """Call a launcher on memory that another process has, in which each call has its own
        arrays, and wait for the device. Whoever asks for it has the clock."""
        library, calls = self._library(command), command["calls"]
        base = self._borrow(command["file"], command["size"], command["device"])
        slots = bytearray(command["blobs"][0])
        array = (ctypes.c_uint64 * (len(slots) // 8)).from_buffer(slots)
        each, error = len(array) // max(calls, 1), 0
        if command["device"] is None:
            library.emu_lend_memory(ctypes.c_void_p(base), ctypes.c_size_t(command["size"]))
            library.emu_rehearse(False)
            library.emu_set_multiprocessors(command["multiprocessors"])
            library.emu_set_order(0)
            library.emu_set_block_order(0)
        self._limit(library, command["limit"])
        for first in range(0, len(array), each or 1):
            for index in command["pointers"]:
                array[first + index] += base
            error = error or library.workbook_run(ctypes.byref(array, 8 * first))
        error = error or library.workbook_sync()
        self._limit(library, 0.0)
        return self._outcome(library, error)

    def _borrow(self, file: int, size: int, device: int | None) -> int:
        """The address of memory that is handed over; it is kept to the end of this process."""
        if device is None:
            self.borrowed.append(memory := mmap.mmap(file, size))
            base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        else:
            from . import device_memory  # most processes do without

            self.borrowed.append(piece := device_memory.borrow(file, size, device))
            base = piece.address
        os.close(file)
        return base

    def watch(self, command: Header) -> Header:
        """Diagnose a launch of an instrumented library on the emulator.

        Each region of the arena is copied to memory of its own, far from the others, where an
        access out of bounds is seen. Records of accesses go to the arena's tail.
        """
        library, size = self._library(command), command["size"]
        self.arena = arena = mmap.mmap(self.arena_fd, size)
        here = ctypes.addressof(ctypes.c_char.from_buffer(arena))
        slots = bytearray(command["blobs"][0])
        array = (ctypes.c_uint64 * (len(slots) // 8)).from_buffer(slots)
        library.emu_set_order(command["order"])
        library.emu_set_block_order(0)
        library.emu_set_idle_products(command["idle_products"])
        library.emu_set_multiprocessors(command["multiprocessors"])
        library.emu_watch_begin()
        bases = [self._lend(library, here, region) for region in command["regions"]]
        for region, base in zip(command["regions"], bases, strict=True):
            length = ctypes.c_size_t(region["stop"] - region["start"])
            library.emu_begin_of_call(ctypes.c_void_p(base), length)
        for index in command["pointers"]:
            offset = array[index]
            for region, base in zip(command["regions"], bases, strict=True):
                if region["start"] <= offset <= region["stop"]:
                    array[index] = base + offset - region["start"] if base else 0
        if command["trace"]:
            most, blocks = ctypes.c_size_t(command["trace"]), ctypes.c_int(command["blocks"])
            library.emu_trace_begin(most, blocks)
        self._limit(library, command["limit"])
        error = library.workbook_run(array)
        if not error:
            library.emu_end_of_call()
            error = library.workbook_sync()
        self._limit(library, 0.0)
        seen = self._records(library, here + command["tail"]) if command["trace"] else {}
        covered = [self._coverage(library, base) for base in bases]
        detour, scattered = bool(library.emu_detour()), library.emu_scattered()
        for region, base in zip(command["regions"], bases, strict=True):
            ctypes.memmove(here + region["start"], base or 0, region["stop"] - region["start"])
            library.workbook_free(ctypes.c_void_p(base))
        library.emu_watch_end()
        nothing = {"accesses": 0, "blobs": [b""], "shared": [], "truncated": False}
        library.emu_module_base.restype = ctypes.c_uint64
        base = library.emu_module_base(library.workbook_run)
        return {
            **self._outcome(library, error),
            "bases": [base or 0 for base in bases],
            "covered": covered,
            "detour": detour,
            "scattered": scattered,
            "module_base": base,
            **nothing,
            **seen,
        }

    @staticmethod
    def _lend(library: ctypes.CDLL, here: int, region: Header) -> int | None:
        """The address of a copy of a region of the arena, aligned as the region is."""
        pointer, length = ctypes.c_void_p(), region["stop"] - region["start"]
        library.emu_malloc(
            ctypes.byref(pointer),
            ctypes.c_size_t(length),
            region["name"].encode(),
            ctypes.c_size_t(region["element"]),
            ctypes.c_size_t(region["start"] % 256),
        )
        ctypes.memmove(pointer, here + region["start"], length)
        if region["written"]:
            library.emu_mark_written(pointer, ctypes.c_size_t(length))
        return pointer.value

    @staticmethod
    def _coverage(library: ctypes.CDLL, base: int | None) -> list[int]:
        """Of a region: bytes that kernels read, bytes that they were the last to write, whether
        they wrote any, and whether the launcher did."""
        size, number = ctypes.c_size_t, ctypes.c_int
        figures = size(), size(), number(), number()
        library.emu_coverage(ctypes.c_void_p(base), *map(ctypes.byref, figures))
        return [figure.value for figure in figures]

    @staticmethod
    def _records(library: ctypes.CDLL, tail: int) -> Header:
        """Copy the recorded accesses to the arena's tail; say the rest."""
        first, truncated, shared = ctypes.c_void_p(), ctypes.c_int(), []
        library.emu_trace_end.restype = library.emu_trace_launches.restype = ctypes.c_size_t
        count = library.emu_trace_end(ctypes.byref(first), ctypes.byref(truncated))
        ctypes.memmove(tail, first, framing.ACCESS * count)
        launches = library.emu_trace_launches(ctypes.byref(first))
        size = ctypes.c_size_t
        visitor = ctypes.CFUNCTYPE(None, ctypes.c_char_p, size, size, ctypes.POINTER(size))

        def visit(name: bytes, offset: int, element: int, extents: Iterable[int]) -> None:
            shape = list(itertools.takewhile(bool, extents))
            shared.append(
                {"name": name.decode(), "offset": offset, "element": element, "shape": shape}
            )

        library.emu_shared_arrays(visitor(visit))
        return {
            "accesses": count,
            "blobs": [ctypes.string_at(first, framing.LAUNCH * launches) if launches else b""],
            "shared": shared,
            "truncated": bool(truncated),
        }

    def _library(self, command: Header) -> ctypes.CDLL:
        path = command["library"]
        if path not in self.libraries:
            library = self.libraries[path] = ctypes.CDLL(path)
            library.workbook_error_name.restype = ctypes.c_char_p
            library.workbook_error_text.restype = ctypes.c_char_p
        return self.libraries[path]

    @staticmethod
    def _limit(library: ctypes.CDLL, seconds: float) -> None:
        """Let the emulator stop a launch that hangs, and say where; 0 is no limit."""
        if hasattr(library, "emu_set_time_limit"):
            library.emu_set_time_limit(ctypes.c_double(seconds))

    @staticmethod
    def _outcome(library: ctypes.CDLL, error: int) -> Header:
        name, text = library.workbook_error_name(error), library.workbook_error_text(error)
        return {"error": error, "name": name.decode(), "text": text.decode()}


def leave_with(reports: int) -> None:
    """End this process as soon as nobody reads its reports any more, whatever it is doing.

    A launcher may have closed that file before anyone looks here; then its time limit remains.
    """
    poll = select.poll()
    poll.register(reports, 0)
    if (reports, select.POLLNVAL) not in poll.poll():
        os._exit(0)


def others(known: set[str]) -> int:
    """How many threads this process has that are not `known` as its own or the emulator's. Those
    of the emulator are, once they have been met."""
    count = 0
    for thread in os.listdir("/proc/self/task"):
        if thread in known:
            continue
        try:
            with open(f"/proc/self/task/{thread}/comm") as file:
                if file.read() == "emulator\n":
                    known.add(thread)
                else:
                    count += 1
        except OSError:
            pass  # it has ended
    return count


def stragglers(known: set[str]) -> int:
    """How many threads a call has left behind. One that was waited for may be on the list still."""
    for pause in (0.001, 0.01, 0.0):
        if (count := others(known)) <= 0:
            return 0
        time.sleep(pause)
    return count


def main() -> None:
    """Answer commands, one after the other, until the other end is closed."""
    backend, (channel, arena, reports) = sys.argv[1], map(int, sys.argv[2:5])
    emulated = backend == "emulator"
    lockdown.limit(lockdown.MAX_FILES if emulated else None)
    in_force = lockdown.lock_in(sys.argv[5:]) if emulated else []
    libc = ctypes.CDLL(None)
    by_line = 1  # _IOLBF: what was printed before a crash is not lost
    libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, by_line, ctypes.c_size_t(0))
    _thread.start_new_thread(leave_with, (reports,))  # `threading` alone imports four modules
    executor, known = Executor(arena), set(os.listdir("/proc/self/task"))
    requests = framing.Channel(channel)
    while command := requests.command():
        reply = getattr(executor, command["do"])(command)
        libc.fflush(None)
        left, blobs = stragglers(known) if emulated else 0, reply.pop("blobs", ())
        requests.tell({**reply, "stragglers": left, "in_force": in_force}, blobs)
