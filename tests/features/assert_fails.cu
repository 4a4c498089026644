// A failed assertion in a kernel is cudaErrorAssert, and the device is lost to this process.
#include <cassert>

#include "expect.cuh"

__global__ void checked(int* x, int limit) {
    assert(threadIdx.x < limit);
    x[threadIdx.x] = threadIdx.x;
}

int main() {
    Buffer<int> x(64);
    checked<<<1, 64>>>(x.device, 64);  // holds for all
    x.download();
    for (int i = 0; i < 64; ++i) EXPECT(x[i], i);

    checked<<<1, 64>>>(x.device, 40);
    EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorAssert);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorAssert);
    // Reading the error does not clear it: every call from here on gives it.
    EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorAssert);
    int* more;
    EXPECT_ERROR(cudaMalloc(&more, 4), cudaErrorAssert);
    EXPECT_ERROR(cudaMemcpy(&x[0], x.device, 4, cudaMemcpyDeviceToHost), cudaErrorAssert);
    return finish_on_host();
}
