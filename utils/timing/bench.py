"""`bench(kernel)`: measured beside PyTorch on a GPU; where there is none, stored figures."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import takewhile
from pathlib import Path

from utils.course import catalog
from utils.course.answers import Answer, attempted, compile_answer, exercise_of
from utils.course.case_sizes import bench_sizes
from utils.course.exercise import Exercise, Sizes
from utils.cuda import toolchain
from utils.diagrams.picture import Picture
from utils.diagrams.table import Table
from utils.ground import events, settings
from utils.ground.errors import CheckFirst, WorkbookError
from utils.ground.wording import in_notebook, show
from utils.judge.check import check
from utils.process import card
from utils.timing import measure, plots, results, roofline, tables
from utils.timing.roofline import Ceilings
from utils.timing.rows import ESTIMATE, Entry, Results, Row, id_of

DEFAULT = "NVIDIA H200"  # that a kernel is estimated on where no figures are stored, nor chosen
RESTED = "Not timed back to back: JupyterLab and `workbook run --solutions --save` do that, too."
_session: dict[str, Entry] = {}  # measured by this process, by results.key


@card.apart()
def bench(kernel: Answer, **sizes: int) -> None:
    """Time a kernel that has passed `check`; show a table and a plot. `sizes` replace the spec's.

    Raises CheckFirst for one that has not passed, WorkbookError for a size that it does not have.
    """
    exercise = exercise_of(kernel)
    if not kernel.trusted:
        if not attempted(kernel, "time"):
            return
        raise CheckFirst(
            f"{kernel.name} has not passed its check, and the time of a wrong answer is worth "
            f"nothing; run check({kernel.name}) first"
        )
    chosen = bench_sizes(exercise, sizes)
    if kernel.backend == "cuda":
        made, notes = measure.measure(kernel, chosen, both_ways=not settings.rested())
        key = results.key(exercise, chosen)
        _session[key] = made
        gpu, measured = measure.gpu(), True
        notes += filter(None, [roofline.foreign(gpu), RESTED if settings.rested() else ""])
        if path := settings.results():  # `workbook run --save`
            results.write(path, Results(gpu, {key: made}))
        own: list[Row] = []
        entry: Entry | None = made
    else:
        gpu, entry = _stored(exercise, chosen)
        own, remark = _estimated(kernel, chosen, gpu or settings.gpu() or DEFAULT)
        needed = f"a GPU that has {exercise.needs}" if exercise.needs else "a GPU"
        notes = [f"Nothing was measured here: {needed} is needed for that.", remark]
        measured = False
    if chosen == dict(exercise.at.bench):  # what `workbook run` prints is of that size
        events.log("bench", exercise, **_event(entry, gpu, measured))
    if entry is None:
        _show(tables.least_times(exercise, chosen, notes), None)
        return
    if not measured:
        notes.append(
            f"Stored figures, of the workbook's own kernels as reference: {gpu}, {entry.date}."
        )
        notes += _others(exercise, chosen, gpu)
    rows = [*own, *_ladder(exercise, entry, gpu, measured)]
    limits = _ceilings(exercise, chosen, gpu, measured)
    _show(
        tables.comparison(exercise, entry, rows, limits, notes),
        _plot(exercise, entry, rows, limits),
    )


def _estimated(kernel: Answer, sizes: Mapping[str, int], gpu: str) -> tuple[list[Row], str]:
    """What the reader's own kernel should take on a GPU, from its counters: a row and in words."""
    from utils.timing.estimate import estimate

    try:
        estimated = estimate(kernel, gpu, **sizes)
    except WorkbookError as error:
        return [], f"No estimate: {error}"
    milliseconds = 1e3 * estimated.seconds
    precision = kernel.exercise.precision_of(estimated.sizes)
    times = milliseconds, milliseconds, milliseconds
    row = Row("your kernel, estimated", ESTIMATE, *times, precision=precision)
    return [row], f"Your kernel: {estimated}"


def _event(entry: Entry | None, gpu: str, measured: bool) -> dict[str, object]:
    """The fields of a line in WORKBOOK_LOG; its rows are results.Row, field by field."""
    rows = [asdict(row) for row in entry.rows] if entry else []
    return {"rows": rows, "measured": measured, "gpu": gpu, "date": entry.date if entry else ""}


# --- stored figures and the ladder


def _stored(exercise: Exercise, sizes: Mapping[str, int]) -> tuple[str, Entry | None]:
    """Stored figures of these sizes, and the GPU they are from: the one that is chosen, else the
    one with the most figures. Raises WorkbookError where nothing is stored of the chosen one."""
    chosen = settings.gpu()
    known = results.stored(chosen or None)
    if chosen and not known:
        names = ", ".join(measured.gpu for measured in results.stored()) or "no GPU"
        raise WorkbookError(f"WORKBOOK_GPU is '{chosen}'; there are stored figures of {names}")
    for measured in known:
        for entry in measured.of(exercise):
            if dict(entry.sizes) == dict(sizes):
                return measured.gpu, entry
    return "", None


