"""The contents of the chapters: every exercise is complete, solutions pass, wrong kernels fail."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.nvcc import in_one_file

from utils.course import catalog, mutants
from utils.course.answers import compile_answer, compile_wrong
from utils.course.case_calls import example
from utils.course.exercise import Exercise
from utils.ground.errors import CheckFailed, Reason
from utils.ground.paths import workspace
from utils.judge import review
from utils.judge.check import check
from utils.watch.diagnosis import Diagnosis, diagnose_call

ARCHITECTURES = ("75", "80", "86", "90a")  # of the last one, code runs on no other
# What has instructions that sm_75 has not. Headers of the two share names.
FROM_80 = ("10_tensor_cores/", "14_attention/flash_attention_mma")

ALL = [exercise for topic in catalog.topics() for exercise in catalog.topic(topic).values()]
NUMBERED = [exercise for exercise in ALL if exercise.number]
ANYWHERE = [exercise for exercise in ALL if not exercise.needs]
WHOLE = [exercise for exercise in ALL if not exercise.faulty]
MUTANTS = [(exercise, mutant) for exercise in ALL for mutant in mutants.mutants(exercise)]


def each(exercises_: list[Exercise]):
    return pytest.mark.parametrize("exercise", exercises_, ids=lambda exercise: exercise.id)


@each(ALL)
def test_an_exercise_has_all_that_a_learner_and_a_grader_need(exercise):
    assert review.missing(exercise) == []


# What the head of a rung says: Changed from `gemm_1d`: larger tiles; loads M * N * K / 64 floats.
STEP = re.compile(r"Changed from `(\w+)`: [^;]+; (?:loads )?([\w\s*+/]+?) ((?:shared )?\w+)\.")
COUNTED: dict[str, Callable[[Diagnosis], float]] = {
    "floats": lambda d: d.total("bytes", "global", "load") / 4,
    "sectors": lambda d: d.total("moved", "global", "load"),
    "requests": lambda d: d.total("requests", "global", "load"),
    "shared requests": lambda d: d.total("requests", "shared", "load"),
    "atomics": lambda d: d.total("lanes", "global", "atomic"),
}


def step(exercise: Exercise) -> re.Match | None:
    """What a kernel's comments say of the one before it: its name, a formula and a unit."""
    lines = catalog.solution_text(exercise).splitlines()
    comments = (line.removeprefix("// ") for line in lines if line.startswith("//"))
    return STEP.search(" ".join(comments))


def rungs() -> list[tuple[Exercise, Exercise]]:
    """Each kernel that is not the first of its ladder, and the one before it."""
    pairs = []
    for exercise in WHOLE:
        ladder = catalog.rungs(exercise)
        place = ladder.index(exercise)
        pairs += [(exercise, ladder[place - 1])] if place else []
    return pairs


@pytest.mark.parametrize(("exercise", "before"), rungs(), ids=lambda exercise: exercise.id)
def test_the_head_of_a_rung_says_what_is_new_since_the_one_before(exercise, before):
    assert (said := step(exercise)), "no 'Changed from `name`: what is new; loads ... floats.'"
    assert said[1] == before.name


@each([exercise for exercise in WHOLE if step(exercise)])
def test_what_a_head_says_of_its_loads_is_what_a_run_counts(exercise):
    _, formula, unit = step(exercise).groups()
    kernel = compile_answer(exercise, catalog.solution_text(exercise), backend="emulator")
    sizes = exercise.at.gates or exercise.at.draw
    seen = diagnose_call(kernel, example(kernel, sizes).arguments)
    assert COUNTED[unit](seen) == eval(formula, {}, dict(sizes)), unit


def test_every_file_of_mutants_belongs_to_an_exercise():
    for path in workspace().mutants.glob("*/*"):
        assert path == mutants.path_of(mutants.exercise_of(path))


def test_no_mutant_has_gone_astray():
    assert len(MUTANTS) >= 875


