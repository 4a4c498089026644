// Launches that CUDA refuses: which error, and that it goes away once read. The name is CUDA 13's;
// older releases say cudaErrorInvalidConfiguration for blocks and grids.
#include "expect.cuh"

__global__ void count(int* n) { atomicAdd(n, 1); }
__global__ void use_shared(int* n) {
    extern __shared__ int tile[];
    tile[threadIdx.x] = 1;
    __syncthreads();  // written
    atomicAdd(n, tile[threadIdx.x]);
}

int* counter;

void refused(dim3 grid, dim3 block, size_t shared, cudaError_t error) {
    use_shared<<<grid, block, shared>>>(counter);
    EXPECT_ERROR(cudaPeekAtLastError(), error);  // looking does not clear it
    EXPECT_ERROR(cudaGetLastError(), error);
    EXPECT_ERROR(cudaGetLastError(), cudaSuccess);
    EXPECT_ERROR(cudaDeviceSynchronize(), cudaSuccess);  // nothing ran, nothing failed
}
int launched(dim3 grid, dim3 block) {
    OK(cudaMemset(counter, 0, sizeof(int)));
    count<<<grid, block>>>(counter);
    LAUNCHED();
    int n = -1;
    OK(cudaMemcpy(&n, counter, sizeof(int), cudaMemcpyDeviceToHost));
    return n;
}

int main() {
    OK(cudaMalloc(&counter, sizeof(int)));
    OK(cudaMemset(counter, 0, sizeof(int)));
    refused(1, 0, 0, cudaErrorInvalidValue);
    refused(0, 32, 0, cudaErrorInvalidValue);
    refused(1, 1025, 0, cudaErrorInvalidValue);
    refused(1, dim3(33, 32), 0, cudaErrorInvalidValue);
    refused(1, dim3(1, 1, 65), 0, cudaErrorInvalidValue);
    refused(dim3(1, 65536), 1, 0, cudaErrorInvalidValue);
    refused(dim3(1, 1, 65536), 1, 0, cudaErrorInvalidValue);
    refused(dim3(2147483648u), 1, 0, cudaErrorInvalidValue);
    refused(1, 32, 49153, cudaErrorInvalidValue);
    refused(1, 32, 1 << 20, cudaErrorInvalidValue);
    int n = -1;
    OK(cudaMemcpy(&n, counter, sizeof(int), cudaMemcpyDeviceToHost));
    EXPECT(n, 0);  // no refused launch has run

    // A call between may succeed and leaves the error where it is.
    count<<<1, 2000>>>(counter);
    OK(cudaMemset(counter, 0, sizeof(int)));
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    void* arguments[] = {&counter};
    EXPECT_ERROR(cudaLaunchKernel(count, dim3(1), dim3(4096), arguments, 0, 0),
                 cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);

    // The largest of each kind runs.
    EXPECT(launched(1, 1024), 1024);
    EXPECT(launched(1, dim3(1, 1024)), 1024);
    EXPECT(launched(1, dim3(16, 1, 64)), 1024);
    EXPECT(launched(dim3(1, 65535), 1), 65535);
    EXPECT(launched(dim3(1, 1, 65535), 1), 65535);
    EXPECT(launched(70000, 1), 70000);
    OK(cudaFree(counter));
    return finish();
}
