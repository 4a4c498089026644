"""Pictures by name, of every view: drawn once for all tests of a file.

The kernels are written in Python (see traces.py), so that their traffic is known, or are the small
faulty ones of faulty.py, as the emulator ran them.
"""

import functools

from support import traces
from support.faulty import FAULTY, faulty_scene
from support.traces import simulate
from utils.course import catalog
from utils.diagrams.draw import render
from utils.diagrams.parts.scene import Scene
from utils.diagrams.picture import Picture
from utils.watch.trace import Trace


def source_of(id: str) -> str:
    return catalog.solution_text(catalog.load(id))


def scene(trace: Trace, outputs=("out",), source="", sizes=None, **more) -> Scene:
    return Scene("kernel", trace, source, 1, outputs, sizes or {"n": 5}, "n=300", **more)


NAIVE = source_of("01_naive_gemm/gemm_naive")
COALESCED = source_of("01_naive_gemm/gemm_coalesced")
TILED = source_of("02_shared_memory_tiling/gemm_tiled")
PADDED = source_of("02_shared_memory_tiling/linear_tiled")
UNPADDED = PADDED.replace("[BK + 1]", "[BK]")


def rows():
    def kernel(t):
        for i in range(t.thread[0], 100, 32):
            t.load(3, "x", t.block[0] * 100 + i)
        if t.thread[0] == 0:
            t.store(6, "out", t.block[0])

    return simulate(kernel, (7,), (32,), {"x": (7, 100), "out": (7,)})


def two_outputs():
    def kernel(t):
        t.load(1, "x", t.block[0] * 32 + t.thread[0])
        if t.thread[0] == 0:
            t.store(2, "low", t.block[0])
            t.store(3, "where", t.block[0])

    return simulate(kernel, (6,), (32,), {"x": (6, 32), "low": (6,), "where": (6,)})


def volume():
    def kernel(t):
        x, y, z = (t.block[i] * d + t.thread[i] for i, d in enumerate((4, 4, 2)))
        if x < 6 and y < 5 and z < 3:
            t.load(2, "x", (z * 5 + y) * 6 + x)
            t.store(2, "out", (z * 5 + y) * 6 + x)

    return simulate(kernel, (2, 2, 2), (4, 4, 2), {"x": (3, 5, 6), "out": (3, 5, 6)})