@pytest.mark.parametrize(
    ("id", "name", "advice"),
    [
        ("02_shared_memory_tiling/linear_tiled", "no_padding", "one element longer"),
        ("03_register_tiles/gemm_vectorized", "no_padding", "four elements longer, so that quads"),
        ("03_register_tiles/gemm_warp", "no_padding", "rows of As four elements longer"),
        ("04_reductions/sum_sequential", "strided_index", "begin with the largest stride"),
        ("07_pointwise_fusion/swish_multiply_swish", "scale_for_each_row", "once for several rows"),
        ("07_pointwise_fusion/bias_hardtanh_mish", "shift_for_each_row", "once for several rows"),
    ],
)
def test_what_a_gate_advises_is_the_way_out(id, name, advice):
    exercise = catalog.load(id)
    (mutant,) = (mutant for mutant in mutants.mutants(exercise) if mutant.name == name)
    with pytest.raises(CheckFailed) as failure:
        check(compile_wrong(exercise, mutant.text, mutant.name))
    assert failure.value.reason == "gate" and advice in str(failure.value)


@each(ALL)
def test_a_solution_passes(exercise):
    text = catalog.solution_text(exercise)
    kernel = compile_answer(exercise, text, backend="emulator")
    check(kernel)
    assert kernel.warnings == ""


@each(NUMBERED)
def test_a_starter_compiles_and_counts_as_not_attempted(exercise):
    text = catalog.starter_text(exercise)
    kernel = compile_answer(exercise, text, backend="emulator")
    with pytest.raises(CheckFailed) as failure:
        check(kernel)
    assert failure.value.reason == "not attempted"
    assert kernel.warnings == ""


@pytest.mark.parametrize(
    ("exercise", "mutant"),
    [
        pytest.param(exercise, mutant, id=f"{exercise.topic[:2]}-{exercise.name}__{mutant.name}")
        for exercise, mutant in MUTANTS
    ],
)
def test_a_wrong_kernel_is_rejected_for_its_own_reason(exercise, mutant, monkeypatch):
    if mutant.reason == Reason.TIMEOUT:
        monkeypatch.setattr("utils.judge.verdict.TIMEOUT", 2.0)  # seconds, and not 10
    monkeypatch.setattr("utils.judge.explain.THOROUGH", False)
    with pytest.raises(CheckFailed) as failure:
        check(compile_wrong(exercise, mutant.text, mutant.name))
    assert failure.value.reason == mutant.reason, f"{mutant.place}: {failure.value}"


def late_part(exercise) -> str:
    """Which of FROM_80 it belongs to; "" of none."""
    return next((start for start in FROM_80 if exercise.id.startswith(start)), "")


def compiled_by_nvcc(texts: dict[Path | str, str], folder: Path, *options: str) -> str:
    """What nvcc has to say of many texts in one compilation; "" where it is content."""
    unit = in_one_file(texts, folder)
    unused = "-diag-suppress=177,550"  # variables that a starter leaves to the learner
    quick = ["-Xcicc", "-O0", "-Wno-deprecated-gpu-targets"]  # nothing runs
    include = f"-I{workspace().include}"
    command = ["nvcc", "-std=c++17", unused, *quick, include, *options, "-o", folder / "out", unit]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr if done.returncode or "warning" in done.stderr else ""


