"""Every load and store of a kernel, from an instrumented run on the emulator.

`trace(kernel, arguments)` builds the kernel's own text once more, instrumented, runs it at a small
size and returns what each thread touched. The pictures of utils/diagrams are drawn from that.
"""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from utils.cuda.arguments import Arguments
from utils.cuda.instrumented import instrumented
from utils.cuda.isolation import Watched
from utils.cuda.kernel import Kernel
from utils.emulator.symbols import resolve_lines
from utils.emulator.traffic import Position
from utils.ground.errors import WorkbookError
from utils.watch.grouping import packed, rank

MOST = 1 << 20  # accesses that are recorded
LOAD, STORE, ATOMIC = 0, 1, 2
KINDS = "load", "store", "atomic"  # by number
BLOCK = 3  # in place of a kind: a warp begins a basic block
GLOBAL, SHARED = 0, 1
SPACES = "global", "shared"

# The runtime's records (utils/emulator/runtime/trace.h).
ACCESS = np.dtype(
    [
        ("address", "u8"),
        ("pc", "u8"),
        ("block", "u4"),
        ("thread", "u4"),
        ("phase", "u4"),
        ("size", "u2"),
        ("kind", "u1"),
        ("space", "u1"),
    ]
)
LAUNCH = np.dtype(
    [("kernel", "S64"), ("grid", "u4", 3), ("block", "u4", 3), ("first", "u8"), ("shared", "u8")]
)
Records = NDArray[np.void]  # with the fields of ACCESSES


