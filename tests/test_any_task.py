"""`workbook judge` for any task in KernelBench's format: small sizes, what PyTorch may do, types,
many files at once."""

import json
from pathlib import Path

import pytest
import torch
from support.any_tasks import TASKS, AnyTask, parts
from support.box import needs_box
from support.command import workbook

from benchmarks import kernelbench
from utils.cuda.model_box import boxed
from utils.judge.models import evaluation, sizes, small, suite, tasks, work
from utils.judge.models.reference_text import ReferenceText
from utils.judge.models.task import Task, as_given

pytestmark = needs_box
SEED = 5
# One or two of each family: all are tried by benchmarks/judges.py.
SAMPLE = "batch_norm values_and_places conv2d_grouped cross_entropy half_gelu".split()
CHEATS = """product_by_columns convolution_by_pytorch sum_by_halves multiple_within_the_product
    exponential_by_squaring sign_by_bits""".split()
HONEST = "bias_by_pytorch divided_by_pytorch".split()


@pytest.fixture(scope="module")
def box():
    with boxed() as box:
        yield box


def read(folder: Path, text: str, name: str = "task") -> Task:
    path = folder / f"{name}.py"
    path.write_text(text)
    return tasks.read(path)


@pytest.mark.parametrize("name", SAMPLE)
def test_an_honest_file_passes_and_its_wrong_twin_does_not(name, box, tmp_path):
    made = TASKS[name]
    task = read(tmp_path, made.reference)
    verdict = evaluation.judge_text(made.file(made.honest), task, box, SEED)
    assert verdict.passed, str(verdict)
    assert "Judged at sizes made small: " in str(verdict)
    assert evaluation.judge_text(made.file(made.wrong), task, box, SEED).evaluation == "failed"


@pytest.mark.parametrize("name", CHEATS)
def test_what_pytorch_computes_is_no_kernels_work(name, box, tmp_path):
    made, allowed, text = parts("task_cheats.txt")[name]
    verdict = evaluation.judge_text(text, read(tmp_path, made.reference), box, SEED)
    assert not verdict.passed and verdict.reason in allowed, str(verdict)


@pytest.mark.parametrize("name", HONEST)
def test_what_pytorch_may_do_beside_is_not_refused(name, box, tmp_path):
    made, _, text = parts("task_honest.txt")[name]
    verdict = evaluation.judge_text(text, read(tmp_path, made.reference), box, SEED)
    assert verdict.passed, str(verdict)


@pytest.mark.parametrize("name", list(TASKS)[::8])
def test_a_task_has_small_sizes_at_which_it_runs(name, tmp_path):
    task = read(tmp_path, TASKS[name].reference)
    (size,) = task.small
    assert small.bounded(task, size, small.DEARER)
    values = as_given(task.drawn(size, 3), task.types)
    outputs = small.outputs_of(task.make(size, 3)(*values))
    assert all(output.numel() and output.isfinite().all() for output in outputs)
    generator = torch.Generator().manual_seed(1)
    for other in sizes.secret(task, generator):
        assert other.shapes != size.shapes or other.arguments != size.arguments


@pytest.mark.parametrize("name", ["mse_loss", "square_matrix", "conv_hardswish_relu"])
def test_the_secret_size_leaves_a_rest_in_every_block(name, tmp_path):
    task = read(tmp_path, TASKS[name].reference)
    for seed in range(5):
        (size,) = sizes.secret(task, torch.Generator().manual_seed(seed))
        inputs = task.drawn(size, seed)
        output = task.make(size, seed)(*as_given(inputs, task.types))
        assert output.numel() % 32 and (name != "mse_loss" or inputs[0].numel() % 2)
        assert sizes.evenness(task, size) < sizes.evenness(task, task.small[0])


def test_no_row_is_left_that_would_be_broadcast(tmp_path):
    task = read(tmp_path, TASKS["four_dimensions"].reference)
    (size,) = task.small
    for seed in range(20):
        other = sizes.other_batch(task, size, torch.Generator().manual_seed(seed))
        assert other.shapes[1] == size.shapes[1]


def test_equal_numbers_stay_equal_and_what_the_model_uses_stays():
    text = ReferenceText(
        "N = 64 * 2\nKERNEL = 16\nclass Model:\n    def f(self, M): return KERNEL + M\n"
        "M: int = 300\ndef get_inputs(): return [N, M, 128, 3, 0.5, KERNEL]\n",
        "text",
    )
    assert text.numbers == [128, 300]
    assert text.module({128: 12, 300: 7}).get_inputs() == [12, 7, 12, 3, 0.5, 16]


HEAD = "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"
TAIL = "\n\ndef get_inputs():\n    return [{}]\n\n\ndef get_init_inputs():\n    return [{}]\n"


