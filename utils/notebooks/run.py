"""`workbook run`: execute notebooks headless and gather what their checks and benches report.

`check` and `bench` append JSON lines to the file that WORKBOOK_LOG names:
{"event": "check", "id", "number", "verdict": "passed" or a reason, "seconds"} and
{"event": "bench", "id", "rows", "measured", "gpu", "date"}, the latter for the spec's size only.
"""

import contextlib
import json
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode

from utils.course import catalog
from utils.course.exercise import Exercise
from utils.ground import files
from utils.ground.paths import environment, workspace
from utils.notebooks import documents
from utils.timing import measure, results

CELL_SECONDS = 600
GPU_BYTES = 12 << 30  # that a notebook may need; one for which that was too little runs again
NO_MEMORY = "OutOfMemory", "cudaErrorMemoryAllocation"  # as errors say it
Event = dict[str, Any]  # a line of WORKBOOK_LOG
# What takes long: most of these build something. PyTorch's compiler takes twice as long.
STEP = re.compile(r"\b(?:check|profile|judge|load_inline|operator|opcheck|gradcheck)\(")
LONG_STEP = re.compile(r"\b(?:bench|torch\.compile)\(")
EXPECTED_ERROR = "raises-exception"  # the tag of a cell that shows an error on purpose

_running = set[NotebookClient]()


@dataclass
class Run:
    """One executed notebook."""

    path: Path  # the notebook that was executed
    notebook: NotebookNode  # with outputs
    seconds: float
    events: list[Event]
    errors: list[str] = field(default_factory=list)  # cells that failed beside the checks

    @property
    def copy(self) -> Path:
        """Where the executed notebook is kept."""
        return workspace().build / "notebooks" / self.path.name

    def exercises(self) -> list[Exercise]:
        """The exercises that the notebook has, in order."""
        return [e for e in catalog.in_notebook(self.path.stem) if e.number is not None]

    def event(self, kind: str, exercise: Exercise) -> Event:
        """The last event of a kind for an exercise; {} where there is none."""
        events = [e for e in self.events if e["event"] == kind and e.get("id") == exercise.id]
        return events[-1] if events else {}

    def verdict(self, exercise: Exercise) -> str:
        """ "passed", the reason why its check failed, or "not checked"."""
        return str(self.event("check", exercise).get("verdict", "not checked"))

    def passed(self) -> bool:
        """Whether every cell ran and every exercise passed its check."""
        return not self.errors and all(self.verdict(e) == "passed" for e in self.exercises())

    def lacked_memory(self) -> bool:
        """Whether a cell failed for want of memory on the GPU, or a kernel's launch."""
        failed = (output for cell in self.notebook.cells for output in cell.get("outputs", ()))
        said = [o.evalue for o in failed if o.output_type == "error" and o.ename == "CheckFailed"]
        return any(word in error for error in (*self.errors, *said) for word in NO_MEMORY)


