"""Every kernel of tests/hazards/faulty is caught, with kind and lines; none of clean is."""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from utils.emulator import programs
from utils.emulator.hazards import HAZARDS
from utils.emulator.programs import Watch
from utils.emulator.reports import REFINED
from utils.ground.paths import ROOT

FOLDER = ROOT / "tests/hazards"


@dataclass(frozen=True)
class Case:
    file: Path
    name: str
    marks: tuple[tuple[int, str], ...]  # lines, with a hazard's kind and variant, or "WITH"

    def __str__(self) -> str:
        return f"{self.file.stem}/{self.name}"

    @property
    def variants(self) -> set[str]:
        return {mark for _, mark in self.marks if mark.islower()}

    @property
    def kinds(self) -> set[str]:
        return {mark.partition("/")[0] for mark in self.variants}

    @property
    def lines(self) -> set[int]:
        """Where hazards are; each is marked at its line, and its other side, if any, WITH."""
        return {line for line, mark in self.marks}


def cases(folder: str) -> list[Case]:
    """The cases of the files in a folder. Marks belong to the CASE that comes next."""
    every = []
    for file in sorted((FOLDER / folder).glob("*.cu")):
        marks: list[tuple[int, str]] = []
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if match := re.search(r"// (?:HAZARD ([a-z/-]+)|(WITH))$", line):
                marks.append((number, match[1] or match[2]))
            if match := re.match(r"CASE\w*\((\w+)", line):
                every.append(Case(file, match[1], tuple(marks)))
                marks = []
    return every


FAULTY, CLEAN = cases("faulty"), cases("clean")


def watch(file: Path, **options) -> Watch:
    return Watch(volatile_atomic="--volatile-atomic" in file.read_text(), **options)


@cache
def program(file: Path) -> Path:
    return programs.build_program(file, watch=watch(file))


@pytest.fixture
def diagnose(tmp_path):
    """Runs a case; returns its exit status and the JSON."""

    def diagnose(case: Case, order: int = 0, timeout: float = 30) -> tuple[int, dict]:
        path = tmp_path / "run.json"
        watched = watch(case.file, json=path, order=order)
        status = programs.diagnose_program(program(case.file), watched, [case.name], timeout)
        return status, json.loads(path.read_text())

    return diagnose


def verdict(run: dict) -> tuple[set[str], set[int]]:
    """Kinds, and the lines of both sides: which thread comes second depends on their order."""
    sides = ((h["line"], h["other_line"]) for h in run["hazards"])
    return {h["kind"] for h in run["hazards"]}, {n for side in sides for n in side if n}


def variants(run: dict) -> set[str]:
    """As the runtime told them."""
    return {"/".join(filter(None, (h["kind"], h["variant"]))) for h in run["hazards"]}


@pytest.mark.parametrize("case", FAULTY, ids=str)
def test_a_fault_is_found_with_its_kind_and_lines(case, diagnose, capfd):
    status, run = diagnose(case, timeout=2 if "timeout" in case.kinds else 30)
    assert verdict(run) == (case.kinds, case.lines)
    assert variants(run) == case.variants
    assert status == 1
    hazard = run["hazards"][0]
    assert hazard["file"] == str(case.file) and hazard["count"] >= 1
    assert f"{case.file}:{hazard['line']}: " in capfd.readouterr().err


@pytest.mark.parametrize("case", CLEAN, ids=str)
def test_there_is_no_false_alarm(case, diagnose, capfd):
    status, run = diagnose(case)
    assert run["hazards"] == []
    assert status == run["exit"] == 0
    assert "no hazards" in capfd.readouterr().err
    assert run["launches"]


# Lines whose hazard another order of the threads leaves out or words differently: see the files.
ORDERED = {"fatal"}


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("case", [c for c in FAULTY if c.file.stem not in ORDERED], ids=str)
def test_the_verdict_does_not_depend_on_the_order_of_threads(case, order, diagnose):
    assert verdict(diagnose(case, order)[1]) == (case.kinds, case.lines)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("case", CLEAN, ids=str)
