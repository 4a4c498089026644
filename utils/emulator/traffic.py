"""What the launches of a diagnosing run cost: requests, sectors, wavefronts, line by line."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from utils.emulator.symbols import Code, SourceLine

Position = tuple[int, int, int]
Key = tuple[str, int, str, str, int]  # file, line, space, access, size
Event = dict[str, Any]  # JSON of the runtime's, whose keys are names of fields

SPACES = {"global": "sectors", "shared": "wavefronts"}


@dataclass(frozen=True)
class Traffic:
    """What one instruction cost in a launch, or all of one kind on a line.

    Names as in Nsight Compute, where it has them.
    """

    file: str
    line: int  # 0 where it is not known
    space: str  # "global" or "shared"
    access: str  # "load", "store" or "atomic"
    size: int  # bytes of one thread's access
    requests: int  # executions by a warp
    lanes: int  # executions by a thread
    bytes: int  # that the threads asked for
    moved: int  # global: 32-byte sectors; shared: wavefronts, one more for each bank conflict
    ideal: int  # sectors that the distinct bytes would fill; wavefronts without conflicts
    contended: int = 0  # atomics that had to wait for another lane of the warp

    def __add__(self, other: "Traffic") -> "Traffic":
        sums = ("requests", "lanes", "bytes", "moved", "ideal", "contended")
        return replace(self, **{n: getattr(self, n) + getattr(other, n) for n in sums})

    @property
    def per_request(self) -> float:
        """Sectors, or wavefronts, of one request of a warp."""
        return self.moved / self.requests

    @property
    def ideal_per_request(self) -> float:
        """What a request would cost at best, in the same unit."""
        return self.ideal / self.requests

    @property
    def key(self) -> Key:
        """What it is traffic of: equal for what can be added up."""
        return (self.file, self.line, self.space, self.access, self.size)

    @property
    def unit(self) -> str:
        """ "sectors" or "wavefronts"."""
        return SPACES[self.space]

    def to_json(self) -> dict[str, object]:
        """For the JSON of a run: sectors or wavefronts by their name."""
        renamed = {"moved": self.unit, "ideal": f"ideal_{self.unit}"}
        return {renamed.get(name, name): value for name, value in vars(self).items()}


@dataclass(frozen=True)
class LaunchTraffic:
    """The counters of one launch, or of several of one kernel."""

    kernel: str
    grid: Position | None  # None where it is not the same in all
    block: Position | None
    counters: Mapping[str, int]
    traffic: tuple[Traffic, ...]  # one for each instruction, by line
    times: int = 1

    @property
    def barriers(self) -> int:
        """Passed by a block, summed over the blocks."""
        return self.counters["barriers"]

    @property
    def distinct_read(self) -> int:
        """Bytes of global memory, each counted once."""
        return self.counters["distinct_bytes_read"]

    @property
    def distinct_written(self) -> int:
        """Bytes of global memory, each counted once."""
        return self.counters["distinct_bytes_written"]

    def total(self, what: str, space: str, *accesses: str) -> int:
        """The sum of a field of `traffic` over a space and kinds of access."""
        return sum(
            getattr(t, what)
            for t in self.traffic
            if t.space == space and (not accesses or t.access in accesses)
        )

    @property
    def lines(self) -> tuple[Traffic, ...]:
        """The traffic with the instructions of a line added up, by kind of access."""
        by_key: dict[Key, Traffic] = {}
        for t in self.traffic:
            by_key[t.key] = by_key[t.key] + t if t.key in by_key else t
        return tuple(by_key[key] for key in sorted(by_key))

    def __add__(self, other: "LaunchTraffic") -> "LaunchTraffic":
        same = ("static_shared", "dynamic_shared")
        counters = {
            name: value if name in same else value + other.counters[name]
            for name, value in self.counters.items()
        }
        traffic = (*self.traffic, *other.traffic)
        same_shape = (self.grid, self.block) == (other.grid, other.block)
        grid, block = (self.grid, self.block) if same_shape else (None, None)
        times = self.times + other.times
        return LaunchTraffic(self.kernel, grid, block, counters, traffic, times)

    def to_json(self) -> dict[str, object]:
        """For the JSON of a run; the names of counters follow Nsight Compute's."""
        record: dict[str, object] = {
            name: getattr(self, name) for name in ("kernel", "grid", "block")
        }
        record |= self.counters
        for space, unit in SPACES.items():
            for access in ("load", "store", "atomic"):
                some = [t for t in self.traffic if (t.space, t.access) == (space, access)]
                name, moved = f"{space}_{access}", sum(t.moved for t in some)
                ideal = sum(t.ideal for t in some)
                record[f"{name}_requests"] = sum(t.requests for t in some)
                record[f"{name}_bytes"] = sum(t.bytes for t in some)
                record[f"{name}_{unit}"] = moved
                record[f"{name}_{unit}_ideal"] = ideal
                if space == "shared":
                    record[f"{name}_bank_conflicts"] = moved - ideal
        record["contended_atomics"] = sum(t.contended for t in self.traffic)
        return record | {"lines": [t.to_json() for t in self.lines]}


def read_launches(
    text: str, places: Callable[[list[Code]], Mapping[Code, SourceLine | None]]
) -> list[LaunchTraffic]:
    """The launches in what the runtime wrote. `places` gives the source lines of addresses."""
    lines = text.splitlines()
    records = [n for n in lines if n.startswith('{"event":"launch"') and n.endswith("}")]
    events = [json.loads(line) for line in records]
    instructions = [i for event in events for i in event["instructions"] if "module" in i]
    known = places(list(dict.fromkeys((i["module"], i["offset"]) for i in instructions)))
    return [_launch(event, known) for event in events]


def _launch(event: Event, places: Mapping[Code, SourceLine | None]) -> LaunchTraffic:
    traffic = [_traffic(entry, places) for entry in event.pop("instructions")]
    kernel, grid, block, _ = (event.pop(name) for name in ("kernel", "grid", "block", "event"))
    by_line = tuple(sorted(traffic, key=lambda t: t.key))
    return LaunchTraffic(kernel, tuple(grid), tuple(block), counters=event, traffic=by_line)


def _traffic(entry: Event, places: Mapping[Code, SourceLine | None]) -> Traffic:
    file, line = places.get((entry.pop("module", ""), entry.pop("offset", ""))) or ("", 0)
    moved = entry.pop(SPACES[entry["space"]])
    return Traffic(file=file, line=line, moved=moved, **entry)