def at_once(backend: str | None = None, save: bool = False) -> int:
    """How many notebooks run beside each other; each is a process of its own.

    On a GPU what is timed waits until it is alone, see utils/process/card.py. There each needs room
    for its tensors and its PyTorch, and cores to compile kernels for comparison. Figures that are
    kept are measured by one notebook at a time: beside others, some of the kernels that
    torch.compile chose took up to a third longer (H200, 2026-11-22), which would flatter ours.
    """
    cores = os.cpu_count() or 1
    if backend == "emulator" or not torch.cuda.is_available():
        return cores
    if save:
        return 1
    memory = torch.cuda.get_device_properties().total_memory
    return max(1, min(5 * cores // 8, memory // GPU_BYTES))


def longest_first(paths: Sequence[Path]) -> list[Path]:
    """Those with most steps come first: the one that ends last decides how long a run takes."""

    def steps(path: Path) -> int:
        cells = (c.source for c in documents.read(path).cells if c.cell_type == "code")
        return sum(len(STEP.findall(s)) + 2 * len(LONG_STEP.findall(s)) for s in cells)

    return sorted(paths, key=steps, reverse=True)


def _errors(notebook: NotebookNode) -> list[str]:
    """What failed beside the checks: "cell 7: CompileError: …", cells counted from 1."""
    errors = []
    for number, cell in enumerate(notebook.cells, 1):
        if EXPECTED_ERROR in cell.metadata.get("tags", ()):
            continue
        for output in cell.get("outputs", ()):
            if output.output_type == "error" and output.ename != "CheckFailed":
                first = (output.evalue.splitlines() or [""])[0]
                errors.append(f"cell {number}: {output.ename}: {first}")
    return errors


def client(notebook: NotebookNode, advance: Callable[[], None] = lambda: None) -> NotebookClient:
    """What runs every cell of a notebook in a process of its own, past those that fail."""
    return NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        interrupt_on_timeout=True,
        allow_errors=True,
        kernel_name="python3",
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(workspace().notebooks)}},
        on_cell_executed=lambda **_: advance(),
    )


def execute(
    path: Path,
    *,
    solutions: bool = False,
    backend: str | None = None,
    save: bool = False,
    beside: int = 0,
    advance: Callable[[], None] = lambda: None,
) -> Run:
    """Run every cell of a notebook in a process of its own, past those that fail.

    `solutions` puts the solutions into the cells, as `documents.solve` says.
    `save` adds to `results/` what `bench` measures on a GPU, each kernel as soon as it is measured:
    a run that is stopped leaves what it had. `beside` so many others run, which share the cores.
    `advance` is called after each code cell.
    Raises WorkbookError if the notebook is unreadable.
    """
    notebook = documents.read(path)
    if solutions:
        documents.solve(notebook)
    with tempfile.TemporaryDirectory() as folder:
        log, gpu = Path(folder) / "events.jsonl", measure.gpu() if save else ""
        extra = {
            "WORKBOOK_LOG": str(log),
            "WORKBOOK_RESULTS": str(results.path_of(gpu)) if gpu else "",
            "WORKBOOK_RESTED": "" if save else "1",  # what is printed needs no more
            "WORKBOOK_SOLUTIONS": "",  # the cells hold what is to run
        }
        if solutions:  # nothing that the learner has passed
            extra["WORKBOOK_PASSED"] = str(Path(folder) / "passed")
        if backend:
            extra["WORKBOOK_BACKEND"] = backend
        if beside:  # by itself, PyTorch takes every core in every notebook
            cores = os.cpu_count() or 1
            extra |= {
                "TORCHINDUCTOR_COMPILE_THREADS": str(max(2, cores // 2)),  # few compile at a time
                "OMP_NUM_THREADS": str(max(2, 2 * cores // (beside + 1))),
            }
        runner = client(notebook, advance)
        start, lost = time.perf_counter(), []
        _running.add(runner)
        try:
            runner.execute(env=environment(**extra))
        except DeadKernelError:
            lost = ["the notebook's process died; the cells after that did not run"]
        finally:
            _running.discard(runner)
        seconds = time.perf_counter() - start
        lines = log.read_text().splitlines() if log.exists() else []
    run = Run(path, notebook, seconds, [json.loads(line) for line in lines])
    run.errors = _errors(notebook) + lost
    files.write_text(run.copy, documents.to_text(documents.canonical(notebook, outputs=True)))
    return run


def stop() -> None:
    """End the processes of all notebooks that run; `execute` then returns."""
    for runner in list(_running):
        process = getattr(runner.km, "provisioner", None)
        if pid := getattr(process, "pid", None):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # the kernel leads a group of its own


def save(run: Run) -> Path | None:
    """Copy an executed notebook to `solutions/`.

    Returns the copy's path; None, and nothing is written, where anything in it failed.
    """
    if not run.passed():
        return None
    path = workspace().solutions / run.path.name
    files.write_text(path, run.copy.read_text())
    return path
