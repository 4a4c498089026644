"""Chapter 13: each brief can be met, and only by kernels of one's own."""

import ast
from pathlib import Path

import pytest
import torch
from support.box import needs_box

from utils.cuda import model_build
from utils.cuda.model_box import boxed
from utils.ground.paths import ROOT
from utils.judge.models import evaluation, tasks
from utils.notebooks import documents

BRIEFS = sorted((ROOT / "kernels/13_capstone").glob("*.py"))
SOLUTIONS = ROOT / "solutions/13_capstone"


@pytest.fixture(scope="module")
def box():
    with boxed() as box:
        yield box


def texts_of(path: Path) -> dict[str, str]:
    """The strings that a file's names stand for."""
    texts = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            texts[node.targets[0].id] = node.value.value
    return texts


@pytest.fixture(scope="module")
def at_once():
    """A library of all answers, a module each: PyTorch's headers are read once, not four times."""
    parts, headers = [], set()
    for path in SOLUTIONS.iterdir():
        lines = texts_of(path)["CUDA"].splitlines()
        headers |= {line for line in lines if line.startswith("#include")}
        text = "\n".join(line for line in lines if line not in headers)
        module = f"PYBIND11_MODULE({path.stem}, m)"
        bound = 'm.def("tail", torch::wrap_pybind_function(tail));'
        parts.append(f"namespace of_{path.stem} {{\n{text}\n{module} {{ {bound} }}\n}}")
    return model_build.library([], ["\n".join([*sorted(headers), *sorted(parts)])], [], "answers")


def test_the_notebook_names_all_briefs_and_our_answers():
    notebook = documents.read(ROOT / "notebooks/13_capstone.ipynb")
    text = "".join(cell.source for cell in notebook.cells)
    assert len(BRIEFS) == 4 and {p.name for p in SOLUTIONS.iterdir()} == {p.name for p in BRIEFS}
    for brief in BRIEFS:
        assert brief.stem in text and f"solutions/13_capstone/{brief.name}" in text


@pytest.mark.parametrize("brief", BRIEFS, ids=lambda path: path.stem)
def test_a_brief_takes_its_sizes_and_its_own_is_large(brief):
    task = tasks.read(brief)
    for size in task.small:
        inputs = [torch.rand(shape) for shape in size.shapes]
        assert task.make(size, 0)(*inputs).isfinite().all()
    assert task.own.shapes[0] == (1024, 8192) and task.own not in task.small


@needs_box
@pytest.mark.parametrize("brief", BRIEFS, ids=lambda path: path.stem)
def test_our_answer_passes(brief, box, at_once, monkeypatch):
    monkeypatch.setattr(model_build, "library", lambda *texts, **how: at_once)
    text = (SOLUTIONS / brief.name).read_text()
    verdict = evaluation.judge_text(text, tasks.read(brief), box, seed=5)
    assert verdict.passed and len(verdict.notes) == 1, str(verdict)


@needs_box
def test_the_start_that_the_notebook_gives_is_right_but_for_its_kernel(box, at_once, monkeypatch):
    notebook = documents.read(ROOT / "notebooks/13_capstone.ipynb")
    (start,) = [cell.source for cell in notebook.cells if cell.source.startswith("%%writefile")]
    text = start.partition("\n")[2]
    verdict = evaluation.judge_text(text, tasks.read(BRIEFS[0]), box, seed=5)
    assert verdict.reason == "no kernel"
    monkeypatch.setattr(model_build, "library", lambda *texts, **how: at_once)
    solution = (SOLUTIONS / BRIEFS[0].name).read_text().partition("class Tail")[0]
    verdict = evaluation.judge_text(solution + text, tasks.read(BRIEFS[0]), box, seed=5)
    assert verdict.reason == "library" and "forward asks PyTorch for" in verdict.message
