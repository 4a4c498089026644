"""The helpers of kernels/include/reduce.cuh: groups of lanes, blocks, NaN."""

import pytest
import torch

from utils.cuda.compiler import compile_cuda
from utils.watch.diagnosis import diagnose_call

TEXT = r"""
#include "reduce.cuh"

__global__ void all_of_them(const float* x, float* sums, float* eights, float* lows, float* twice) {
    int t = threadIdx.x;
    sums[t] = warp_sum(x[t]);
    eights[t] = warp_sum<8>(x[t]);
    lows[t] = warp_min<16>(x[t]);
    twice[t] = block_sum<96>(x[t]) + block_sum<96>(1.0f);  // the second call reuses the memory
}

void reduce(const float* x, float* sums, float* eights, float* lows, float* twice) {
    all_of_them<<<1, 96>>>(x, sums, eights, lows, twice);
}
"""


@pytest.fixture(scope="module")
def kernel():
    return compile_cuda(TEXT, "reduce", backend="emulator")


def reduced(kernel, x):
    out = [torch.zeros(96) for _ in range(4)]
    kernel(x, *out)
    return out


def test_every_lane_gets_what_its_group_has_together(kernel):
    x = torch.arange(96.0)
    sums, eights, lows, twice = reduced(kernel, x)
    assert torch.equal(sums.view(3, 32), x.view(3, 32).sum(1, keepdim=True).expand(3, 32))
    assert torch.equal(eights.view(12, 8), x.view(12, 8).sum(1, keepdim=True).expand(12, 8))
    assert torch.equal(lows.view(6, 16), x.view(6, 16).amin(1, keepdim=True).expand(6, 16))
    assert torch.equal(twice, torch.full((96,), x.sum() + 96))


@pytest.mark.parametrize("place", [0, 15, 37])
def test_a_nan_is_the_minimum_of_its_group_and_of_no_other(kernel, place):
    x = torch.randn(96)
    x[place] = float("nan")
    lows = reduced(kernel, x)[2].view(6, 16)
    expected = x.view(6, 16).amin(1, keepdim=True).expand(6, 16)
    assert torch.equal(lows.nan_to_num(9), expected.nan_to_num(9)) and lows.isnan().sum() == 16


def test_two_calls_in_a_row_do_not_race(kernel):
    arguments = {"x": torch.randn(96)}
    arguments |= {name: torch.zeros(96) for name in ("sums", "eights", "lows", "twice")}
    for order in range(3):
        assert diagnose_call(kernel, arguments, order=order).hazards == ()
