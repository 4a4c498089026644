"""Blocks of one launch that look back at each other meet some that are not done, as on a GPU.
A run may have them begin in another order: each still meets what it waits for.
"""

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


ORDERS = (1, 2, 5, 1234, 2**31 - 1)
PLACES = """
#include <cooperative_groups.h>
__global__ void places_kernel(int* places, int* warps, int* ticket) {
    __shared__ int next;
    int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) {
        int place = atomicAdd(&ticket[1 + blockIdx.x], 1);
        if (place == 0) places[blockIdx.x] = atomicAdd(ticket, 1);
        if (blockIdx.x == 0) warps[warp] = place;
    }
    if (MEETS) cooperative_groups::this_grid().sync();
}
void places(int* places, int* warps, int* ticket, int blocks) {
    void* arguments[] = {&places, &warps, &ticket};
    if (MEETS) cudaLaunchCooperativeKernel(places_kernel, blocks, 128, arguments);
    else places_kernel<<<blocks, blocks > 100 ? 8 : 128>>>(places, warps, ticket);
}
"""


def placed(blocks: int, order: int, meets: bool = False) -> tuple[list[int], list[int]]:
    """Of each block, and of each warp of block 0, which one of all it was to begin."""
    text = PLACES.replace("MEETS", str(int(meets)))
    kernel = compile_cuda(text, "places", backend="emulator")
    whole = {"dtype": torch.int32}
    places, warps = torch.zeros(blocks, **whole), torch.zeros(4, **whole)
    ticket = torch.zeros(blocks + 1, **whole)
    arguments = {"places": places, "warps": warps, "ticket": ticket, "blocks": blocks}
    after = kernel.isolated(arguments, order=order).after
    return after["places"].tolist(), after["warps"].tolist()


@pytest.mark.parametrize("meets", [False, True])
def test_blocks_and_warps_begin_in_order_unless_they_are_told_another(meets):
    for blocks in (2, 3, 4, 30):
        assert placed(blocks, 0, meets) == (list(range(blocks)), [0, 1, 2, 3])
        for order in ORDERS:
            places, _ = placed(blocks, order, meets)
            assert sorted(places) == list(range(blocks))
            assert places[0] != 0 and places[-1] != blocks - 1
    several = [placed(30, order, meets) for order in ORDERS]
    assert len({tuple(places) for places, _ in several}) == len(ORDERS)
    assert any(warps != [0, 1, 2, 3] for _, warps in several)


def test_no_more_blocks_change_places_than_a_card_holds():
    places, _ = placed(300, 7)
    for first, end in ((0, 132), (132, 264), (264, 300)):
        assert sorted(places[first:end]) == list(range(first, end)) != places[first:end]
    text = SCAN.replace("FAR", "1000")
    many = text.replace("<<<blocks, 32>>>", "<<<blocks, 32, 200 << 10>>>")
    attribute = "cudaFuncAttributeMaxDynamicSharedMemorySize"
    allow = f"cudaFuncSetAttribute(scan_kernel, {attribute}, 200 << 10);"
    many = many.replace("    scan_kernel<<<", f"    {allow}\n    scan_kernel<<<")
    static = text.replace("int block =", "__shared__ float room[12000]; room[0] = 1; int block =")
    for source in (many, static):
        kernel = compile_cuda(source, "scan", backend="emulator")
        for order in (0, *ORDERS):
            whole = {"dtype": torch.int32}
            x, out = torch.ones(400, **whole), torch.zeros(400, **whole)
            board = torch.zeros(1200, **whole)
            arguments = {"x": x, "out": out, "board": board, "blocks": 400}
            after = kernel.isolated(arguments, order=order).after
            assert after["out"].tolist() == list(range(1, 401))
