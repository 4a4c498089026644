"""Notebooks under nbval and our plugin: what an instructor and the grader learn from a run."""

import json
import os
import re
import subprocess
import sys
import tomllib
from xml.etree import ElementTree

import pytest
from nbformat import v4, write

from utils.course import catalog
from utils.grading import cells
from utils.grading.verdicts import Status, trouble
from utils.ground.paths import ROOT, environment

TOPIC = "00_start_here"
SWISH, STRIDE = (e for e in catalog.topic(TOPIC).values() if e.number)
# What the workbook's magic and check do, without a compiler: the text says what becomes of it.
SETUP = """
import json, os, sys, time, types
from IPython.core.magic import register_cell_magic
from utils.ground.errors import CheckFailed, CompileError, Reason, ToolError
@register_cell_magic
def cuda(line, cell):
    if "broken" in cell:
        raise CompileError("swish.cu:3: expected ';'")
    if "no tools" in cell:
        raise ToolError("nothing can be compiled here")
    globals()[line.partition("/")[2]] = cell
def check(text):
    print("passed")
    if "forever" in text:
        time.sleep(600)
    if "starter" in text:
        raise CheckFailed(Reason.NOT_ATTEMPTED, "write your part")
    if "right" not in text:
        raise CheckFailed(Reason.WRONG_VALUES, "\\x1b[31mout[0] is 1, expected 2\\nlook there")
def assess(kernel, passed):
    print(json.dumps("forged"))
    if "starter" in kernel:
        raise RuntimeError("no more ideas")
    if "no space" in kernel:
        raise ToolError("no space left")
    return json.dumps([kernel.strip(), passed])
sys.modules["utils.grading.assess"] = types.ModuleType("assess")
sys.modules["utils.grading.assess"].assess = assess
"""


def answer(exercise, text: str) -> str:
    return f"%%cuda {exercise.id}\n{text}"


def check(exercise) -> str:
    return f"check({exercise.name})"


BOTH = (answer(SWISH, "right"), check(SWISH), answer(STRIDE, "right"), check(STRIDE))
HALF = (*BOTH[:2], answer(STRIDE, "starter"), check(STRIDE))
NOTEBOOKS = {
    "solved": BOTH,
    "half": HALF,
    "dying": (*BOTH[:2], "os._exit(0)", *BOTH[2:]),
    "dying_check": (answer(SWISH, "right"), "def check(_):\n    os._exit(0)", *BOTH[1:]),
    "hanging": (answer(SWISH, "forever"), *BOTH[1:]),
    "stubborn": ("try:\n    time.sleep(600)\nexcept KeyboardInterrupt:\n    pass", *BOTH),
    "skipping": (
        answer(SWISH, "# NBVAL_SKIP\n# NBVAL_RAISES_EXCEPTION\nbroken"),
        "# NBVAL_RAISES_EXCEPTION\ncheck(swish)",
        answer(STRIDE, "# NBVAL_SKIP\nwrong"),
        "# NBVAL_SKIP\ncheck(swish_grid_stride)",
        "# NBVAL_SKIP\nthis_is_not_run()",
        "# NBVAL_RAISES_EXCEPTION\n1 / 0",
        "%%no_such_magic\nnothing",
    ),
    "toolless": (answer(SWISH, "no tools"), BOTH[1], answer(STRIDE, "right, no space"), BOTH[3]),
    "missing": (*BOTH[:3], "if False:\n    check(swish_grid_stride)", check(SWISH)),
}


def lay_out(folder, *names) -> None:
    for name in names:
        (folder / name).mkdir()
        sources = (SETUP, *NOTEBOOKS[name])
        notebook = v4.new_notebook(cells=[v4.new_code_cell(source) for source in sources])
        write(notebook, folder / name / f"{TOPIC}.ipynb")


def damage(folder) -> None:
    """Two notebooks that are none, of which the first has the name of a chapter."""
    for name in (TOPIC, "essay"):
        (folder / "damaged").mkdir(exist_ok=True)
        (folder / "damaged" / f"{name}.ipynb").write_text('{"cells": [')


