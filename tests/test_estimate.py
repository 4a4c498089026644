"""Estimates beside measured times of an H200, and what they are made of."""

import statistics
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from benchmarks import estimates
from utils.course.answers import compile_answer
from utils.course.catalog import load, solution_text
from utils.ground.errors import WorkbookError
from utils.timing.estimate import Estimate, estimate, known_gpu, registers, resident
from utils.timing.sass import Occupied
from utils.timing.scaling import Work, work
from utils.watch.access_patterns import bank_conflicts
from utils.watch.costs import costs, global_wavefronts, widened
from utils.watch.trace import ACCESSES, GLOBAL, LOAD, SHARED, Launch

H200 = "NVIDIA H200"
ALIKE = 1.1  # measured times closer than this have no order


@pytest.fixture(scope="module")
def rows():
    """The workbook's kernels, as a machine without nvcc estimates them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("utils.timing.sass.compiled", lambda *_: {})
        return list(estimates.ladder())


def test_the_median_error_is_small_and_no_error_is_large(rows):
    errors = [abs(row.error) for row in rows]
    assert len(rows) >= 9
    assert statistics.median(errors) <= 0.15
    assert max(errors) <= 0.3


def test_the_order_is_that_of_the_measured_times(rows):
    for a, b in combinations(sorted(rows, key=lambda row: row.measured), 2):
        if b.measured > ALIKE * a.measured:
            assert b.estimate.seconds > a.estimate.seconds, (a, b)


def test_the_bound_is_the_one_that_nsight_compute_shows(rows):
    bounds = {row.estimate.kernel: row.estimate.bound for row in rows}
    assert bounds["axpy"] == "DRAM"
    assert bounds["gemm_serial"] == "latency"
    assert bounds["gemm_naive"] == bounds["gemm_tiled"] == "L1 and shared memory"


def test_an_estimate_calls_itself_one_and_names_the_gpu(rows):
    text = str(rows[0].estimate)
    assert "estimate" in text and "nothing was measured" in text and H200 in text


# Nothing was fitted to these. What comes of the others, `benchmarks/estimates.py` prints.
HELD_OUT = ("scale_by_fours", "row_sums", "column_sums", "heat_step", "linear_unpadded")
HELD_OUT += ("linear_by_fours",)


def test_kernels_that_nothing_was_fitted_to_are_estimated_as_well(monkeypatch):
    monkeypatch.setattr("utils.timing.sass.compiled", lambda *_: {})
    rows = list(estimates.held_out(HELD_OUT))
    assert [row.estimate.kernel for row in rows] == list(HELD_OUT)
    assert statistics.median(abs(row.error) for row in rows) <= 0.15
    assert max(abs(row.error) for row in rows) <= 0.3


# A product whose tiles are large, with a second launch behind it; loads that lanes share only where
# there are few channels; one that fetches ahead in all rounds but the last.
@pytest.mark.parametrize(
    "name", ["linear_gn_min_bias", "linear_groupnorm", "groupnorm_serial", "gemm_warp"]
)
def test_kernels_that_change_with_their_size_are_estimated(monkeypatch, name):
    monkeypatch.setattr("utils.timing.sass.compiled", lambda *_: {})
    (row,) = estimates.stored((name,))
    assert abs(row.error) <= 0.3, row


# What nvcc merges in nested loops; divisions and shuffles; comparisons where nothing hides them.
@pytest.mark.parametrize("name", ["gemm_1d", "stats_welford", "groupnorm_warp", "row_argmin"])
def test_kernels_that_do_more_than_move_data_are_estimated(monkeypatch, name):
    monkeypatch.setattr("utils.timing.sass.compiled", lambda *_: {})
    (row,) = estimates.stored((name,))
    assert abs(row.error) <= 0.3, row
    assert bool(row.estimate.caveats) == ("off by half" in str(row.estimate))
    assert bool(row.estimate.caveats) == (name in ("stats_welford", "groupnorm_warp"))


def test_where_instructions_cannot_be_counted_the_estimate_says_so(monkeypatch):
    monkeypatch.setattr("utils.timing.scaling.computed", lambda library: {})
    exercise = load("00_start_here/axpy")
    kernel = compile_answer(exercise, solution_text(exercise), backend="emulator")
    assert "off by half: instructions are not counted" in str(estimate(kernel))


@pytest.mark.parametrize("name", ["linear_split", "split_rows"])
def test_of_tensor_cores_and_halves_nothing_is_estimated(name):
    exercise = load(f"10_tensor_cores/{name}")
    kernel = compile_answer(exercise, solution_text(exercise), backend="emulator")
    with pytest.raises(WorkbookError, match="is not in the model"):
        estimate(kernel)


def test_registers_are_those_of_the_templates_arguments():
    code = {"_Z1kILi1EEvi": Occupied(20, 0), "_Z1kILi2EEvi": Occupied(40, 0)}
    launch = Work("k", 1, 32, 0, 0, {}, symbol="_Z1kILi1EEvi")
    assert registers(launch, code) == 20
    assert registers(replace(launch, symbol=""), code) == 40  # at most: which one is not known
    assert registers(replace(launch, kernel="other", symbol=""), code) == 0


def test_a_call_costs_a_launch_at_least():
    exercise = load("00_start_here/axpy")
    text = solution_text(exercise)
    kernel = compile_answer(exercise, text, backend="emulator")
    assert 3e-6 < estimate(kernel, n=32).seconds < 6e-6


def test_sizes_of_the_call_take_the_place_of_the_benchs():
    exercise = load("00_start_here/axpy")
    kernel = compile_answer(exercise, solution_text(exercise), backend="emulator")
    large, small = estimate(kernel), estimate(kernel, n=1 << 25)
    assert large.sizes == {"n": 1 << 27} and small.sizes == {"n": 1 << 25}
    assert large.seconds / small.seconds == pytest.approx(4, rel=0.02)
    assert isinstance(small, Estimate)
    with pytest.raises(WorkbookError, match="nothing is known of an 'Abacus'"):
        estimate(kernel, gpu="Abacus")


@pytest.mark.parametrize("most", [1000, 3000])  # 1,024 elements are 2,048 accesses, and blocks
def test_of_a_kernel_that_cannot_be_recorded_as_a_whole_nothing_is_estimated(monkeypatch, most):
    exercise = load("00_start_here/swish")
    kernel = compile_answer(exercise, solution_text(exercise), backend="emulator")
    monkeypatch.setattr("utils.watch.trace.MOST", most)
    with pytest.raises(WorkbookError, match=r"swish makes too many accesses with n=\d+"):
        work(kernel, {"n": 1 << 20})


@pytest.mark.parametrize("groups", [256, 512])
def test_a_size_that_follows_another_keeps_its_share_of_it(groups):
    exercise = load("06_groupnorm/groupnorm_vectorized")
    kernel = compile_answer(exercise, solution_text(exercise), backend="emulator")
    sizes = {**exercise.at.bench, "groups": groups}
    (launch,) = work(kernel, sizes)  # small groups would be another kernel's
    assert launch.kernel.startswith("groupnorm_vectorized_kernel")
    sectors = sizes["rows"] * sizes["channels"] * 4 / 32
    for cost in launch.instructions.values():  # x, weight, bias, out
        assert cost.requests == sectors / 16
        assert cost.distinct <= cost.missed <= cost.sectors == sectors


@pytest.mark.parametrize("name", ["cumsum_rows", "histogram"])
def test_a_side_that_adds_few_accesses_is_tried_long_enough(name):
    """Of short rows most loads have no element; of few values none comes to the unrolled loop."""
    exercise = load(f"15_short_pieces/{name}")
    kernel = compile_answer(exercise, solution_text(exercise), backend="emulator")
    parts = estimate(kernel).parts
    assert parts["DRAM"] == pytest.approx(exercise.bytes(**exercise.at.bench) / 4.28e12, rel=0.02)
    assert parts["latency"] < parts["DRAM"]


def test_atomics_on_one_address_wait_for_each_other():
    parts = {}
    for name in ("sum_atomic", "sum_tree"):
        exercise = load(f"04_reductions/{name}")
        kernel = compile_answer(exercise, solution_text(exercise), backend="emulator")
        got = estimate(kernel)
        assert got.bound == "atomics"
        parts[name] = got.parts
    model = known_gpu(H200)
    assert parts["sum_atomic"]["atomics"] == pytest.approx(
        2**28 * model.atomic_cycles / model.clock
    )
    assert parts["sum_atomic"]["atomics"] == pytest.approx(256 * parts["sum_tree"]["atomics"])
    assert parts["sum_tree"]["block starts"] == pytest.approx(
        2**20 * model.start_cycles / model.clock
    )


# --- requests


def accesses(space, byte, size=4, nth=0, phase=0, block=0):
    """One load by each of as many lanes as `byte` has entries, in one request."""
    byte = np.asarray(byte)
    out = np.zeros(len(byte), ACCESSES)
    out["thread"], out["byte"], out["size"] = np.arange(len(byte)), byte, size
    out["space"], out["kind"], out["nth"], out["phase"] = space, LOAD, nth, phase
    out["block"] = block
    return out


LANE = np.arange(32)


@pytest.mark.parametrize(
    ("stride", "wavefronts"),
    # Nsight Compute: load_stride_... of tests/calibration/global_access.cu, less those of the store
    [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 32), (33, 8)],
)
def test_wavefronts_of_a_global_request(stride, wavefronts):
    request, sector = np.zeros(32, "i8"), LANE * 4 * stride // 32
    assert global_wavefronts(request, sector)[1] == wavefronts


@pytest.mark.parametrize(
    ("size", "index", "wavefronts"),
    # Nsight Compute: the kernels of these names in tests/calibration/shared_access.cu
    [
        pytest.param(4, LANE, 1, id="linear"),
        pytest.param(4, 2 * LANE, 2, id="stride_2"),
        pytest.param(4, 32 * LANE, 32, id="stride_32"),
        pytest.param(4, 0 * LANE, 1, id="broadcast"),
        pytest.param(8, LANE, 2, id="float2_linear"),
        pytest.param(8, LANE // 2, 1, id="float2_pairs"),
        pytest.param(8, LANE % 2, 1, id="float2_alternating"),
        pytest.param(8, LANE % 16, 2, id="float2_halves_alike"),
        pytest.param(8, LANE // 2 * 16, 16, id="float2_pairs_stride_16"),
        pytest.param(16, LANE, 4, id="float4_linear"),
        pytest.param(16, 0 * LANE, 2, id="float4_broadcast"),
        pytest.param(16, LANE // 8, 2, id="float4_octets"),
        pytest.param(16, LANE % 8, 4, id="float4_octets_alike"),
        pytest.param(16, 8 * LANE, 32, id="float4_stride_8"),
    ],
)
def test_wavefronts_of_a_shared_request(size, index, wavefronts):
    records = accesses(SHARED, index * size, size)
    assert bank_conflicts(records).wavefronts.tolist() == [wavefronts]


def test_neighbours_in_a_row_become_one_load():
    def loop(stride, start=0, phases=(0, 0, 0, 0)):
        loads = [
            accesses(SHARED, LANE * 128 + start + k * stride, nth=k, phase=phases[k])
            for k in range(4)
        ]
        return widened(np.concatenate(loads))

    assert len(loop(4)) == 32 and set(loop(4)["size"]) == {16}
    assert set(loop(4, start=8)["size"]) == {8}  # half of them would not be aligned
    assert set(loop(4, start=4)["size"]) == {4}
    assert set(loop(128)["size"]) == {4}  # a column
    assert set(loop(4, phases=(0, 0, 0, 1))["size"]) == {4}  # a barrier in between


@pytest.mark.parametrize(("others", "size"), [(0, 16), (8, 4)])
def test_neighbours_of_an_outer_loop_become_one_load_unless_the_loop_is_large(others, size):
    """for k < 4: for i < 8: As[i][k]; with `others` loads of another array in each round of k."""
    rounds = [(k, i) for k in range(4) for i in range(8)]
    loads = [
        accesses(SHARED, LANE * 1024 + 32 * i + 4 * k, nth=nth) for nth, (k, i) in enumerate(rounds)
    ]
    turn = np.repeat([k * (8 + others) + i for k, i in rounds], 32)
    wide = widened(np.concatenate(loads), turn)
    assert set(wide["size"]) == {size}
    assert wide["nth"].max() + 1 == 32 // (size // 4)  # requests of the warp


def test_loads_that_each_lane_makes_in_another_order_stay_single():
    """for i < 32: bins[lane][(lane + i) % 32]: nvcc does not know which are neighbours."""
    loads = [accesses(SHARED, LANE * 128 + (LANE + i) % 32 * 4, nth=i) for i in range(32)]
    single = widened(np.concatenate(loads))
    assert set(single["size"]) == {4}
    assert bank_conflicts(single).wavefronts.tolist() == [1] * 32


def test_a_block_finds_in_the_cache_what_it_has_read():
    twice = [accesses(GLOBAL, LANE * 4, nth=k, block=b) for k in range(2) for b in range(3)]
    (cost,) = costs(Launch("k", (3, 1, 1), (32, 1, 1), np.concatenate(twice))).values()
    assert (cost.requests, cost.each) == (6, 2)
    assert (cost.sectors, cost.missed, cost.missed_lines, cost.distinct) == (24, 12, 3, 4)


@pytest.mark.parametrize(
    ("threads", "shared", "registers", "blocks"),
    [(256, 0, 0, 8), (1024, 0, 32, 2), (1024, 0, 40, 1), (32, 0, 0, 32), (64, 48 << 10, 0, 4)],
)
def test_blocks_that_a_multiprocessor_holds(threads, shared, registers, blocks):
    launch = Work("k", 1000, threads, shared, 0, {})
    assert resident(known_gpu(H200), launch, registers) == blocks
