"""The command `workbook`. Exit codes: 0 good, 1 the work falls short, 2 wrong call or set-up."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console
from typer.core import TyperCommand

from utils.ground import errors, files
from utils.ground.errors import WorkbookError
from utils.ground.paths import ROOT, workspace

if TYPE_CHECKING:
    from typer._click import Context

    from utils.course.answers import Answer, Meanwhile
    from utils.course.exercise import Exercise

app = typer.Typer(
    help="From the first CUDA thread to kernels that beat PyTorch.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
console = Console(highlight=False)

# What a learner's kernel can do wrong; any other WorkbookError is a wrong call or set-up.
FALLS_SHORT = (
    errors.CheckFailed,
    errors.CheckFirst,
    errors.CompileError,
    errors.DeclarationError,
    errors.KernelCrash,
    errors.KernelTimeout,
    errors.LaunchError,
)


def _exercises() -> list[str]:
    """What a shell may complete: "00/swish" for each exercise."""
    from utils.course import catalog

    return [f"{e.topic.partition('_')[0]}/{e.name}" for e in catalog.exercises()]


def _completed(incomplete: str) -> list[str]:
    return [word for word in _exercises() if word.startswith(incomplete)]


Notebooks = Annotated[list[str] | None, typer.Argument(help="such as 01 04; all by default")]
Solutions = Annotated[bool, typer.Option("--solutions", help="the solutions, not your answers")]


def _short(path: Path) -> str:
    return os.path.relpath(path)


def _fail(message: object, code: int) -> NoReturn:
    print(message, file=sys.stderr)
    raise typer.Exit(code)


@app.command()
def run(
    numbers: Notebooks = None,
    solutions: Solutions = False,
    save: Annotated[
        bool, typer.Option("--save", help="copy what passed to solutions/, times to results/")
    ] = False,
    backend: Annotated[str | None, typer.Option(help="cuda or emulator")] = None,
) -> None:
    """Execute notebooks and print the table of results."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from utils.course import selection
    from utils.notebooks import ahead, documents, export, summary
    from utils.notebooks.run import Run, at_once, execute, longest_first, stop
    from utils.notebooks.run import save as save_run

    if save and not solutions:
        _fail("--save writes to solutions/, so it goes with --solutions", 2)
    if backend not in (None, "cuda", "emulator"):
        _fail(f"--backend is cuda or emulator, not '{backend}'", 2)
    paths = selection.notebooks(numbers or ())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:

        def one(path: Path, others: int) -> Run:
            finished.pop(path, None)
            cells = [c for c in documents.read(path).cells if c.cell_type == "code"]
            task = progress.add_task(path.stem, total=len(cells))
            run = execute(
                path,
                solutions=solutions,
                backend=backend,
                save=save,
                beside=others,
                advance=lambda: progress.advance(task),
            )
            if save:
                saved[path] = save_run(run)
            finished[path] = run
            return run

        saved: dict[Path, Path | None] = {}
        finished: dict[Path, Run] = {}
        slots = at_once(backend, save)
        pool = ThreadPoolExecutor(slots)
        order = longest_first(paths)
        try:
            with ahead.building(order, solutions=solutions, backend=backend, beside=slots):
                try:
                    list(pool.map(one, order, repeat(slots - 1)))
                    runs = [finished[path] for path in paths]
                    if slots > 1:  # the others had the memory
                        runs = [
                            pool.submit(one, r.path, 0).result() if r.lacked_memory() else r
                            for r in runs
                        ]
                except KeyboardInterrupt:
                    pool.shutdown(wait=False, cancel_futures=True)  # first: none takes the next
                    runs = [finished[path] for path in paths if path in finished]
                    stop()
                    progress.stop()
                    summary.print_runs(runs, console)
                    left = [path.stem for path in paths if path not in {r.path for r in runs}]
                    print(f"Interrupted: {', '.join(left)}", file=sys.stderr)
                    raise
        finally:
            pool.shutdown(cancel_futures=True)
    summary.print_runs(runs, console)
    for path, copy in sorted(saved.items()):
        print(f"Saved {_short(copy)}" if copy else f"Not saved: {path.name}")
    build = workspace().build
    for run in runs:
        export.plots(run.notebook, run.path.stem)
    try:
        for run in runs:
            export.page(run.notebook, run.path.stem)
        pages = f"to read: {_short(export.index())}"
    except ImportError:
        pages = "no HTML pages: pip install nbconvert"
    except ValueError as error:  # nbconvert without its templates
        pages = f"no HTML pages: {str(error).splitlines()[0]}"
    print(f"\nExecuted notebooks are in {_short(build / 'notebooks')}, ", end="")
    print(f"plots in {_short(build / 'plots')}; {pages}")
    raise typer.Exit(0 if all(run.passed() for run in runs) else 1)