def pytest_run(folder, *options: str):
    """Run what is in a folder. Returns the JSON, JUnit's testcases by notebook and name, output."""
    strict = "--nbval" in options
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    command += [] if strict else ["--nbval-lax"]
    command += ["-p", "utils.grading.nbval_plugin", "--workbook-assess", "--color=yes", *options]
    command += ["--workbook-json=points.json", "--junitxml=junit.xml", "--rootdir=.", "."]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"),
        capture_output=True,
        text=True,
    )
    assert (folder / "points.json").exists(), done.stdout + done.stderr
    cases = {}
    for case in ElementTree.parse(folder / "junit.xml").iter("testcase"):
        cases[case.get("classname").partition(".")[0], case.get("name")] = case
    return json.loads((folder / "points.json").read_text()), cases, done


class Run:
    def __init__(self, folder):
        self.points, self.cases, done = pytest_run(folder, "--workbook-cell-limit=6", "-vv")
        self.code, self.output = done.returncode, re.sub(r"\x1b\[[\d;]*m", "", done.stdout)

    def notebook(self, name):
        (entry,) = (n for n in self.points["notebooks"] if n["notebook"] == f"{name}/{TOPIC}.ipynb")
        return entry

    def record(self, name, exercise):
        (entry,) = (e for e in self.notebook(name)["exercises"] if e["exercise"] == exercise.id)
        return entry

    def status(self, name, exercise):
        return self.record(name, exercise)["status"]

    def failure(self, name, case):
        node = self.cases[name, case].find("failure")
        return "" if node is None else node.get("message")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    lay_out(folder, *NOTEBOOKS)
    damage(folder)
    return Run(folder)


def test_points_are_those_of_the_specs(run):
    solved = run.notebook("solved")
    assert (solved["points"], solved["of"]) == (SWISH.points + STRIDE.points,) * 2
    assert run.record("half", STRIDE) == {
        "exercise": STRIDE.id,
        "number": STRIDE.number,
        "points": 0,
        "of": STRIDE.points,
        "status": "not attempted",
        "message": "not attempted: write your part",
        "not_assessed": "RuntimeError: no more ideas",
    }
    assert run.points["of"] == (len(NOTEBOOKS) + 1) * solved["of"]


def test_points_stand_in_junit_too(run):
    case = run.cases["half", f"{SWISH.number} swish: check"]
    properties = {p.get("name"): p.get("value") for p in case.iter("property")}
    assert properties["exercise"] == SWISH.id and properties["status"] == "passed"
    assert properties["points"] == properties["of"] == str(SWISH.points)


def test_a_cell_is_named_by_its_exercise_and_else_by_its_number(run):
    names = [name for notebook, name in run.cases if notebook == "half"]
    assert names == [
        "Cell 0",
        f"{SWISH.number} swish: kernel",
        f"{SWISH.number} swish: check",
        f"{STRIDE.number} swish_grid_stride: kernel",
        f"{STRIDE.number} swish_grid_stride: check",
    ]


def test_a_fault_of_the_tools_is_no_compile_error(run):
    record = run.record("toolless", SWISH)
    assert record["status"] == "fault"
    assert record["message"] == "ToolError: nothing can be compiled here"
    assert record["fault"] == "nothing can be compiled here"
    record = run.record("toolless", STRIDE)
    assert (record["status"], record["fault"]) == ("passed", "no space left")
    assert record["not_assessed"] == "ToolError: no space left"


def test_when_the_time_is_over_no_cell_begins(tmp_path):
    lay_out(tmp_path, "solved")
    points, _, done = pytest_run(tmp_path, "--workbook-budget=0")
    ((swish, stride),) = (notebook["exercises"] for notebook in points["notebooks"])
    assert swish["status"] == stride["status"] == "not run"
    assert "the time for all cells was over" in swish["message"] and done.returncode == 1


def test_after_a_death_nothing_is_run_and_what_was_passed_counts(run):
    assert run.status("dying", SWISH) == "passed"
    last = run.record("dying", STRIDE)
    assert (last["status"], last["message"]) == ("not run", "not run: the kernel died in Cell 3")
    assert run.failure("dying", "Cell 3") == "the kernel died"
    kernel = run.failure("dying", f"{STRIDE.number} swish_grid_stride: kernel")
    assert kernel == last["message"]


def test_a_kernel_that_dies_in_a_check_has_crashed_there(run):
    assert run.status("dying_check", SWISH) == "crashed"
    assert run.status("dying_check", STRIDE) == "not run"


