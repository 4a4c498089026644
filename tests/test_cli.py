"""The command `workbook`: what it prints, what it leaves behind, and its exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell
from support.command import workbook
from support.pairs import ID, SOLUTION, SPEC, STARTER, write_notebook

from utils.course import markup
from utils.ground.paths import ROOT, environment
from utils.notebooks import run, sync
from utils.timing import results

COMMANDS = (
    *("run", "lab", "check", "status", "next", "bench", "emulate", "sync", "reset"),
    *("new", "author", "doctor", "judge", "profile"),
)
REPORT = """
import json, os
with open(os.environ["WORKBOOK_LOG"], "a") as log:
    print(json.dumps({event}), file=log)
"""
PICTURE = """
from IPython.display import SVG
SVG('<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"></svg>')
"""


def checked(verdict: str) -> str:
    """A cell that reports a verdict the way `check` does."""
    event = {"event": "check", "id": ID, "number": "01.1", "verdict": verdict, "seconds": 0.1}
    return REPORT.format(event=event)


def test_the_notebook_with_most_to_check_and_time_begins_first(tmp_path):
    texts = {
        "01_little": ["check(a)", "print(1)", "print(2)", "print(3)"],
        "02_most": ["check(a)\nbench(a)", "check(b)"],
        "03_nothing": ["checked = 1"],
    }
    for name, cells in texts.items():
        write_notebook(tmp_path, *cells, name=name)
    order = run.longest_first([tmp_path / f"notebooks/{name}.ipynb" for name in texts])
    assert [path.name[:2] for path in order] == ["02", "01", "03"]


def benched(**fields) -> str:
    rows = [
        {"label": "PyTorch", "kind": "eager", "median_ms": 0.01},
        {"label": "twice", "kind": "ours", "median_ms": 0.034},
    ]
    event = {"event": "bench", "id": ID, "rows": rows, "gpu": "A GPU", "date": "2026-01-02"}
    return REPORT.format(event={**event, **fields})


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command):
    code, output = workbook(command, "--help")
    assert code == 0 and "Usage:" in output


@pytest.mark.parametrize(
    "words",
    [
        ("fly",),
        ("run", "99"),
        ("run", "--save"),
        ("run", "--backend", "opencl"),
        ("check", "99"),
        ("check", "01/none"),
        ("check", "01", "--file", "a.cu"),
        ("check", "01/twice", "--file", "none.cu"),
        ("reset", "01"),
        ("new", "01.1", "thrice", "--title", "y = 3 x"),
        ("new", "01.2", "thrice"),
        ("author", "01"),
        ("author", "01.9"),
        ("emulate", "none.cu"),
        ("bench", "99"),
    ],
)
def test_a_wrong_call_is_2_and_says_so_in_a_line_or_two(root, words):
    code, output = workbook(*words)
    assert code == 2
    assert output.strip() and "Traceback" not in output


def test_errors_are_messages_and_not_tracebacks():
    command = [sys.executable, "-m", "utils.cli", "check", "99"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("there is no '99'") and "Traceback" not in done.stderr


def test_run_prints_a_row_for_each_exercise(root):
    write_notebook(root, checked("passed"), benched(measured=True))
    code, output = workbook("run")
    assert code == 0
    assert re.search(r"01\.1 +twice +passed +0.034 ms", output)
    assert "01_pairs: 1 of 1 passed" in output


def test_what_solutions_pass_is_not_the_learners(root):
    """`make run` solves every notebook: a learner has then passed as much as before."""
    ours = (
        "from utils.course import catalog, progress\nfrom utils.ground.paths import workspace\n"
        "folder = progress._folder(catalog.load('00_start_here/swish'))\n"
        "assert (workspace().build in folder.parents) == "
    )
    write_notebook(root, checked("passed"), f"{ours}False")
    assert workbook("run", "--solutions")[0] == 0
    write_notebook(root, checked("passed"), f"{ours}True")
    assert workbook("run")[0] == 0


def test_a_stored_time_is_labelled(root):
    write_notebook(root, checked("passed"), benched(measured=False))
    assert "0.034 ms (stored: A GPU, 2026-01-02)" in " ".join(workbook("run")[1].split())


def test_a_failing_check_is_1_and_the_cells_after_it_run(root):
    fails = "from utils.ground.errors import CheckFailed\nraise CheckFailed('nan', 'x')"
    write_notebook(root, checked("nan"), fails, "open('reached', 'w').close()")
    code, output = workbook("run")
    assert code == 1 and re.search(r"twice +nan", output)
    assert (root / "notebooks/reached").exists()
    assert "CheckFailed" not in output, "the table says it already"


def test_an_exercise_that_nothing_checked_did_not_pass(root):
    write_notebook(root, "1 + 1")
    code, output = workbook("run")
    assert code == 1 and "not checked" in output


def test_a_failing_cell_is_1_and_named(root):
    write_notebook(root, checked("passed"), new_markdown_cell("text"), "1 / 0")
    code, output = workbook("run")
    assert code == 1 and "cell 3: ZeroDivisionError: division by zero" in output


def test_an_error_that_is_shown_on_purpose_is_none(root):
    shown = new_code_cell("1 / 0", metadata={"tags": ["raises-exception"]})
    write_notebook(root, checked("passed"), shown)
    assert workbook("run")[0] == 0


def test_a_process_that_dies_is_1_and_said(root):
    write_notebook(root, checked("passed"), "import os; os._exit(1)")
    code, output = workbook("run")
    assert code == 1 and "process died" in output


def test_a_notebook_that_lacks_memory_beside_others_runs_again_alone(root, monkeypatch):
    monkeypatch.delenv("TORCHINDUCTOR_COMPILE_THREADS", raising=False)
    cell = (
        "import os\nfrom utils.ground.errors import OutOfMemory\n"
        "if 'TORCHINDUCTOR_COMPILE_THREADS' in os.environ: raise OutOfMemory('others have it')"
    )
    write_notebook(root, checked("passed"), cell)
    monkeypatch.setattr(run, "at_once", lambda *_: 2)
    assert workbook("run")[0] == 0
    monkeypatch.setattr(run.Run, "lacked_memory", lambda _: False)
    code, output = workbook("run")
    assert code == 1 and "OutOfMemory: others have it" in output


def test_a_launch_that_lacks_memory_beside_others_is_tried_again_alone(root, monkeypatch):
    monkeypatch.delenv("TORCHINDUCTOR_COMPILE_THREADS", raising=False)
    cell = (
        "import os\nfrom utils.ground.errors import CheckFailed, Reason\n"
        f"open({str(root / 'ran')!r}, 'a').write('.')\n"
        "if 'TORCHINDUCTOR_COMPILE_THREADS' in os.environ:\n"
        "    raise CheckFailed(Reason.LAUNCH_ERROR, 'cudaErrorMemoryAllocation: out of memory')"
    )
    write_notebook(root, checked("passed"), cell)
    monkeypatch.setattr(run, "at_once", lambda *_: 2)
    assert workbook("run")[0] == 0 and (root / "ran").read_text() == ".."


def test_an_interrupted_run_ends_its_notebooks_and_says_what_is_done(root):
    begun, executed = root / "begun", root / "build/notebooks/01_pairs.ipynb"
    write_notebook(root, checked("passed"))
    first = (
        "import os, time\n"
        f"while not os.path.exists({str(executed)!r}): time.sleep(0.1)\n"
        f"open({str(begun)!r}, 'w').write(str(os.getpid()))"
    )
    write_notebook(root, first, "time.sleep(60)", name="00_more")  # the last to begin
    program = (
        "import signal\nfrom pathlib import Path\nfrom utils import cli\n"
        "from utils.ground import paths\n"
        # What a shell puts into the background ignores Ctrl-C, and so does all that it starts.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"paths._workspace = paths.Workspace.of(Path({str(root)!r}))\ncli.app(['run'])"
    )
    command = [sys.executable, "-c", program]
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process = subprocess.Popen(command, env=environment(), **pipes)
    give_up = time.monotonic() + 150  # two kernels start, perhaps on a busy machine
    while not begun.exists() or not begun.read_text():
        assert process.poll() is None and time.monotonic() < give_up
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert process.returncode not in (0, 1)
    assert "01_pairs: 1 of 1 passed" in output and "Interrupted: 00_more" in errors
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)


def test_run_leaves_notebooks_plots_and_pages_and_says_where(root, monkeypatch):
    monkeypatch.chdir(root)
    link = new_markdown_cell("[next](02_more.ipynb)")
    path = write_notebook(root, checked("passed"), PICTURE, "%%cuda x\n__global__ void k();", link)
    before = path.read_bytes()
    _, output = workbook("run", "01")
    assert path.read_bytes() == before, "the learner's copy stays as it is"
    executed = nbformat.read(root / "build/notebooks/01_pairs.ipynb", as_version=4)
    assert executed.cells[1].outputs
    assert (root / "build/plots/01_pairs-01.svg").read_text().startswith("<svg")
    page = (root / "build/01_pairs.html").read_text()
    assert '<span class="kr">__global__</span>' in page, "coloured as CUDA"
    assert 'href="02_more.html"' in page
    assert not re.findall(r'<(?:script|link|img)[^>]*="https?://', page), "no other host is asked"
    assert 'href="01_pairs.html"' in (root / "build/index.html").read_text()
    for place in ("build/notebooks", "build/plots", "build/index.html"):
        assert place in output


def test_without_nbconvert_there_are_no_pages_and_it_says_so(root, monkeypatch):
    write_notebook(root, checked("passed"))
    monkeypatch.setitem(sys.modules, "nbconvert", None)
    code, output = workbook("run")
    assert code == 0 and "pip install nbconvert" in output


def test_solutions_are_what_stands_in_the_executed_copy(root):
    write_notebook(root, f"%%cuda {ID}\nmy own", checked("passed"))
    workbook("run", "--solutions")
    cell = nbformat.read(root / "build/notebooks/01_pairs.ipynb", as_version=4).cells[0]
    assert cell.source == f"%%cuda {ID}\n" + markup.solved(SOLUTION).rstrip()


def test_save_copies_what_passed_and_nothing_else(root):
    write_notebook(root, checked("passed"))
    assert workbook("run", "--solutions", "--save")[0] == 0
    saved = root / "solutions/01_pairs.ipynb"
    before = saved.read_text()
    assert json.loads(before)["cells"][0]["execution_count"] == 1
    write_notebook(root, checked("passed"), "1 / 0")
    code, output = workbook("run", "--solutions", "--save")
    assert code == 1 and "Not saved" in output
    assert saved.read_text() == before


def measures(id: str) -> str:
    """A cell that does what `bench` does with what it has measured of a kernel."""
    return (
        "from support.figures import entry\nfrom utils.ground import settings\n"
        "from utils.timing import results\nfrom utils.timing.rows import Results\n"
        "assert not settings.rested()\n"
        f"results.write(settings.results(), Results('A GPU', {{'{id}': entry()}}))"
    )


def test_what_is_measured_is_saved_at_once_also_of_a_run_that_is_killed(root, monkeypatch):
    monkeypatch.setattr("utils.timing.measure.gpu", lambda: "A GPU")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    path = root / "results/A_GPU.json"
    there = f"import pathlib; assert '{ID}' in pathlib.Path('{path}').read_text()"
    killed = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    write_notebook(root, measures(ID), there, measures("01_pairs/copy"), killed, measures("no"))
    code, output = workbook("run", "--solutions", "--save")
    assert code == 1 and "Not saved: 01_pairs.ipynb" in output and "cell 2" not in output
    assert set(results.read(path).entries) == {ID, "01_pairs/copy"}


def test_without_save_nothing_measured_is_kept(root, monkeypatch):
    monkeypatch.setattr("utils.timing.measure.gpu", lambda: "A GPU")
    write_notebook(
        root,
        "from utils.ground import settings\nassert not settings.results() and settings.rested()",
    )
    _, output = workbook("run", "--solutions")
    assert "cell 1" not in output


def test_check_reads_the_notebook_the_solutions_or_a_file(root, tmp_path):
    assert not sync.sync().problems
    code, output = workbook("check", "01/twice")
    assert code == 1 and "not attempted" in output
    assert "01_pairs.ipynb; a file of your own is checked by workbook check 01/twice" in output
    starter = root / "kernels/01_pairs/twice.cu"
    starter.write_text(STARTER.replace("// your code here", "if (i < n) y[i] = 2 * x[i];"))
    code, output = workbook("check", "01/twice", "--file", str(starter))
    assert code == 1 and "twice.cu is what the exercise begins with, however it was" in output
    starter.write_text(STARTER)
    assert workbook("check", "01.1", "--solutions")[0] == 0
    file = tmp_path / "mine.cu"
    file.write_text(markup.solved(SOLUTION))
    assert workbook("check", "01/twice", "--file", str(file))[0] == 0
    file.write_text(STARTER.replace("// your code here", "if (i < n) y[i] = x[i];"))
    code, output = workbook("check", "01/twice", "--file", str(file))
    assert code == 1 and "wrong values" in output


def test_check_of_a_notebook_goes_on_past_a_failure(root):
    spec = SPEC.replace('title="y = x"', 'title="y = x", number="01.0"')
    (root / "kernels/01_pairs/spec.py").write_text(spec)
    write_notebook(root, "%%cuda 01_pairs/copy\nint x", f"%%cuda {ID}\nvoid twice(")
    code, output = workbook("check", "01")
    assert code == 1 and "0 of 2 passed" in output
    assert "copy.cu:2" in output, "lines are the cell's"


def test_check_counts_exercises_as_run_does_and_no_worked_kernel(root):
    write_notebook(root, "%%cuda 01_pairs/copy\nint x", f"%%cuda {ID}\nvoid twice(")
    assert "copy" not in workbook("check", "01")[1]


def test_lines_are_those_of_the_cell_or_of_the_file(root, tmp_path):
    assert not sync.sync().problems
    unguarded = SOLUTION.replace("if (i < n) ", "")
    text = markup.solved(unguarded)
    write_notebook(root, f"%%cuda {ID}\n{text}")
    assert "twice.cu:5: access outside" in workbook("check", "01/twice")[1]
    (root / "solutions/01_pairs/twice.cu").write_text(unguarded)
    assert "twice.cu:5: access outside" in workbook("check", "01/twice", "--solutions")[1]
    file = tmp_path / "mine.cu"
    file.write_text(text)
    assert "mine.cu:4: access outside" in workbook("check", "01/twice", "--file", str(file))[1]
    file.write_text(f"%%cuda {ID}\n{text}")  # a cell that was copied whole
    assert "mine.cu:5: access outside" in workbook("check", "01/twice", "--file", str(file))[1]


def test_lines_of_a_file_are_those_that_a_statement_of_its_fault_counts(root, tmp_path):
    spec = SPEC.replace('number="01.1"', 'number="01.1", faulty=True')
    (root / "kernels/01_pairs/spec.py").write_text(spec)
    file = tmp_path / "mine.cu"
    file.write_text(markup.solved(SOLUTION.replace("if (i < n) ", "")))
    output = workbook("check", "01/twice", "--file", str(file))[1]
    assert "mine.cu:5: access outside" in output
    assert "as in the notebook's cell: %%cuda is line 1" in output


def test_a_missing_compiler_is_2(root, monkeypatch):
    assert not sync.sync().problems
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    code, output = workbook("check", "01/twice")
    assert code == 2 and "Install" in output


def test_bench_without_a_gpu_is_2(root, monkeypatch):
    monkeypatch.setenv("WORKBOOK_BACKEND", "emulator")
    code, output = workbook("bench", "01")
    assert code == 2 and "GPU" in output


def test_emulate_gives_the_programs_own_exit_code(tmp_path):
    file = tmp_path / "prog.cu"
    file.write_text(
        "int main(int n, char** words) { return n == 3 && words[2][0] == '-' ? 7 : 8; }"
    )
    assert workbook("emulate", str(file), "--", "a", "-b")[0] == 7


@pytest.mark.parametrize("folder", ["killed", "py312_cu130/killed"])
def test_the_doctor_names_the_lock_of_a_build_that_was_killed(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    assert "no build of PyTorch's is locked" in workbook("doctor")[1]
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "lock").touch()
    code, output = workbook("doctor")
    assert code == 0 and f"{folder}/lock" in "".join(output.split())


def test_the_doctor_names_the_backend_and_what_is_missing(monkeypatch):
    monkeypatch.setenv("WORKBOOK_BACKEND", "emulator")
    code, output = workbook("doctor")
    assert code == 0 and "emulator" in output
    monkeypatch.setenv("WORKBOOK_BACKEND", "none")
    code, output = workbook("doctor")
    assert code == 1 and "Missing: backend" in output
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "utils.cuda.toolchain")
    monkeypatch.delattr("utils.cuda.toolchain")
    code, output = workbook("doctor")
    assert code == 1 and "Missing: torch" in output


def test_a_missing_package_is_2_and_named():
    code = "import sys; sys.modules['torch'] = None; from utils.cli import main; main()"
    command = [sys.executable, "-c", code, "check", "00"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("torch is not installed") and "Traceback" not in done.stderr
