"""What warps compute, counted by basic blocks, beside what the text says."""

from collections import Counter

import pytest
import torch

from utils.cuda.compiler import compile_cuda
from utils.cuda.instrumented import instrumented
from utils.watch.instructions import computed
from utils.watch.trace import LOAD, STORE, record, trace

SOURCE = """
__global__ void terms_kernel(const float* in, float* out, int n, int times) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float y = in[i / times] * 3.0f + 1.0f;
    for (int k = 0; k < times; k++) y = y * y + in[i];
    y += __shfl_xor_sync(0xffffffffu, y, 1);
    out[i] = expf(y) / in[i];
}
void terms(const float* in, float* out, int n, int times) {
    terms_kernel<<<(n + 63) / 64, 64>>>(in, out, n, times);
}
"""
WARPS, TIMES = 4, 5


@pytest.fixture(scope="module")
def kernel():
    return compile_cuda(SOURCE, "terms", backend="emulator")


@pytest.fixture(scope="module")
def counted(kernel) -> Counter:
    """By kind, of a launch of 4 warps."""
    n = 32 * WARPS
    arguments = {"in": torch.ones(n), "out": torch.zeros(n), "n": n, "times": TIMES}
    (launch,) = record(kernel, arguments, counted=True).read().launches
    known, total = computed(instrumented(kernel, counted=True).library), Counter()
    for block, times in launch.begun.items():
        for kind, count in known[block].items():
            total[kind] += times * count
    assert set(launch.accesses["kind"]) == {LOAD, STORE}  # no block among them
    return total


def test_each_warp_counts_once_whatever_its_lanes(counted):
    kinds = "division", "quotient", "expf", "emu_collective"
    assert {kind: counted[kind] for kind in kinds} == dict.fromkeys(kinds, WARPS)


def test_a_quick_quotient_is_no_quotient():
    source = SOURCE.replace("expf(y) / in[i]", "__fdividef(y, in[i])")
    blocks = computed(instrumented(compile_cuda(source, "terms", backend="emulator")).library)
    counted = sum(blocks.values(), Counter())
    assert counted["emu_quick_quotient"] == 1
    assert counted["quotient"] == counted["quick quotient"] == 0


def test_a_product_and_a_sum_are_one_instruction_as_often_as_their_loop_runs(counted):
    assert counted["fused"] == WARPS * (1 + TIMES)
    assert counted["product"] == 0 and counted["sum"] == WARPS  # that of the shuffle


def test_a_loop_costs_no_more_than_what_it_is_for(kernel, counted):
    assert counted["other"] <= WARPS * 3 * TIMES


def test_other_builds_count_no_blocks(kernel):
    n = 32
    arguments = {"in": torch.ones(n), "out": torch.zeros(n), "n": n, "times": 1}
    (launch,) = trace(kernel, arguments).launches
    assert not launch.begun
