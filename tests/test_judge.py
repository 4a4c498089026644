"""`workbook judge`: files that cheat are rejected for their reason, honest unusual ones pass."""

import io
import json
import operator
import re
from pathlib import Path

import pytest
import torch
from support.box import needs_box
from support.command import workbook
from support.model_files import FILES, head, of, parts, reasons, share, text_of

from utils.cuda.model_box import boxed
from utils.ground.errors import ArgumentValueError, ToolError, WorkbookError
from utils.judge.models import accuracy, evaluation, plan, requests, sizes, tasks
from utils.process import sandbox
from utils.process.guest import framing
from utils.timing import model_runtime

pytestmark = needs_box
SEED = 5


@pytest.fixture(scope="module")
def box():
    with boxed() as box:
        yield box


@pytest.fixture(scope="module")
def task():
    return tasks.find(Path("88.py"))


def judged(path: Path, task, box) -> evaluation.Verdict:
    return evaluation.judge_text(text_of(path), task, box, SEED)


@pytest.mark.parametrize("path", of("cheats"), ids=lambda p: p.stem)
def test_a_cheat_is_rejected_for_its_reason(path, task, box, monkeypatch):
    first = path.read_text().partition("\n")[0]
    if "timeout" in first:
        monkeypatch.setattr(requests, "CALLING", 1.0)
    verdict = judged(path, task, box)
    assert not verdict.passed
    assert verdict.reason in reasons(path), str(verdict)


@pytest.mark.parametrize("path", of("honest"), ids=lambda p: p.stem)
def test_an_honest_file_passes(path, task, box):
    verdict = judged(path, task, box)
    assert verdict.passed, str(verdict)


@pytest.mark.parametrize("name", share("more_cheats.txt"))
def test_another_cheat_is_rejected_for_its_reason(name, task, box):
    allowed, text = parts("more_cheats.txt")[name]
    verdict = evaluation.judge_text(text, task, box, SEED)
    assert not verdict.passed and verdict.reason in allowed, str(verdict)
    assert all(line.isprintable() for line in str(verdict).splitlines())


@pytest.mark.parametrize("name", share("more_honest.txt"))
def test_another_honest_file_is_called_right_or_what_is_missing_is_named(name, task, box):
    (wanted,), text = parts("more_honest.txt")[name]
    verdict = evaluation.judge_text(text, task, box, SEED)
    if wanted == "passes":
        assert verdict.passed, str(verdict)
    else:
        assert verdict.evaluation == "not judged" and verdict.reason == wanted, str(verdict)
        assert "the emulator has no header" in verdict.message


def test_a_hazard_names_the_line_of_the_file(task, box):
    verdict = evaluation.judge_text(parts("more_cheats.txt")["race_in_shared_memory"][1], task, box)
    assert "race between two threads in kernel 'shared_tail_kernel'" in verdict.message
    assert re.search(r"cuda_sources:\d+: .* \| sums\[t\] = sum;", verdict.message)


@pytest.mark.parametrize("path", tasks.references(), ids=lambda path: path.stem)
def test_sizes_that_are_drawn_are_of_the_tasks_kind(path):
    task, generator = tasks.read(path), torch.Generator().manual_seed(3)
    drawn = [size for _ in range(8) for size in sizes.secret(task, generator)]
    assert len(set(drawn)) > 4 and not set(drawn) & set(task.small)
    (own,) = sizes.own_channels(task, generator)
    assert own.arguments[1] == task.own.arguments[1] and own.arguments[0] == sizes.LITTLE
    for size in (*drawn, own, sizes.other_batch(task, own, generator)):
        assert task.make(size, 0)(*map(torch.rand, size.shapes)).isfinite().all()


