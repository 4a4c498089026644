// What the runtime says about kernels: occupancy, a good block size, attributes, limits.
#include "check.cuh"

__global__ void square(int* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= x[i];
}

int main() {
    const int n = 3000;
    int grid = 0, block = 0, resident = 0, wrong = 0;
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, square));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, square, block, 0));
    wrong += block < 32 || block > 1024 || block % 32 || grid < 1 || resident < 1;
    int with_shared = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&with_shared, square, 64, 40 * 1024));
    int without = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&without, square, 64, 0));
    wrong += with_shared >= without;
    CHECK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(
        &grid, &block, square, [](int threads) { return threads * sizeof(int); }));
    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, square));
    CHECK(cudaFuncSetCacheConfig(square, cudaFuncCachePreferL1));
    wrong += attributes.maxThreadsPerBlock < block || attributes.binaryVersion < 50;
    size_t stack = 0;
    CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
    CHECK(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
    wrong += stack < 4096;

    std::vector<int> x(n);
    for (int i = 0; i < n; ++i) x[i] = i;
    int* device = to_device(x);
    square<<<(n + block - 1) / block, block>>>(device, n);
    const std::vector<int> got = to_host(device, n);
    for (int i = 0; i < n; ++i) wrong += got[i] != i * i;
    return verdict("occupancy_queries", wrong);
}
