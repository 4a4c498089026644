// A store to where there is no memory is cudaErrorIllegalAddress; no later launch runs.
#include "expect.cuh"

__global__ void store(int* address, int value) { *address = value; }

int main() {
    int* good;
    OK(cudaMalloc(&good, sizeof(int)));
    store<<<1, 1>>>(good, 1);
    LAUNCHED();
    store<<<1, 1>>>(nullptr, 2);
    EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorIllegalAddress);
    store<<<1, 1>>>(good, 3);
    EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    EXPECT_ERROR(cudaMemset(good, 0, sizeof(int)), cudaErrorIllegalAddress);
    EXPECT_ERROR(cudaFree(good), cudaErrorIllegalAddress);
    return finish_on_host();
}
