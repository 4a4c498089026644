// A sum in one launch: blocks add up their parts, the grid meets, the first block adds up these.
#include <cooperative_groups.h>

#include "check.cuh"

namespace cg = cooperative_groups;

__global__ void sum_all(const float* x, int n, float* parts, float* total) {
    extern __shared__ float part[];
    cg::grid_group grid = cg::this_grid();
    cg::thread_block block = cg::this_thread_block();
    for (int round = 0; round < 2; ++round) {
        const float* from = round ? parts : x;
        const int count = round ? int(gridDim.x) : n;
        if (round && blockIdx.x) return;
        float sum = 0;
        const int start = round ? block.thread_rank() : grid.thread_rank();
        const int step = round ? block.size() : grid.size();
        for (int i = start; i < count; i += step) sum += from[i];
        part[threadIdx.x] = sum;
        for (int half = blockDim.x / 2; half; half /= 2) {
            block.sync();
            if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        }
        if (threadIdx.x == 0) *(round ? total : &parts[blockIdx.x]) = part[0];
        if (round == 0) cg::sync(grid);  // every part is there
    }
}

int main() {
    int n = 4321, threads = 128, per_multiprocessor = 0, device = 0, can = 0;
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, device));
    CHECK(cudaDeviceGetAttribute(&can, cudaDevAttrCooperativeLaunch, device));
    size_t shared = threads * sizeof(float);
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, sum_all, threads,
                                                        shared));
    int blocks = properties.multiProcessorCount * per_multiprocessor;
    if (blocks > 12) blocks = 12;
    const std::vector<float> x(n, 0.5f);
    float *in = to_device(x), *parts = to_device(std::vector<float>(blocks)), *total = to_device(x);
    void* arguments[] = {&in, &n, &parts, &total};
    CHECK(cudaLaunchCooperativeKernel((void*)sum_all, dim3(blocks), dim3(threads), arguments,
                                      shared, 0));
    int wrong = !can + (to_host(total, 1)[0] != 0.5f * n);
    // More blocks than can be there at once could never meet.
    const int many = properties.multiProcessorCount * per_multiprocessor + 1;
    wrong += cudaLaunchCooperativeKernel((void*)sum_all, dim3(many), dim3(threads), arguments,
                                         shared, 0) != cudaErrorCooperativeLaunchTooLarge;
    cudaGetLastError();
    return verdict("grid_sync_sum", wrong);
}
