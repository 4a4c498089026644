"""The time of a model file is the judge's to tell: files that cheat the clock are found out.

On the emulator, where times are worth nothing and the protocol is the same.
"""

import ctypes
import dataclasses
import json
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
import torch
from support.box import needs_box
from support.model_files import FILES, for_a_card, head, of, reasons, text_of

from utils.cuda import model_nvcc, toolchain
from utils.cuda.arrays import Arrays
from utils.cuda.model_box import boxed
from utils.ground.errors import CompileError
from utils.judge.models import accuracy, evaluation, probe, requests, tasks
from utils.judge.models.task import Size
from utils.judge.models.verdict import Rejected, Runtime, Verdict, Why
from utils.process import proc
from utils.process.box import Box
from utils.timing import model_runtime
from utils.timing.model_runtime import Peers, Race

pytestmark = needs_box
gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
HONEST = "as_it_is", "weights_converted_when_they_change", "made_contiguous"
SMALL = Size((64, 64, 2, (64,)), ((6, 64),))  # as many features as channels; more than at trials


@pytest.fixture(scope="module")
def full():
    return tasks.find(Path("88.py"))


@pytest.fixture(scope="module")
def task(full):
    return dataclasses.replace(full, own=SMALL)


@pytest.fixture(scope="module")
def box():
    with boxed() as box:
        yield box


@pytest.fixture(scope="module")
def peers(task):
    with Peers(task, "emulator") as peers:
        yield peers


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(model_runtime, "RUN", 0.001)
    monkeypatch.setattr(model_runtime, "CALLS", (3, 4))
    monkeypatch.setattr(model_runtime, "ROUNDS", 1)


def raced(text: str, task, box, peers) -> Verdict:
    passed = Verdict(task.name, passed=True, seed=1)
    return model_runtime.timed(passed, text, task, box, peers)


@pytest.mark.parametrize(
    "path", [path for path in of("timed") if not for_a_card(path)], ids=lambda path: path.stem
)
def test_who_cheats_the_clock_is_rejected_for_the_reason(path, task, box, peers):
    verdict = raced(text_of(path), task, box, peers)
    assert not verdict.passed and verdict.runtime is None
    assert verdict.reason in reasons(path), str(verdict)


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_file_has_a_time(name, task, box, peers):
    verdict = raced(text_of(FILES / f"honest/{name}.py"), task, box, peers)
    assert verdict.passed, str(verdict)
    assert 0 < verdict.runtime.milliseconds < 1000 and 0 < verdict.runtime.eager < 1000
    assert "Runtime: " in str(verdict) and "(" in str(verdict)
    runtime = json.loads(json.dumps(verdict.as_json()))["runtime"]
    assert set(runtime["rounds"][0]) == {"eager", "file"} and runtime["calls"] in (3, 4)


def test_the_time_is_that_of_a_clock_outside(task, box, peers):
    slow = """
import time
class ModelNew(Honest):
    def forward(self, x):
        real, time.perf_counter = time.perf_counter, lambda: 0.0
        time.sleep(0.03)
        out = super().forward(x)
        time.perf_counter = real
        return out
"""
    runtime = raced(head() + slow, task, box, peers).runtime
    assert runtime.milliseconds > 25 > runtime.eager


def test_who_works_on_unseen_when_it_has_said_that_it_is_done_gains_nothing(
    task, box, peers, monkeypatch
):
    monkeypatch.setattr(requests, "surroundings", lambda session: None)
    verdict = raced(text_of(FILES / "timed/later_in_a_thread.py"), task, box, peers)
    assert verdict.reason == Why.NOT_WRITTEN


def test_right_values_that_came_too_late_do_not_count(task, box, peers, monkeypatch):
    drawn = model_runtime.seeds(3)
    with closing(model_runtime.filled(task, SMALL, drawn, None)) as arrays:
        model_runtime.clock(peers._session, Peers.EAGER, arrays, SMALL, 10)
        race = Race("", task, box, peers)
        race._verify(arrays, drawn)
        output = arrays.tensor(1, "output")
        output[0, 0] = torch.nextafter(output[0, 0], output[0, 0] + 1)  # as near as can be
        with pytest.raises(Rejected, match="it was not"):
            race._verify(arrays, drawn)


