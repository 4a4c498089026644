// Warps: lanes ordered by __syncwarp, shuffles and groups, partial warps, lanes that have left.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "../case.cuh"

namespace cg = cooperative_groups;

__global__ void tree_with_syncwarp(const float* in, float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = in[threadIdx.x];
    s[threadIdx.x + 32] = in[threadIdx.x + 32];
    __syncwarp();
    for (int n = 32; n > 0; n /= 2) {
        float other = threadIdx.x < n ? s[threadIdx.x + n] : 0;
        __syncwarp();
        if (threadIdx.x < n) s[threadIdx.x] += other;
        __syncwarp();
    }
    if (threadIdx.x == 0) *out = s[0];
}
CASE(tree_with_syncwarp, 1, 32, zeros<float>(64), zeros<float>(1))

__global__ void neighbour(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncwarp();
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}
CASE(neighbour, 1, 64, zeros<int>(64))

__global__ void halves_of_a_warp(int* out) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;
    __syncwarp(threadIdx.x < 16 ? 0xffff : 0xffff0000);
    out[threadIdx.x] = s[threadIdx.x ^ 15];
}
CASE(halves_of_a_warp, 1, 32, zeros<int>(32))

__global__ void order_handed_on(int* out) {
    __shared__ int s;
    if (threadIdx.x == 0) s = 5;
    if (threadIdx.x < 2) __syncwarp(0x3);  // lane 0, then lane 1, then lane 2
    if (threadIdx.x == 1 || threadIdx.x == 2) __syncwarp(0x6);
    if (threadIdx.x == 2) *out = s;
}
CASE(order_handed_on, 1, 32, zeros<int>(1))

__global__ void two_syncs_a_step(int* out) {
    __shared__ int s[32];
    int sum = 0;
    for (int step = 0; step < 3; ++step) {
        s[threadIdx.x] = threadIdx.x * step;
        __syncwarp();
        sum += s[31 - threadIdx.x];
        __syncwarp();
    }
    out[threadIdx.x] = sum;
}
CASE(two_syncs_a_step, 1, 32, zeros<int>(32))

__global__ void warps_of_their_own(int* out) {
    __shared__ int s[4][32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int step = 0; step <= warp; ++step) {  // each warp its own number of steps
        s[warp][lane] = lane + step;
        __syncwarp();
        out[threadIdx.x] = s[warp][31 - lane];
        __syncwarp();
    }
}
CASE(warps_of_their_own, 1, 128, zeros<int>(128))

__global__ void shuffle_sum(const float* in, float* out) {
    float v = in[blockIdx.x * 32 + threadIdx.x];
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
    if (threadIdx.x == 0) atomicAdd(out, v);
}
CASE(shuffle_sum, 4, 32, zeros<float>(128), zeros<float>(1))

__global__ void block_sum(const float* in, float* out) {
    __shared__ float sums[4];
    float v = in[threadIdx.x];
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffff, v, d);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < 4 ? sums[threadIdx.x] : 0;
        for (int d = 2; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
        if (threadIdx.x == 0) *out = v;
    }
}
CASE(block_sum, 1, 128, zeros<float>(128), zeros<float>(1))

__global__ void partial_last_warp(const int* in, int* out) {
    __shared__ int s[40];
    int v = in[threadIdx.x];
    int sum = __shfl_sync(0xffffffff, v, 0);  // of the 8 lanes that the last warp has
    s[threadIdx.x] = sum;
    __syncwarp();
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}
CASE(partial_last_warp, 1, 40, zeros<int>(40), zeros<int>(40))

__global__ void lanes_left_and_not_named(int* out, int n) {
    unsigned mask = __ballot_sync(0xffffffff, threadIdx.x < n);
    if (threadIdx.x >= n) return;
    out[threadIdx.x] = __shfl_sync(mask, threadIdx.x, 0);
}
CASE(lanes_left_and_not_named, 1, 32, zeros<int>(32), 20)

__global__ void mask_of_a_branch(int* out) {
    int v = threadIdx.x;
    if (threadIdx.x < 16) v += __shfl_down_sync(0x0000ffff, v, 8);
    else v += __shfl_up_sync(0xffff0000, v, 8);
    out[threadIdx.x] = v;
}
CASE(mask_of_a_branch, 1, 32, zeros<int>(32))

__global__ void one_call_two_masks(int* out) {
    unsigned mask = threadIdx.x < 8 ? 0xff : 0xffffff00;
    out[threadIdx.x] = __any_sync(mask, threadIdx.x == 9);
}
CASE(one_call_two_masks, 1, 32, zeros<int>(32))

__global__ void tiles_sync(int* out) {
    __shared__ int s[64];
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    s[threadIdx.x] = threadIdx.x;
    tile.sync();
    out[threadIdx.x] = s[threadIdx.x ^ 7];
}
CASE(tiles_sync, 1, 64, zeros<int>(64))

__global__ void tile_reduce(const int* in, int* out) {
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    int sum = cg::reduce(tile, in[threadIdx.x], cg::plus<int>());
    if (tile.thread_rank() == 0) atomicAdd(out, sum);
}
CASE(tile_reduce, 1, 64, zeros<int>(64), zeros<int>(1))

__global__ void coalesced_counter(const int* in, int* count) {
    if (in[threadIdx.x] % 2 == 0) {
        auto active = cg::coalesced_threads();
        if (active.thread_rank() == 0) atomicAdd(count, active.size());
        active.sync();
    }
}
CASE(coalesced_counter, 2, 64, zeros<int>(64), zeros<int>(1))

__global__ void coalesced_exchange(int* out) {
    __shared__ int s[32];
    if (threadIdx.x % 2) {
        auto odd = cg::coalesced_threads();
        s[odd.thread_rank()] = threadIdx.x;
        odd.sync();
        out[threadIdx.x] = s[odd.size() - 1 - odd.thread_rank()];
    }
}
CASE(coalesced_exchange, 1, 32, zeros<int>(32))

__global__ void active_lanes(int* out) {
    if (threadIdx.x > 4) {
        unsigned mask = __activemask();
        out[threadIdx.x] = __popc(mask) + __shfl_sync(mask, threadIdx.x, 5);
    }
}
CASE(active_lanes, 1, 32, zeros<int>(32))

__global__ void votes_and_matches(int* out) {
    int key = threadIdx.x / 4, all;
    unsigned same = __match_any_sync(0xffffffff, key);
    __match_all_sync(0xffffffff, 1, &all);
    out[threadIdx.x] = __popc(same) + all + __reduce_add_sync(same, 1);
}
CASE(votes_and_matches, 1, 32, zeros<int>(32))

__global__ void atomics_within_a_warp(int* out) {
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncwarp();
    atomicAdd(&count, 1);
    __syncwarp();
    out[threadIdx.x] = count;
}
CASE(atomics_within_a_warp, 1, 32, zeros<int>(32))
