"""What a learner says of a fault: name and line must be right, and no message gives them away."""

import re
from dataclasses import replace

import pytest

from utils.course import catalog, markup
from utils.course.answers import compile_answer
from utils.course.case_calls import example
from utils.ground.errors import CheckFailed
from utils.ground.paths import workspace
from utils.judge import statements
from utils.judge.check import check
from utils.notebooks import documents
from utils.watch import diagnosis

TOPIC = "05_debugging"
ALL = list(catalog.topic(TOPIC).values())
LAPLACE = catalog.load(f"{TOPIC}/laplace")  # missing guard, line 15
SHARE = catalog.load(f"{TOPIC}/row_share")  # missing barrier, one of four lines
BODY = "\n__global__ void laplace_kernel() {}\n"


def refusal(statement: str, exercise=LAPLACE) -> tuple[str, str]:
    """The reason and the message for a text with this statement."""
    with pytest.raises(CheckFailed) as failure:
        statements.judge(exercise, statement + BODY)
    return failure.value.reason, str(failure.value)


@pytest.mark.parametrize(
    "statement",
    [
        "// fault: missing guard, line 15",
        "//fault:missing guard, line 15",
        "  // fault:  Missing  GUARD  line 15.",
        "constexpr int N = 1;\n// fault: missing guard, line 15",
    ],
)
def test_a_right_statement_passes_however_it_is_written(statement):
    statements.judge(LAPLACE, statement + BODY)


def test_every_line_that_is_right_is_accepted_alone_or_with_others():
    for lines in ("12", "13", "14", "15", "13 or 14", "12, 15"):
        statements.judge(SHARE, f"// fault: missing barrier, line {lines}{BODY}")


def test_a_line_that_is_wrong_spoils_a_list():
    reason, message = refusal("// fault: missing barrier, lines 11, 12, 13", SHARE)
    assert reason == "wrong diagnosis" and "the name is right, the line is not" in message


@pytest.mark.parametrize(
    ("statement", "half"),
    [
        ("missing guard, line 14", "the name is right, the line is not"),
        ("tail dropped, line 15", "the line is right, the name is not"),
        ("tail dropped, line 14", "neither the name nor the line is right"),
    ],
)
def test_a_wrong_statement_is_told_which_half_is_wrong_and_not_the_answer(statement, half):
    reason, message = refusal(f"// fault: {statement}")
    assert reason == "wrong diagnosis" and half in message
    assert "missing guard" not in message and "15" not in message


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("", "no line begins with '// fault:'"),
        ("// missing guard, line 15", "no line begins"),
        ("int fault; // fault: missing guard, line 15", "no line begins"),
        ("// fault: ?", "is for you"),
        ("// fault:", "is for you"),
        ("// fault: missing guard", "does not say in which line"),
        ("// fault: missing guard, line fifteen", "does not say in which line"),
        ("// fault: race, line 15", "'race' is not a name from the table"),
        ("// fault: mising guard, line 15", "did you mean 'missing guard'?"),
        ("// fault: missing guard, line 15\n// fault: overflow, line 15", "2 lines begin"),
    ],
)
def test_what_is_no_statement_is_asked_for(statement, words):
    reason, message = refusal(statement)
    assert reason == "fault not named" and words in message and statements.FORM in message


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("// fault: missing guard, line 15", "your statement: right"),
        ("// fault: missing guard, line 3", "your statement: the name is right, the line is not"),
        ("// fault: no idea", "your statement: 'no idea' does not say in which line"),
    ],
)
def test_a_kernel_that_is_still_wrong_is_told_of_both(statement, words):
    text = catalog.starter_text(LAPLACE).replace("// fault: ?", statement)
    kernel = compile_answer(LAPLACE, text, backend="emulator")
    with pytest.raises(CheckFailed) as failure:
        check(kernel)
    assert failure.value.reason == "out of bounds"
    message = str(failure.value)
    assert message.startswith("out of bounds: laplace with") and words in message


def test_a_broken_starter_can_be_checked_to_see_what_it_does():
    text = catalog.starter_text(LAPLACE)
    kernel = compile_answer(LAPLACE, text, backend="emulator")
    with pytest.raises(CheckFailed) as failure:
        check(kernel)
    assert failure.value.reason == "not attempted" and not kernel.trusted
    assert "as it stands: out of bounds: laplace with" in str(failure.value)
    assert "your statement" not in str(failure.value)


def test_other_exercises_ask_for_no_statement():
    for id in ("02_shared_memory_tiling/gemm_tiled_race", "02_shared_memory_tiling/gemm_tiled"):
        assert statements.required(catalog.load(id)) is None
    statements.judge(replace(LAPLACE, faulty=False), "no statement")


@pytest.mark.parametrize("exercise", ALL, ids=lambda e: e.name)
def test_the_right_statement_names_a_line_of_code_of_the_cell_as_given(exercise):
    starter = catalog.starter_text(exercise)
    cell = f"%%cuda {exercise.id}\n{starter}".splitlines()
    right = statements.required(exercise)
    assert right.name in statements.FAULTS and starter.startswith("// fault: ?\n")
    for line in right.lines:
        code = cell[line - 1].partition("//")[0].strip()
        assert code, f"line {line} of {exercise.name} has no code"
    assert right.name not in starter, "the starter gives its fault away"


@pytest.mark.parametrize(
    ("name", "old", "new", "statement"),
    [
        ("matvec", "cols < MOST ? cols : MOST", "MOST", "tail dropped, line 23"),
        ("matvec", "<<<rows, threads>>>", "<<<rows, MOST>>>", "tail dropped, line 24"),
        ("mish", "20.0f));", "20.0f)); e = e * (e + 2.0f);", "wrong identity, line 10"),
    ],
)
def test_another_line_that_mends_the_kernel_is_right_too(name, old, new, statement):
    exercise = catalog.load(f"{TOPIC}/{name}")
    starter = catalog.starter_text(exercise)
    (changed,) = [n for n, line in enumerate(starter.splitlines(), 2) if old in line]
    text = starter.replace(old, new).replace("// fault: ?", f"// fault: {statement}")
    assert statement.endswith(f" {changed}")
    check(compile_answer(exercise, text, backend="emulator"))


@pytest.mark.parametrize("exercise", ALL, ids=lambda e: e.name)
def test_what_diagnose_points_to_is_among_the_right_lines(exercise):
    text = catalog.starter_text(exercise)
    kernel = compile_answer(exercise, text, backend="emulator")
    call = example(kernel, exercise.at.draw)
    seen = diagnosis.diagnose_call(kernel, call.arguments, unwritten=call.unwritten)
    right = statements.required(exercise).lines
    for hazard in seen.hazards[:1]:  # what comes later may follow from it
        assert {hazard.line, hazard.other_line} & right


def test_a_statement_alone_is_an_attempt_and_a_changed_comment_is_not():
    starter = catalog.starter_text(LAPLACE)
    stated = starter.replace("// fault: ?", "// fault: overflow, line 3")
    assert not markup.is_untouched(stated, starter)
    assert markup.is_untouched(starter.replace("// x:", "// the matrix x:"), starter)


def test_the_notebook_lists_every_name_and_no_other():
    cells = documents.read(workspace().notebooks / f"{TOPIC}.ipynb").cells
    tables = "\n".join(cell.source for cell in cells if "| name | it means |" in cell.source)
    assert dict(re.findall(r"^\| `([^`]+)` \| ([^|]+) \|$", tables, re.M)) == statements.FAULTS
    assert len(statements.FAULTS) >= 2 * len(ALL), "guessing should not pay"