def test_a_plan_has_every_form_of_call_and_mixes_the_models(task):
    generator = torch.Generator().manual_seed(1)
    made = [plan.Made(n, task.small[0], task.make(task.small[0], 0)) for n in range(4)]
    calls = plan.Plan(task, generator).draw(made)
    names = "train strided expanded frozen".split()
    forms = [operator.attrgetter(name) for name in names]
    assert all(c.grad_output is not None for c in calls if c.expanded or c.frozen)
    assert all(any(form(c) for c in calls) for form in forms)
    assert any(not c.mode for c in calls) and any(plan.CHANGED in c.kind for c in calls)
    assert {len(c.inputs[0]) for c in calls} > {6} and calls[0].made == 0
    turns = [c.made for c in calls]
    assert turns != sorted(turns) and set(turns) == {0, 1, 2, 3}
    for before, call in zip(calls, calls[1:], strict=False):
        if plan.CHANGED in call.kind and before.made == call.made:
            pairs = zip(before.state, call.state, strict=True)
            assert sum(int((a != b).sum()) for a, b in pairs) == 1


@pytest.mark.parametrize("path", tasks.references(), ids=lambda path: path.stem)
def test_pytorchs_own_model_is_told_what_it_leaves_to_pytorch(path, box):
    text = head() + path.read_text().replace("class Model(", "class ModelNew(")
    verdict = evaluation.judge_text(text, tasks.read(path), box, SEED)
    assert verdict.reason == "library" and "forward asks PyTorch for" in verdict.message


def test_a_verdict_names_the_seed_that_repeats_it(task, box):
    path = FILES / "cheats/affine_left_out.py"
    verdict = evaluation.judge_text(text_of(path), task, box)
    again = evaluation.judge_text(text_of(path), task, box, verdict.seed)
    assert f"Seed: {verdict.seed}" in str(verdict)
    assert str(again) == str(verdict)


def test_a_size_that_is_refused_is_told(task, box):
    verdict = judged(FILES / "honest/refuses_odd_groups.py", task, box)
    assert any("groups of 5 channels" in note for note in verdict.notes)
    assert verdict.as_json()["evaluation"] == "passed" and verdict.runtime is None


@pytest.mark.parametrize("path", tasks.references(), ids=lambda path: path.stem)
def test_a_reference_has_small_sizes_that_it_takes(path):
    task = tasks.read(path)
    assert path.stem.startswith(f"{int(path.stem.partition('_')[0])}_")
    for size in task.small:
        model = task.make(size, 0)
        inputs = [torch.rand(shape) for shape in size.shapes]
        assert model(*inputs).isfinite().all()
    own = task.own.shapes[0]
    assert own[0] >= 1024 and own[1] == task.own.arguments[0]


@pytest.mark.parametrize(
    "name, number", [("88.py", 88), ("my_75.py", 75), ("Matmul_Swish_Sum_GroupNorm_mine.py", 37)]
)
def test_a_task_is_known_by_the_files_name(name, number):
    assert tasks.find(Path(name)).name.startswith(f"{number}_")


def test_a_file_that_tells_of_no_task_is_asked_about():
    with pytest.raises(ArgumentValueError, match="model.py tells of no task; say which: --task 37"):
        tasks.find(Path("model.py"))


def test_a_reference_that_is_none_is_told(tmp_path):
    (tmp_path / "mine.py").write_text("class Model: pass")
    with pytest.raises(WorkbookError, match="mine.py is no reference"):
        tasks.find(Path("x.py"), reference=tmp_path / "mine.py")


@pytest.mark.parametrize(
    "returned, message",
    [
        ("x, 'a'", "two.py cannot be judged here: .*Model gives Tensor, str"),
        ("x.gone", "two.py cannot be judged here: .*no attribute 'gone'"),
    ],
)
def test_a_reference_that_cannot_be_judged_is_told(returned, message, tmp_path):
    (tmp_path / "two.py").write_text(f"""
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return {returned}
def get_inputs():
    return [torch.rand(2, 3)]
def get_init_inputs():
    return []
""")
    with pytest.raises(WorkbookError, match=message):
        tasks.read(tmp_path / "two.py")