def broadcast_quads():
    """Half a warp wants one quad, the other half its neighbour, of an array with several rows."""

    def kernel(t):
        t.load(1, "s", t.thread[0] // 16 * 4, 4)
        t.load(2, "s", t.thread[0] // 16 * 132, 4)

    return simulate(kernel, (1,), (32,), {"out": (1,)}, [("s", 264)])


def wrong():
    """Of 20 × 22 elements, those of the last row and column are never written, others twice."""

    def kernel(t):
        row, col = t.block[1] * 8 + t.thread[1], t.block[0] * 8 + t.thread[0]
        if row < 19 and col < 22:
            t.store(2, "C", row * 22 + min(col, 20))

    return simulate(kernel, (3, 3), (8, 8), {"C": (20, 22)})


def passes_on():
    """Values change places in shared memory, and none is taken into another."""

    def kernel(t):
        t.store(1, "s", t.thread[0])
        yield
        t.load(2, "s", 63 - t.thread[0])
        t.store(2, "out", t.thread[0])

    return simulate(kernel, (1,), (64,), {"out": (64,)}, [("s", 64)])


PICTURES = {
    "axpy": lambda: (scene(traces.axpy(300)), "threads"),
    "one element": lambda: (scene(traces.axpy(1)), "threads"),
    "one element's sectors": lambda: (scene(traces.axpy(1)), "sectors"),
    "one element's product": lambda: (scene(traces.gemm(1, 1, 1), ("C",)), "matrix"),
    "one element's tiles": lambda: (scene(traces.gemm_tiled(1, 1, 1), ("C",), TILED), "tiles"),
    "passes": lambda: (scene(traces.grid_stride(1100, 2)), "threads"),
    "threads of a matrix": lambda: (scene(traces.gemm(40, 36, 8, "row"), ("C",)), "threads"),
    "threads of a wide matrix": lambda: (scene(traces.gemm(16, 256, 1), ("C",)), "threads"),
    "naive": lambda: (scene(traces.gemm(32, 32, 8, "row"), ("C",), NAIVE), "sectors"),
    "ragged naive": lambda: (scene(traces.gemm(40, 36, 8, "row"), ("C",), NAIVE), "sectors"),
    "coalesced": lambda: (scene(traces.gemm(32, 32, 8), ("C",), COALESCED), "sectors"),
    "ragged": lambda: (scene(traces.gemm(40, 36, 8), ("C",), COALESCED), "sectors"),
    "linear": lambda: (scene(traces.linear_tiled(32, 32, 32), source=UNPADDED), "sectors"),
    "matrix": lambda: (scene(traces.gemm(40, 36, 8), ("C",)), "matrix"),
    "small matrix": lambda: (scene(traces.gemm(5, 6, 4), ("C",)), "matrix"),
    "small tiled matrix": lambda: (scene(traces.gemm_tiled(4, 6, 4, T=2), ("C",)), "matrix"),
    "matrix of linear": lambda: (scene(traces.linear_tiled(40, 36, 8)), "matrix"),
    "matrix of a flat product": lambda: (scene(traces.gemm(3, 150, 40), ("C",)), "matrix"),
    "matrix of a tall product": lambda: (scene(traces.gemm(150, 3, 40), ("C",)), "matrix"),
    "rows": lambda: (scene(rows()), "matrix"),
    "two outputs": lambda: (scene(two_outputs(), ("low", "where")), "matrix"),
    "volume": lambda: (scene(volume()), "threads"),
    "volume's matrix": lambda: (scene(volume()), "matrix"),
    "tiles": lambda: (scene(traces.gemm_tiled(40, 70, 80), ("C",), TILED), "tiles"),
    "many tiles": lambda: (scene(traces.gemm_tiled(5, 7, 60, T=4), ("C",)), "tiles"),
    "tree": lambda: (scene(traces.tree(500)), "tree"),
    "interleaved tree": lambda: (scene(traces.interleaved(500)), "tree"),
    "tree of two warps": lambda: (scene(traces.interleaved(100, 64)), "tree"),
    "tree of eight": lambda: (scene(traces.tree(8, 8)), "tree"),
    "interleaved tree of eight": lambda: (scene(traces.interleaved(8, 8)), "tree"),
    "tree of a thousand": lambda: (scene(traces.tree(5, 1024)), "tree"),
    "no tree": lambda: (scene(passes_on()), "tree"),
    "what a tree reads": lambda: (scene(traces.tree(500)), "threads"),
    "tree's phases": lambda: (scene(traces.tree(500)), "tiles"),
    "tree's banks": lambda: (scene(traces.tree(500)), "banks"),
    "unpadded": lambda: (scene(traces.linear_tiled(32, 32, 32), source=UNPADDED), "banks"),
    "padded": lambda: (scene(traces.linear_tiled(32, 32, 32, 1), source=PADDED), "banks"),
    "broadcasts of quads": lambda: (scene(broadcast_quads()), "banks"),
    "wrong": lambda: (scene(wrong(), ("C",)), "threads"),
    "right": lambda: (scene(traces.gemm(20, 22, 1, tile=8), ("C",)), "threads"),
    "long lines": lambda: (scene(traces.axpy(40), source="x = " + "y + " * 99), "sectors"),
    **{f"hazard, {n}": lambda n=n: (faulty_scene(n), "hazards") for n in FAULTY},
}


@functools.cache
def shown(name: str) -> Picture:
    """The picture of that name; the same one for all who ask."""
    return render(*PICTURES[name]())
