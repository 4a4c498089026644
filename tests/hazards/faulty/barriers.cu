// Barriers and warp functions that not everybody reaches, or with the wrong mask.
#include <cooperative_groups.h>

#include "../case.cuh"

__global__ void if_and_else(int* out) {
    if (threadIdx.x < 32) __syncthreads();  // HAZARD divergent-barrier
    else __syncthreads();                   // WITH
    out[threadIdx.x] = 1;
}
CASE(if_and_else, 1, 64, zeros<int>(64))

__global__ void in_a_branch(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = 1;
    if (threadIdx.x % 2 == 0) {
        __syncthreads();  // HAZARD divergent-barrier
        s[threadIdx.x] = 2;
    }
    __syncthreads();  // WITH
    out[threadIdx.x] = s[threadIdx.x];
    __syncthreads();
}
CASE(in_a_branch, 1, 64, zeros<int>(64))

// Those that leave it out come to the end. A GPU of today goes on, and compute-sanitizer objects.
__global__ void tree_with_barrier_in_the_branch(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    for (int n = 32; n > 0; n /= 2) {
        if (threadIdx.x < n) {
            s[threadIdx.x] += s[threadIdx.x + n];
            __syncthreads();  // HAZARD divergent-barrier/left-out
        }
    }
    if (threadIdx.x == 0) *out = s[0];
}
CASE(tree_with_barrier_in_the_branch, 1, 64, zeros<int>(1))

__device__ int sum_of_all(int* s) {
    for (int n = blockDim.x / 2; n > 0; n /= 2) {
        __syncthreads();  // HAZARD divergent-barrier/left-out
        if (threadIdx.x < n) s[threadIdx.x] += s[threadIdx.x + n];
    }
    return s[0];
}
__global__ void the_first_alone_asks_for_the_sum(int* out) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) *out = sum_of_all(s);
}
CASE(the_first_alone_asks_for_the_sum, 1, 32, zeros<int>(1))

__global__ void loops_of_different_length(int* out) {
    for (int i = 0; i < 1 + threadIdx.x / 32; ++i) __syncthreads();  // HAZARD divergent-barrier
    out[threadIdx.x] = 1;
    __syncthreads();  // WITH
    out[threadIdx.x] += 1;
}
CASE(loops_of_different_length, 1, 64, zeros<int>(64))

__global__ void continue_before_barrier(int* out) {
    for (int i = 0; i < 2; ++i) {
        if (threadIdx.x == i) continue;
        __syncthreads();  // HAZARD divergent-barrier
    }
    __syncthreads();  // WITH
    out[threadIdx.x] = 1;
}
CASE(continue_before_barrier, 1, 32, zeros<int>(32))

__global__ void barrier_in_a_switch(int* out) {
    switch (threadIdx.x / 32) {
        case 0: __syncthreads(); break;   // HAZARD divergent-barrier
        default: __syncthreads(); break;  // WITH
    }
    out[threadIdx.x] = 1;
}
CASE(barrier_in_a_switch, 1, 64, zeros<int>(64))

__device__ void helper(int* out) {
    __syncthreads();  // HAZARD divergent-barrier
    out[threadIdx.x] = 1;
}
__global__ void barrier_in_a_function(int* out) {
    if (threadIdx.x >= 32) helper(out);
    else __syncthreads();  // WITH
    out[threadIdx.x] = 2;
}
CASE(barrier_in_a_function, 1, 64, zeros<int>(64))

__global__ void barrier_and_count(int* out) {
    int n = 0;
    if (threadIdx.x < 32) n = __syncthreads_count(1);  // HAZARD divergent-barrier
    else __syncthreads();                              // WITH
    out[threadIdx.x] = n;
}
CASE(barrier_and_count, 1, 64, zeros<int>(64))

__global__ void group_barrier_in_a_branch(int* out) {
    auto block = cooperative_groups::this_thread_block();
    if (threadIdx.x < 32) block.sync();  // HAZARD divergent-barrier
    __syncthreads();                     // WITH
    out[threadIdx.x] = 1;
    if (threadIdx.x >= 32) __syncthreads();
}
CASE(group_barrier_in_a_branch, 1, 64, zeros<int>(64))

__global__ void barrier_against_warp_sync(int* out) {
    if (threadIdx.x < 16) __syncthreads();  // WITH
    else __syncwarp();                      // HAZARD deadlock
    out[threadIdx.x] = 1;
}
CASE(barrier_against_warp_sync, 1, 32, zeros<int>(32))

__global__ void shuffle_in_a_branch(int* out) {
    int v = threadIdx.x;
    if (threadIdx.x < 16) v += __shfl_down_sync(0xffffffff, v, 8);  // HAZARD deadlock
    __syncthreads();                                                // WITH
    out[threadIdx.x] = v;
}
CASE(shuffle_in_a_branch, 1, 32, zeros<int>(32))

__global__ void vote_in_a_branch(int* out) {
    int any = 0;
    if (threadIdx.x != 5) any = __any_sync(0xffffffff, out[threadIdx.x]);  // HAZARD deadlock
    __syncthreads();                                                       // WITH
    out[threadIdx.x] = any;
}
CASE(vote_in_a_branch, 1, 32, zeros<int>(32))

__global__ void caller_not_in_mask(int* out) {
    out[threadIdx.x] = __shfl_sync(0x0000ffff, threadIdx.x, 0);  // HAZARD invalid-mask
}
CASE(caller_not_in_mask, 1, 32, zeros<int>(32))

__global__ void syncwarp_without_the_caller(int* out) {
    __syncwarp(1);  // HAZARD invalid-mask
    out[threadIdx.x] = 1;
}
CASE(syncwarp_without_the_caller, 1, 2, zeros<int>(32))

__global__ void masks_differ(int* out) {
    unsigned mask = threadIdx.x == 7 ? 0xfffffffe : 0xffffffff;
    out[threadIdx.x] = __shfl_xor_sync(mask, threadIdx.x, 1);  // HAZARD invalid-mask
}
CASE(masks_differ, 1, 32, zeros<int>(32))

__global__ void operations_differ(int* out) {
    int v;
    if (threadIdx.x < 16) v = __any_sync(0xffffffff, 1);  // HAZARD invalid-mask
    else v = __shfl_sync(0xffffffff, 1, 0);               // WITH
    out[threadIdx.x] = v;
}
CASE(operations_differ, 1, 32, zeros<int>(32))

__global__ void lane_has_left(int* out, int n) {
    if (threadIdx.x >= n) return;
    out[threadIdx.x] =
        __shfl_xor_sync(0xffffffff, threadIdx.x, 1);  // HAZARD invalid-mask/exited-lane
}
CASE(lane_has_left, 1, 32, zeros<int>(32), 30)

__global__ void branch_and_leave(int* out) {
    int v = threadIdx.x;
    if (threadIdx.x < 16) {
        v += __shfl_down_sync(0xffffffff, v, 8);  // HAZARD invalid-mask/exited-lane
        out[threadIdx.x] = v;
    }
}
CASE(branch_and_leave, 1, 32, zeros<int>(32))

__global__ void guard_around_reduction(const int* in, int* out, int n) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) {
        int v = in[i];
        for (int d = 16; d > 0; d /= 2)
            v += __shfl_down_sync(0xffffffff, v, d);  // HAZARD invalid-mask/exited-lane
        if (threadIdx.x == 0) out[blockIdx.x] = v;
    }
}
CASE(guard_around_reduction, 2, 32, zeros<int>(64), zeros<int>(2), 50)