@pytest.mark.parametrize(
    "change, reason",
    [
        (lambda x: x * (1 + 2.0**-12), "too imprecise"),
        (lambda x: x + 0.1, "wrong values"),
        (lambda x: x.index_fill(0, torch.tensor([1]), float("nan")), "nan"),
        (lambda x: x * 1.0, None),
        (lambda x: torch.nextafter(x, x + 1), None),
    ],
)
def test_values_are_held_to_what_float32_can_do(change, reason):
    torch.manual_seed(0)
    x, linear = torch.rand(5, 40), torch.nn.Linear(40, 30)
    state = [p.detach() for p in linear.parameters()]
    truth = accuracy.truths(linear, state, [x])["output"]
    got = accuracy.deviation(change(truth.value.float()), truth)
    assert (got and got[0]) == reason


def test_a_gradient_that_is_a_sum_of_the_slope_may_be_rounded_as_one():
    """PyTorch's own sum of these is exact by chance: no measure of what another order may cost."""
    linear = torch.nn.Linear(1, 1)
    state, grad_output = [p.detach() for p in linear.parameters()], torch.arange(1000.0)[:, None]
    truth = accuracy.truths(linear, state, [torch.zeros(1000, 1)], grad_output)["bias"]
    ulp = accuracy.UNIT * float(truth.value)
    assert 0.1 * ulp / 1000**0.5 < truth.root < ulp


def test_memory_that_nobody_wrote_is_told_from_wrong_values():
    truth = accuracy.Truth(torch.zeros(2, dtype=torch.float64), 0.0, 0.0)
    poison = torch.full((2,), accuracy.POISON, dtype=torch.int32).view(torch.float32)
    assert accuracy.deviation(poison, truth) == (
        "not written",
        "2 of 2 elements were never written",
    )


def test_a_message_that_is_none_is_garbled():
    def read_of(data: bytes):
        stream = io.BytesIO(data)
        return stream.read

    whole = io.BytesIO()
    framing.send(whole.write, {"do": "it"}, [b"abc"])
    assert framing.receive(read_of(whole.getvalue())) == ({"do": "it"}, [b"abc"])
    assert framing.receive(read_of(b"")) is None
    for data in (b"\xff\xff\xff\xff", b"\x02\x00\x00\x00[]", whole.getvalue()[:-1], b"ab"):
        with pytest.raises(framing.Garbled):
            framing.receive(read_of(data))
    with pytest.raises(framing.Garbled):  # more than was asked for
        framing.receive(read_of(whole.getvalue()), most=2)


@pytest.mark.parametrize("reply", [None, 1, {}, [1], [[]], [["weight"]], [{"a": 1}]])
def test_an_answer_that_is_none_is_no_error_of_the_judges(reply):
    named = list(torch.nn.Linear(1, 1).named_parameters())
    with pytest.raises(evaluation.Rejected, match="answered out of turn"):
        evaluation.same_parameters(reply, named)


def test_the_command_tells_its_verdict_and_its_exit_code(tmp_path):
    path = tmp_path / "88.py"
    path.write_text("class ModelNew: pass")
    code, output = workbook("judge", str(path))
    assert code == 1
    assert "Evaluation: failed\nReason: no kernel: the file has no kernel" in output
    code, output = workbook("judge", str(path), "--json")
    assert code == 1 and json.loads(output)["reason"] == "no kernel"
    path.rename(tmp_path / "mine.py")
    assert workbook("judge", str(tmp_path / "mine.py"))[0] == 2
    assert workbook("judge", str(tmp_path / "none.py"))[0] == 2


def test_without_a_box_nothing_is_judged(monkeypatch):
    def none():
        raise ToolError("there is no bubblewrap")

    monkeypatch.setattr(sandbox, "require", none)
    with pytest.raises(ToolError, match="no bubblewrap"):
        model_runtime.judge(FILES / "honest/as_it_is.py", task=88)
