// Sums an array in one launch: warps shuffle, blocks meet in shared memory, and the block that
// comes last adds up what the others left behind.
#include <vector>

#include "check.cuh"

__device__ unsigned int blocks_done = 0;

__device__ __forceinline__ double warp_sum(double value) {
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_down_sync(0xffffffffu, value, offset);
    return value;
}

// The sum over the block, valid in thread 0. The block has a multiple of 32 threads.
__device__ double block_sum(double value) {
    __shared__ double warps[32];
    const int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
    value = warp_sum(value);
    if (lane == 0) warps[warp] = value;
    __syncthreads();  // every warp has left its sum
    value = threadIdx.x < blockDim.x / warpSize ? warps[lane] : 0.0;
    if (warp == 0) value = warp_sum(value);
    __syncthreads();  // warps may be used again
    return value;
}

// x has n elements, partial one for each block; out is one number.
__global__ void grid_sum(const float* x, double* partial, double* out, size_t n) {
    __shared__ bool is_last;
    double sum = 0.0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        sum += x[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();  // the partial sum is visible before the count says so
        is_last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();  // all threads know whether their block is the last
    if (!is_last) return;

    sum = 0.0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x)
        sum += ((volatile double*)partial)[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) *out = sum;
}

int main() {
    int failures = 0;
    for (size_t n : {1ul, 31ul, 1000ul, 300'001ul}) {
        std::vector<float> x(n);
        for (size_t i = 0; i < n; ++i) x[i] = i % 17;
        double expected = 0.0, sum = -1.0;
        for (float value : x) expected += value;

        const int blocks = 24;
        float* x_device;
        double *partial, *out;
        CHECK(cudaMalloc(&x_device, n * sizeof(float)));
        CHECK(cudaMalloc(&partial, blocks * sizeof(double)));
        CHECK(cudaMalloc(&out, sizeof(double)));
        CHECK(cudaMemcpy(x_device, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
        grid_sum<<<blocks, 128>>>(x_device, partial, out, n);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(&sum, out, sizeof(double), cudaMemcpyDeviceToHost));
        CHECK(cudaFree(x_device));
        CHECK(cudaFree(partial));
        CHECK(cudaFree(out));
        std::printf("grid_sum: n = %zu, sum %.0f, expected %.0f\n", n, sum, expected);
        failures += sum != expected;
    }
    return failures;
}