@app.command()
def lab(
    options: Annotated[list[str] | None, typer.Argument(help="after --: for jupyter lab")] = None,
) -> None:
    """Start JupyterLab on notebook 00, with CUDA colours."""
    from utils.notebooks import lab

    lab.start(options or ())


@app.command()
def site() -> None:
    """Build pages of the executed notebooks, to read or to publish."""
    from utils.notebooks import site

    print(f"To read: {_short(site.build())}")


@app.command()
def check(
    what: Annotated[
        str,
        typer.Argument(
            metavar="NN[/NAME]", help="such as 01 or 01/gemm_naive", autocompletion=_completed
        ),
    ],
    file: Annotated[Path | None, typer.Option(help="a .cu file to check in its place")] = None,
    solutions: Solutions = False,
) -> None:
    """Check what stands in your notebook: one kernel, or all of a notebook's."""
    from utils.course import selection
    from utils.judge.check import begin, check

    chosen = selection.kernels(what)
    chosen = [e for e in chosen if e.number] or chosen  # the worked ones are nobody's answers
    if file and len(chosen) != 1:
        _fail(f"--file checks one kernel: say which, as in {what}/{chosen[0].name}", 2)
    failed = 0
    for exercise in chosen:
        text = _text(exercise, file, solutions)
        try:
            check(_compiled(exercise, text, file, solutions, meanwhile=begin))
        except FALLS_SHORT as error:
            failed += 1
            print(f"{exercise.name}: {error}")
            if file and exercise.faulty:
                print("lines are counted as in the notebook's cell: %%cuda is line 1")
            if len(chosen) == 1 and getattr(error, "reason", None) is errors.Reason.NOT_ATTEMPTED:
                print(_read_from(exercise, what, file))
    if len(chosen) > 1:
        print(f"{len(chosen) - failed} of {len(chosen)} passed")
    raise typer.Exit(1 if failed else 0)


def _read_from(exercise: "Exercise", what: str, file: Path | None) -> str:
    """Where the text of an answer that nobody has begun was read, and how another is handed in."""
    from utils.course import catalog
    from utils.notebooks import documents

    notebook, start = documents.path_of(exercise), catalog.kernel_path(exercise)
    if file and file.resolve() == start.resolve():
        return (
            f"{_short(start)} is what the exercise begins with, however it was edited: put your "
            f"text into the cell of {_short(notebook)}, or into a file elsewhere for --file"
        )
    if file:
        return f"read from {file}"
    return (
        f"read from the cell in {_short(notebook)}; a file of your own is checked by "
        f"workbook check {what} --file FILE"
    )


def _one(what: str) -> "Exercise":
    """The exercise that is named; an exit where these are several."""
    from utils.course import selection

    chosen = selection.kernels(what)
    if len(chosen) != 1:
        _fail(f"say which: {', '.join(f'{what}/{exercise.name}' for exercise in chosen)}", 2)
    return chosen[0]


def _text(exercise: "Exercise", file: Path | None, solutions: bool) -> str:
    """What is compiled: a file, the solution, or what stands in the learner's notebook."""
    if file and not file.is_file():
        _fail(f"there is no file {file}", 2)
    if file:
        return files.read_source(file)
    if solutions:
        from utils.course import catalog

        return catalog.solution_text(exercise)
    from utils.notebooks import documents  # needs nbformat, which the other ways do without

    return documents.answer(exercise)


