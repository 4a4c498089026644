"""The README's picture: how far each matrix product got, drawn from the stored figures."""

from html import escape

from utils import published
from utils.course import catalog
from utils.timing import plots, results, roofline
from utils.timing.results import Entry, Results, Row

FAMILY = "01_naive_gemm/gemm_naive"  # the rungs are the kernels that compute what this one does


def in_step(svg: str) -> bool:
    """Whether a picture says what the stored figures say, whichever matplotlib drew it."""
    found = _rungs()
    return found is None or escape(plots.bars(*found).description) in svg


def picture() -> str | None:
    """The SVG; None where no rung has been measured."""
    found = _rungs()
    return plots.bars(*found).svg() if found else None


def _rungs() -> tuple[list[Row], str, float | None] | None:
    """Rows, title and predicted milliseconds, of the GPU that was measured last."""
    for stored in results.stored():
        entries = _alike(stored)
        if entries:
            last = entries[-1]
            rows = [entry.ours() for entry in entries]
            rows += [last.library()] if last.library() else []
            size = " × ".join(str(value) for value in last.sizes.values())
            title = f"Matrix products of {size} floats on {stored.gpu}, {last.date}"
            least = roofline.predict(roofline.ceilings(stored.gpu), last.bytes, last.flops)
            return rows, title, least.milliseconds if least else None
    return None


def _alike(stored: Results) -> list[Entry]:
    """The entries of the family, in the order of the chapters; not those there to be mended."""
    everything = [e for topic in catalog.topics() for e in catalog.topic(topic).values()]
    first = next((e for e in everything if e.id == FAMILY), None)
    if first is None:
        return []
    alike = [e for e in everything if published.task(e) == published.task(first)]
    found = [stored.entries[e.id] for e in alike if e.id in stored.entries and not e.faulty]
    return [e for e in found if e.ours() and dict(e.sizes) == dict(first.bench)]
