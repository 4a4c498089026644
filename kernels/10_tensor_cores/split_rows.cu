#include <cuda_fp16.h>

#include "reduce.cuh"

constexpr int THREADS = 256;

// The largest of a block's values. Every thread gets it. All threads of the block must call it.
__device__ float block_max(float value) {
    __shared__ float most[THREADS / 32];
    for (int step = 16; step > 0; step /= 2) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    }
    if (threadIdx.x % 32 == 0) most[threadIdx.x / 32] = value;
    __syncthreads();  // the value of every warp is there
    for (int i = 0; i < THREADS / 32; i++) value = fmaxf(value, most[i]);
    return value;
}

// x: (rows, cols), high, low: (rows, padded), scale: (rows). x = (high + low) * scale, nearly
// scale is a power of two: the largest magnitude of a row over it lies from 2^14 to 2^15, if it is
// from 2^-100 to 2^100. Columns beyond cols become 0.
// One thread owns every 256th element of a row, one block a row.
__global__ void split_rows_kernel(const float* x, __half* high, __half* low, float* scale, int cols,
                                  int padded) {
    const float* row = x + blockIdx.x * cols;
    __half *highs = high + blockIdx.x * padded, *lows = low + blockIdx.x * padded;
    float most = 0.0f;
    for (int i = threadIdx.x; i < cols; i += THREADS) most = fmaxf(most, fabsf(row[i]));
    most = block_max(most);
    int exponent = most > 0.0f ? max(-100, min(100, ilogbf(most))) - 14 : 0;
    float up = ldexpf(1.0f, -exponent);
    // your code here
    if (threadIdx.x == 0) scale[blockIdx.x] = ldexpf(1.0f, exponent);
}

void split_rows(const float* x, __half* high, __half* low, float* scale, int rows, int cols,
                int padded) {
    split_rows_kernel<<<rows, THREADS>>>(x, high, low, scale, cols, padded);
}