def test_no_order_of_threads_raises_a_false_alarm(case, order, diagnose):
    status, run = diagnose(case, order)
    assert (status, run["hazards"]) == (0, [])


def named(name: str) -> Case:
    (chosen,) = (case for case in FAULTY + CLEAN if case.name == name)
    return chosen


@pytest.mark.parametrize("case", [c for c in FAULTY if c.file.stem == "mild"], ids=str)
def test_stores_of_one_value_are_told_mildly(case, diagnose, capfd):
    (hazard,) = diagnose(case)[1]["hazards"]
    assert hazard["variant"] == "same-value"
    assert hazard["access"] == hazard["other_access"] == "store"
    said = capfd.readouterr().err
    assert "with the same value" in said and "harmless as long as" in said


def test_stores_of_different_values_are_not_told_mildly(diagnose):
    for name in ("all_lanes_store", "values_of_two_lanes", "same_thread_index"):
        assert "race/same-value" not in variants(diagnose(named(name))[1])


def test_a_shuffle_from_nobody_is_a_remark_until_its_value_is_seen_in_memory(diagnose, capfd):
    status, run = diagnose(named("guarded_shuffle"))
    (remark,) = run["remarks"]
    assert (status, run["hazards"], remark["kind"]) == (0, [], "absent-lane")
    assert "remark: a shuffle from a lane that takes no part" in capfd.readouterr().err
    for name, why in {
        "sum_of_a_broken_warp": "which the block does not have (it has 40 threads)",
        "half_reads_the_other": "takes no part: the mask does not name it",
        "reads_who_has_left": "which has left the kernel",
    }.items():
        _, run = diagnose(named(name))
        (hazard,) = run["hazards"]
        assert why in hazard["message"] and "has got to memory[" in hazard["message"]
        assert run["remarks"] == []


def test_a_run_says_the_same_every_time(diagnose):
    for case in (FAULTY[0], CLEAN[0]):
        assert diagnose(case) == diagnose(case)
        assert diagnose(case, order=5) == diagnose(case, order=5)


# What no case of the folder shows, and why.
ELSEWHERE = {
    "illegal-address": "an outcome calls it out-of-bounds: see fatal.cu",
    "not-supported": "tests/faults.cu launches a kernel from a kernel",
    "race/left": "of a launcher that returns, see test_diagnosing.py",
}


def test_the_table_has_a_row_for_each_hazard_of_the_runtime_and_no_other():
    header = (ROOT / "utils/emulator/runtime/hazard_kinds.h").read_text()
    kinds = re.findall(r'\w+\{"([a-z-]+)"(?:, "([a-z-]+)")?\}', header)
    assert len(kinds) == header.count('{"')
    runtime = {"/".join(filter(None, names)) for names in kinds}
    assert runtime | {name for rows in REFINED.values() for name, _ in rows} == set(HAZARDS)
    assert set(REFINED) <= runtime
    assert {key.partition("/")[0] for key in HAZARDS} <= set(HAZARDS)  # listings name the kind


def test_the_runtime_tells_of_each_hazard_in_a_case():
    variants = set().union(*(case.variants for case in FAULTY)) | set(ELSEWHERE)
    assert variants == set(HAZARDS) - {name for rows in REFINED.values() for name, _ in rows}


def test_the_suite_is_large_enough():
    assert len(FAULTY) >= 60 and len(CLEAN) >= 60
    assert len({(c.file, c.name) for c in FAULTY + CLEAN}) == len(FAULTY + CLEAN)
    assert all(case.kinds for case in FAULTY) and not any(case.marks for case in CLEAN)


@pytest.mark.parametrize("name", ["beyond_the_texture", "edges_of_an_array"])
def test_a_texel_that_is_fetched_is_a_load_of_its_bytes(name, diagnose):
    """Of 32 lanes, 16 fetch what there is."""
    (launch,) = diagnose(named(name))[1]["launches"]
    (load,) = (line for line in launch["lines"] if line["access"] == "load")
    assert (load["requests"], load["lanes"], load["bytes"]) == (1, 16, 64)
    assert (load["sectors"], launch["distinct_bytes_read"]) == (2, 64)
