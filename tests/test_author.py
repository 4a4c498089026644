"""`workbook author`: how an exercise stands, from its files to its mutants."""

import re

import pytest
from support import pairs
from support.command import workbook

from utils.course import catalog
from utils.ground.paths import ROOT
from utils.judge import gates
from utils.judge.gates import Reading
from utils.notebooks import author
from utils.notebooks.author import Finding

SPEC, MUTANTS = "kernels/01_pairs/spec.py", "tests/mutants/01_pairs/twice.diff"
SOLUTION, NOTEBOOK = "solutions/01_pairs/twice.cu", "notebooks/01_pairs.ipynb"


@pytest.fixture
def complete(root, monkeypatch):
    """An exercise that lacks nothing; what was compiled once is kept."""
    monkeypatch.setenv("WORKBOOK_CACHE", str(ROOT / "build/cache"))
    pairs.complete(root)
    return root


def change(path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def findings_of(what: str) -> list[Finding]:
    findings = author.look(catalog.load("01_pairs/twice"), lambda what: None)
    return [finding for finding in findings if finding.what == what]


def few_mutants(root, count: int = 0) -> None:
    parts = pairs.MUTANTS.split("\n\n")
    (root / MUTANTS).write_text("\n\n".join(parts[:count]))


def test_an_exercise_that_lacks_nothing_is_0(complete):
    code, output = workbook("author", "01.1")
    output = " ".join(output.split())
    assert code == 0, output
    assert "01.1 01_pairs/twice: y = 2 x" in output
    assert "files nothing is missing" in output and "fix" not in output
    assert "starter compiles, and counts as not attempted" in output
    assert re.search(r"twice passed \(\d+ cases, no hazards, gates\): 3 sizes", output)
    assert "store requests for 32 elements: now 1, ideal 1, gate 1.125, margin 12 %" in output
    assert "mutants 8 of 8 killed for their reason" in output


def test_a_mutant_that_survives_or_falls_for_another_reason_is_1_and_named(complete):
    other = "if (i < n) y[i] = x[i] + x[i];"
    change(complete / MUTANTS, "if (i < n) y[i] = 3 * x[i];", other)
    change(complete / MUTANTS, "== one_place: race", "== one_place: gate")
    change(complete / MUTANTS, "if (i < n) y[i] += 2 * x[i];", "if (i < n) y[i] = twice;")
    code, output = workbook("author", "01/twice")
    output = " ".join(output.split())
    assert code == 1 and "5 of 8 killed for their reason" in output
    assert "line 17: thrice, wrong values: it survives" in output
    assert "one_place, gate: race" in output
    assert "adds, uninitialized: cannot be checked: " in output


def test_every_step_is_told(complete):
    few_mutants(complete, 2)
    exercise, messages = catalog.load("01_pairs/twice"), []
    author.look(exercise, messages.append)
    assert messages == ["files", "starter", "solution", "mutant no_guard", "mutant one_more"]
    assert author.steps(exercise) == len(messages)


def test_what_the_files_lack_is_told(complete):
    few_mutants(complete)
    change(complete / NOTEBOOK, "check(twice)", "")
    messages = [finding.message for finding in findings_of("missing")]
    assert messages == ["mutants: 0 of at least 8", "notebook: no check(twice) of '01_pairs/twice'"]
    change(complete / NOTEBOOK, '"fold": "hints"', '"fold": "none"')
    assert "notebook: no hints of '01_pairs/twice'" in [f.message for f in findings_of("missing")]
    (complete / NOTEBOOK).unlink()
    assert "there is no notebook" in findings_of("missing")[-1].message


def test_a_solution_that_fails_says_why_and_shows_no_gates(complete):
    few_mutants(complete)
    change(complete / SOLUTION, "2 * x[i]", "3 * x[i]")
    (solution,) = findings_of("solution")
    assert solution.good is False and solution.message.startswith("wrong values: twice with n=")
    assert not findings_of("gate")


def test_a_gate_that_the_solution_misses_is_read_all_the_same(complete):
    few_mutants(complete)
    change(complete / SPEC, "gates=(ALL_LANES,)", "gates=(replace(ALL_LANES, times=0.5),)")
    change(complete / SPEC, "from utils", "from dataclasses import replace\nfrom utils")
    (gate,) = findings_of("gate")
    assert gate.good is False
    assert gate.message.endswith("now 1, ideal 1, gate 0.5, margin -50 %")
    assert findings_of("solution")[0].message.startswith("gate: ")


def test_a_starter_that_passes_leaves_nothing_to_do(complete, monkeypatch):
    few_mutants(complete)
    monkeypatch.setattr(catalog, "is_starter", lambda exercise, text: False)
    change(
        complete / "kernels/01_pairs/twice.cu", "// your code here", "if (i < n) y[i] = 2 * x[i];"
    )
    assert findings_of("starter") == [
        Finding("starter", "passes the check: nothing is left to do", False)
    ]


@pytest.mark.parametrize(
    ("times", "at_least", "now", "margin"),
    [(1.25, False, 100, "25 %"), (0.5, True, 100, "50 %"), (1.0, False, 0, "–")],
)
def test_the_margin_is_what_a_solution_might_cost_more_or_do_less(times, at_least, now, margin):
    gate = gates.Gate("blocks", times, "", at_least=at_least)
    assert author._margin(gate, Reading(now, 100)) == margin


@pytest.mark.parametrize(
    ("task", "empty"),
    [
        ("**Your task:**", True),
        ("**Your task:** double it.", False),
        ("**Your task:**\n\nNone yet.", True),
        ("**Your task:** double it.\n\n### Exercise 01.2: `more`\n\n**Your task:**", False),
    ],
)
def test_a_task_that_says_nothing_is_missing(complete, task, empty):
    text = f"### Exercise 01.1: `twice`\n\ny = 2 x.\n\n{task}"
    folds = pairs.new_markdown_cell("<details><summary>Hint 1</summary>\n\nAdd.\n</details>")
    pairs.write_notebook(complete, pairs.new_markdown_cell(text), folds)
    said = author._cells(catalog.load("01_pairs/twice"))
    assert ("notebook: 'Your task:' of '01_pairs/twice' says nothing" in said) == empty
