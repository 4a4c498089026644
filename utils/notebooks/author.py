"""`workbook author 04.8`: what an exercise lacks, and how its checks, gates and mutants stand.

Everything runs on the emulator, so it is the same on every machine.
"""

import os
import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from utils.course import case_values, cases, catalog, mutants
from utils.course.answers import Answer, compile_answer, compile_wrong
from utils.course.case_calls import example
from utils.course.exercise import Exercise, Gate
from utils.course.mutants import Mutant
from utils.ground.errors import CheckFailed, Reason, WorkbookError
from utils.judge import gates, review
from utils.judge.check import check
from utils.judge.gates import Reading
from utils.notebooks import documents, sync
from utils.timing.estimate import estimate
from utils.watch.diagnosis import diagnose_call

Step = Callable[[str], None]  # called with what is done next


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `good` is None where it is reported and not judged."""

    what: str
    message: str
    good: bool | None


def steps(exercise: Exercise) -> int:
    """How often look() calls its `step`."""
    return 3 + len(_mutants(exercise))


def look(exercise: Exercise, step: Step) -> list[Finding]:
    """What is found of an exercise, from its files to its mutants."""
    step("files")
    findings = [
        Finding("missing", text, False) for text in review.missing(exercise) + _cells(exercise)
    ]
    findings = findings or [Finding("files", "nothing is missing", True)]
    findings.append(_values(exercise))
    step("starter")
    findings += _starter(exercise)
    step("solution")
    findings += _solution(exercise)
    return findings + _wrong(exercise, step)


def good(findings: list[Finding]) -> bool:
    """Whether nothing is missing and no mutant survives."""
    return all(finding.good is not False for finding in findings)


def _cells(exercise: Exercise) -> list[str]:
    """The cells that the notebook lacks."""
    try:
        cells = documents.read(documents.path_of(exercise)).cells
    except WorkbookError as error:
        return [str(error)]
    seen = [sync.generated(cell) for cell in cells]
    lacks = [kind for kind in sync.kinds(exercise) if (exercise.id, kind) not in seen]
    if exercise.number and not any(f"check({exercise.name}" in cell.source for cell in cells):
        lacks.append(f"check({exercise.name})")
    missing = [f"notebook: no {kind} of '{exercise.id}'" for kind in lacks]
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    headed = rf"^### Exercise {re.escape(exercise.number or '')}:.*?(?=^### Exercise |\Z)"
    section = re.search(headed, text, re.MULTILINE | re.DOTALL) if exercise.number else None
    if section and re.search(r"\*\*Your task:?\*\*:?\s*(?:\Z|\n\n)", section[0]):
        missing.append(f"notebook: 'Your task:' of '{exercise.id}' says nothing")
    return missing


def _values(exercise: Exercise) -> Finding:
    """The kinds of values that it is tried on: `inputs` may stand in the way of the usual ones."""
    kinds = ", ".join(cases.families(exercise))
    alone = cases.usual(exercise) == case_values.OWN
    why = ": `inputs` gives every tensor, so none of the usual kinds is tried" if alone else ""
    return Finding("values", kinds + why, None)


# --- starter and solution


def _starter(exercise: Exercise) -> list[Finding]:
    if exercise.number is None:
        return []
    try:
        _checked(compile_answer(exercise, catalog.starter_text(exercise), backend="emulator"))
    except CheckFailed as failure:
        reason = failure.reason
        if reason == "not attempted":
            return [Finding("starter", "compiles, and counts as not attempted", True)]
        return [Finding("starter", f"fails as '{reason}', not as 'not attempted'", False)]
    except (WorkbookError, OSError) as error:
        return [Finding("starter", str(error), False)]
    return [Finding("starter", "passes the check: nothing is left to do", False)]


def _solution(exercise: Exercise) -> list[Finding]:
    try:
        kernel = compile_answer(exercise, catalog.solution_text(exercise), backend="emulator")
        message = _checked(kernel)
    except (WorkbookError, OSError) as error:
        findings = [Finding("solution", str(error), False)]
        if not isinstance(error, CheckFailed) or error.reason != Reason.GATE:
            return findings
    else:
        findings = [Finding("solution", message.replace("\n", ": "), True)]
    return [*findings, *_gates(kernel), _estimate(kernel)]


def _checked(kernel: Answer) -> str:
    """What `check` prints of a kernel that passes. Raises what it raises."""
    with redirect_stdout(StringIO()) as printed:
        check(kernel)
    return printed.getvalue().strip()


def _gates(kernel: Answer) -> list[Finding]:
    """Each gate with what the solution needs of it."""
    exercise = kernel.exercise
    if not exercise.gates:
        return [Finding("gates", "none", None)]
    sizes = exercise.at.gates
    call = example(kernel, sizes)
    seen = diagnose_call(kernel, call.arguments, unwritten=call.unwritten)
    return [_gate(gate, gates.read(gate, seen, sizes)) for gate in exercise.gates]


def _gate(gate: Gate, reading: Reading) -> Finding:
    now, ideal, limit = gates.figures(gate, reading)
    message = (
        f"{gate.metric}: now {now}, ideal {ideal}, gate {limit}, margin {_margin(gate, reading)}"
    )
    return Finding("gate", message, gates.passes(gate, reading))


def _margin(gate: Gate, reading: Reading) -> str:
    """How much more the solution might cost, or less where the gate is a lower bound."""
    now, limit = reading.now, gate.times * reading.ideal
    if not now:
        return "–"
    return f"{100 * (now - limit if gate.at_least else limit - now) / now:.0f} %"


def _estimate(kernel: Answer) -> Finding:
    try:
        return Finding("estimate", str(estimate(kernel)), None)
    except (WorkbookError, OSError) as error:
        return Finding("estimate", f"none: {error}", None)


# --- wrong kernels


def _mutants(exercise: Exercise) -> list[Mutant]:
    """Those that can be read; what is wrong with others is among what is missing."""
    try:
        return mutants.mutants(exercise)
    except (WorkbookError, OSError):
        return []


def _wrong(exercise: Exercise, step: Step) -> list[Finding]:
    """One finding for those killed for their reason, and one for each of the others."""
    findings, wrong = [], _mutants(exercise)
    pool = ThreadPoolExecutor(os.cpu_count())  # compilers run ahead of the checks
    try:
        built = [pool.submit(compile_wrong, exercise, m.text, m.name) for m in wrong]
        for mutant, future in zip(wrong, built, strict=True):
            step(f"mutant {mutant.name}")
            message = _end(future)
            if message != mutant.reason:
                words = f"{mutant.place}: {mutant.name}, {mutant.reason}: {message}"
                findings.append(Finding("mutant", words, False))
    finally:
        pool.shutdown(cancel_futures=True)
    killed = len(wrong) - len(findings)
    summary = Finding("mutants", f"{killed} of {len(wrong)} killed for their reason", killed > 0)
    return [summary, *findings] if wrong else []


def _end(future: Future[Answer]) -> str:
    """The reason that a wrong kernel is rejected for, or in words what became of it."""
    try:
        _checked(future.result())
    except CheckFailed as failure:
        return failure.reason
    except WorkbookError as error:
        return f"cannot be checked: {error}"
    return "it survives"


def print_findings(exercise: Exercise, findings: list[Finding], console: Console) -> None:
    """A line for each, in the order they were found."""
    console.print(f"{exercise.number or 'worked'} {exercise.id}: {exercise.title}", markup=False)
    table = Table(box=None, pad_edge=False, show_header=False)
    marks = {True: "[green]good[/]", False: "[red]fix[/]", None: "[dim]–[/]"}
    for finding in findings:
        table.add_row(marks[finding.good], finding.what, Text(finding.message))
    console.print(table)
