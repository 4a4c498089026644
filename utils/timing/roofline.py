"""How fast a kernel could be at best: bytes over bandwidth, operations over rate."""

import json
from dataclasses import dataclass, replace

from utils.ground.paths import workspace
from utils.timing.results import CEILINGS

# A kernel with no more float32 operations than this for each byte waits for memory on any GPU.
FEW_FLOPS = 4.0


@dataclass(frozen=True)
class Ceilings:
    """What a GPU can do. Zero is "not known": nothing is invented."""

    gpu: str
    bytes_per_second: float = 0.0
    flops_per_second: float = 0.0  # float32, without tensor cores
    halves_per_second: float = 0.0  # of fp16 or bf16, by tensor cores

    def by_tensor_cores(self, products: int) -> "Ceilings":
        """The same for a kernel that takes so many products of halves for each of its own; 0: it
        takes none."""
        if not products:
            return self
        return replace(self, flops_per_second=self.halves_per_second / products)


@dataclass(frozen=True)
class Prediction:
    """The least time, and what sets it."""

    milliseconds: float
    bound: str  # "memory" or "arithmetic"


def known() -> list[Ceilings]:
    """The GPUs whose ceilings `results/ceilings.json` holds, with their sources."""
    data = json.loads((workspace().results / CEILINGS).read_text())
    return [
        Ceilings(
            gpu,
            values["bytes_per_second"],
            values["flops_per_second"],
            values.get("halves_per_second", 0.0),
        )
        for gpu, values in data.items()
    ]


def ceilings(gpu: str) -> Ceilings:
    """Those of a GPU by its name; unknown ones where it is not in the file."""
    return next((card for card in known() if card.gpu == gpu), Ceilings(gpu))


def foreign(gpu: str) -> str:
    """What the course's figures are worth on a GPU that it has none of; "" on one that it knows."""
    if not gpu or ceilings(gpu).bytes_per_second:
        return ""
    own = known()[0].gpu
    return (
        f"The course knows no figures of an {gpu}: those in its notebooks are an {own}'s, and say "
        "what to compare here, not how long it takes."
    )


def predict(ceilings: Ceilings, bytes: int, flops: int) -> Prediction | None:
    """The least time on a GPU; None where its ceilings are not known well enough to tell."""
    if not ceilings.bytes_per_second:
        return None
    memory = 1e3 * bytes / ceilings.bytes_per_second
    if not ceilings.flops_per_second:
        return Prediction(memory, "memory") if flops <= FEW_FLOPS * bytes else None
    arithmetic = 1e3 * flops / ceilings.flops_per_second
    if arithmetic > memory:
        return Prediction(arithmetic, "arithmetic")
    return Prediction(memory, "memory")


def waits_for_memory(ceilings: Ceilings, bytes: int, flops: int) -> bool:
    """Whether bytes rather than operations set the least time, as far as that is known."""
    least = predict(ceilings, bytes, flops)
    return least.bound == "memory" if least else flops <= FEW_FLOPS * bytes


def quantity(value: float, unit: str) -> str:
    """Decimal units: `4.28 TB/s`, `137 GFLOP`."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"
