"""The emulator beside NVIDIA's own tools: the programs of tests/calibration, run under diagnosis,
against what Nsight Compute and compute-sanitizer said about them on a card.

`benchmarks/calibrate.py` measured the figures in results/calibration. Where the two differ, and
should, DIFFERENCES says how and why; a difference that is not there fails, and so does one that
is there no longer.
"""

import json

import pytest

from benchmarks import calibrate
from utils.emulator.programs import Watch, build_program, diagnose_program
from utils.ground.paths import ROOT, workspace

STORED = json.loads((workspace().results / "calibration/NVIDIA_H200.json").read_text())
COUNTERS = [
    *("global_load_requests", "global_load_sectors", "global_store_requests"),
    *("global_store_sectors", "global_atomic_requests", "global_atomic_sectors"),
    *("shared_load_requests", "shared_load_wavefronts", "shared_load_bank_conflicts"),
    *("shared_store_requests", "shared_store_wavefronts", "shared_store_bank_conflicts"),
    *("shared_atomic_requests", "shared_atomic_wavefronts", "shared_atomic_bank_conflicts"),
]

VECTOR = (
    "nvcc unrolls the loop and reads four neighbours of a row of the tile with one 16-byte load"
)
UNROLLED = (
    "nvcc unrolls the loop; lanes with different trip counts meet in other copies of its body"
)
REPLAYED = "lanes that update the same word go one after the other, and each turn counts its \
sectors; the emulator counts them once, and calls the others contended"

# (kernel, counter): (Nsight Compute's, the emulator's, why)
DIFFERENCES = {
    ("add_float_to_one", "global_atomic_sectors"): (256, 8, REPLAYED),
    ("histogram_global", "global_atomic_sectors"): (48, 16, REPLAYED),
    ("trip_counts_by_lane", "global_load_sectors"): (704, 608, UNROLLED),
    ("loop_from_own_start", "global_load_requests"): (280, 256, UNROLLED),
    ("loop_from_own_start", "global_load_sectors"): (576, 640, UNROLLED),
}
for _kernel, _counter, *_figures, _why in (
    ("compacted", "global_load_requests", 8, 16, "nvcc keeps the value across the vote"),
    ("compacted", "global_load_sectors", 32, 64, "nvcc keeps the value across the vote"),
    ("tree_interleaved_dense", "shared_load_requests", 42, 50, "step 1 is one 8-byte load"),
    ("tree_interleaved_dense", "shared_load_wavefronts", 174, 190, "step 1 is one 8-byte load"),
    ("tree_interleaved_dense", "shared_load_bank_conflicts", 124, 140, "step 1 is one 8-byte load"),
    ("scan_hillis_steele", "shared_load_requests", 129, 134, "nvcc shares s[now][t] of both sides"),
    ("scan_hillis_steele", "shared_load_wavefronts", 129, 134, "nvcc shares it"),
    ("vector_times_matrix", "shared_load_requests", 6, 24, VECTOR),
    ("vector_times_matrix", "shared_load_wavefronts", 12, 24, VECTOR),
    ("gemm_tiled_kernel", "shared_load_requests", 10240, 16384, VECTOR),
    ("gemm_tiled_kernel", "shared_load_wavefronts", 12288, 16384, VECTOR),
    ("linear_tiled_kernel", "shared_load_requests", 10240, 16384, VECTOR),
    ("linear_tiled_kernel", "shared_load_wavefronts", 12288, 16384, VECTOR),
):
    DIFFERENCES[_kernel, _counter] = (*_figures, _why)

# What compute-sanitizer says, in the emulator's words.
KINDS = {
    "out of bounds": {"out-of-bounds", "use-after-free"},
    "misaligned": {"misaligned"},
    "Uninitialized": {"uninitialized"},
    "Divergent thread(s)": {"divergent-barrier"},
    "Invalid arguments": {"invalid-mask"},
}


@pytest.fixture(scope="module")
def diagnosed(tmp_path_factory):
    """Runs a program with its arguments under diagnosis; the outcome as JSON has it."""
    folder = tmp_path_factory.mktemp("calibration")
    outcomes = {}

    def run(command: str) -> dict:
        if command not in outcomes:
            name, *arguments = command.split()
            program = build_program(ROOT / f"tests/calibration/{name}.cu", watch=Watch())
            path = folder / f"{'_'.join(command.split())}.json"
            diagnose_program(program, Watch(json=path), arguments, timeout=30)
            outcomes[command] = json.loads(path.read_text())
        return outcomes[command]

    return run


def counted(launch: dict) -> dict[str, int]:
    return {counter: launch[counter] for counter in COUNTERS}