def _compiled(
    exercise: "Exercise",
    text: str,
    file: Path | None,
    solutions: bool,
    meanwhile: "Meanwhile | None" = None,
) -> "Answer":
    from utils.course.answers import Place, compile_answer
    from utils.notebooks import cuda_cell

    if file:
        first_line = 2 if exercise.faulty else 1  # a statement counts the lines of the cell
        if cell := cuda_cell.parts(text):  # copied whole: lines count as in the notebook
            first_line = 1 + text.count("\n") - cell[1].count("\n")
            text = cell[1]
        place = Place(first_line=first_line, filename=str(file))
        kernel = compile_answer(exercise, text, **place, meanwhile=meanwhile)
    else:
        kernel = compile_answer(exercise, text, meanwhile=meanwhile)
    kernel.learners = not solutions
    return kernel


@app.command()
def profile(
    what: Annotated[
        str,
        typer.Argument(metavar="NN/NAME", help="such as 02/gemm_tiled", autocompletion=_completed),
    ],
    file: Annotated[Path | None, typer.Option(help="a .cu file in place of your answer")] = None,
    solutions: Solutions = False,
    picture: Annotated[Path | None, typer.Option(help="where to draw it: .svg or .png")] = None,
    page: Annotated[Path | None, typer.Option(help="where to write a page: .html")] = None,
    sass: Annotated[bool, typer.Option("--sass", help="with its machine code")] = False,
) -> None:
    """Say what a kernel does, line by line, and what limits it. Nothing is measured."""
    from utils.grading import pages
    from utils.timing.profile import profile

    exercise = _one(what)
    try:
        text = _text(exercise, file, solutions)
        made = profile(_compiled(exercise, text, file, solutions))
    except FALLS_SHORT as error:
        _fail(f"{exercise.name}: {error}", 1)
    if made is None:
        raise typer.Exit(1)
    print(made)
    if sass:
        print(f"\n{made.machine_code()}")
    if page:
        style = (
            "body { max-width: 80rem; } table { font-size: 0.9rem; } caption { text-align: left; }"
        )
        page.write_text(pages.page(f"Profile of {exercise.name}", made.body(), style))
    if picture:
        made.picture().save(picture)
    raise typer.Exit(0)


@app.command()
def status(numbers: Notebooks = None) -> None:
    """Show what you have passed, by chapter; of chapters that you name, each exercise."""
    from utils.course import selection
    from utils.notebooks import status

    topics = selection.topics(numbers or ())
    console.print(status.exercises(topics) if numbers else status.chapters(topics))
    if not numbers:
        status.print_next(console)


@app.command(name="next")
def next_() -> None:
    """Say which exercise comes next."""
    from utils.notebooks import status

    status.print_next(console)


@app.command()
def bench(
    numbers: Notebooks = None,
    save: Annotated[Path | None, typer.Option(help="such as results/NVIDIA_H200.json")] = None,
) -> None:
    """Time the solutions on this machine's GPU."""
    from utils.course import selection
    from utils.timing.bench import bench_all

    raise typer.Exit(bench_all(selection.topics(numbers or ()), save))


