// Barriers that all threads that are still there reach.
#include <cooperative_groups.h>

#include "../case.cuh"

__global__ void return_before_barrier(int* out, int n) {
    __shared__ int s[64];
    if (threadIdx.x >= n) return;
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[n - 1 - threadIdx.x];
}
CASE(return_before_barrier, 1, 64, zeros<int>(64), 40)

// The same in other words: each of these leaves before a barrier, and none of them leaves one out.
#define LEAVE_UNLESS(condition) \
    if (!(condition)) return
__device__ void in_a_function(int* out, int* s, int n) {
    if (threadIdx.x >= n) return;
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[n - 1 - threadIdx.x];
}
__global__ void return_in_other_words(int* out, int n) {
    __shared__ int s[64];
    __syncthreads();
    LEAVE_UNLESS(threadIdx.x < n + 8);
    __syncthreads();
    if (threadIdx.x < n + 4) __syncthreads();
    else return;
    auto rest = [&] { in_a_function(out, s, n); };
    rest();
}
CASE(return_in_other_words, 1, 64, zeros<int>(64), 40)

__global__ void whole_warps_leave(int* out) {
    __shared__ int s[96];
    if (threadIdx.x >= 32) return;
    s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[31 - threadIdx.x];
}
CASE(whole_warps_leave, 1, 96, zeros<int>(32))

__global__ void uniform_branch(int* out, int n) {
    __shared__ int s[64];
    s[threadIdx.x] = 1;
    if (n > 3) __syncthreads();
    else __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}
CASE(uniform_branch, 1, 64, zeros<int>(64), 5)

__global__ void blocks_differ(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = 1;
    for (unsigned i = 0; i <= blockIdx.x; ++i) __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];
}
CASE(blocks_differ, 3, 64, zeros<int>(192))

__global__ void work_of_different_length(int* out) {
    __shared__ int s[64];
    int sum = 0;
    for (unsigned i = 0; i < threadIdx.x; ++i) sum += i;
    s[threadIdx.x] = sum;
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}
CASE(work_of_different_length, 1, 64, zeros<int>(64))

__global__ void branch_between_barriers(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x < 32) out[threadIdx.x] = s[threadIdx.x + 32];
    else out[threadIdx.x] = s[threadIdx.x - 32];
    __syncthreads();
    s[threadIdx.x] = 0;
}
CASE(branch_between_barriers, 1, 64, zeros<int>(64))

__device__ void wait_here() { __syncthreads(); }
__global__ void barrier_in_a_function(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = 1;
    wait_here();
    out[threadIdx.x] = s[63 - threadIdx.x];
    wait_here();
    s[63 - threadIdx.x] = 2;
}
CASE(barrier_in_a_function, 1, 64, zeros<int>(64))

__global__ void block_group(int* out) {
    __shared__ int s[64];
    auto block = cooperative_groups::this_thread_block();
    s[block.thread_rank()] = 1;
    block.sync();
    out[block.thread_rank()] = s[63 - block.thread_rank()];
}
CASE(block_group, 1, dim3(8, 8), zeros<int>(64))

__global__ void three_dimensions(int* out) {
    __shared__ int s[4][4][4];
    s[threadIdx.z][threadIdx.y][threadIdx.x] = 1;
    __syncthreads();
    out[(threadIdx.z * 4 + threadIdx.y) * 4 + threadIdx.x] =
        s[threadIdx.x][threadIdx.y][threadIdx.z];
}
CASE(three_dimensions, 1, dim3(4, 4, 4), zeros<int>(64))

__global__ void one_thread(int* out) {
    __shared__ int s[2];
    s[0] = 1;
    s[1] = s[0] + 1;
    *out = s[1];
    __syncthreads();
}
CASE(one_thread, 1, 1, zeros<int>(1))

__global__ void thousand_threads(int* out) {
    __shared__ int s[1024];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[1023 - threadIdx.x];
}
CASE(thousand_threads, 1, 1024, zeros<int>(1024))
