// Blocks that wait for each other: for earlier ones, for later ones, for all.
#include "../case.cuh"

__global__ void look_back(int* sum, int* flag, int* out) {
    if (threadIdx.x) return;
    int before = 0;
    if (blockIdx.x) {
        while (atomicAdd(&flag[blockIdx.x - 1], 0) == 0) {
        }
        __threadfence();
        before = sum[blockIdx.x - 1];
    }
    sum[blockIdx.x] = before + 1;
    __threadfence();
    atomicExch(&flag[blockIdx.x], 1);
    out[blockIdx.x] = before;
}
CASE(look_back, 6, 32, fresh<int>(6), zeros<int>(6), fresh<int>(6))

__global__ void look_ahead(int* sum, int* flag) {
    if (threadIdx.x) return;
    const int next = blockIdx.x + 1;
    int after = 0;
    if (next < gridDim.x) {
        while (atomicAdd(&flag[next], 0) == 0) {
        }
        __threadfence();
        after = sum[next];
    }
    sum[blockIdx.x] = after + 1;
    __threadfence();
    atomicExch(&flag[blockIdx.x], 1);
}
CASE(look_ahead, 6, 32, fresh<int>(6), zeros<int>(6))

// The last one to come says so with a flag: the others learn of each other through it.
__global__ void meets_twice(int* x, int* y, unsigned* come, unsigned* go) {
    const int i = blockIdx.x * 32 + threadIdx.x;
    for (unsigned round = 1; round <= 2; ++round) {
        x[i] = round;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            if (atomicAdd(come, 1) == gridDim.x * round - 1) {
                __threadfence();
                atomicExch(go, 2 * round - 1);
            }
            while (atomicAdd(go, 0) < 2 * round - 1) {
            }
        }
        __syncthreads();
        y[i] = x[(i + 32) % 128];
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            if (atomicAdd(come + 1, 1) == gridDim.x * round - 1) {
                __threadfence();
                atomicExch(go, 2 * round);
            }
            while (atomicAdd(go, 0) < 2 * round) {
            }
        }
        __syncthreads();
    }
}
CASE(meets_twice, 4, 32, fresh<int>(128), fresh<int>(128), zeros<unsigned>(2), zeros<unsigned>(1))

__global__ void all_threads_wait(int* flag, int* out) {  // for a block that begins last
    if (blockIdx.x == gridDim.x - 1) {
        if (threadIdx.x == 0) atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) {
        }
    }
    out[blockIdx.x * 64 + threadIdx.x] = 1;
}
CASE(all_threads_wait, 3, 64, zeros<int>(1), fresh<int>(192))

__global__ void gives_up_after_a_while(int* flag, int* out) {  // a loop that counts does end
    int turns = 0;
    while (atomicAdd(flag, 0) == 0 && turns < 20000) ++turns;
    out[threadIdx.x] = turns;
}
CASE(gives_up_after_a_while, 1, 2, zeros<int>(1), fresh<int>(2))

// A ticket says which part of the sum a block takes; it looks back at sums of blocks as far as the
// first sum of all.
__global__ void scan(const int* x, int* out, unsigned* tickets, int* status, int* own, int* all) {
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
        __threadfence();
        if (told == 2) {
            before += all[earlier];
            break;
        }
        before += own[earlier];
    }
    all[block] = before + mine;
    __threadfence();
    atomicExch(&status[block], 2);
    out[block] = before + mine;
}
CASE(scan, 12, 32, zeros<int>(12), fresh<int>(12), zeros<unsigned>(1), zeros<int>(12),
     fresh<int>(12), fresh<int>(12))