class _Program(TyperCommand):
    """Takes nvcc's spelling of options, and leaves what follows `--` to the program."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        from utils.emulator.nvcc_options import translated

        end = args.index("--") if "--" in args else len(args)
        ctx.meta["rest"] = args[end + 1 :]
        return super().parse_args(ctx, translated(args[:end]))


@app.command(cls=_Program)
def emulate(
    ctx: typer.Context,
    sources: Annotated[
        list[Path], typer.Argument(help="a complete CUDA program, with a main; after --: its own")
    ],
    include: Annotated[list[str] | None, typer.Option("-I", help="a folder of headers")] = None,
    define: Annotated[list[str] | None, typer.Option("-D", help="a macro, NAME=VALUE")] = None,
    opt: Annotated[str, typer.Option("-O", help="optimisation level")] = "2",
    std: Annotated[str, typer.Option(help="C++ standard")] = "c++17",
    flag: Annotated[list[str] | None, typer.Option(help="for g++, as -Xcompiler's")] = None,
    timeout: Annotated[float | None, typer.Option(help="stop it after so many seconds")] = None,
    diagnose: Annotated[
        bool, typer.Option("--diagnose", help="look for hazards, count the traffic; 1 if any")
    ] = False,
    json: Annotated[Path | None, typer.Option(help="write hazards and counters here")] = None,
    order: Annotated[int, typer.Option(help="1, 2, …: run the threads in another order")] = 0,
    volatile_atomic: Annotated[
        bool, typer.Option("--volatile-atomic", help="volatile accesses do not race")
    ] = False,
) -> None:
    """Run a CUDA program on the CPU. The exit code is the program's own."""
    from utils.emulator import programs

    if not diagnose and (json or order or volatile_atomic):
        _fail("--json, --order and --volatile-atomic go with --diagnose", 2)
    status = programs.emulate(
        sources,
        timeout=timeout,
        args=ctx.meta["rest"],
        include=include or (),
        define=define or (),
        opt=opt,
        std=std,
        flags=flag or (),
        watch=programs.Watch(json, order, volatile_atomic) if diagnose else None,
    )
    raise typer.Exit(status)


@app.command()
def sync(
    check: Annotated[bool, typer.Option("--check", help="write nothing, say what differs")] = False,
) -> None:
    """Bring starters, notebooks and README in step with their sources."""
    from utils.notebooks.sync import sync

    report = sync(check)
    for path in report.changed:
        print(f"{'out of step' if check else 'written'}: {path}")
    for cell in report.learners:
        print(f"left alone, for the text is not sync's: {cell}")
    for problem in report.problems:
        print(f"to fix: {problem}")
    if report.learners or report.problems or (check and report.changed):
        raise typer.Exit(1)
    if not report.changed:
        print("everything is in step")


@app.command()
def reset(
    what: Annotated[
        str,
        typer.Argument(
            metavar="NN/NAME", help="such as 01/gemm_naive or 01.1", autocompletion=_completed
        ),
    ],
) -> None:
    """Restore a starter in your notebook; what it replaces is kept."""
    from utils.notebooks import sync

    exercise = _one(what)
    kept = sync.reset(exercise)
    if kept is None:
        print(f"{exercise.name} is the starter already")
    else:
        print(f"{exercise.name} is the starter again; your text is kept in {_short(kept)}")
        print("If the notebook is open, reload it from disk (File menu) before you save.")


@app.command()
def new(
    number: Annotated[str, typer.Argument(help="of the exercise, such as 04.8")],
    name: Annotated[str, typer.Argument(help="of its launcher, such as row_softmax")],
    title: Annotated[str, typer.Option(help="what it is, in a line")],
) -> None:
    """Make the files of a new exercise, for its author to fill."""
    from utils.notebooks import new

    made = new.make(number, name, title)
    for path in made:
        print(f"written: {_short(path)}")
    print(f"Fill them, with kernels/README.md beside you; `workbook author {number}` says how far.")


