"""nbval's notebooks and cells, where some cells are an exercise's: its `%%cuda` cell, its check."""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from queue import Empty
from typing import Any, Protocol, Self
from unittest.mock import patch

import pytest
from nbformat import NotebookNode
from nbval import plugin as nbval

from utils.course import catalog
from utils.course.exercise import Exercise
from utils.grading import forked_kernel
from utils.grading.inert import plain
from utils.grading.live_kernel import KernelDied, LiveKernel, Raised
from utils.grading.records import JSON, Record
from utils.grading.verdicts import Status, Trouble, trouble
from utils.ground import settings
from utils.ground.errors import ToolError, WorkbookError
from utils.notebooks import documents

LIMIT = 120.0  # seconds for a cell
TIMING = 300.0  # seconds more to be timed on a GPU, and to wait while others are
COLD = 180.0  # seconds more for the first %%cuda cell: it may build the emulator
NBVAL_LIMIT = 2000.0  # its --nbval-cell-timeout where nobody gave one
MARKERS = {"check": False, "skip": False, "check_exception": False}


def limit(config: pytest.Config) -> float:
    """Seconds that a cell may take: of our option, else of nbval's, else LIMIT."""
    ours: float | None = config.option.workbook_cell_limit
    if ours is not None:
        return ours
    theirs: float = config.option.nbval_cell_timeout
    return LIMIT if theirs == NBVAL_LIMIT else theirs