def test_the_clock_stops_when_the_outputs_have_been_looked_at(peers, monkeypatch):
    look, looked = Arrays.look, []
    monkeypatch.setattr(Arrays, "look", lambda arrays: looked.append(arrays) or look(arrays))
    monkeypatch.setattr(model_runtime.time, "perf_counter", lambda: float(len(looked)))
    assert peers.clocked(Peers.EAGER, 3) == 1.0


def test_nobody_has_inputs_before_the_clock_runs(task, box, peers, monkeypatch):
    events = []
    monkeypatch.setattr(
        model_runtime.time, "perf_counter", lambda: float(events.append("clock") or 1)
    )
    genuine = model_runtime.Session._send

    def send(self, deadline, header, blobs, file):
        if file is not None:
            events.append("hand")
        genuine(self, deadline, header, blobs, file)

    monkeypatch.setattr(model_runtime.Session, "_send", send)
    peers.clocked(Peers.EAGER, 3)
    assert events == ["clock", "hand", "clock"]


def test_a_run_that_calls_nothing_leaves_nothing_right(task, peers):
    with closing(model_runtime.filled(task, SMALL, [1, 2], None)) as arrays:
        model_runtime.clock(peers._session, Peers.EAGER, arrays, SMALL, 10, idle=True)
        assert not arrays.tensor(1, "output").any()
        model_runtime.clock(peers._session, Peers.EAGER, arrays, SMALL, 10)
        inputs, state = model_runtime.values(task, SMALL, 2, None)
        truth = accuracy.truths(task.make(SMALL, 0), state, inputs)["output"]
        assert accuracy.deviation(arrays.tensor(1, "output"), truth) is None


def test_every_call_has_values_and_places_of_its_own(task):
    drawn = model_runtime.seeds(3)
    with closing(model_runtime.filled(task, SMALL, drawn, None)) as arrays:
        for name in ("input 0", "gemm.weight", "group_norm.bias"):
            first, second, third = (arrays.tensor(call, name) for call in range(3))
            assert not torch.equal(first, second) and not torch.equal(second, third)
            assert first.any() and not first.isnan().any()
        assert (arrays.tensor(2, "output").view(torch.int32) == accuracy.POISON).all()
        places = [at for call in range(3) for at in arrays.offsets(call).values()]
        assert len(set(places)) == 3 * 7


def test_what_is_expected_is_worked_out_when_the_process_is_gone(task, box, peers, monkeypatch):
    truths, running = accuracy.truths, []

    def watched(*arguments):
        running.append(len(proc.descendants(box._process.pid)) - box._own)
        return truths(*arguments)

    monkeypatch.setattr(accuracy, "truths", watched)
    assert raced(text_of(FILES / "honest/as_it_is.py"), task, box, peers).passed
    assert running and set(running) == {0}


def test_a_time_that_no_card_can_reach_is_none(full, box, peers, monkeypatch):
    monkeypatch.setattr(model_runtime.measure, "gpu", lambda: "NVIDIA H200")
    race = Race("", full, box, peers)
    race._believed(0.417)  # three products of halves, which are right
    with pytest.raises(Rejected) as rejected:
        race._believed(0.1)
    assert rejected.value.why == Why.TOO_FAST and "0.2223 ms" in str(rejected.value)


def test_of_a_card_that_is_not_known_no_time_is_refused(full):
    assert model_runtime.least_milliseconds(full, full.own, "a card") == 0


def test_runtime_is_told_beside_both():
    runtime = {"calls": 33, "overhead": 1.0, "rounds": []}
    both = Runtime("H200", 0.7, 3.01, 2.7, **runtime)
    assert str(both) == (
        "Runtime: 0.700 ms beside eager 3.010 ms (4.30x) and torch.compile 2.700 ms (3.86x), H200"
    )
    assert "torch.compile, which failed, H200" in str(Runtime("H200", 0.7, 3.01, None, **runtime))


def test_what_keeps_pytorch_from_running_is_no_fault_of_the_file(task, box):
    broken = dataclasses.replace(task, text=task.text.replace("self.gemm(x)", "self.gone(x)"))
    with Peers(broken, "emulator") as peers:
        verdict = raced(text_of(FILES / "honest/as_it_is.py"), task, box, peers)
    assert verdict.passed and "not measured; PyTorch's own model" in verdict.notes[-1]


