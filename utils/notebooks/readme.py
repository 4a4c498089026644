"""The stored figures for readers: the README's table and picture, and all in results/README.md."""

from collections.abc import Iterable
from html import escape

from utils.course import catalog
from utils.course.exercise import Exercise
from utils.course.precision import Precision
from utils.ground.errors import WorkbookError
from utils.timing import plots, results, roofline
from utils.timing.rows import Entry, Results, Row, digits, error_text

NOTHING = "Nothing has been measured yet.\n"
HEAD = (
    *("", "kernel", "size", "precision", "error", "rested, ms", "sustained, ms"),
    *("beside PyTorch", "beside torch.compile"),
)
WIDE = 1.5  # a peer whose 80th percentile is so many times its 20th has no time of its own
MORE = ("20–80 %", "GB/s", "TFLOP/s", "MHz, W", "sustained beside PyTorch", "measured", "commit")
SAME = "in the same run and the same precision"


def readme_table() -> str:
    """A row for the last rung of each ladder of each chapter; in results/README.md are all."""
    for measured in results.stored()[:1]:
        rows = [
            _cells(exercise, measured.entries[exercise.id]) for exercise in _last_rungs(measured)
        ]
        link = "All figures, rung by rung: [`results/`](results/README.md)."
        return "\n".join([f"{_caption(measured)} {link}", "", *_table(HEAD, rows)]) + "\n"
    return NOTHING


def page() -> str:
    """Every figure of every GPU, the one with the most first."""
    parts, stored = ["# Measured figures"], results.stored()
    if len(stored) > 1:
        parts.append(
            "\n".join(f"- [{measured.gpu}](#{_anchor(measured.gpu)})" for measured in stored)
        )
    for measured in stored:
        rows = [
            [*_cells(exercise, entry), *_more(entry)]
            for exercise in _measured(measured)
            for entry in measured.of(exercise)
        ]
        parts += [f"## {measured.gpu}", _caption(measured), "\n".join(_table(HEAD + MORE, rows))]
    if not stored:
        parts.append(NOTHING.strip())
    return "\n\n".join(parts) + "\n"


def _anchor(heading: str) -> str:
    """Where GitHub puts a heading of words and digits."""
    return heading.lower().replace(" ", "-")


def _table(head: Iterable[str], rows: list[list[str]]) -> list[str]:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _caption(measured: Results) -> str:
    entries = measured.entries.values()
    dates = sorted({entry.date for entry in entries})
    versions = sorted({f"torch {entry.torch}" for entry in entries})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return (
        f"Measured on an {measured.gpu}, {when}, with {', '.join(versions)}. Times are medians: "
        "rested, of single calls with the L2 cache flushed between them; sustained, of the same "
        "call back to back for 0.3 s. Before 2026-11-27 the cache was flushed by writes, and what "
        "it then had to write back took up to 0.010 ms of a rested call. Precision is that of a "
        "product's factors; sums are fp32, of int8 int32. Errors are against float64 (Frobenius "
        "norm). Ratios are of rested times: 2 × "
        f"is twice as fast as PyTorch {SAME}; `{Precision.SPLIT_FP16}` is compared with fp32. A "
        "range runs from the 20th to the 80th percentile of a peer whose times vary widely. A dash "
        "means that nothing was measured, or that the peer's result differs."
    )


def _measured(measured: Results) -> list[Exercise]:
    return [e for e in catalog.exercises() if any(entry.ours() for entry in measured.of(e))]


def _last_rungs(measured: Results) -> list[Exercise]:
    """Of the exercises of a chapter that compute the same, the last; and as `listed` says."""
    last: dict[tuple[str, ...], Exercise] = {}
    for exercise in _measured(measured):
        if exercise.number is None or exercise.faulty or exercise.id not in measured.entries:
            continue
        if exercise.listed is False:
            continue
        stays = exercise.listed or not exercise.ladder
        row = (exercise.id,) if stays else (exercise.topic, exercise.ladder)
        last.pop(row, None)  # it stands where the last rung does
        last[row] = exercise
    return list(last.values())


