// Races between lanes of one warp: shared memory orders nothing without __syncwarp.
#include "../case.cuh"

__global__ void warp_synchronous_tree(const float* in, float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = in[threadIdx.x];
    s[threadIdx.x + 32] = in[threadIdx.x + 32];
    __syncwarp();
    for (int n = 32; n > 0; n /= 2) s[threadIdx.x] += s[threadIdx.x + n % 32];  // HAZARD race
    __syncwarp();
    if (threadIdx.x == 0) *out = s[0];
}
CASE(warp_synchronous_tree, 1, 32, zeros<float>(64), zeros<float>(1))

__global__ void neighbour_without_sync(int* out) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;           // HAZARD race
    out[threadIdx.x] = s[threadIdx.x ^ 1];  // WITH
}
CASE(neighbour_without_sync, 1, 32, zeros<int>(32))

__global__ void lower_half_only(int* out) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;  // HAZARD race
    if (threadIdx.x < 16) {
        __syncwarp(0xffff);
        out[threadIdx.x] = s[threadIdx.x + 16];  // WITH
    }
}
CASE(lower_half_only, 1, 32, zeros<int>(32))

__global__ void halves_apart(int* out) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;  // HAZARD race
    __syncwarp(threadIdx.x < 16 ? 0xffff : 0xffff0000);
    out[threadIdx.x] = s[31 - threadIdx.x];  // WITH
}
CASE(halves_apart, 1, 32, zeros<int>(32))

__global__ void shuffle_orders_nothing(int* out) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;  // HAZARD race
    int other = __shfl_xor_sync(0xffffffff, threadIdx.x, 1);
    out[threadIdx.x] = s[other];  // WITH
}
CASE(shuffle_orders_nothing, 1, 32, zeros<int>(32))

__global__ void vote_orders_nothing(int* out) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;  // HAZARD race
    int all = __all_sync(0xffffffff, 1);
    out[threadIdx.x] = s[31 - threadIdx.x] + all;  // WITH
}
CASE(vote_orders_nothing, 1, 32, zeros<int>(32))

__global__ void two_warps_one_sync(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;  // HAZARD race
    __syncwarp();
    out[threadIdx.x] = s[63 - threadIdx.x];  // WITH
}
CASE(two_warps_one_sync, 1, 64, zeros<int>(64))

__global__ void sync_before_the_read_only(int* out) {
    __shared__ int s[32];
    int sum = 0;
    for (int step = 0; step < 3; ++step) {
        s[threadIdx.x] = threadIdx.x * step;  // HAZARD race
        __syncwarp();
        sum += s[31 - threadIdx.x];  // WITH
    }
    out[threadIdx.x] = sum;
}
CASE(sync_before_the_read_only, 1, 32, zeros<int>(32))

__global__ void volatile_blesses_nothing(int* out) {
    __shared__ volatile int s[32];
    s[threadIdx.x] = threadIdx.x;            // HAZARD race
    out[threadIdx.x] = s[31 - threadIdx.x];  // WITH
}
CASE(volatile_blesses_nothing, 1, 32, zeros<int>(32))

__global__ void fence_is_no_barrier(int* out) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;  // HAZARD race
    __threadfence_block();
    out[threadIdx.x] = s[31 - threadIdx.x];  // WITH
}
CASE(fence_is_no_barrier, 1, 32, zeros<int>(32))

__global__ void all_lanes_store(int* out) {
    __shared__ int last;
    last = threadIdx.x;  // HAZARD race/stores
    __syncwarp();
    out[threadIdx.x] = last;
}
CASE(all_lanes_store, 1, 32, zeros<int>(32))

__global__ void permutation_with_a_double(const int* to, int* out) {
    out[to[threadIdx.x]] = threadIdx.x;  // HAZARD race/stores
}
CASE_OF(permutation_with_a_double) {
    int host[32], *to = fresh<int>(32);
    for (int i = 0; i < 32; ++i) host[i] = i == 17 ? 3 : i;
    cudaMemcpy(to, host, sizeof host, cudaMemcpyHostToDevice);
    permutation_with_a_double<<<1, 32>>>(to, zeros<int>(32));
}
