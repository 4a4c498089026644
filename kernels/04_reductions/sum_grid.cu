#include "quads.cuh"
#include "reduce.cuh"

constexpr int THREADS = 256;
constexpr int QUADS = 4;  // loads of a thread that are under way together

// x: (n), from a multiple of 16 bytes on. out: one value, the sum of x
// One thread owns QUADS quads of x in each round, one grid apart. One block owns THREADS * QUADS of
// them a round, and adds one sum to out. Changed from `sum_warp`: quads; loads n / 128 requests.
__global__ void sum_grid_kernel(const float* x, float* out, int n) {
    int first = blockIdx.x * THREADS + threadIdx.x;
    int stride = gridDim.x * THREADS;  // the threads of the grid
    int quads = n / 4;
    float sum = 0.0f;
    // your code here
    sum = block_sum<THREADS>(sum);
    if (threadIdx.x == 0) {
        atomicAdd(out, sum);
    }
}

void sum_grid(const float* x, float* out, int n, int blocks) {
    cudaMemset(out, 0, sizeof(float));
    sum_grid_kernel<<<blocks, THREADS>>>(x, out, n);
}
