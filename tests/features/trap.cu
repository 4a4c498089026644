// __trap ends the launch with cudaErrorLaunchFailure.
#include "expect.cuh"

__global__ void guarded(int n) {
    if (threadIdx.x >= n) __trap();
}

int main() {
    guarded<<<1, 64>>>(64);
    LAUNCHED();
    guarded<<<1, 64>>>(63);
    EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorLaunchFailure);
    EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    return finish_on_host();
}