@pytest.mark.parametrize(
    ("body", "inputs", "said"),
    [
        ("return {'y': x}", "torch.rand(4, 5)", "Model gives dict"),
        ("return x * 0 + 3", "torch.rand(4, 5)", "the same number whatever goes in"),
        ("return torch.log(x - 2)", "torch.rand(4, 5)", "values that are not finite"),
        ("return x + torch.rand(4, 5)", "torch.rand(4, 5)", "it is random"),
        ("return x[0]", "[torch.rand(4, 5)]", "get_inputs() gives a list"),
        ("return x.view(1 << 20, -1)", "torch.rand(4, 1 << 25)", "no sizes are found"),
    ],
)
def test_what_cannot_be_judged_is_said_in_a_line_with_exit_2(body, inputs, said, tmp_path):
    reference, model = tmp_path / "task.py", tmp_path / "model.py"
    tail = TAIL.format(inputs, "")
    reference.write_text(f"{HEAD}    def forward(self, x):\n        {body}\n{tail}")
    model.write_text("class ModelNew: pass\n")
    code, printed = workbook("judge", str(model), "--reference", str(reference))
    assert code == 2, printed
    (line,) = printed.strip().splitlines()[-1:]
    assert said in line and "cannot be judged here" in line


@pytest.mark.parametrize(
    ("name", "products", "count", "sums"),
    [
        ("square_matrix", False, 0, 0),
        ("conv2d", False, 0, 0),
        ("sum", False, 0, 0),
        ("frobenius_norm", False, 0, 0),
        ("diagonal", False, 0, 0),
        ("gemm_residual", True, 1, 0),
        ("gemm_relu_divide", True, -1, work.SPARE + 4),
        ("gelu", False, -1, work.SPARE + 2),
    ],
)
def test_what_pytorch_may_do_follows_from_the_reference(name, products, count, sums, tmp_path):
    task = read(tmp_path, TASKS[name].reference)
    allowed = task.work
    assert (bool(allowed.products), allowed.count) == (products, count)
    assert allowed.sums == sums or sums and abs(allowed.sums - sums) <= 2


def test_arguments_arrive_as_they_are(box, tmp_path):
    values = "[1, (2, 3)], (4, [5.0, None]), torch.float16, {'k': True}, 'word'"
    lines = ["    def __init__(self, *a):", "        super().__init__()", "        {}", ""]
    lines += ["    def forward(self, x):", "        return torch.relu(x)", "", ""]
    text = HEAD + "\n".join(lines)
    reference = text.format("pass") + "# sizes" + TAIL.format("torch.randn(4, 5)", values)
    model = AnyTask("", reference, "", "").file('return u("relu", x)')
    model = model.replace("        pass\n", f"        assert repr(a) == repr(({values}))\n")
    assert "assert repr" in model
    verdict = evaluation.judge_text(model, read(tmp_path, reference), box, SEED)
    assert verdict.passed, str(verdict)


def test_without_gradients_none_are_asked_for(box, tmp_path):
    made = TASKS["softsign"]
    text = made.file(made.honest) + (
        "\nclass ModelNew(ModelNew):\n    def forward(self, x):\n"
        "        return self.by_kernels(x.detach())\n"
    )
    model, reference = tmp_path / "model.py", tmp_path / "reference.py"
    model.write_text(text)
    reference.write_text(made.reference)
    text, task = evaluation.read_request(model, None, reference)
    assert evaluation.judge_text(text, task, box, SEED).reason == "does not train"
    text, task = evaluation.read_request(model, None, reference, forward_only=True)
    verdict = evaluation.judge_text(text, task, box, SEED)
    assert verdict.passed and "gradients too" not in str(verdict), str(verdict)
    assert "Not judged: gradients" in verdict.notes


def test_a_suite_is_resumed_and_told_as_a_table_and_as_json(tmp_path, monkeypatch):
    made = TASKS["relu"]
    (tmp_path / "relu.py").write_text(made.file(made.honest))
    (tmp_path / "relu_reference.py").write_text(made.reference)
    (tmp_path / "nothing.py").write_text("class ModelNew: pass\n")
    out = tmp_path / "rows.json"
    words = "judge", "--suite", str(tmp_path), "--out", str(out), "--jobs", "1"
    code, printed = workbook(*words)
    assert code == 2 and "passed" in printed, printed
    rows = {Path(row["file"]).stem: row for row in json.loads(out.read_text())}
    assert rows["relu"]["evaluation"] == "passed" and rows["relu"]["task"] == "relu_reference"
    assert rows["nothing"]["evaluation"] == "not judged" and "tells of no task" in str(rows)
    assert "tells of no task" in " ".join(printed.split())  # the reason, below the table
    monkeypatch.setattr(suite, "Worker", None)  # nobody is asked again
    assert workbook(*words, "--resume")[0] == 2
    jobs = suite.jobs_of(tmp_path, None, SEED)
    assert [job.reference and job.reference.name for job in jobs] == [None, "relu_reference.py"]