def test_after_a_cell_that_was_late_all_fail_and_none_is_expected_to(run):
    assert run.record("hanging", SWISH)["message"] == "the cell did not end within 6 s"
    assert run.status("hanging", SWISH) == "timeout" and run.status("hanging", STRIDE) == "not run"
    assert "did not end within 6 s in " in run.record("hanging", STRIDE)["message"]
    assert "xfail" not in run.output


def test_a_cell_that_was_late_and_swallowed_the_interrupt_fails(run):
    assert run.failure("stubborn", "Cell 1") == "the cell did not end within 6 s"
    assert run.status("stubborn", SWISH) == "not run"


def test_no_comment_in_a_learners_cell_or_a_check_has_an_effect(run):
    assert run.status("skipping", SWISH) == "compile error"
    assert "expected ';'" in run.record("skipping", SWISH)["message"]
    assert run.status("skipping", STRIDE) == "failed"


def test_comments_of_other_cells_have_their_effect(run):
    assert run.cases["skipping", "Cell 5"].find("skipped") is not None
    assert run.cases["skipping", "Cell 6"].find("failure") is None


def test_a_magic_that_is_not_there_fails(run):
    assert "no_such_magic" in run.failure("skipping", "Cell 7")


def test_an_exercise_that_nobody_checks_is_missing_and_fails(run):
    assert run.status("missing", STRIDE) == "missing"
    name = f"{STRIDE.number} swish_grid_stride: check"
    assert "check(swish_grid_stride)" in run.failure("missing", name)


def test_a_notebook_that_cannot_be_read_fails_and_the_others_run(run):
    assert run.status("damaged", SWISH) == "missing"
    assert "not readable" in run.record("damaged", SWISH)["message"]
    (essay,) = (n for n in run.points["notebooks"] if "essay" in n["notebook"])
    assert essay["troubles"][0]["name"] == "notebook"


def test_a_second_check_of_an_exercise_has_a_name_of_its_own(run):
    assert ("missing", f"{SWISH.number} swish: check, Cell 5") in run.cases


def test_a_failure_is_its_message_without_colours_and_frames(run):
    text = run.failure("skipping", f"{STRIDE.number} swish_grid_stride: check")
    assert text.startswith("CheckFailed: wrong values: out[0] is 1")
    assert text.count("out[0]") == 1 and "#x1B" not in text and "File" not in text


def test_the_kernel_is_asked_beside_what_it_prints(run):
    assert run.record("half", SWISH)["assessed"] == ["right", True]
    assert "assessed" not in run.record("half", STRIDE)
    assert "not_assessed" not in run.record("dying", STRIDE)


def test_the_table_has_a_line_an_exercise(run):
    table = run.output.partition(" exercises ")[2]
    half = table.partition(f"half/{TOPIC}.ipynb")[2]
    assert half.splitlines()[0] == f": {SWISH.points} of {SWISH.points + STRIDE.points} points"
    assert re.search(rf"{STRIDE.number} swish_grid_stride +0 of {STRIDE.points} +not attempt", half)
    assert f"in all: {run.points['points']} of {run.points['of']} points" in table


def test_what_was_not_attempted_or_not_run_fails_without_a_report_of_its_own(run):
    assert run.code == 1
    reports = run.output.partition(" FAILURES ")[2]
    assert "swish_grid_stride: check" in reports  # of "skipping"
    assert "write your part" not in reports.partition(" exercises ")[0]
    assert re.search(r"\d+ not attempted", run.output.splitlines()[-1])


def test_xdist_s_workers_hand_their_points_over(run, tmp_path):
    lay_out(tmp_path, "half", "dying")
    options = "-p", "xdist.plugin", "-n2", "--dist=loadfile", "-k", "not stride"
    points, _, _ = pytest_run(tmp_path, *options)
    by_student = {n["notebook"].partition("/")[0]: n for n in points["notebooks"]}
    for name in ("half", "dying"):
        assert by_student[name]["points"] == run.notebook(name)["points"]
        assert by_student[name]["of"] == run.notebook(name)["of"], "also what was deselected"


