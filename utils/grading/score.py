"""The points of a run of notebooks: gathered from pytest's reports, told as a table and as JSON.

The file of --workbook-json: {"points", "of", "notebooks": [{"notebook", "points", "of",
"exercises": [record], "troubles": [{"cell", "name", "status", "message"}]}]}, where a record is
{"exercise", "number", "points", "of", "status", "message"} and, of an exercise that was assessed,
"assessed", or "not_assessed" with the reason. `troubles` are the cells that failed and belong to
no exercise.
"""

import json
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from utils import files
from utils.course.exercise import Exercise
from utils.grading.verdicts import Status
from utils.wording import many

PLAN = "workbook_plan"  # what xdist's workers were to run
# Told in one line of the table, without a report of their own; they fail all the same.
BRIEF = {Status.NOT_ATTEMPTED: "n", Status.NOT_RUN: "-", Status.MISSING: "m"}
FIELDS = ("exercise", "number", "points", "of", "status", "message")
EXTRA = ("assessed", "not_assessed")


class Score:
    """A plugin of pytest, registered for a run of notebooks only."""

    def __init__(self, config):
        self.config = config
        self.end = time.monotonic() + config.option.workbook_budget
        self.plan: dict[str, dict[str, dict]] = {}  # notebook -> exercise -> its record
        self.troubles: dict[str, list[dict]] = {}  # notebook -> cells beside the checks

    @property
    def late(self) -> bool:
        """Whether no cell may begin any more."""
        return time.monotonic() >= self.end

    def expect(self, notebook: pytest.File, exercises: Iterable[Exercise]) -> None:
        """Note what a notebook can earn: what is not reported later was not run."""
        idle = str(Status.NOT_RUN), "its check was not reached"
        self.plan[notebook.nodeid] = {
            e.id: dict(zip(FIELDS, (e.id, e.number, 0, e.points, *idle), strict=True))
            for e in exercises
        }

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self):
        """Our notebooks in place of nbval's."""
        found = yield
        from nbval.plugin import IPyNbFile

        from utils.grading.cells import Notebook

        return [
            Notebook.from_parent(node.parent, path=node.path, score=self)
            if type(node) is IPyNbFile
            else node
            for node in found
        ]

    def pytest_report_teststatus(self, report):
        """What is told elsewhere: exercises that nobody attempted, cells behind a lost kernel."""
        found = dict(report.user_properties)
        status = found.get("status")
        told = status == Status.COMPILE_ERROR and "exercise" in found  # by the cell of the kernel
        if report.when == "call" and report.failed and (told or status in BRIEF):
            return status, BRIEF.get(status, "c"), (status.upper(), {"yellow": True})
        return None

    def pytest_runtest_logreport(self, report) -> None:
        """Take down what became of a cell."""
        found = dict(report.user_properties)
        notebook, _, name = report.nodeid.partition("::")
        if report.when != "call" or "status" not in found:
            return
        if "exercise" not in found:
            if report.failed and "answers" not in found:  # of an answer the exercise's record tells
                trouble = {"cell": found["cell"], "name": name, "status": found["status"]}
                trouble["message"] = str(report.longrepr)
                self.troubles.setdefault(notebook, []).append(trouble)
            return
        record = {field: found[field] for field in FIELDS}
        record |= {field: json.loads(found[field]) for field in EXTRA if field in found}
        if found["status"] == Status.PASSED and not report.passed:  # another plugin's objection
            record |= {"status": str(Status.FAILED), "points": 0, "message": str(report.longrepr)}
        known = self.plan.setdefault(notebook, {})
        before = known.get(record["exercise"], {}).get("status", Status.NOT_RUN)
        if before in (Status.NOT_RUN, Status.PASSED):  # of several checks the first that fails
            known[record["exercise"]] = record

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node) -> None:
        """An xdist worker has ended: it knows what there was to run."""
        for notebook, planned in json.loads(
            getattr(node, "workeroutput", {}).get(PLAN, "{}")
        ).items():
            self.plan[notebook] = planned | self.plan.get(notebook, {})

    def pytest_sessionfinish(self) -> None:
        """Hand over, or write the file."""
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput[PLAN] = json.dumps(self.plan)
        elif path := self.config.option.workbook_json:
            files.write_text(Path(path), json.dumps(self.summary(), indent=1) + "\n")

    def summary(self) -> dict:
        """What the file says."""
        found = []
        for notebook in sorted({*self.plan, *self.troubles}):
            records = list(self.plan.get(notebook, {}).values())
            troubles = self.troubles.get(notebook, [])
            found.append(_sums(records) | {"notebook": notebook, "exercises": records})
            found[-1]["troubles"] = troubles
        return _sums(found) | {"notebooks": found}

    def pytest_terminal_summary(self, terminalreporter) -> None:
        """A line an exercise."""
        summary, tell = self.summary(), terminalreporter
        told = [n for n in summary["notebooks"] if n["exercises"] or n["troubles"]]
        if not told:
            return
        tell.section("exercises")
        for notebook in told:
            tell.write_line(f"{notebook['notebook']}: {_points(notebook)}")
            for record in notebook["exercises"]:
                _tell(tell, record)
            for line in _beside(notebook["troubles"]):
                tell.write_line(f"  {line}", red=True)
        tell.write_line(f"in all: {_points(summary)}", bold=True)


def _tell(tell, record: dict) -> None:
    status = record["status"]
    name = f"{record['number']} {record['exercise'].partition('/')[2]}"
    line = f"  {name:<36} {record['points']:>3} of {record['of']:<3} {status}"
    brief = status in (Status.PASSED, Status.NOT_ATTEMPTED)
    message = "" if brief else record["message"].partition("\n")[0].removeprefix(f"{status}: ")
    colour = {Status.PASSED: "green"}.get(status, "yellow" if status in BRIEF else "red")
    tell.write_line(line + f": {message}" * bool(message), **{colour: True})


def _beside(troubles: list[dict]) -> list[str]:
    """Cells that failed beside the checks, and how many were not run, and why."""
    lines = [
        f"{t['name']}: {t['status']}: {t['message'].partition(chr(10))[0]}"
        for t in troubles
        if t["status"] != Status.NOT_RUN
    ]
    idle = [t["message"] for t in troubles if t["status"] == Status.NOT_RUN]
    if idle:
        lines.append(f"{many(len(idle), 'other cell')} {idle[0]}")
    return lines


def _sums(parts: list[dict]) -> dict:
    return {key: sum(part[key] for part in parts) for key in ("points", "of")}


def _points(sums: dict) -> str:
    return f"{sums['points']} of {sums['of']} points"
