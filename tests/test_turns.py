"""Blocks of one launch that look back at each other meet some that are not done, as on a GPU."""

import pytest
import torch

from utils.cuda.compiler import compile_cuda

BLOCKS = 80
SCAN = """
// As far as the first block that knows the sum of all, or no further than `FAR` blocks back.
__global__ void scan_kernel(const int* x, int* out, int* board, int blocks) {
    int block = blockIdx.x, *status = board, *own = board + blocks, *all = board + 2 * blocks;
    if (threadIdx.x > 0) return;
    own[block] = x[block];
    __threadfence();
    atomicExch(&status[block], 1);
    int before = 0;
    for (int at = block - 1; at >= 0 && block - at <= FAR; at--) {
        int told;
        while ((told = atomicAdd(&status[at], 0)) == 0) {
        }
        __threadfence();
        before += told == 2 ? all[at] : own[at];
        if (told == 2) break;
    }
    all[block] = before + x[block];
    __threadfence();
    atomicExch(&status[block], 2);
    out[block] = before + x[block];
}
void scan(const int* x, int* out, int* board, int blocks) {
    scan_kernel<<<blocks, 32>>>(x, out, board, blocks);
}
"""


def scanned(far: int) -> list[int]:
    """Running sums of ones, by blocks that look so far back."""
    kernel = compile_cuda(SCAN.replace("FAR", str(far)), "scan", backend="emulator")
    x, out = torch.ones(BLOCKS, dtype=torch.int32), torch.zeros(BLOCKS, dtype=torch.int32)
    kernel(x, out, torch.zeros(3 * BLOCKS, dtype=torch.int32), BLOCKS)
    return out.tolist()


def test_a_look_back_as_far_as_it_must_go_is_right():
    assert scanned(BLOCKS) == list(range(1, BLOCKS + 1))


@pytest.mark.parametrize("far", [1, 32])
def test_one_that_stops_before_it_knows_all_is_not(far):
    assert scanned(far) != list(range(1, BLOCKS + 1))