def test_without_nbval_it_is_inert_and_no_way_of_loading_it_loads_it_twice(tmp_path):
    """As an installed plugin, and named on the command line beside that."""
    entries = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [f"{name} = {place}" for name, place in entries["pytest11"].items()]
    installed = tmp_path / "workbook_as_installed-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Name: workbook-as-installed\nVersion: 1\n")
    (installed / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines]))
    (tmp_path / "test_nothing.py").write_text(
        "import sys\ndef test(request):\n"
        "    assert request.config.pluginmanager.has_plugin('utils.grading.nbval_plugin')\n"
        "    assert not {'torch', 'utils.course', 'utils.grading.score'} & set(sys.modules)\n"
    )
    for options in ([], ["-p", "utils.grading.nbval_plugin"]):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "--rootdir=.",
                "-p",
                "no:cacheprovider",
                *options,
            ],
            cwd=tmp_path,
            env=environment(PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT)])),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    "source, name",
    [
        ("check(swish)", "swish"),
        ("%time 1\ncheck(swish, seed=3)\nbench(swish)", "swish"),
        ("try:\n    check(swish)\nexcept Exception:\n    pass", ""),
        ("check(swish)\ncheck(axpy)", ""),
        ("# check(swish)", ""),
        ("print('check(swish)')", ""),
        ("check(", ""),
    ],
)
def test_a_cell_checks_what_it_calls_check_on_and_no_other(source, name):
    assert cells.checked(source) == name


@pytest.mark.parametrize(
    "kind, value, status",
    [
        ("CheckFailed", "wrong values: out[0] is 1", Status.FAILED),
        ("CheckFailed", "not attempted: write your part", Status.NOT_ATTEMPTED),
        ("CheckFailed", "timeout: 10 s", Status.TIMEOUT),
        ("CheckFailed", "crashed: signal 11", Status.CRASHED),
        ("KernelTimeout", "10 s", Status.TIMEOUT),
        ("KernelCrash", "signal 11", Status.CRASHED),
        ("ValueError", "timeout: passed", Status.FAILED),
    ],
)
def test_an_error_in_a_cell_has_its_status(kind, value, status):
    assert trouble({"ename": kind, "evalue": value}).status is status


def test_frames_of_the_workbook_s_own_python_are_left_out():
    frame = f"\x1b[32mFile {ROOT}/utils/judge/check.py:73\x1b[0m, in check(kernel)"
    lines = ["Cell In[3], line 1", frame, "KeyError: 'x'"]
    got = trouble({"ename": "KeyError", "evalue": "'x'", "traceback": lines})
    assert got.details == "Cell In[3], line 1\nKeyError: 'x'"


def test_strict_compares_with_outputs_as_files_have_them(tmp_path):
    """nbformat writes outputs as lists of lines."""
    output = v4.new_output("stream", text="one\ntwo\n")
    wrong = v4.new_output("stream", text="one\nthree\n")
    source = "print('one')\nprint('two')"
    cells_ = [v4.new_code_cell(source, outputs=[o], execution_count=1) for o in (output, wrong)]
    write(v4.new_notebook(cells=cells_), tmp_path / "strict.ipynb")
    assert '"two\\n"' in (tmp_path / "strict.ipynb").read_text()
    _, cases, _ = pytest_run(tmp_path, "--nbval", "-o", "addopts=")
    failed = {name for (_, name), case in cases.items() if case.find("failure") is not None}
    assert failed == {"Cell 1"}


def test_strict_leaves_the_verdict_on_an_exercise_to_its_check(tmp_path):
    """What a check prints names what comes next, which is another thing on another machine."""
    sources = [SETUP, *HALF, "print(1)"]
    old = v4.new_output("stream", text="what it once printed")
    outputs = [[], *[[old]] * len(HALF), [old]]
    cells_ = [
        v4.new_code_cell(source, outputs=outputs, execution_count=1)
        for source, outputs in zip(sources, outputs, strict=True)
    ]
    write(v4.new_notebook(cells=cells_), tmp_path / f"{TOPIC}.ipynb")
    points, cases, _ = pytest_run(tmp_path, "--nbval", "-o", "addopts=")
    ((swish, stride),) = (notebook["exercises"] for notebook in points["notebooks"])
    assert (swish["status"], stride["status"]) == ("passed", "not attempted")
    failed = {name for (_, name), case in cases.items() if case.find("failure") is not None}
    assert failed == {"00.2 swish_grid_stride: check", "Cell 5"}
