#include "reduce.cuh"

constexpr int THREADS = 1024, WARPS = THREADS / 32;
constexpr int ROWS = 8;  // for each block

// Registers -> shared memory. mine: (ROWS), the least that this thread found in each row.
// least: (ROWS), the least of the whole block. All threads of the block must call it.
__device__ void block_min(const float (&mine)[ROWS], float* least) {
    __shared__ float partials[ROWS][WARPS];  // the least value that each warp found
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // your code here
}

// x: (rows, channels), out: (rows). out[b] = the smallest value of row b
// One thread owns every 1024th channel of ROWS rows. One block owns ROWS rows.
__global__ void __launch_bounds__(THREADS)
    row_minima_kernel(const float* x, float* out, int rows, int channels) {
    __shared__ float least[ROWS];
    int row0 = blockIdx.x * ROWS, r0 = threadIdx.x;
    float mine[ROWS];
    for (int r = 0; r < ROWS; r++) mine[r] = INFINITY;  // of a thread without values, too
    for (int c = threadIdx.x; c < channels; c += THREADS) {
        for (int r = 0; r < ROWS && row0 + r < rows; r++) {
            mine[r] = smaller(mine[r], x[(row0 + r) * channels + c]);
        }
    }
    block_min(mine, least);
    if (r0 < ROWS && row0 + r0 < rows) out[row0 + r0] = least[r0];
}

void row_minima(const float* x, float* out, int rows, int channels) {
    row_minima_kernel<<<(rows + ROWS - 1) / ROWS, THREADS>>>(x, out, rows, channels);
}
