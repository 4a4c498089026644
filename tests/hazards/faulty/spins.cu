// Blocks that wait for each other, got wrong.
#include "../case.cuh"

__global__ void look_back_without_a_fence(int* sum, int* flag, int* out) {
    if (threadIdx.x) return;
    int before = 0;
    if (blockIdx.x) {
        while (atomicAdd(&flag[blockIdx.x - 1], 0) == 0) {
        }
        before = sum[blockIdx.x - 1];  // WITH
    }
    sum[blockIdx.x] = before + 1;  // HAZARD race/blocks
    atomicExch(&flag[blockIdx.x], 1);
    out[blockIdx.x] = before;
}
CASE(look_back_without_a_fence, 6, 32, fresh<int>(6), zeros<int>(6), fresh<int>(6))

__global__ void look_ahead_without_a_fence(int* sum, int* flag) {
    if (threadIdx.x) return;
    const int next = blockIdx.x + 1;
    int after = 0;
    if (next < gridDim.x) {
        while (atomicAdd(&flag[next], 0) == 0) {
        }
        after = sum[next];  // WITH
    }
    sum[blockIdx.x] = after + 1;  // HAZARD race/blocks
    atomicExch(&flag[blockIdx.x], 1);
}
CASE(look_ahead_without_a_fence, 6, 32, fresh<int>(6), zeros<int>(6))

__global__ void meets_without_a_fence(int* x, int* y, unsigned* come) {
    x[blockIdx.x * 32 + threadIdx.x] = 1;  // HAZARD race/blocks
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(come, 1);
        while (atomicAdd(come, 0) < gridDim.x) {
        }
    }
    __syncthreads();
    y[blockIdx.x * 32 + threadIdx.x] = x[(blockIdx.x * 32 + threadIdx.x + 32) % 128];  // WITH
}
CASE(meets_without_a_fence, 4, 32, fresh<int>(128), fresh<int>(128), zeros<unsigned>(1))

__global__ void waits_for_nobody(volatile int* flag, int* out) {
    if (threadIdx.x == 0) {
        while (*flag == 0) {  // HAZARD deadlock/spinning
        }
    }
    __syncthreads();
    out[threadIdx.x] = 1;
}
CASE(waits_for_nobody, 3, 32, zeros<int>(1), zeros<int>(32))

__global__ void waits_behind_a_barrier(volatile int* flag, int* out) {
    out[threadIdx.x] = 1;
    __syncthreads();  // it came through here: it is not where it spins
    if (threadIdx.x == 0) {
        while (*flag == 0) {  // HAZARD deadlock/spinning
        }
    }
}
CASE(waits_behind_a_barrier, 1, 32, zeros<int>(1), zeros<int>(32))

// A ticket says which part of the sum a block takes; it looks back at sums of blocks as far as the
// first sum of all.
__global__ void scan_without_a_fence(const int* x, int* out, unsigned* tickets, int* status,
                                     int* own, int* all) {
    __shared__ unsigned block;
    if (threadIdx.x == 0) block = atomicAdd(tickets, 1);
    __syncthreads();
    if (threadIdx.x) return;
    const int mine = x[block];
    int before = 0;
    own[block] = mine;
    __threadfence();
    if (block) atomicExch(&status[block], 1);
    for (int earlier = int(block) - 1; earlier >= 0; --earlier) {
        int told;
        while ((told = atomicAdd(&status[earlier], 0)) == 0) {
        }
        if (told == 2) {
            before += all[earlier];  // WITH
            break;
        }
        before += own[earlier];
    }
    all[block] = before + mine;  // HAZARD race/blocks
    atomicExch(&status[block], 2);
    out[block] = before + mine;
}
CASE(scan_without_a_fence, 12, 32, zeros<int>(12), fresh<int>(12), zeros<unsigned>(1),
     zeros<int>(12), fresh<int>(12), fresh<int>(12))