def _cells(exercise: Exercise, entry: Entry) -> list[str]:
    ours, library, compiled = entry.own(), entry.library(), entry.compiled()
    # "PyTorch, forward and backward" does more than the kernel, and so does torch.compile with it.
    more = library.label.partition(", ")[2] if library else ""
    return [
        exercise.number or "",
        f"`{exercise.name}`",
        " ".join(f"{name}={value}" for name, value in entry.sizes.items()),
        ours.precision or "–",
        error_text(ours),
        digits(ours.median_ms),
        _or_dash(ours.sustained_ms),
        _beside(ours, library, more),
        _beside(ours, compiled, more),
    ]


def _or_dash(value: float | None) -> str:
    return "–" if value is None else digits(value)


def _beside(ours: Row, theirs: Row | None, more: str) -> str:
    """How many times as fast ours is: from the 20th to the 80th percentile where those are far
    apart, else by the median. `more` is what the other one does beyond it."""
    if theirs is None:
        return "–"
    wide = theirs.p80_ms > WIDE * theirs.p20_ms
    times = (theirs.p20_ms, theirs.p80_ms) if wide else (theirs.median_ms,)
    ratios = "–".join(_ratio(ms / ours.median_ms) for ms in times)
    words = [f"{'–'.join(map(digits, times))} ms", *filter(None, [more])]
    return f"{ratios} × ({', '.join(words)})"


def _sustained(ours: Row, theirs: Row | None) -> str:
    """The same of sustained times."""
    if theirs is None or ours.sustained_ms is None or theirs.sustained_ms is None:
        return "–"
    ratio = _ratio(theirs.sustained_ms / ours.sustained_ms)
    return f"{ratio} × ({digits(theirs.sustained_ms)} ms)"


def _ratio(ratio: float) -> str:
    return f"{ratio:.2f}" if 0.095 <= ratio < 9.995 else digits(ratio)


def _more(entry: Entry) -> list[str]:
    ours, library = entry.own(), entry.library()
    seconds = ours.median_ms / 1e3
    load = "–"
    if ours.clock_mhz is not None and ours.watts is not None:
        load = f"{ours.clock_mhz:.0f}, {ours.watts:.0f}"
    return [
        f"{digits(ours.p20_ms)}–{digits(ours.p80_ms)}",
        digits(entry.bytes / seconds / 1e9),
        digits(entry.flops / seconds / 1e12),
        load,
        _sustained(ours, library),
        entry.date,
        f"`{entry.commit}`" if entry.commit else "–",
    ]


# --- the README's picture: how far each matrix product got

FAMILY = "01_naive_gemm/gemm_naive"  # the rungs are the kernels that compute what this one does


def in_step(svg: str) -> bool:
    """Whether a picture says what the stored figures say, whichever matplotlib drew it."""
    rungs = _rungs()
    return rungs is None or escape(plots.bars(*rungs).description) in svg


def picture() -> str | None:
    """The SVG; None where no rung has been measured."""
    rungs = _rungs()
    return plots.bars(*rungs).svg() if rungs else None


def _rungs() -> tuple[list[Row], str, float | None] | None:
    """Rows, title and predicted milliseconds, of the GPU with the most figures."""
    for stored in results.stored():
        entries = _alike(stored)
        if entries:
            last = entries[-1]
            rows = [entry.own() for entry in entries]
            rows += [library] if (library := last.library()) else []
            size = " × ".join(str(value) for value in last.sizes.values())
            title = f"Matrix products of {size} floats on {stored.gpu}, {last.date}"
            least = roofline.predict(roofline.ceilings(stored.gpu), last.bytes, last.flops)
            return rows, title, least.milliseconds if least else None
    return None


def _alike(stored: Results) -> list[Entry]:
    """The entries of the family, in the order of the chapters."""
    try:
        first = catalog.load(FAMILY)
    except WorkbookError:  # a workbook without matrix products
        return []
    alike = catalog.rungs(first)
    entries = [stored.entries[e.id] for e in alike if e.id in stored.entries]
    return [e for e in entries if e.ours() and dict(e.sizes) == dict(first.at.bench)]
