#include "quads.cuh"

constexpr int THREADS = 128;  // a block owns 4 * THREADS channels
constexpr int ROWS = 2;       // of ROWS rows at a time

// swish(swish(y) * scale), for one element
__device__ float activate(float y, float scale) {
    return y;  // replace this line: your code here
}

// y, out: (rows, channels), scale: (channels). out = swish(swish(y) * scale)
// One thread owns 4 neighbouring channels of ROWS rows, then of ROWS further down; a block owns 4 *
// THREADS channels. Changed from `chain_unfused`: one launch; loads 3 * rows * channels / 2 floats.
__global__ void swish_multiply_swish_kernel(const float* y, const float* scale, float* out,
                                            int rows, int channels) {
    int col = 4 * (blockIdx.x * THREADS + threadIdx.x);
    if (col >= channels) return;  // no barrier follows
    bool whole = channels % 4 == 0 && aligned(y) && aligned(scale) && aligned(out);
    for (int row0 = blockIdx.y * ROWS; row0 < rows; row0 += gridDim.y * ROWS) {
        // your code here
    }
}

void swish_multiply_swish(const float* y, const float* scale, float* out, int rows, int channels) {
    int stretches = (channels + 4 * THREADS - 1) / (4 * THREADS);
    int groups = (rows + ROWS - 1) / ROWS;
    dim3 grid(stretches, groups < 65535 ? groups : 65535);  // the most that y can count
    swish_multiply_swish_kernel<<<grid, THREADS>>>(y, scale, out, rows, channels);
}
