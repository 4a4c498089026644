"""Traces of kernels as the emulator would record them, from kernels written in Python.

A kernel is a generator function of a `Thread`. It calls `t.load` and `t.store` with the line it
stands for, and yields where a barrier would be.
"""

import functools
import math
from dataclasses import dataclass, field

import numpy as np

from utils.watch.trace import ACCESSES, ATOMIC, GLOBAL, LOAD, SHARED, STORE, Array, Launch, Trace


@dataclass
class Thread:
    block: tuple[int, int, int]  # blockIdx
    thread: tuple[int, int, int]  # threadIdx
    numbers: tuple[int, int]  # both linear
    arrays: dict[str, tuple[int, Array]]
    records: list
    phase: int = 0
    ran: dict = field(default_factory=dict)

    def access(self, line: int, name: str, index: int, kind: int, width: int, column: int) -> None:
        """`width` elements from `index`. `column` tells apart instructions of one line."""
        number, array = self.arrays[name]
        assert 0 <= index < math.prod(array.shape), (name, index)
        pc = line * 100 + number * 10 + kind + 1000 * column
        nth = self.ran[pc] = self.ran.get(pc, -1) + 1
        byte = index * array.element + array.offset
        size = width * array.element
        record = (number, index, byte, size, kind, array.space, *self.numbers, self.phase, line, pc)
        self.records.append((*record, nth))

    def load(self, line, name, index, width=1, column=0):
        self.access(line, name, index, LOAD, width, column)

    def store(self, line, name, index, width=1, column=0):
        self.access(line, name, index, STORE, width, column)

    def atomic(self, line, name, index):
        self.access(line, name, index, ATOMIC, 1, 0)