@app.command()
def author(
    what: Annotated[str, typer.Argument(metavar="NN.M", help="such as 04.6 or 04/row_min")],
) -> None:
    """Say how an exercise stands: what it lacks, its gates, its wrong kernels."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from utils.notebooks import author

    exercise = _one(what)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=author.steps(exercise))

        def step(what: str) -> None:
            progress.update(task, advance=1, description=what)

        findings = author.look(exercise, step)
    author.print_findings(exercise, findings, console)
    raise typer.Exit(0 if author.good(findings) else 1)


@app.command()
def grade(
    submissions: Annotated[
        Path | None, typer.Argument(help="a folder that holds a folder for each student")
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", help="the table")] = Path("grades.csv"),
    numbers: Annotated[
        list[str] | None, typer.Option("--notebook", help="that counts, such as 02; all by default")
    ] = None,
    example: Annotated[
        Path | None, typer.Option(help="write a class of sixteen here, to try the grader with")
    ] = None,
    one: Annotated[Path | None, typer.Option(help="grade this student's folder alone")] = None,
    json: Annotated[Path | None, typer.Option(help="with --one: where its grade goes")] = None,
    json_dir: Annotated[Path | None, typer.Option(help="a JSON file for each student")] = None,
    feedback: Annotated[
        Path | None, typer.Option(help="a folder to return to each student")
    ] = None,
    similar: Annotated[Path | None, typer.Option(help="report answers that are alike")] = None,
    students: Annotated[
        Path | None, typer.Option(help="CSV: student_id, last_name, first_name, email")
    ] = None,
    due: Annotated[
        datetime | None, typer.Option(help="such as 2026-11-30T23:59, in local time")
    ] = None,
    late_per_day: Annotated[
        float, typer.Option(min=0, max=100, help="percent that each day late costs")
    ] = 0.0,
    grace: Annotated[float, typer.Option(min=0, help="hours after --due that cost nothing")] = 0.0,
    times: Annotated[
        Path | None, typer.Option(help="CSV: student_id, timestamp; when work was handed in")
    ] = None,
    clock: Annotated[
        str, typer.Option(help="of others: auto, timestamp (nbgrader's), git or files")
    ] = "auto",
    assignment: Annotated[
        str, typer.Option(help="its name; by default that of the folder of submissions")
    ] = "",
    again: Annotated[
        list[str] | None,
        typer.Option(help="grade a student or an exercise such as 04.6 anew, and keep the rest"),
    ] = None,
    statistics: Annotated[
        Path | None, typer.Option(help="CSV: of each exercise who tried, who passed, the mean")
    ] = None,
    alike: Annotated[
        float, typer.Option(min=1, max=100, help="percent, from which on --similar reports")
    ] = 80.0,
    jobs: Annotated[int, typer.Option(min=0, help="at once; 0: one a core")] = 0,
    cluster: Annotated[str, typer.Option(help="address of a Dask scheduler")] = "",
    resume: Annotated[bool, typer.Option("--resume", help="keep what is graded already")] = False,
    store: Annotated[Path | None, typer.Option(help="what is kept meanwhile")] = None,
    budget: Annotated[
        float, typer.Option(min=1, help="seconds for one submission, at most")
    ] = 1800,
    no_box: Annotated[
        bool,
        typer.Option("--trust-submissions", help="without a box: their code can do what you can"),
    ] = False,
) -> None:
    """Grade a class: from folders of notebooks to a table of points, and feedback."""
    from utils.course import selection
    from utils.grading import classroom
    from utils.grading import example as examples
    from utils.grading.lateness import Clock

    if clock not in list(Clock):
        _fail(f"--clock is one of {', '.join(Clock)}, not '{clock}'", 2)
    if example:
        print(f"written: {_short(examples.write(example))}, and beside it what each must get")
        print(f"Grade it: {examples.command(Path(_short(example)))}")
        raise typer.Exit(0)
    folder = submissions or (one.parent if one else None)
    if folder is None or (submissions and one):
        _fail("say which: a folder of submissions, or --one and a student's folder", 2)
    plan = classroom.Plan(
        folder=folder,
        topics=tuple(t for t in selection.topics(numbers or ())),
        store=store or workspace().build / "grading" / folder.resolve().name,
        resume=resume,
        boxed=not no_box,
        jobs=jobs or os.cpu_count() or 1,
        cluster=cluster,
        budget=budget,
        clock=Clock(clock),
        assignment=assignment,
        again=tuple(again or ()),
    )
    if one and not json:
        _fail("--one needs --json, the file that its grade goes to", 2)
    if one and json:
        raise typer.Exit(classroom.grade_one(plan, one, json))
    wanted = classroom.Wanted(
        table=out,
        json_dir=json_dir,
        feedback=feedback,
        similar=similar,
        students=students,
        due=due,
        late_per_day=late_per_day,
        grace=grace,
        times=times,
        statistics=statistics,
        alike=alike,
    )
    raise typer.Exit(classroom.grade_all(plan, wanted, console))


@app.command()
def judge(
    model: Annotated[
        Path | None, typer.Argument(help="a file in KernelBench's format, with ModelNew")
    ] = None,
    task: Annotated[
        int | None, typer.Option(help="62, 75, 88, 94 or 37; else as the file is called")
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="another task's file, one that you trust; or a folder of them"),
    ] = None,
    suite: Annotated[Path | None, typer.Option(help="a folder of such files, instead")] = None,
    out: Annotated[Path, typer.Option(help="of --suite, the rows")] = Path("judged.json"),
    resume: Annotated[bool, typer.Option(help="of --suite, keep what is judged")] = False,
    jobs: Annotated[int, typer.Option(help="of --suite, so many at once, else all cores")] = 0,
    forward_only: Annotated[
        bool, typer.Option("--forward-only", help="no gradients are asked for")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="that of a verdict, to repeat it")] = None,
    json: Annotated[bool, typer.Option("--json", help="the verdict as JSON")] = False,
) -> None:
    """Judge a ModelNew, in a box: does it compute what Model does, and train? How fast?"""
    from json import dumps

    from utils.ground import settings
    from utils.timing.model_runtime import judge

    if (model is None) == (suite is None):
        _fail("a file, or --suite FOLDER", 2)
    if suite:
        raise typer.Exit(_judge_suite(suite, reference, (seed, forward_only), out, resume, jobs))
    assert model
    with Console(stderr=True).status("building and judging: a first build takes half a minute"):
        verdict = judge(
            model,
            task=task,
            reference=reference,
            seed=seed,
            backend=settings.backend(),
            forward_only=forward_only,
        )
    print(dumps(verdict.as_json(), indent=2) if json else verdict, flush=True)
    raise typer.Exit({"passed": 0, "failed": 1}.get(verdict.evaluation, 2))


def _judge_suite(
    folder: Path,
    references: Path | None,
    how: tuple[int | None, bool],
    out: Path,
    resume: bool,
    jobs: int,
) -> int:
    """Judge a folder, and print the table; the exit status."""
    from collections import Counter

    from rich.table import Table

    from utils.judge.models import suite

    work = suite.jobs_of(folder, references, *how)
    rows = []
    for row in suite.judged(work, out, resume, jobs or os.cpu_count() or 1):
        rows.append(row)
        print(f"{len(rows)} of {len(work)}: {row.file}: {row.evaluation}", file=sys.stderr)
    table = Table("file", "evaluation", "reason", "seconds")
    rows.sort(key=lambda row: row.file)
    for row in rows:
        name = str(Path(row.file).relative_to(folder))
        table.add_row(name, row.evaluation, row.reason, f"{row.seconds:.1f}")
    console.print(table)
    for row in rows:
        if row.evaluation == "not judged":
            console.print(f"{Path(row.file).relative_to(folder)}: {row.message}", markup=False)
    counts = Counter(row.evaluation for row in rows)
    console.print(", ".join(f"{n} {said}" for said, n in counts.items()) + f"; rows in {out}")
    return 1 if counts["failed"] else 2 if counts["not judged"] else 0


@app.command()
def doctor() -> None:
    """Say what this machine has and what to install."""
    from utils import doctor

    raise typer.Exit(0 if doctor.report(console) else 1)


def fail(error: Exception) -> NoReturn:
    """Leave with the message of a WorkbookError and its exit code; anything else is a bug."""
    if not isinstance(error, WorkbookError):
        raise error
    print(error, file=sys.stderr)
    sys.exit(1 if isinstance(error, FALLS_SHORT) else 2)


def main() -> None:
    """The command `workbook`; a WorkbookError becomes its message and an exit code."""
    try:
        app()
    except WorkbookError as error:
        fail(error)
    except ModuleNotFoundError as error:
        if (error.name or "utils").split(".")[0] == "utils":
            raise
        fail(WorkbookError(f"{error.name} is not installed; run `pip install -e .` in {ROOT}"))


if __name__ == "__main__":
    main()
