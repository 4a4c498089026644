#include "reduce.cuh"

constexpr int THREADS = 256;

// x: (n), sums: (gridDim.x). Changed from `sum_grid`: two launches; loads n + blocks floats.
// One thread owns every element that lies a whole number of grids behind its first. One block owns
// those of its threads, and writes their sum to a place of its own.
__global__ void sum_two_pass_kernel(const float* x, float* sums, int n) {
    int stride = gridDim.x * THREADS;
    float sum = 0.0f;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += stride) {
        sum += x[i];
    }
    sum = block_sum<THREADS>(sum);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}

void sum_two_pass(const float* x, float* partials, float* out, int n, int blocks) {
    sum_two_pass_kernel<<<blocks, THREADS>>>(x, partials, n);
    sum_two_pass_kernel<<<1, THREADS>>>(partials, out, blocks);  // starts when the first has ended
}