@dataclass(frozen=True)
class Array:
    """A tensor argument, or an array in shared memory."""

    name: str
    space: int  # GLOBAL or SHARED
    shape: tuple[int, ...]  # as declared; of a dynamic shared array what the launch asked for
    element: int  # bytes
    offset: int  # bytes: from the start of the block's shared memory; 0 for a tensor
    address: int = 0  # of a tensor, in the run


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel and all of its accesses."""

    kernel: str
    grid: Position
    block: Position
    accesses: Records  # in the order in which they ran
    begun: Mapping[int, int] = field(default_factory=dict)  # basic blocks: pc -> times of a warp

    @property
    def threads(self) -> int:
        """Threads in a block."""
        return math.prod(self.block)


# What a reader of a trace sees of an access. `array` is an index into Trace.arrays, or -1 for an
# address in no array, which `byte` then holds as it is; `index` counts elements; `pc` is the
# instruction's place in the kernel's library, the same in every run; `nth` is how often the thread
# has run this instruction before; lanes of a warp with equal `pc` and `nth` make one request.
ACCESSES = np.dtype(
    [
        ("array", "i2"),
        ("index", "i8"),
        ("byte", "i8"),  # offset in bytes: in the array if global, in shared memory if shared
        ("size", "u2"),
        ("kind", "u1"),
        ("space", "u1"),
        ("block", "u4"),
        ("thread", "u4"),
        ("phase", "u4"),
        ("line", "i4"),
        ("pc", "u8"),
        ("nth", "u4"),
    ]
)


@dataclass(frozen=True)
class Trace:
    """What one call of a kernel touched."""

    arrays: tuple[Array, ...]
    launches: tuple[Launch, ...]
    truncated: bool  # more accesses were made than are recorded

    def array(self, name: str) -> int:
        """Index of an array by name. Raises WorkbookError naming what there is."""
        for i, array in enumerate(self.arrays):
            if array.name == name:
                return i
        names = ", ".join(array.name for array in self.arrays)
        raise WorkbookError(f"the kernel has no array '{name}'; it has {names}")


def trace(kernel: Kernel, arguments: Arguments) -> Trace:
    """Run the kernel's text instrumented, on copies of `arguments` (by parameter name).

    Raises what a plain run raises: LaunchError, KernelCrash, KernelTimeout.
    """
    return record(kernel, arguments).read()


def record(kernel: Kernel, arguments: Arguments, counted: bool = False) -> "Recorded":
    """What `trace` reads, as it was recorded.

    `counted`: the launches say how often their basic blocks were begun. Raises what it raises.
    """
    build = instrumented(kernel, counted)
    seen = build.watched(arguments, most=MOST, blocks=counted)
    if seen.error:
        raise seen.error
    return Recorded(seen, build, arguments)


@dataclass(frozen=True)
class Recorded:
    """A run that was recorded; to read it takes as long as to run it."""

    raw: Watched
    build: Kernel
    arguments: Arguments

    @property
    def whole(self) -> bool:
        """Whether all accesses were recorded."""
        return not self.raw.truncated

    @functools.cached_property
    def accesses(self) -> int:
        """Of all launches."""
        return int((np.frombuffer(self.raw.accesses, ACCESS)["kind"] != BLOCK).sum())

    @property
    def blocks(self) -> list[int]:
        """Of each launch."""
        return [math.prod(map(int, x["grid"])) for x in np.frombuffer(self.raw.launches, LAUNCH)]

    def read(self) -> Trace:
        """What was recorded."""
        return read_trace(self.raw, self.build, self.arguments)


def read_trace(raw: Watched, build: Kernel, arguments: Arguments) -> Trace:
    """The trace of a run of the instrumented `build` with these arguments."""
    tensors = {name: v for name, v in arguments.items() if isinstance(v, Tensor)}
    arrays = [
        Array(name, GLOBAL, tuple(t.shape), t.element_size(), 0, raw.addresses[name])
        for name, t in tensors.items()
    ]
    arrays += [
        Array(s["name"], SHARED, tuple(s["shape"]), s["element"], s["offset"]) for s in raw.shared
    ]
    launches = np.frombuffer(raw.launches, LAUNCH)
    accesses = _readable(np.frombuffer(raw.accesses, ACCESS), arrays)
    accesses["pc"] -= np.uint64(raw.module_base)
    accesses["line"] = _lines(build, accesses["pc"])
    ends = [*(int(x["first"]) for x in launches[1:]), len(accesses)]
    parts = [accesses[int(x["first"]) : end] for x, end in zip(launches, ends, strict=True)]
    return Trace(
        tuple(arrays),
        tuple(
            Launch(
                x["kernel"].decode(),
                _extent(x["grid"]),
                _extent(x["block"]),
                _counted(part[part["kind"] != BLOCK]),
                _begun(part[part["kind"] == BLOCK]),
            )
            for x, part in zip(launches, parts, strict=True)
        ),
        raw.truncated,
    )


def _extent(sizes: np.ndarray) -> Position:
    x, y, z = map(int, sizes)
    return x, y, z


def _readable(raw: np.ndarray, arrays: list[Array]) -> np.ndarray:
    """Addresses as array, element and byte."""
    out = np.zeros(len(raw), ACCESSES)
    for name in ("size", "kind", "space", "block", "thread", "phase", "pc"):
        out[name] = raw[name]
    out["array"] = -1
    out["byte"] = raw["address"]
    for i, array in enumerate(arrays):
        start = array.address if array.space == GLOBAL else array.offset
        inside = raw["address"].astype("i8") - start
        mine = (raw["space"] == array.space) & (inside >= 0)
        mine &= inside < math.prod(array.shape) * array.element
        out["array"][mine] = i
        out["index"][mine] = inside[mine] // array.element
        out["byte"][mine] = inside[mine] + (array.offset if array.space == SHARED else 0)
    return out


def _begun(records: np.ndarray) -> dict[int, int]:
    pcs, times = np.unique(records["pc"], return_counts=True)
    return dict(zip(pcs.tolist(), times.tolist(), strict=True))


def _counted(accesses: Records) -> np.ndarray:
    """The accesses of one launch with `nth` filled in."""
    accesses = accesses.copy()
    accesses["nth"] = rank(packed(*(accesses[name] for name in ("block", "thread", "pc"))))
    return accesses


def _lines(kernel: Kernel, pcs: np.ndarray) -> np.ndarray:
    """The line of each pc in the cell or file; 0 where it is not known."""
    unique, inverse = np.unique(pcs, return_inverse=True)
    lines = resolve_lines(kernel.library, [int(pc) for pc in unique], kernel.filename)
    return np.array(lines, "i4")[inverse] if len(unique) else np.zeros(0, "i4")
