"""The kernels that `profile` is held against Nsight Compute on: their programs and its tables."""

import functools
import json

import pytest

from benchmarks import calibrate, profile_beside_ncu
from utils.course import catalog
from utils.emulator.programs import build_program
from utils.ground.paths import workspace
from utils.timing.launch_once import LaunchOnce

H200 = "NVIDIA H200"


@functools.cache
def profile(id):
    return profile_beside_ncu.profile_of(id, H200)


def test_a_program_launches_the_kernel_at_its_size(tmp_path):
    """One with scalars, headers and several inputs; at a size that the emulator runs in no time."""
    exercise = catalog.load("06_groupnorm/groupnorm_vectorized")
    sizes = {"rows": 3, "channels": 96, "groups": 6}
    launch = LaunchOnce(exercise, catalog.solution_text(exercise), sizes, tmp_path)
    launch.program.symlink_to(build_program(launch.source, [str(workspace().include)]))
    session = calibrate.Session(tmp_path / "logs", 60)
    session.run("alone", launch.command, 30)
    assert launch.wrong() == (0, 3 * 96)


def test_output_that_nobody_stored_is_wrong(tmp_path):
    exercise = catalog.load("00_start_here/swish")
    launch = LaunchOnce(exercise, catalog.solution_text(exercise), {"n": 40}, tmp_path)
    assert launch.wrong() == (40, 40)


LADDER = json.loads((workspace().results / "calibration/NVIDIA_H200.json").read_text())["timed"][
    "ladder"
]
# (kernel, counter): (how many times profile's, why)
DIFFERENCES = {
    (kernel, "shared_store_wavefronts"): (
        times,
        "at this size alone: at 64 x 64 x 64 the card counts one a request, as profile does; under "
        "load it repeats some, which no address explains",
    )
    for kernel, times in {"gemm_tiled": 1.14, "linear_tiled": 1.15}.items()
}


@pytest.mark.parametrize(
    "id",
    [
        *("00_start_here/axpy", "00_start_here/swish", "00_start_here/swish_grid_stride"),
        *("01_naive_gemm/gemm_naive", "01_naive_gemm/gemm_coalesced", "01_naive_gemm/linear"),
        *("02_shared_memory_tiling/gemm_tiled", "02_shared_memory_tiling/linear_tiled"),
    ],
)
def test_the_ladder_asks_for_what_the_card_counted(id):
    """calibrate.py counted these at the measured size, each with data of 2 to 275 GB."""
    seen, name = profile(id), id.partition("/")[2]
    theirs = LADDER[f"{name}_kernel"]
    for space, kind in (s.split() for s in {line.kind for line in seen.lines}):
        lines = [line for line in seen.lines if line.kind == f"{space} {kind}"]
        pieces = "wavefronts" if space == "shared" else "sectors"
        ours = {"requests": sum(line.requests for line in lines)}
        ours[pieces] = sum(line.pieces for line in lines)
        for what, value in ours.items():
            counter = f"{space}_{kind}_{what}"
            times, _ = DIFFERENCES.get((name, counter), (1, ""))
            if what == "wavefronts":  # of which a few in a million are repeated in any case
                value = pytest.approx(times * value, rel=3e-4 if times == 1 else 5e-3)
            assert theirs[counter] == value


STORED = json.loads((workspace().results / "profiles/NVIDIA_H200.json").read_text())
MADE_OF = "exponentials, roots and quotients are made of FMAs, too: the text has none"
LIMITS = {  # where profile names another one than Nsight Compute
    "06_groupnorm/groupnorm_vectorized": (
        "DRAM",
        "latency",
        "46 of its 67 MB pass DRAM in 0.017 ms, the others stay in the L2 cache: busy for 57 %",
    ),
    "08_fused_tails/gn_swish_multiply_swish": (
        "DRAM",
        "instructions",
        "47 of its 67 MB pass DRAM; for all 67 profile has 0.0157 ms, for instructions 0.0151",
    ),
}


@pytest.mark.parametrize("id", STORED["kernels"])
def test_what_the_card_counted_is_what_profile_counts(id):
    rows = profile_beside_ncu.compared(profile(id))
    ours, its = rows.pop("limited by")
    assert (ours, its) == LIMITS[id][:2] if id in LIMITS else ours == its
    for name, (mine, counted) in rows.items():
        if name.endswith(("requests", "sectors", "wavefronts")) or name.startswith("shuffles"):
            assert mine == counted, name
        elif name.startswith("FMA"):
            assert mine <= 1.001 * counted, f"{name}: {MADE_OF}"
        elif name.startswith("MUFU"):
            # Rows of a tile beyond the edge, of which a small size has more.
            assert mine == pytest.approx(counted, rel=0.06), name
        elif name == "bytes from DRAM":
            assert mine <= counted, "what no cache can have"


@pytest.mark.nvcc
@pytest.mark.parametrize("id", STORED["kernels"])
def test_the_compiler_makes_what_the_card_ran(id):
    (launch,), ((_, occupies),) = STORED["kernels"][id]["launches"], profile(id).launches
    if "unknown without nvcc" in occupies:
        pytest.skip("there is no nvcc here")
    assert f"{launch['registers']} registers a thread" in occupies
    limits = {
        "threads": launch["threads_limit"],
        "registers": launch["registers_limit"],
        "shared memory": launch["shared_limit"],
        "blocks": launch["blocks_limit"],
    }
    assert f"holds {min(limits.values())}, " in occupies
    assert limits[occupies.rpartition("its ")[2]] == min(limits.values())
    assert f"{launch['blocks']:,} blocks of {launch['threads']} threads" in occupies


def test_bottlenecks_are_read():
    details = '==PROF== done\n"Rule Name","Rule Description"\n"Other","x"\n'
    details += '"SOLBottleneck","It ""waits"", long"\n'
    assert profile_beside_ncu.limits(details) == ['It "waits", long']
