"""What bench shows, in figures."""

from collections.abc import Iterable, Sequence

from utils.course.cases import size_text
from utils.course.exercise import Exercise, Sizes
from utils.diagrams.table import Table
from utils.timing import roofline
from utils.timing.results import ESTIMATE, Entry, Row, digits
from utils.timing.roofline import Ceilings, quantity


def comparison(
    exercise: Exercise,
    entry: Entry,
    rows: Sequence[Row],
    limits: Ceilings,
    notes: Iterable[str] = (),
) -> Table:
    """The ladder as a table: the library last, speed-up over the first row that was measured."""
    least = roofline.predict(limits, entry.bytes, entry.flops)
    moves = roofline.waits_for_memory(limits, entry.bytes, entry.flops)
    amount, unit, scale = (entry.bytes, "GB/s", 1e6) if moves else (entry.flops, "TFLOP/s", 1e9)
    library = entry.library()
    head = ["", "ms", "p20–p80", unit]
    head += [f"% of {library.label}"] if library else []
    head += ["% of ceiling"] if least else []
    first = next(row for row in rows if row.kind != ESTIMATE)
    lines = []
    for row in rows:
        line = [
            row.label + (" *" if row.stored else ""),
            digits(row.median_ms),
            "–" if row.kind == ESTIMATE else f"{digits(row.p20_ms)}–{digits(row.p80_ms)}",
            digits(amount / row.median_ms / scale),
        ]
        line += [digits(100 * library.median_ms / row.median_ms)] if library else []
        line += [digits(100 * least.milliseconds / row.median_ms)] if least else []
        lines.append([*line, f"{digits(first.median_ms / row.median_ms)}×"])
    caption = f"{exercise.name} on {limits.gpu}, {entry.date}, {size_text(entry.sizes)}"
    remarks = [*notes, *_prediction(entry, limits, entry.ours() in rows)]
    if any(row.stored for row in rows):
        remarks.append("* stored figures of the workbook's own kernels on this GPU")
    return Table(caption, [*head, "speed-up"], lines, remarks)


def _prediction(entry: Entry, limits: Ceilings, measured: bool) -> list[str]:
    least = roofline.predict(limits, entry.bytes, entry.flops)
    if least is None:
        return []
    line = _words(least, entry.bytes, entry.flops, limits)
    ours = entry.ours()
    if ours:
        times = ours.median_ms / least.milliseconds
        it = "It" if measured else "The reference"
        line += f" {it} took {digits(ours.median_ms)} ms, {digits(times)} × as long."
    return [line]


def _words(least: roofline.Prediction, bytes: int, flops: int, limits: Ceilings) -> str:
    what = (
        f"{quantity(flops, 'FLOP')} at {quantity(limits.flops_per_second, 'FLOP/s')}"
        if least.bound == "arithmetic"
        else f"{quantity(bytes, 'B')} at {quantity(limits.bytes_per_second, 'B/s')}"
    )
    return f"Predicted: {digits(least.milliseconds)} ms, for {what}."


def least_times(exercise: Exercise, sizes: Sizes, notes: Sequence[str]) -> Table:
    """What is left to show where nothing was measured: the least time, where it can be known."""
    bytes, flops = exercise.bytes(**sizes), exercise.flops(**sizes)
    lines = []
    for known in roofline.known():
        limits = known.by_tensor_cores(exercise.halves(sizes))
        if least := roofline.predict(limits, bytes, flops):
            lines.append([limits.gpu, digits(least.milliseconds), least.bound])
    moved = f"{quantity(bytes, 'B')} moved, {quantity(flops, 'FLOP')}"
    return Table(
        f"{exercise.name}, {size_text(sizes)}: {moved}",
        ["estimate, not measured", "at least, ms", "bound by"],
        lines,
        [*notes, "There are no stored figures for these sizes either."],
    )
