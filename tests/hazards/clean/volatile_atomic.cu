// Run with --volatile-atomic: programs that use volatile as relaxed atomics.
#include "../case.cuh"

__global__ void flag_of_a_block(int* out) {
    __shared__ volatile int ready;
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (threadIdx.x == 40) ready = 1;
    if (threadIdx.x < 32) out[threadIdx.x] = ready;  // 0 or 1
}
CASE(flag_of_a_block, 1, 64, zeros<int>(32))

__global__ void waits_for_another_warp(int* out) {
    __shared__ volatile int ready;
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (threadIdx.x == 63) ready = 1;
    while (!ready) {
    }
    out[threadIdx.x] = ready;
}
CASE(waits_for_another_warp, 1, 64, zeros<int>(64))

__global__ void changed_flag(const int* in, volatile int* changed) {
    if (in[blockIdx.x * 32 + threadIdx.x] == 0) *changed = 1;
}
CASE(changed_flag, 2, 32, zeros<int>(64), zeros<int>(1))

__global__ void read_while_updated(int* best, const int* in) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (*(volatile int*)best < in[i]) atomicMax(best, in[i]);
    if (*(volatile int*)best > 0) atomicMax(best, in[i]);
}
CASE_OF(read_while_updated) {
    int host[64], *in = fresh<int>(64);
    for (int i = 0; i < 64; ++i) host[i] = i;
    cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
    read_while_updated<<<2, 32>>>(zeros<int>(1), in);
}

__global__ void volatile_and_plain_readers(volatile int* flags, int* out) {
    out[threadIdx.x] = flags[0] + const_cast<int*>(flags)[0];
}
CASE(volatile_and_plain_readers, 1, 32, zeros<int>(1), zeros<int>(32))

__global__ void flag_between_blocks(volatile int* ready, int* data, int* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        *data = 42;
        __threadfence();
        *ready = 1;
    } else {
        while (*ready == 0) {
        }
        __threadfence();
        out[blockIdx.x] = *data;
    }
}
CASE(flag_between_blocks, 3, 32, zeros<int>(1), zeros<int>(1), zeros<int>(3))
