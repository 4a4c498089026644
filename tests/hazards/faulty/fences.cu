// Order between blocks, got wrong.
#include "../case.cuh"

__global__ void without_a_fence(float* partial, unsigned* done, float* out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = blockIdx.x;  // HAZARD race/blocks
        last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) atomicAdd(out, partial[threadIdx.x]);  // WITH
}
CASE(without_a_fence, 32, 32, fresh<float>(32), zeros<unsigned>(1), zeros<float>(1))

__global__ void fence_of_the_block_only(float* partial, unsigned* done, float* out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = blockIdx.x;  // HAZARD race/blocks
        __threadfence_block();
        last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) atomicAdd(out, partial[threadIdx.x]);  // WITH
}
CASE(fence_of_the_block_only, 32, 32, fresh<float>(32), zeros<unsigned>(1), zeros<float>(1))

__global__ void written_after_the_count(float* partial, unsigned* done, float* out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
        partial[blockIdx.x] = blockIdx.x;  // HAZARD race/blocks
    }
    __syncthreads();
    if (last) atomicAdd(out, partial[threadIdx.x]);  // WITH
}
CASE(written_after_the_count, 32, 32, fresh<float>(32), zeros<unsigned>(1), zeros<float>(1))

__global__ void counted_before_all_have_written(float* partial, unsigned* done, float* out) {
    __shared__ bool last;
    partial[blockIdx.x * 64 + threadIdx.x] = 1;  // HAZARD race/blocks
    if (threadIdx.x == 0) {                      // the others may not have come this far
        __threadfence();
        last = atomicAdd(done, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) out[threadIdx.x] = partial[threadIdx.x];  // WITH
}
CASE(counted_before_all_have_written, 3, 64, fresh<float>(192), zeros<unsigned>(1),
     zeros<float>(64))

__global__ void counted_without_atomic(float* partial, volatile unsigned* done, float* out) {
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = 1;  // HAZARD race/blocks
        __threadfence();
        *done = *done + 1;                                       // HAZARD race/blocks
        if (*done == gridDim.x) *out = partial[0] + partial[1];  // HAZARD race/blocks
    }
}
CASE(counted_without_atomic, 2, 32, fresh<float>(2), zeros<unsigned>(1), zeros<float>(1))

__global__ void first_block_reads_too_soon(float* partial, unsigned* done, float* out) {
    if (threadIdx.x) return;
    partial[blockIdx.x] = 1;  // HAZARD race/blocks
    __threadfence();
    out[blockIdx.x] = partial[gridDim.x - 1 - blockIdx.x];  // WITH
    atomicAdd(done, 1);
}
CASE(first_block_reads_too_soon, 4, 32, zeros<float>(4), zeros<unsigned>(1), zeros<float>(4))

__global__ void read_without_a_fence(int* word, int* flag, int* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        *word = 7;  // WITH
        __threadfence();
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) {
        }
        out[blockIdx.x] = *word;  // HAZARD race/blocks-unfenced-read
    }
}
CASE(read_without_a_fence, 3, 32, zeros<int>(1), zeros<int>(1), zeros<int>(3))

__global__ void lock_taken_without_a_fence(int* lock, int* balance) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {
        }
        *balance += 2;  // HAZARD race/blocks-unfenced-read
        __threadfence();
        atomicExch(lock, 0);
    }
}
CASE(lock_taken_without_a_fence, 9, 32, zeros<int>(1), zeros<int>(1))

__global__ void fenced_before_the_poll(int* word, int* flag, int* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        *word = 7;  // WITH
        __threadfence();
        atomicExch(flag, 1);
    } else {
        int known;
        do {
            __threadfence();
            known = atomicAdd(flag, 0);
        } while (known == 0);
        out[blockIdx.x] = *word;  // HAZARD race/blocks-unfenced-read
    }
}
CASE(fenced_before_the_poll, 3, 32, zeros<int>(1), zeros<int>(1), zeros<int>(3))

__global__ void sum_read_without_a_fence(int* total, unsigned* done, int* out) {
    if (threadIdx.x) return;
    if (blockIdx.x) {
        atomicAdd(total, 1);  // WITH
        __threadfence();
        atomicAdd(done, 1);
    } else {
        while (atomicAdd(done, 0) < gridDim.x - 1) {
        }
        *out = *total;  // HAZARD race/blocks-unfenced-read
    }
}
CASE(sum_read_without_a_fence, 3, 32, zeros<int>(1), zeros<unsigned>(1), zeros<int>(1))

__global__ void sum_beside_a_relaxed_status(int* sum, int* status, int* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        *sum = 7;  // HAZARD race/blocks
        __nv_atomic_store_n(status, 1, __NV_ATOMIC_RELAXED);
    } else {
        while (__nv_atomic_load_n(status, __NV_ATOMIC_ACQUIRE) == 0) {
        }
        out[blockIdx.x] = *sum;  // WITH
    }
}
CASE(sum_beside_a_relaxed_status, 3, 32, zeros<int>(1), zeros<int>(1), zeros<int>(3))

__global__ void released_and_read_relaxed(int* sum, int* status, int* out) {
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        *sum = 7;  // WITH
        __nv_atomic_store_n(status, 1, __NV_ATOMIC_RELEASE);
    } else {
        while (__nv_atomic_load_n(status, __NV_ATOMIC_RELAXED) == 0) {
        }
        out[blockIdx.x] = *sum;  // HAZARD race/blocks-unfenced-read
    }
}
CASE(released_and_read_relaxed, 3, 32, zeros<int>(1), zeros<int>(1), zeros<int>(3))
