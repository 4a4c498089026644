"""The points of a run of notebooks: gathered from pytest's reports, printed as a table and written
as JSON.

The file of --workbook-json: {"points", "of", "notebooks": [{"notebook", "points", "of",
"exercises": [record], "troubles": [{"cell", "name", "status", "message"}]}]}, where a record is
{"exercise", "number", "points", "of", "status", "message"} and, of an exercise that was assessed,
"assessed", or "not_assessed" with the reason; "fault" where the machine's tools failed. `troubles`
are the cells that failed and belong to no exercise.
"""

import json
import time
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from utils.course.exercise import Exercise
from utils.grading.records import JSON, CellTrouble, Record, Score
from utils.grading.verdicts import Status
from utils.ground import files
from utils.ground.wording import many

PLAN = "workbook_plan"  # what xdist's workers were to run
# Reported in one line of the table, without a report of their own; they fail all the same.
BRIEF: dict[str, str] = {Status.NOT_ATTEMPTED: "n", Status.NOT_RUN: "-", Status.MISSING: "m"}


class ScorePlugin:
    """A plugin of pytest, registered for a run of notebooks only."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.end: float = time.monotonic() + config.option.workbook_budget
        self.plan: dict[str, dict[str, Record]] = {}  # notebook -> exercise -> its record
        self.troubles: dict[str, list[CellTrouble]] = {}  # notebook -> cells beside the checks

    @property
    def late(self) -> bool:
        """Whether no cell may begin any more."""
        return time.monotonic() >= self.end

    def expect(self, notebook: pytest.File, exercises: Iterable[Exercise]) -> None:
        """Note what a notebook can earn: what is not reported later was not run."""
        idle = Status.NOT_RUN, "its check was not reached"
        self.plan[notebook.nodeid] = {e.id: Record.of_exercise(e, *idle) for e in exercises}

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(
        self,
    ) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        """Our notebooks in place of nbval's."""
        collected = yield
        from nbval.plugin import IPyNbFile

        from utils.grading.cells import Notebook

        return [
            Notebook.from_parent(node.parent, path=node.path, score=self)
            if type(node) is IPyNbFile
            else node
            for node in collected
        ]

    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        """What is reported elsewhere: exercises not attempted, cells behind a lost kernel."""
        properties = dict(report.user_properties)
        status = str(properties.get("status"))
        elsewhere = status == Status.COMPILE_ERROR and "exercise" in properties  # the kernel's cell
        if report.when == "call" and report.failed and (elsewhere or status in BRIEF):
            return status, BRIEF.get(status, "c"), (status.upper(), {"yellow": True})
        return None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take down what became of a cell."""
        properties: JSON = dict(report.user_properties)
        notebook, _, name = report.nodeid.partition("::")
        if report.when != "call" or "status" not in properties:
            return
        if "exercise" not in properties:
            if (
                report.failed and "answers" not in properties
            ):  # an answer's is the exercise's record
                status = Status(properties["status"])
                trouble = CellTrouble(properties["cell"], name, status, str(report.longrepr))
                self.troubles.setdefault(notebook, []).append(trouble)
            return
        record = Record.from_properties(properties)
        if record.status is Status.PASSED and not report.passed:  # another plugin's objection
            said = str(report.longrepr)
            record = replace(record, status=Status.FAILED, points=0, message=said)
        known = self.plan.setdefault(notebook, {})
        before = known.get(record.exercise)
        if before is None or before.status in (Status.NOT_RUN, Status.PASSED):
            known[record.exercise] = record  # of several checks the first that fails

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """An xdist worker has ended: it knows what there was to run."""
        plan = json.loads(getattr(node, "workeroutput", {}).get(PLAN, "{}"))
        for notebook, records in plan.items():
            planned = {id: Record.from_json(record) for id, record in records.items()}
            self.plan[notebook] = planned | self.plan.get(notebook, {})

    def pytest_sessionfinish(self) -> None:
        """Hand over, or write the file."""
        if hasattr(self.config, "workeroutput"):  # xdist's worker
            plan = {
                notebook: {id: record.to_json() for id, record in records.items()}
                for notebook, records in self.plan.items()
            }
            self.config.workeroutput[PLAN] = json.dumps(plan)
        elif path := self.config.option.workbook_json:
            scores = self.scores()
            summary = {
                "points": _sum(scores, "points"),
                "of": _sum(scores, "of"),
                "notebooks": [score.to_json() for score in scores],
            }
            files.write_text(Path(path), json.dumps(summary, indent=1) + "\n")

    def scores(self) -> list[Score]:
        """Of each notebook."""
        return [
            Score(n, [*self.plan.get(n, {}).values()], self.troubles.get(n, []))
            for n in sorted({*self.plan, *self.troubles})
        ]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """A line an exercise."""
        scores = self.scores()
        shown = [score for score in scores if score.exercises or score.troubles]
        if not shown:
            return
        tell = terminalreporter
        tell.section("exercises")
        for score in shown:
            tell.write_line(f"{score.notebook}: {score.points} of {score.of} points")
            for record in score.exercises:
                _tell(tell, record)
            for line in _beside(score.troubles):
                tell.write_line(f"  {line}", red=True)
        total = f"{_sum(scores, 'points')} of {_sum(scores, 'of')} points"
        tell.write_line(f"in all: {total}", bold=True)


def _sum(scores: Iterable[Score], what: str) -> int:
    return sum(getattr(score, what) for score in scores)


def _tell(terminal: pytest.TerminalReporter, record: Record) -> None:
    status = record.status
    name = f"{record.number} {record.exercise.partition('/')[2]}"
    line = f"  {name:<36} {record.points:>3} of {record.of:<3} {status}"
    brief = status in (Status.PASSED, Status.NOT_ATTEMPTED)
    message = "" if brief else record.message.partition("\n")[0].removeprefix(f"{status}: ")
    plain = "yellow" if status in BRIEF else "red"
    colour = "green" if status is Status.PASSED else plain
    terminal.write_line(line + f": {message}" * bool(message), **{colour: True})


def _beside(troubles: Sequence[CellTrouble]) -> list[str]:
    """Cells that failed beside the checks, and how many were not run, and why."""
    lines = [
        f"{t.name}: {t.status}: {t.message.partition(chr(10))[0]}"
        for t in troubles
        if t.status is not Status.NOT_RUN
    ]
    if idle := [t.message for t in troubles if t.status is Status.NOT_RUN]:
        lines.append(f"{many(len(idle), 'other cell')} {idle[0]}")
    return lines
