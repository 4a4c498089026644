"""What a view draws from: a trace, and the text that it came from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from utils.emulator.reports import Report
from utils.ground.errors import WorkbookError
from utils.watch.access_patterns import WARP
from utils.watch.trace import GLOBAL, LOAD, MOST, SPACES, Array, Launch, Records, Trace


@dataclass(frozen=True)
class Scene:
    """One traced call of a launcher, and what the reader asked to see of it."""

    name: str
    trace: Trace
    source: str = ""
    first_line: int = 1  # number of the source's first line
    outputs: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    smaller: str = ""  # sizes to suggest where these are too large
    thread: int | tuple[int, ...] | None = None  # (x, y, z) in the whole grid
    block: int | tuple[int, ...] | None = None  # blockIdx
    array: str | None = None
    line: int | None = None
    hazards: tuple[Report, ...] = ()
    hazard: int = 1  # which of them, from 1

    @property
    def size_text(self) -> str:
        """Such as "M = 8, N = 4"."""
        return ", ".join(f"{name} = {value}" for name, value in self.sizes.items())

    def text_of(self, line: int) -> str:
        """A line of the source, as line numbers in messages count them; "" where there is none."""
        return self.raw_text_of(line).strip()

    def raw_text_of(self, line: int) -> str:
        """The same with the spaces that it begins with."""
        lines = self.source.splitlines()
        place = line - self.first_line
        return lines[place] if 0 <= place < len(lines) else ""

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays of the trace, as accesses number them."""
        return self.trace.arrays

    def number(self, name: str) -> int:
        """Index of an array by name. Raises WorkbookError naming what there is."""
        return self.trace.array(name)

    @property
    def notes(self) -> list[str]:
        """What has to be said beside any picture of this trace."""
        notes = []
        elsewhere = sum(
            int(((x.accesses["array"] < 0) & (x.accesses["space"] == GLOBAL)).sum())
            for x in self.trace.launches
        )
        if elsewhere:
            are = "access is" if elsewhere == 1 else "accesses are"
            notes.append(
                f"{elsewhere:,} {are} in none of the arrays: in the launcher's own memory, or "
                + "out of bounds. check() says which."
            )
        return notes

    def launch_that(self, touches: int | None = None) -> Launch:
        """The launch that writes the array of that number, or else the busiest one."""
        launches = self.trace.launches
        if touches is not None:
            for launch in launches:
                mine = launch.accesses["array"] == touches
                if np.any(mine & (launch.accesses["kind"] != LOAD)):
                    return launch
        return max(launches, key=lambda launch: len(launch.accesses))

    def require_all(self) -> None:
        """Raises WorkbookError where accesses are missing from the trace."""
        if self.trace.truncated:
            raise self.too_large(f"{self.name} makes more than {MOST:,} accesses at this size")

    def too_large(self, what: str) -> WorkbookError:
        """The error that says so of `what`, and suggests smaller sizes."""
        hint = f", such as {self.smaller}" if self.smaller else ""
        return WorkbookError(f"{what}, too much for a picture; draw it at a smaller size{hint}")


def element(array: Array, index: int) -> str:
    """An element as C++ would have it: x[7], A[3][0]; a single value is just its name."""
    place = np.unravel_index(index, array.shape) if array.shape else ()
    return array.name + "".join(f"[{i}]" for i in place)


def times(count: int) -> str:
    """ "once", "twice", "3 times"."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def listing(items: list[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, (", ".join(items[:-1]), *items[-1:])))


def shape_text(array: Array) -> str:
    """Such as "4 × 8"; of an array that a kernel divides up as it likes, "512 bytes"."""
    shape = " × ".join(map(str, array.shape)) or "one value"
    return f"{shape} bytes" if array.element == 1 and array.shape else shape


def coordinates(number: int, dims: tuple[int, int, int]) -> tuple[int, ...]:
    """A linear index of a block or thread as (x), (x, y) or (x, y, z), as many as are in use."""
    x, y, z = dims
    place = (number % x, number // x % y, number // (x * y))
    return place[: 3 if z > 1 else 2 if y > 1 else 1]


def coordinate_text(number: int, dims: tuple[int, int, int]) -> str:
    """A linear index of a block or thread in words: "7", "(3, 1)"."""
    place = coordinates(number, dims)
    return str(place[0]) if len(place) == 1 else f"({', '.join(map(str, place))})"


def linear(place: int | tuple[int, ...], dims: tuple[int, int, int], what: str) -> int:
    """The linear index of (x, y, z). Raises WorkbookError where it is outside of `dims`."""
    coordinates = (place,) if isinstance(place, int) else tuple(place)
    x, y, z = [*coordinates, 0, 0, 0][:3]
    if len(coordinates) > 3 or not (0 <= x < dims[0] and 0 <= y < dims[1] and 0 <= z < dims[2]):
        limits = " × ".join(map(str, dims))
        raise WorkbookError(f"there is no {what} {place}: there are {limits} of them (x × y × z)")
    return x + dims[0] * (y + dims[1] * z)


@dataclass(frozen=True)
class Instruction:
    """One load or store in the text, and all that ran of it in one launch."""

    launch: Launch
    array: int
    kind: int
    line: int
    accesses: Records

    def first_request(self) -> np.ndarray:
        """The accesses of the first warp that ran it, at its first time, ordered by lane."""
        lead = self.accesses[0]
        return self.execution(int(lead["block"]), int(lead["thread"]) // WARP, int(lead["nth"]))

    def execution(self, block: int, warp: int, nth: int) -> np.ndarray:
        """The accesses of one request of a warp, ordered by lane."""
        one = self.accesses
        mine = (one["block"] == block) & (one["thread"] // WARP == warp) & (one["nth"] == nth)
        return np.sort(one[mine], order="thread")


def instructions(scene: Scene, space: int) -> list[Instruction]:
    """The instructions on global or shared memory, by launch and line.

    What the compiler made of one load twice, with the same addresses, is shown once.
    """
    chosen, seen = [], set()
    for number, launch in enumerate(scene.trace.launches):
        accesses = launch.accesses
        accesses = accesses[(accesses["space"] == space) & (accesses["array"] >= 0)]
        if scene.line is not None:
            accesses = accesses[accesses["line"] == scene.line]
        _, first, label = np.unique(accesses["pc"], return_index=True, return_inverse=True)
        for i in sorted(range(len(first)), key=lambda i: (accesses["line"][first[i]], first[i])):
            mine = accesses[label == i]
            lead = mine[0]
            array, kind, line = (int(lead[f]) for f in ("array", "kind", "line"))
            one = Instruction(launch, array, kind, line, mine)
            key = (number, one.array, one.kind, one.line, one.first_request()["byte"].tobytes())
            if key not in seen:
                seen.add(key)
                chosen.append(one)
    if not chosen and scene.line is not None:
        raise WorkbookError(f"line {scene.line} makes no access to {SPACES[space]} memory")
    return chosen