def checked(source: str) -> str:
    """The name that a cell checks with `check(NAME)` as a statement of its own; "" if none, or
    several: then nobody can tell which of them passed."""
    try:
        body = ast.parse(re.sub(r"^[%!].*$", "", source, flags=re.MULTILINE)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    calls = [node.value for node in body if isinstance(node, ast.Expr)]
    names = {
        call.args[0].id
        for call in calls
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "check"
        and call.args
        and isinstance(call.args[0], ast.Name)
    }
    return names.pop() if len(names) == 1 else ""


class Scoring(Protocol):
    """What keeps the score of a run: see score.py."""

    @property
    def late(self) -> bool:
        """Whether no cell may begin any more."""

    def expect(self, notebook: pytest.File, exercises: Iterable[Exercise]) -> None:
        """Note what a notebook can earn."""


class Notebook(nbval.IPyNbFile):  # type: ignore[misc]  # nbval has no types
    """A notebook whose cells run in one kernel until that is lost."""

    lost = ""  # why its further cells are not run
    warm = False  # whether a %%cuda cell has run

    kernel: LiveKernel | None
    nb: NotebookNode | None = None  # None where it cannot be read
    path: Path

    def __init__(self, *, score: Scoring, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.score = score
        self.answers: dict[str, Trouble] = {}  # exercise -> what came of its %%cuda cell, if bad
        self.last: Cell | None = None  # that was executed

    def collect(self) -> Iterator[pytest.Item]:
        """The code cells, then an item for each exercise that no cell checks."""
        try:
            self.nb = nb = documents.read(self.path)
        except (WorkbookError, RecursionError) as error:  # no error of pytest's: others are run
            yield from self._unreadable(plain(str(error)))
            return
        items = [*_numbered(self._published(nb)), *_answered(nb)]
        exercises = {e.name: e for e in items}  # names are unique in the workbook
        self.score.expect(self, exercises.values())
        missing, names = dict(exercises), set[str]()
        sources = [cell for cell in nb.cells if cell.cell_type == "code"]
        for number, cell in enumerate(sources):
            id = documents.cuda_id(cell)
            answers = next((e for e in exercises.values() if e.id == id), None)
            checks = exercises.get(checked(cell.source)) if id is None else None
            missing.pop(checks.name if checks else "", None)
            yield Cell.of(self, number, cell, answers, checks, names)
        for exercise in missing.values():
            why = f"the notebook has no cell of its own with check({exercise.name})"
            yield Missing.of(self, exercise, why)

    def _unreadable(self, why: str) -> "Iterator[Missing]":
        exercises = _numbered(self.path.stem)
        self.score.expect(self, exercises)
        for exercise in exercises or (None,):
            yield Missing.of(self, exercise, f"not readable: {why}")

    def _published(self, nb: NotebookNode) -> str:
        """Which of ours it is: by the file's name; a renamed one by most of its %%cuda cells."""
        if self.path.stem in catalog.notebooks():
            return self.path.stem
        homes = {exercise.id: exercise.notebook for exercise in catalog.exercises()}
        named = Counter(homes[id] for id in documents.cuda_cells(nb) if id in homes)
        return next((name for name, _ in named.most_common(1)), "")

    def setup(self) -> None:
        """Start the kernel. Where that fails, its cells say so."""
        if self.nb is None:
            return
        forked_kernel.use()
        with patch.object(nbval, "RunningKernel", LiveKernel), pytest.MonkeyPatch.context() as env:
            env.delenv("PYTEST_CURRENT_TEST", raising=False)  # with it, a kernel's printf is lost
            try:
                super().setup()
            except Exception as error:
                self.lost = f"the kernel did not start: {plain(str(error)) or type(error).__name__}"

    def lose(self, cell: "Cell", status: Status, what: str) -> Trouble:
        """Give the kernel up for what a cell did: no other cell is run. What to raise for it."""
        self.lost = f"{what} in {cell.title}"
        if self.kernel is not None and hasattr(self.kernel, "km"):  # not stopped already
            self.kernel.stop()
        return Trouble(status, f"{what}")


class Cell(nbval.IPyNbCell):  # type: ignore[misc]  # nbval has no types
    """A code cell; its exercise is the one that it answers or checks."""

    parent: Notebook
    config: pytest.Config
    options: dict[str, bool]

    def __init__(self, *, answers: Exercise | None, checks: Exercise | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.answers, self.checks = answers, checks

    @classmethod
    def of(
        cls,
        notebook: Notebook,
        number: int,
        cell: NotebookNode,
        answers: Exercise | None,
        checks: Exercise | None,
        taken: set[str],
    ) -> Self:
        """Named for its exercise, as no other cell of the notebook (`taken`) is."""
        name = f"Cell {number}"
        if exercise := answers or checks:
            name = _name(exercise, "check" if checks else "kernel")
            name += f", Cell {number}" * (name in taken)
        taken.add(name)
        marked = {} if answers or checks else dict(nbval.find_metadata_tags(cell.metadata))
        magic = cell.source.lstrip().startswith("%%")  # with CUDA text, which is the learner's
        if not (answers or checks or magic):
            marked |= dict(nbval.find_comment_markers(cell.source))
        compare = notebook.compare_outputs and not (answers or checks)  # they say what is next, too
        options = MARKERS | {"check": compare} | marked
        made: Self = cls.from_parent(
            notebook,
            name=name,
            cell_num=number,
            cell=cell,
            options=options,
            answers=answers,
            checks=checks,
        )
        return made

    @property
    def title(self) -> str:
        """Its name, and its number where that does not say it."""
        number = f"Cell {self.cell_num}"
        return self.name if number in self.name else f"{self.name} ({number})"

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where it is, and the heading of its failure."""
        return self.path, 0, self.title

    def setup(self) -> None:
        """Nothing: nbval would expect all cells after a late one to fail, and forgive it."""

    def runtest(self) -> None:
        """Execute the cell. Raises Trouble; notes what became of it in `user_properties`."""
        verdict, assessed = Trouble(Status.NOT_RUN, ""), JSON()
        try:
            self._run()
            verdict = Trouble(Status.PASSED, "")
        except Trouble as error:
            verdict = self._of_exercise(error)
            raise verdict from None
        except pytest.skip.Exception:
            raise
        except Exception as error:
            verdict = Trouble(Status.FAILED, plain(f"{type(error).__name__}: {error}"))
            raise verdict from error
        finally:
            reached = verdict.status is not Status.NOT_RUN and not self.parent.lost
            assess = reached and self.config.option.workbook_assess
            if self.checks and assess and (kernel := self.parent.kernel):
                passed = verdict.status is Status.PASSED
                assessed = self._assess(kernel, self.checks.name, passed)
            self.user_properties += properties(self.cell_num, self.checks, verdict, assessed)
            if self.answers:
                self.user_properties.append(("answers", self.answers.id))

    def _run(self) -> None:
        book = self.parent
        kernel = book.kernel
        if kernel and not book.lost and not kernel.is_alive():
            book.lose(book.last or self, Status.CRASHED, "the kernel died")
            if book.last and book.last.answers:
                book.answers[book.last.answers.name] = Trouble(Status.CRASHED, "the kernel died")
        if book.lost or kernel is None:
            raise Trouble(Status.NOT_RUN, f"not run: {book.lost}")
        if book.score.late:
            raise Trouble(Status.NOT_RUN, "not run: the time for all cells was over")
        seconds = limit(self.config)
        cuda = documents.cuda_id(self.cell) is not None
        if cuda and not book.warm:
            seconds, book.warm = seconds + COLD, True
        book.last, kernel.reply = self, {}
        late = f"the cell did not end within {seconds:g} s"
        with patch.object(self.config.option, "nbval_cell_timeout", seconds):
            try:
                super().runtest()
            except KernelDied:
                raise book.lose(self, Status.CRASHED, "the kernel died") from None
            except nbval.NbCellError as error:
                if book.timed_out:
                    raise book.lose(self, Status.TIMEOUT, late) from None
                if kernel.reply["status"] == "error":
                    raise trouble(kernel.reply) from None
                details = plain(error.inner_traceback or "")
                raise Trouble(Status.FAILED, plain(str(error)), details) from None
        if book.timed_out:  # the cell swallowed the interrupt
            raise book.lose(self, Status.TIMEOUT, late)
        if kernel.reply["status"] != "ok" and not self.options["check_exception"]:
            raise trouble(kernel.reply)  # such as a magic that is not there

    def _of_exercise(self, error: Trouble) -> Trouble:
        """What it means for the exercise: a check without a kernel tells why there is none."""
        if self.answers:
            if error.status is Status.FAILED:
                error = Trouble(Status.COMPILE_ERROR, error.message, error.details)
            self.parent.answers.setdefault(self.answers.name, error)
        if self.checks and (cause := self.parent.answers.get(self.checks.name)):
            if cause.status is not Status.NOT_RUN:
                return cause
        return error

    def _assess(self, kernel: LiveKernel, name: str, passed: bool) -> JSON:
        """What a Record has of the kernel's assessment of what stands under a name there: of the
        kernel of the exercise's `%%cuda` cell."""
        seconds = limit(self.config)
        if passed and settings.backend() == "cuda":
            seconds += TIMING
        home = "__import__('utils.grading.assess', fromlist=['assess'])"
        try:
            assessed = kernel.ask(f"{home}.assess({name}, {passed})", seconds)
            return {"assessed": json.loads(assessed)}
        except KernelDied:
            self.parent.lose(self, Status.CRASHED, why := "the kernel died while assessing")
        except Empty:
            self.parent.lose(
                self, Status.TIMEOUT, why := f"the assessment did not end within {seconds:g} s"
            )
        except Raised as error:
            why = plain(str(error))
            if error.name == ToolError.__name__:
                return {"not_assessed": why, "fault": plain(error.text)}
        except ValueError as error:  # also of JSON
            why = plain(str(error))
        return {"not_assessed": why}

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """What stands in the report: the message, and the notebook's own frames."""
        return report(excinfo.value)


class Missing(pytest.Item):
    """An exercise that the notebook does not check, whatever else it says, or a notebook that
    cannot be read: it fails."""

    def __init__(self, *, exercise: Exercise | None, why: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.exercise, self.why = exercise, why

    @classmethod
    def of(cls, notebook: Notebook, exercise: Exercise | None, why: str) -> "Missing":
        """Under the name that its check would have."""
        name = _name(exercise, "check") if exercise else "notebook"
        return cls.from_parent(notebook, name=name, exercise=exercise, why=why)

    def runtest(self) -> None:
        """Raises Trouble."""
        verdict = Trouble(Status.MISSING, self.why)
        self.user_properties += properties(-1, self.exercise, verdict, {})
        raise verdict

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """What stands in the report."""
        return report(excinfo.value)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where it should be, and the heading of its failure."""
        return self.path, 0, self.name


def report(error: BaseException) -> str:
    """A failure in the report, as short as it can be."""
    if not isinstance(error, Trouble):
        return f"{type(error).__name__}: {error}"
    if error.details.endswith(error.message):
        return error.details
    return f"{error.message}\n{error.details}".strip()


def properties(
    cell: int, exercise: Exercise | None, verdict: Trouble, assessed: JSON
) -> list[tuple[str, object]]:
    """A cell's, for the report and for JUnit's testcase: where it checks an exercise, a Record."""
    if exercise is None:
        return [("cell", cell), ("status", str(verdict.status))]
    fault = {"fault": verdict.fault} | assessed
    record = Record.of_exercise(exercise, verdict.status, verdict.message, **fault)
    return [("cell", cell), *record.properties()]


def _name(exercise: Exercise, part: str) -> str:
    return f"{exercise.number} {exercise.name}: {part}"


def _answered(notebook: NotebookNode) -> list[Exercise]:
    """The exercises that a notebook has a cell for and checks, also where they are of several
    topics: a chapter may show an exercise of another one without a check."""
    checks = {checked(cell.source) for cell in notebook.cells if cell.cell_type == "code"}
    known = {e.id: e for e in catalog.exercises() if e.number is not None and e.name in checks}
    return [known[id] for id in documents.cuda_cells(notebook) if id in known]


def _numbered(name: str) -> list[Exercise]:
    """What can earn points in a notebook of ours."""
    return [exercise for exercise in catalog.in_notebook(name) if exercise.number]
