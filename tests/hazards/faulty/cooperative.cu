// Launches whose blocks could meet, and do not in time.
#include <cooperative_groups.h>

#include "../case.cuh"

namespace cg = cooperative_groups;

__global__ void block_barrier_for_the_grids(int* a, int* b) {
    const int i = blockIdx.x * 32 + threadIdx.x, n = gridDim.x * 32;
    cg::this_grid().sync();
    a[i] = i;  // HAZARD race/blocks
    __syncthreads();
    b[i] = a[(i + 32) % n];  // WITH
    cg::this_grid().sync();
}
CASE_OF(block_barrier_for_the_grids) {
    int *a = zeros<int>(128), *b = zeros<int>(128);
    void* arguments[] = {&a, &b};
    cudaLaunchCooperativeKernel((void*)block_barrier_for_the_grids, 4, 32, arguments, 0, 0);
}

__global__ void not_launched_together(int* a) {
    cg::this_grid().sync();  // HAZARD grid-barrier
    a[blockIdx.x * 32 + threadIdx.x] = 1;
}
CASE(not_launched_together, 2, 32, zeros<int>(64))

__global__ void half_of_each_block(int* a) {
    const int i = blockIdx.x * 64 + threadIdx.x;
    a[i] = 1;
    if (threadIdx.x < 32) cg::this_grid().sync();  // HAZARD divergent-barrier/left-out
    a[i] += 1;
}
CASE_OF(half_of_each_block) {
    int* a = zeros<int>(256);
    void* arguments[] = {&a};
    cudaLaunchCooperativeKernel((void*)half_of_each_block, 4, 64, arguments, 0, 0);
}
