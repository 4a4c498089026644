"""What bench shows, in figures."""

from collections.abc import Iterable, Sequence

from utils.course.case_sizes import size_text
from utils.course.exercise import Exercise, Sizes
from utils.course.precision import Precision, alike
from utils.diagrams.table import Table
from utils.timing import roofline
from utils.timing.roofline import Ceilings, quantity
from utils.timing.rows import ESTIMATE, Entry, Row, digits, error_text

TWO_WAYS = (
    "rested: single calls, the L2 cache flushed between them; sustained: the same call back to "
    "back for 0.3 s (– where it takes over 100 ms, or less than its launch)"
)


def comparison(
    exercise: Exercise,
    entry: Entry,
    rows: Sequence[Row],
    limits: Ceilings,
    notes: Iterable[str] = (),
) -> Table:
    """The ladder as a table: the library last, speed-up over the first row that was measured.

    What has another precision than the kernel, or another result, is shown, and not compared.
    """
    least = roofline.predict(limits, entry.bytes, entry.flops)
    moves = roofline.waits_for_memory(limits, entry.bytes, entry.flops)
    amount, unit, scale = (entry.bytes, "GB/s", 1e6) if moves else (entry.flops, "TFLOP/s", 1e9)
    library, ours = entry.library(), entry.ours()
    loads = any(row.sustained_ms for row in rows)
    head = ["", "precision", "error", "rested, ms", "p20–p80"]
    head += ["sustained, ms"] if loads else []
    head += [unit]
    head += [f"% of {library.label}"] if library else []
    head += ["% of ceiling"] if least else []
    first = next((row for row in rows if row.kind != ESTIMATE and _compared(row, ours)), None)
    lines = []
    for row in rows:
        compared = _compared(row, ours)
        line = [
            row.label + (" *" if row.stored else ""),
            row.precision or "–",
            error_text(row),
            digits(row.median_ms),
            "–" if row.kind == ESTIMATE else f"{digits(row.p20_ms)}–{digits(row.p80_ms)}",
        ]
        line += [digits(row.sustained_ms) if row.sustained_ms else "–"] if loads else []
        line += [digits(amount / row.median_ms / scale)]
        parts = [library.median_ms] if library else []
        parts += [least.milliseconds] if least else []
        line += [digits(100 * part / row.median_ms) if compared else "–" for part in parts]
        line += [f"{digits(first.median_ms / row.median_ms)}×" if first and compared else "–"]
        lines.append(line)
    caption = f"{exercise.name} on {limits.gpu}, {entry.date}, {size_text(entry.sizes)}"
    remarks = [*notes, *_prediction(entry, limits, ours in rows), *_precisions(rows, ours)]
    remarks += [f"{row.label}: another result, so not compared" for row in rows if row.wrong()]
    if loads:
        remarks += [*_load(ours), TWO_WAYS]
    if first and len(rows) > 1:
        remarks.append(f"speed-up: how many times as fast as {first.label}")
    if any(row.stored for row in rows):
        remarks.append("* stored figures of the workbook's own kernels on this GPU")
    return Table(caption, [*head, "speed-up"], lines, remarks)


def _compared(row: Row, ours: Row | None) -> bool:
    """Whether it is compared: an estimate is one of the reader's kernel."""
    return row.kind == ESTIMATE or ours is None or ours.alike(row)


def _precisions(rows: Sequence[Row], ours: Row | None) -> list[str]:
    """What the precisions of the rows mean, where there is another one than fp32."""
    known = list(dict.fromkeys(row.precision for row in rows if row.precision))
    if known in ([], [Precision.FP32]):
        return []
    line = f"{'; '.join(precision.explained() for precision in known)}."
    measured = (row for row in rows if row.kind != ESTIMATE)
    if ours and not all(alike(row.precision, ours.precision) for row in measured):
        line += " Other precisions are not compared: –."
    return [line]


def _load(ours: Row | None) -> list[str]:
    if not (ours and ours.clock_mhz and ours.watts):
        return []
    return [f"{ours.label} sustained: {ours.clock_mhz:.0f} MHz, {ours.watts:.0f} W"]


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