@pytest.mark.parametrize("late", ["", *FROM_80])
def test_nvcc_compiles_what_learners_meet_for_all_architectures(late, tmp_path):
    if not shutil.which("nvcc"):
        pytest.skip("there is no nvcc here")
    met = [exercise for exercise in ANYWHERE if late_part(exercise) == late]
    texts = {catalog.kernel_path(exercise): catalog.starter_text(exercise) for exercise in met}
    for exercise in met:
        if exercise.number:
            texts[catalog.solution_path(exercise)] = catalog.solution_text(exercise)
    *architectures, own = ARCHITECTURES[1:] if late else ARCHITECTURES
    # No text asks which one it is compiled for, so that the PTX for the first is that for all.
    headers = [path.read_text() for path in workspace().include.glob("*.cuh")]
    assert not any("__CUDA_ARCH__" in text for text in (*texts.values(), *headers))
    codes = ",".join(f"sm_{a}" for a in architectures)
    targets = [f"-gencode=arch=compute_{architectures[0]},code=[{codes}]"]
    targets.append(f"-gencode=arch=compute_{own},code=sm_{own}")
    said = compiled_by_nvcc(texts, tmp_path, "-c", *targets, "-Xptxas", "-O0", "--threads", "2")
    assert not said, said


@pytest.mark.nvcc
def test_nvcc_compiles_what_needs_one_architecture_without_a_warning(tmp_path):
    """Of a product whose registers are used too early ptxas says that it waits for it: C7510."""
    if not shutil.which("nvcc"):
        pytest.skip("there is no nvcc here")
    for exercise in ALL:
        if not exercise.needs:
            continue
        path = tmp_path / f"{exercise.name}.cu"
        path.write_text(catalog.solution_text(exercise))
        include = f"-I{workspace().include}"
        command = ["nvcc", "-std=c++17", f"-arch={exercise.needs}", "-cubin", include]
        done = subprocess.run(
            [*command, "-o", tmp_path / "out.cubin", path], capture_output=True, text=True
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0 and "warning" not in said and "C75" not in said, said


@pytest.mark.parametrize("late", [False, True])
def test_nvcc_compiles_every_mutant(late, tmp_path):
    if not shutil.which("nvcc"):
        pytest.skip("there is no nvcc here")
    some = [(e, m) for e, m in MUTANTS if not e.needs and bool(late_part(e)) == late]
    texts = {f"{e.id}__{mutant.name}": mutant.text for e, mutant in some}
    said = compiled_by_nvcc(texts, tmp_path, "-ptx", f"-arch=compute_{80 if late else 75}")
    assert not said, said


@pytest.mark.nvcc
@pytest.mark.parametrize("name", ["linear_split", "linear_gn_swish_multiply_swish_split"])
def test_nvcc_keeps_sums_of_products_in_registers(name, tmp_path):
    """An array that two inlined functions share lies in local memory: it cost 10.5 a fifth."""
    if not shutil.which("nvcc"):
        pytest.skip("there is no nvcc here")
    source = catalog.solution_path(catalog.topic("10_tensor_cores")[name])
    command = ["nvcc", "-std=c++17", "-arch=compute_80", "-ptx", "-I", workspace().include]
    subprocess.run([*command, "-o", tmp_path / "ptx", source], check=True)
    text = (tmp_path / "ptx").read_text()
    loops = [entry for entry in text.split(".entry")[1:] if "mma.sync" in entry]
    assert loops
    for entry in loops:
        products = entry[entry.index("mma.sync") : entry.rindex("mma.sync")]
        before = entry[: entry.index("mma.sync")]
        assert "ld.local" not in products and "ld.local" not in before


@pytest.mark.nvcc
def test_nvcc_keeps_what_a_whole_model_needs_in_registers(tmp_path):
    """A call in the rare path spilled the ring's stage in the loop of products: 1.2 % of 11.7."""
    if not shutil.which("nvcc"):
        pytest.skip("there is no nvcc here")
    name = "linear_gn_swish_multiply_swish_hopper"
    source = catalog.solution_path(catalog.topic("11_hopper")[name])
    command = ["nvcc", "-std=c++17", "-gencode", "arch=compute_90a,code=sm_90a", "-Xptxas", "-v"]
    command += ["-cubin", "-I", workspace().include, "-o", tmp_path / "cubin", source]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    kernels = [k for k in said.split("Compiling entry function ")[1:] if "6BesideLi" in k]
    assert len(kernels) == 3 and all("0 bytes spill stores" in k for k in kernels)