def _others(exercise: Exercise, sizes: Sizes, gpu: str) -> list[str]:
    """Of which other GPUs there are figures of these sizes, and how they are shown."""
    others = [
        measured.gpu
        for measured in results.stored()
        if measured.gpu != gpu and any(dict(e.sizes) == dict(sizes) for e in measured.of(exercise))
    ]
    if not others:
        return []
    return [f"There are figures of {', '.join(others)}, too: set WORKBOOK_GPU to such a name."]


def _ladder(exercise: Exercise, entry: Entry, gpu: str, measured: bool) -> list[Row]:
    """The rungs before this kernel that compute the same, slowest idea first; it; its peers."""
    kept = [(key, e, measured) for one in results.stored(gpu) for key, e in one.entries.items()]
    fresh = [(key, e, False) for key, e in _session.items() if measured]
    rungs: list[Row] = []
    for other in takewhile(lambda rung: rung.id != exercise.id, catalog.rungs(exercise)):
        for key, one, stored in [*fresh, *kept]:
            if id_of(key) == other.id and _alike(one, entry) and (own := one.ours()):
                rungs.append(replace(own, stored=stored))
                break
    ours = [row for row in entry.rows if row.kind == "ours"]
    if not measured:  # the reader's own is another
        rungs, ours = ([_reference(row) for row in rows] for rows in (rungs, ours))
    others = [row for row in entry.rows if row.kind not in ("ours", "library")]
    library = [row for row in entry.rows if row.kind == "library"]
    return [*rungs, *ours, *others, *library]


def _reference(row: Row) -> Row:
    return replace(row, label=f"{row.label}, reference")


def _alike(one: Entry, other: Entry) -> bool:
    """Whether both are of the same problem. A rung may lack a size, such as a number of blocks."""
    shared = one.sizes.keys() & other.sizes.keys()
    same = all(one.sizes[name] == other.sizes[name] for name in shared)
    return same and (one.bytes, one.flops) == (other.bytes, other.flops)


# --- what is shown


def _ceilings(exercise: Exercise, sizes: Sizes, gpu: str, measured: bool) -> Ceilings:
    """Those of the GPU; its bandwidth is measured where it is at hand and not in the list."""
    limits = roofline.ceilings(gpu).by_tensor_cores(exercise.halves(sizes))
    if measured and not limits.bytes_per_second:
        return replace(limits, bytes_per_second=measure.copy_bandwidth())
    return limits


def _plot(exercise: Exercise, entry: Entry, rows: Sequence[Row], limits: Ceilings) -> Picture:
    least = roofline.predict(limits, entry.bytes, entry.flops)
    title = f"{exercise.name} on {limits.gpu}, {entry.date}"
    moved = entry.bytes * roofline.waits_for_memory(limits, entry.bytes, entry.flops)
    return plots.bars(rows, title, least.milliseconds if least else None, moved)


def _show(table: Table, plot: Picture | None) -> None:
    """In a notebook as HTML and a picture, elsewhere as text."""
    show(table)
    if plot and in_notebook():
        show(plot)


# --- all of them


def bench_all(topics: Sequence[str], save: Path | None = None) -> int:
    """Compile, check and time every kernel of the topics, and the solutions of exercises.

    `save` is a results file to write or extend. Returns 0; 1 where one failed; 2 without a GPU.
    """
    if settings.backend() != "cuda" or not measure.gpu():
        print("bench measures on a GPU, and there is none here")
        return 2
    failed = 0
    for topic in topics:
        for exercise in catalog.topic(topic).values():
            if not toolchain.card_has(exercise.needs):
                print(f"{exercise.id}: needs {exercise.needs}, which this card has not")
                continue
            try:
                text = catalog.solution_text(exercise)
                kernel = compile_answer(exercise, text, backend="cuda")
                check(kernel)
                entry, notes = measure.measure(kernel, exercise.at.bench)
            except Exception as error:  # one that fails must not cost the figures of the others
                failed += 1
                print(f"{exercise.id}: {type(error).__name__}: {error}")
                continue
            _session[exercise.id] = entry
            gpu = measure.gpu()
            rows = _ladder(exercise, entry, gpu, measured=True)
            limits = _ceilings(exercise, exercise.at.bench, gpu, True)
            print(tables.comparison(exercise, entry, rows, limits, notes), end="\n\n")
            if save:
                results.write(save, Results(gpu, {exercise.id: entry}))
    return 1 if failed else 0
