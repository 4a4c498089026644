// Order between blocks: write, fence, atomic; then, in another block, atomic, read.
#include "../case.cuh"

__global__ void last_block_adds(float* partial, unsigned* done, float* out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = blockIdx.x;
        __threadfence();
        last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) atomicAdd(out, partial[threadIdx.x]);
}
CASE(last_block_adds, 32, 32, fresh<float>(32), zeros<unsigned>(1), zeros<float>(1))

__global__ void all_write_one_counts(float* partial, unsigned* done, float* out) {
    __shared__ bool last;
    partial[blockIdx.x * 32 + threadIdx.x] = 1;
    __syncthreads();  // then one thread's fence is for all
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(done, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last)
        for (unsigned b = 0; b < gridDim.x; ++b) out[threadIdx.x] += partial[b * 32 + threadIdx.x];
}
CASE(all_write_one_counts, 5, 32, fresh<float>(160), zeros<unsigned>(1), zeros<float>(32))

__global__ void all_fence_one_counts(float* partial, unsigned* done, float* out) {
    __shared__ bool last;
    partial[blockIdx.x * 64 + threadIdx.x] = 1;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(done, 1) == gridDim.x - 1;
    __syncthreads();
    if (last)
        for (unsigned b = 0; b < gridDim.x; ++b) out[threadIdx.x] += partial[b * 64 + threadIdx.x];
}
CASE(all_fence_one_counts, 5, 64, fresh<float>(320), zeros<unsigned>(1), zeros<float>(64))

__global__ void lock_of_blocks(int* lock, int* balance) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {
        }
        __threadfence();
        *balance += 2;
        __threadfence();
        atomicExch(lock, 0);
    }
}
CASE(lock_of_blocks, 9, 32, zeros<int>(1), zeros<int>(1))

__global__ void tiles_in_turn(int* turn, float* c) {  // split along K: block after block adds
    if (threadIdx.x == 0)
        while (atomicAdd(turn, 0) != int(blockIdx.x)) {
        }
    __syncthreads();
    c[threadIdx.x] += 1;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(turn, blockIdx.x + 1);
}
CASE(tiles_in_turn, 4, 64, zeros<int>(1), zeros<float>(64))

__global__ void told_and_read(int* word, int* flag, int* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        *word = 7;
        __threadfence();
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) {
        }
        __threadfence();
        out[blockIdx.x] = *word;
    }
}
CASE(told_and_read, 3, 32, zeros<int>(1), zeros<int>(1), zeros<int>(3))

__global__ void one_lane_waits_for_all(int* words, int* flag, int* out) {
    if (blockIdx.x == 0) {
        words[threadIdx.x] = 7;
        __syncthreads();
        __threadfence();
        if (threadIdx.x == 0) atomicExch(flag, 1);
    } else {
        if (threadIdx.x == 0)
            while (atomicAdd(flag, 0) == 0) {
            }
        __syncwarp();
        out[32 * blockIdx.x + threadIdx.x] = words[threadIdx.x];
    }
}
CASE(one_lane_waits_for_all, 3, 32, zeros<int>(32), zeros<int>(1), zeros<int>(96))

__global__ void last_one_sets_back(int* word, int* done) {  // a store waits for what it depends on
    if (threadIdx.x) return;
    if (blockIdx.x == 0) *word = 7;
    __threadfence();
    if (atomicAdd(done, 1) == gridDim.x - 1) *word = 0;
}
CASE(last_one_sets_back, 5, 32, zeros<int>(1), zeros<int>(1))

__global__ void status_and_sum_in_one_word(unsigned long long* words, int* out) {
    if (threadIdx.x) return;
    unsigned long long told = 1ull << 32;
    if (blockIdx.x) do {
            told = __nv_atomic_load_n(&words[blockIdx.x - 1], __NV_ATOMIC_RELAXED);
        } while (told >> 32 == 0);
    __nv_atomic_store_n(&words[blockIdx.x], told + 5, __NV_ATOMIC_RELAXED);
    out[blockIdx.x] = int(told);
}
CASE(status_and_sum_in_one_word, 6, 32, zeros<unsigned long long>(6), fresh<int>(6))

__global__ void released_and_acquired(int* word, int* flag, int* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        *word = 7;
        __nv_atomic_store_n(flag, 1, __NV_ATOMIC_RELEASE);
    } else {
        while (__nv_atomic_load_n(flag, __NV_ATOMIC_ACQUIRE) == 0) {
        }
        out[blockIdx.x] = *word;
    }
}
CASE(released_and_acquired, 3, 32, zeros<int>(1), zeros<int>(1), zeros<int>(3))
