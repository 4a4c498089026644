#include "quads.cuh"

constexpr int THREADS = 1024;
constexpr int ROWS = 8;  // for each block: a whole sector of each row of out

// Shared -> global memory. least: (ROWS), shift: (channels), out: (channels, rows). By the whole
// block: out[c, row0 + r] = least[r] + shift[c]
__device__ void spread(const float* least, const float* shift, float* out, int rows, int channels,
                       int row0) {
    bool whole = rows % 4 == 0 && row0 + ROWS <= rows;
    // your code here
}

// minima: (rows), shift: (channels), out: (channels, rows). out[c, b] = minima[b] + shift[c]
// One thread owns a quad of every 512th row of out. One block owns ROWS columns.
__global__ void __launch_bounds__(THREADS)
    add_transposed_kernel(const float* minima, const float* shift, float* out, int rows,
                          int channels) {
    __shared__ alignas(16) float least[ROWS];
    int row0 = blockIdx.x * ROWS, r = threadIdx.x;
    if (r < ROWS) least[r] = row0 + r < rows ? minima[row0 + r] : 0.0f;
    __syncthreads();  // all minima are there before anyone adds to them
    spread(least, shift, out, rows, channels, row0);
}

void add_transposed(const float* minima, const float* shift, float* out, int rows, int channels) {
    int blocks = (rows + ROWS - 1) / ROWS;
    add_transposed_kernel<<<blocks, THREADS>>>(minima, shift, out, rows, channels);
}