def simulate(kernel, grid, block, tensors, shared=(), name="kernel") -> Trace:
    """Run blocks one after the other, each from barrier to barrier, as the emulator does.

    `tensors`: name -> shape; `shared`: pairs of name and shape. All are floats.
    """
    arrays = [Array(n, GLOBAL, shape, 4, 0) for n, shape in tensors.items()]
    offset = 0
    for label, shape in shared:
        shape = shape if isinstance(shape, tuple) else (shape,)
        arrays.append(Array(label, SHARED, shape, 4, offset))
        offset += -(-math.prod(shape) * 4 // 16) * 16
    return Trace(tuple(arrays), (launch(kernel, grid, block, arrays, name),), False)


def launch(kernel, grid, block, arrays, name="kernel") -> Launch:
    grid, block = (tuple([*size, 1, 1][:3]) for size in (grid, block))
    by_name = {array.name: (i, array) for i, array in enumerate(arrays)}
    records = []
    for b in np.ndindex(grid[::-1]):
        threads = []
        for t in np.ndindex(block[::-1]):
            numbers = (np.ravel_multi_index(b, grid[::-1]), np.ravel_multi_index(t, block[::-1]))
            thread = Thread(b[::-1], t[::-1], tuple(map(int, numbers)), by_name, records)
            run = kernel(thread)
            if run is not None:
                threads.append((thread, run))
        while threads:
            threads = [(thread, run) for thread, run in threads if _continues(thread, run)]
    return Launch(name, grid, block, np.array(records, ACCESSES))


def _continues(thread: Thread, run) -> bool:
    """Run on to the next barrier; False at the end."""
    try:
        next(run)
    except StopIteration:
        return False
    thread.phase += 1
    return True


# --- kernels of the first notebooks, with the lines of their sources


@functools.cache
def axpy(n, threads=256):
    def kernel(t):
        i = t.block[0] * threads + t.thread[0]
        if i < n:
            t.load(6, "x", i)
            t.load(6, "y", i)
            t.store(6, "out", i)

    return simulate(kernel, (-(-n // threads),), (threads,), {"x": (n,), "y": (n,), "out": (n,)})


@functools.cache
def grid_stride(n, blocks, threads=256):
    def kernel(t):
        for i in range(t.block[0] * threads + t.thread[0], n, blocks * threads):
            t.load(6, "x", i)
            t.store(6, "out", i)

    return simulate(kernel, (blocks,), (threads,), {"x": (n,), "out": (n,)})


@functools.cache
def gemm(M, N, K, x_is="col", tile=32):
    """One thread for each element; x counts columns (coalesced) or rows."""
    first_line = 11 if x_is == "col" else 9

    def kernel(t):
        x, y = (t.block[i] * tile + t.thread[i] for i in (0, 1))
        row, col = (y, x) if x_is == "col" else (x, y)
        if row < M and col < N:
            for k in range(K):
                t.load(first_line, "A", row * K + k)
                t.load(first_line, "B", k * N + col)
            t.store(first_line + 2, "C", row * N + col)

    across, down = (N, M) if x_is == "col" else (M, N)
    grid = (-(-across // tile), -(-down // tile))
    return simulate(kernel, grid, (tile, tile), {"A": (M, K), "B": (K, N), "C": (M, N)})


@functools.cache
def linear_tiled(M, N, K, pad=0, T=32):
    """Tiles of x and W in shared memory; the tile of W is read by columns."""

    def kernel(t):
        (tx, ty, _), (bx, by, _) = t.thread, t.block
        row, col, w_row = by * T + ty, bx * T + tx, bx * T + ty
        for k0 in range(0, K, T):
            if row < M and k0 + tx < K:
                t.load(16, "x", row * K + k0 + tx)
            t.store(16, "xs", ty * T + tx)
            if w_row < N and k0 + tx < K:
                t.load(17, "W", w_row * K + k0 + tx)
            t.store(17, "Ws", ty * (T + pad) + tx)
            yield
            for k in range(T):
                t.load(20, "xs", ty * T + k)
                t.load(20, "Ws", tx * (T + pad) + k)
            yield
        if row < M and col < N:
            t.load(25, "b", col)
            t.store(25, "out", row * N + col)

    tensors = {"x": (M, K), "W": (N, K), "b": (N,), "out": (M, N)}
    shared = [("xs", (T, T)), ("Ws", (T, T + pad))]
    return simulate(kernel, (-(-N // T), -(-M // T)), (T, T), tensors, shared)


@functools.cache
def gemm_tiled(M, N, K, T=32):
    def kernel(t):
        (tx, ty, _), (bx, by, _) = t.thread, t.block
        row, col = by * T + ty, bx * T + tx
        for k0 in range(0, K, T):
            if row < M and k0 + tx < K:
                t.load(14, "A", row * K + k0 + tx)
            t.store(14, "As", ty * T + tx)
            if k0 + ty < K and col < N:
                t.load(15, "B", (k0 + ty) * N + col)
            t.store(15, "Bs", ty * T + tx)
            yield
            for k in range(T):
                t.load(18, "As", ty * T + k)
                t.load(18, "Bs", k * T + tx)
            yield
        if row < M and col < N:
            t.store(23, "C", row * N + col)

    tensors = {"A": (M, K), "B": (K, N), "C": (M, N)}
    shared = [("As", (T, T)), ("Bs", (T, T))]
    return simulate(kernel, (-(-N // T), -(-M // T)), (T, T), tensors, shared)


@functools.cache
def interleaved(n, threads=128):
    """The same as `tree`, but neighbours are added first, by every second thread, every fourth."""

    def kernel(t):
        i, tid = t.block[0] * threads + t.thread[0], t.thread[0]
        if i < n:
            t.load(5, "x", i)
        t.store(5, "part", tid)
        yield
        step = 1
        while step < threads:
            if tid % (2 * step) == 0:
                t.load(8, "part", tid + step)
                t.load(8, "part", tid, column=1)
                t.store(8, "part", tid)
            yield
            step *= 2
        if tid == 0:
            t.load(11, "part", 0)
            t.atomic(11, "out", 0)

    tensors = {"x": (n,), "out": ()}
    return simulate(kernel, (-(-n // threads),), (threads,), tensors, [("part", threads)])


@functools.cache
def tree(n, threads=128):
    """A sum by halves in shared memory, one partial sum for each block, added up atomically."""

    def kernel(t):
        i, tid = t.block[0] * threads + t.thread[0], t.thread[0]
        if i < n:
            t.load(5, "x", i)
        t.store(5, "part", tid)
        yield
        step = threads // 2
        while step:
            if tid < step:
                t.load(8, "part", tid + step)
                t.load(8, "part", tid, column=1)
                t.store(8, "part", tid)
            yield
            step //= 2
        if tid == 0:
            t.load(11, "part", 0)
            t.atomic(11, "out", 0)

    return simulate(
        kernel, (-(-n // threads),), (threads,), {"x": (n,), "out": ()}, [("part", threads)]
    )


def two_launches():
    """The first writes `part` from `x`, the second `out` from `part`."""
    arrays = [Array(n, GLOBAL, (64,), 4, 0) for n in ("x", "part", "out")]

    def first(t):
        t.load(1, "x", t.thread[0])
        t.store(2, "part", t.thread[0])

    def second(t):
        t.load(5, "part", t.thread[0])
        t.store(6, "out", t.thread[0])

    launches = tuple(launch(k, (1,), (n,), arrays) for k, n in ((first, 64), (second, 32)))
    return Trace(tuple(arrays), launches, False)
