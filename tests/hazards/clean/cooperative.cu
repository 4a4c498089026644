// Launches whose blocks meet: what came before grid.sync() is ordered before what follows.
#include <cooperative_groups.h>

#include "../case.cuh"

namespace cg = cooperative_groups;

__global__ void blocks_take_turns(int* a, int* b, unsigned* count) {
    __shared__ int s[32];
    const int i = blockIdx.x * 32 + threadIdx.x, n = gridDim.x * 32;
    s[threadIdx.x] = i;  // stays the block's own beyond the barrier
    a[i] = i;
    atomicAdd(count, 1);
    cg::this_grid().sync();
    b[i] = a[(i + 32) % n] + s[threadIdx.x];
    if (i == 0) *count = 0;
    cg::this_grid().sync();
    a[i] = b[(i + 64) % n] + *count;
}
CASE_OF(blocks_take_turns) {
    int *a = fresh<int>(128), *b = fresh<int>(128);
    unsigned* count = zeros<unsigned>(1);
    void* arguments[] = {&a, &b, &count};
    cudaLaunchCooperativeKernel((void*)blocks_take_turns, 4, 32, arguments, 0, 0);
}

__global__ void some_have_returned(int* a, int* b, int n) {
    const int i = blockIdx.x * 64 + threadIdx.x;
    if (threadIdx.x >= n) return;
    a[i] = 1;
    cg::this_grid().sync();
    b[i] = a[(i + 64) % (gridDim.x * 64)];
}
CASE_OF(some_have_returned) {
    int *a = zeros<int>(256), *b = zeros<int>(256), n = 40;
    void* arguments[] = {&a, &b, &n};
    cudaLaunchCooperativeKernel((void*)some_have_returned, 4, 64, arguments, 0, 0);
}