def stored(counters: dict) -> dict[str, int]:
    """Those of Nsight Compute; atomics without a result, which it counts apart, with the others."""
    both = dict(counters)
    for what in ("requests", "sectors"):
        both[f"global_atomic_{what}"] += counters[f"global_reduction_{what}"]
    return {counter: both[counter] for counter in COUNTERS}


@pytest.mark.parametrize("program", STORED["kernels"])
def test_counters_are_nsight_computes(program, diagnosed):
    ours = {la["kernel"].rpartition("::")[2]: la for la in diagnosed(program)["launches"]}
    kernels = STORED["kernels"][program]
    assert ours.keys() == kernels.keys()
    different, expected = {}, {}
    for kernel in kernels:
        theirs, mine = stored(kernels[kernel]), counted(ours[kernel])
        for counter in COUNTERS:
            if theirs[counter] != mine[counter]:
                different[kernel, counter] = theirs[counter], mine[counter]
            if known := DIFFERENCES.get((kernel, counter)):
                expected[kernel, counter] = known[:2]
    assert different == expected


def test_the_set_is_large_and_nearly_all_of_it_agrees():
    kernels = [kernel for program in STORED["kernels"].values() for kernel in program]
    assert len(kernels) == len(set(kernels)) > 150
    assert {kernel for kernel, _ in DIFFERENCES} <= set(kernels)
    assert len(DIFFERENCES) < 0.02 * len(kernels) * len(COUNTERS)


@pytest.mark.parametrize("program", STORED["findings"]["racecheck"])
def test_every_race_that_racecheck_reports_is_reported(program, diagnosed):
    ours = {
        (hazard["kernel"], *sorted((hazard["line"], hazard["other_line"])))
        for hazard in diagnosed(program)["hazards"]
        if hazard["kind"] == "race" and hazard["space"] == "shared"
    }
    theirs = {
        (race["kernel"], *sorted((race["line"], race["other_line"])))
        for race in STORED["findings"]["racecheck"][program]
    }
    assert theirs <= ours
    assert not any(kernel.startswith("fine_") for kernel, *_ in ours)


def test_races_that_racecheck_passes_over_are_told_of_too(diagnosed):
    ours = {h["kernel"] for h in diagnosed("races")["hazards"] if h["kind"] == "race"}
    theirs = {race["kernel"] for race in STORED["findings"]["racecheck"]["races"]}
    more = {"all_write_one", "zero_beside_atomic", "read_beside_atomic", "same_value_by_all"}
    assert ours - theirs == more


@pytest.mark.parametrize(
    ("tool", "command"),
    [
        (tool, command)
        for tool in ("memcheck", "initcheck", "synccheck")
        for command, findings in STORED["findings"][tool].items()
        if findings
    ],
)
def test_what_the_sanitizer_finds_is_found_on_the_same_line(tool, command, diagnosed):
    ours = [(h["kind"], h["kernel"], h["line"]) for h in diagnosed(command)["hazards"]]
    for finding in STORED["findings"][tool][command]:
        (kinds,) = (ours_ for words, ours_ in KINDS.items() if words in finding["kind"])
        assert any((kind, finding["kernel"], finding["line"]) in ours for kind in kinds), ours


CLEAN = {
    command
    for tool in ("memcheck", "initcheck", "synccheck")
    for command in STORED["findings"][tool]
    if "fine_" in command or "own_write" in command or " " not in command
}


@pytest.mark.parametrize("command", sorted(CLEAN))
def test_what_is_fine_is_passed(command, diagnosed):
    assert diagnosed(command)["hazards"] == []


SANITIZER = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Read access at void ns::tree<(int)4>(float *)+0xd0 in a.cu:43
=========     and Write access at void ns::tree<(int)4>(float *)+0xb0 in a.cu:41 [252 hazards]
=========     and Write access at void ns::tree<(int)4>(float *)+0xc0 in a.cu:42 [4 hazards]
=========~
========= Invalid __global__ atomic of size 4 bytes
=========     at atomicAdd(int *, int)+0x90 in sm_32_atomic_functions.hpp:107
=========     by thread (60,0,0) in block (0,0,0)
=========     Access to 0x7f02c8800100 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f02c8800000 of size 256 bytes
=========         Device Frame: extra(int *)+0x90 in b.cu:40
=========~
========= ERROR SUMMARY: 2 errors
""".replace("~", " ")  # lines that end in a space


def test_the_sanitizers_text_is_read():
    first, second, extra = calibrate.findings(SANITIZER)
    assert (first["kernel"], first["line"], first["other_line"]) == ("tree", 43, 41)
    assert first["count"] == 252
    assert (second["access"], second["other_access"], second["other_line"]) == ("Read", "Write", 42)
    assert extra["kind"] == "Invalid __global__ atomic of size 4 bytes, which is out of bounds"
    assert (extra["kernel"], extra["line"], extra["count"]) == ("extra", 40, 1)