def test_a_suite_outlives_a_reference_that_ends_its_process(tmp_path, monkeypatch):
    made = TASKS["relu"]
    ends = "import os, time\n{}\nclass Model: pass\n"
    bad = {"a": "os._exit(3)", "b": "time.sleep(60)", "c": "raise KeyError(1)"}
    for name, line in bad.items():
        (tmp_path / f"{name}_reference.py").write_text(ends.format(line))
        (tmp_path / f"{name}.py").write_text("class ModelNew: pass\n")
    (tmp_path / "d_reference.py").write_text(made.reference)
    (tmp_path / "d.py").write_text(made.file(made.honest))
    jobs = suite.jobs_of(tmp_path, None, SEED)
    monkeypatch.setattr(suite, "LONGEST", 20.0)
    rows = list(suite.judged(jobs, tmp_path / "rows.json", resume=False, at_once=1))
    assert [Path(row.file).stem for row in rows] == ["a", "b", "c", "d"]
    assert [row.evaluation for row in rows] == [*["not judged"] * 3, "passed"]
    assert "has ended" in rows[0].message and "after 20 s" in rows[1].message
    assert "KeyError" in rows[2].message


@pytest.mark.parametrize(
    "inputs",
    [
        'torch.rand(6, 300, device="cuda")',
        "torch.rand(6, 300).cuda()",
        'torch.rand(6, 300).to("cuda:0", torch.float32)',
        "torch.rand(6, 300, device=device)",
    ],
)
def test_a_reference_that_names_a_card_is_read_without_one(inputs, box, tmp_path):
    body = "    def forward(self, x):\n        return torch.relu(x + torch.ones((), device=device))"
    where = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
    reference = f"{HEAD}{body}\n\n\n# sizes\n{where}" + TAIL.format(inputs, "")
    task = read(tmp_path, reference)
    assert task.small[0].shapes == ((6, 300),)
    honest = 'return u("relu", u("scaled", x, 1.0, 1.0))'
    model = AnyTask("", f"{where}{HEAD}{body}\n# sizes", "", "").file(honest)
    verdict = evaluation.judge_text(model, task, box, SEED)
    assert verdict.passed, str(verdict)


def test_a_parameter_may_be_a_single_number(box, tmp_path):
    body = "    def __init__(self):\n        super().__init__()\n"
    body += "        self.least = nn.Parameter(torch.tensor(0.5))\n\n    def forward(self, x):\n"
    reference = f"{HEAD}{body}        return torch.tanh(x * self.least)\n# sizes"
    reference += TAIL.format("torch.rand(6, 300)", "")
    task = read(tmp_path, reference)
    for multiple, said in (("self.least", "passed"), ("torch.ones_like(self.least)", "failed")):
        text = AnyTask("", reference, "", "").file(f'return u("tanh", b("mul", x, {multiple}))')
        verdict = evaluation.judge_text(text, task, box, SEED)
        assert verdict.evaluation == said, str(verdict)


@pytest.mark.parametrize(
    ("made", "forward", "inputs", "arguments"),
    [  # a convolution whose sizes are the model's own; a length that is as large as the channels
        ("self.conv = nn.Conv2d(3, 96, 11, 4, 2)", "self.conv(x)", "256, 3, 224, 224", ""),
        (
            "self.conv, self.norm = nn.ConvTranspose3d(n // 2, n, 4, 2, 1), nn.LayerNorm(n)",
            "self.norm(self.conv(x))",
            "32, 32, 16, 32, 32",
            "64",
        ),
    ],
)
def test_sizes_are_found_where_few_fit(made, forward, inputs, arguments, tmp_path):
    takes = ", n" if arguments else ""
    lines = f"    def __init__(self{takes}):\n        super().__init__()\n        {made}\n"
    lines += f"\n    def forward(self, x):\n        return {forward}\n"
    task = read(tmp_path, HEAD + lines + TAIL.format(f"torch.rand({inputs})", arguments))
    (size,) = task.small
    assert small.bounded(task, size, small.DEARER) and not small.bounded(task, task.own)


@pytest.mark.parametrize(
    ("name", "mistakes"), [("conv_group_norm_logsumexp", (0, 1, 2)), ("argmin", (0,))]
)
def test_a_reference_becomes_an_honest_file_and_a_wrong_one(name, mistakes, box, tmp_path):
    reference = TASKS[name].reference
    task = read(tmp_path, reference)
    products = bool(task.work.products)
    verdict = evaluation.judge_text(kernelbench.file_of(reference, products), task, box, SEED)
    assert verdict.passed, str(verdict)
    for mistake in mistakes:
        text = kernelbench.file_of(reference, products, mistake)
        verdict = evaluation.judge_text(text, task, box, SEED)
        assert verdict.reason in ("wrong values", "too imprecise"), str(verdict)
