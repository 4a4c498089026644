"""Chapter 13: each brief can be met, and only by kernels of one's own."""

import pytest
import torch
from support.box import needs_box

from utils.cuda.model_box import Box
from utils.judge import model, model_task
from utils.notebooks import documents
from utils.paths import ROOT

BRIEFS = sorted((ROOT / "kernels/13_capstone").glob("*.py"))
SOLUTIONS = ROOT / "solutions/13_capstone"


@pytest.fixture(scope="module")
def box():
    with Box() as box:
        yield box


def test_the_notebook_names_all_briefs_and_our_answers():
    notebook = documents.read(ROOT / "notebooks/13_capstone.ipynb")
    text = "".join(cell.source for cell in notebook.cells)
    assert len(BRIEFS) == 4 and {p.name for p in SOLUTIONS.iterdir()} == {p.name for p in BRIEFS}
    for brief in BRIEFS:
        assert brief.stem in text and f"solutions/13_capstone/{brief.name}" in text


@pytest.mark.parametrize("brief", BRIEFS, ids=lambda path: path.stem)
def test_a_brief_takes_its_sizes_and_its_own_is_large(brief):
    task = model_task.read(brief)
    for size in task.small:
        inputs = [torch.rand(shape) for shape in size.shapes]
        assert task.make(size, 0)(*inputs).isfinite().all()
    assert task.own.shapes[0] == (1024, 8192) and task.own not in task.small


@needs_box
@pytest.mark.parametrize("brief", BRIEFS, ids=lambda path: path.stem)
def test_our_answer_passes(brief, box):
    text = (SOLUTIONS / brief.name).read_text()
    verdict = model.judge_text(text, model_task.read(brief), box, seed=5)
    assert verdict.passed and len(verdict.notes) == 1, str(verdict)


@needs_box
def test_the_start_that_the_notebook_gives_is_right_but_for_its_kernel(box):
    notebook = documents.read(ROOT / "notebooks/13_capstone.ipynb")
    (start,) = [cell.source for cell in notebook.cells if cell.source.startswith("%%writefile")]
    text = start.partition("\n")[2]
    verdict = model.judge_text(text, model_task.read(BRIEFS[0]), box, seed=5)
    assert verdict.reason == "no kernel"
    solution = (SOLUTIONS / BRIEFS[0].name).read_text().partition("class Tail")[0]
    verdict = model.judge_text(solution + text, model_task.read(BRIEFS[0]), box, seed=5)
    assert verdict.reason == "no kernel" and "when none of its kernels runs" in verdict.message