def test_where_the_judge_does_not_find_pytorch_right_it_times_nothing(
    task, box, peers, monkeypatch
):
    clocked = Race._clocked

    def odd(race, count, within):
        if race.text.endswith(model_runtime._ITSELF):
            raise Rejected(Why.LEFT, "threads still run: driver")
        return clocked(race, count, within)

    monkeypatch.setattr(Race, "_clocked", odd)
    verdict = raced(text_of(FILES / "honest/as_it_is.py"), task, box, peers)
    assert verdict.passed and verdict.runtime is None
    assert "not found right: left behind: threads still run" in verdict.notes[-1]


def test_the_model_that_asks_a_card_is_right():
    """Else no card would be used, and nothing would say so where there is none."""
    assert probe.obstacle.__wrapped__("emulator") == ""


def test_a_card_on_which_the_judge_does_not_work_is_not_used(tmp_path, monkeypatch):
    path = tmp_path / "88.py"
    path.write_text(text_of(FILES / "honest/as_it_is.py"))
    probe.obstacle.cache_clear()
    monkeypatch.setattr(model_nvcc, "library", no_headers)
    boxes, genuine = [], Box._around

    def around(box, words, readable):
        boxes.append(box.backend)
        return genuine(boxed(), words, readable)

    monkeypatch.setattr(Box, "_around", around)
    verdict = model_runtime.judge(path, backend="cuda")
    assert verdict.passed and verdict.runtime is None and boxes == ["cuda", "emulator"]
    assert "This card is not used" in verdict.notes[-1], str(verdict)
    probe.obstacle.cache_clear()


def no_headers(*texts):
    raise CompileError("cusparse.h: No such file or directory")


def test_a_rejection_names_the_sizes_that_were_refused(full, box):
    text = text_of(FILES / "honest/refuses_odd_groups.py")
    verdict = evaluation.judge_text(text + WRONG, full, box, 5)
    assert not verdict.passed
    assert any("groups of 5 channels" in note for note in verdict.notes), str(verdict)


WRONG = """

class ModelNew(ModelNew):
    def forward(self, x):
        return 1.5 * super().forward(x)
"""


def test_a_librarys_launches_can_be_switched_off(tmp_path):
    (tmp_path / "switches.cpp").write_text(model_nvcc.switches())
    (tmp_path / "card.cpp").write_text(
        'extern "C" { int made; int __cudaLaunchKernel() { return 100 + ++made; }'
        " int cuLaunchKernelEx(void*, void*, void*, void*) { return 7; } }"
    )
    (tmp_path / "file.cpp").write_text(
        'extern "C" { struct D { unsigned x, y, z; };'
        " int __cudaLaunchKernel(void*, D, D, void**, unsigned long, void*);"
        " int cuLaunchKernelEx(void*, void*, void*, void*);"
        " int launch() { return __cudaLaunchKernel(0, D(), D(), 0, 0, 0); }"
        " int another() { return cuLaunchKernelEx(0, 0, 0, 0); } }"
    )

    def run(*words: str) -> None:
        subprocess.run([toolchain.cxx(), "-shared", "-fPIC", *words], cwd=tmp_path, check=True)

    run("card.cpp", "-o", "libcard.so")
    wrapped = model_nvcc.wrapped()
    flags = ["-L.", "-lcard", "-Wl,-rpath,$ORIGIN"]
    run("switches.cpp", "file.cpp", "-o", "model.so", *wrapped, *flags)
    library = ctypes.CDLL(str(tmp_path / "model.so"))
    assert library.launch() == 101 and library.another() == 7
    library.launches_off(1)
    assert library.launch() == 0 and library.another() == 0
    library.launches_off(0)
    assert library.launch() == 102


# --- on a card


@pytest.fixture(scope="module")
def on_card(full):
    with boxed("cuda") as box, Peers(full, "cuda") as peers:
        yield full, box, peers


@gpu
@pytest.mark.parametrize("path", of("timed"), ids=lambda path: path.stem)
def test_on_a_card_a_cheat_is_rejected(path, on_card):
    verdict = raced(text_of(path), *on_card)
    assert not verdict.passed and verdict.reason in reasons(path), str(verdict)


@gpu
@pytest.mark.parametrize("name", HONEST)
def test_on_a_card_an_honest_file_passes_and_is_timed(name, on_card):
    text = text_of(FILES / f"honest/{name}.py")
    verdict = evaluation.judge_text(text, *on_card[:2], 5)
    assert verdict.passed, str(verdict)
    runtime = raced(text, *on_card).runtime
    assert runtime.milliseconds < 3 * runtime.eager
