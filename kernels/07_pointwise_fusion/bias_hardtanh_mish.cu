#include "quads.cuh"

constexpr int THREADS = 128;  // a block owns 4 * THREADS channels
constexpr int ROWS = 2;       // of ROWS rows at a time

// mish(hardtanh(y + shift)), for one element
__device__ float activate(float y, float shift) {
    return y;  // replace this line: your code here
}

// y, out: (rows, channels), shift: (channels). out = mish(hardtanh(y + shift))
// One thread owns 4 neighbouring channels of ROWS rows, then of ROWS rows further down.
// One block owns 4 * THREADS neighbouring channels of the same rows.
__global__ void bias_hardtanh_mish_kernel(const float* y, const float* shift, float* out, int rows,
                                          int channels) {
    int col = 4 * (blockIdx.x * THREADS + threadIdx.x);
    if (col >= channels) return;  // no barrier follows
    bool whole = channels % 4 == 0 && aligned(y) && aligned(shift) && aligned(out);
    for (int row0 = blockIdx.y * ROWS; row0 < rows; row0 += gridDim.y * ROWS) {
        // your code here
    }
}

void bias_hardtanh_mish(const float* y, const float* shift, float* out, int rows, int channels) {
    int stretches = (channels + 4 * THREADS - 1) / (4 * THREADS);
    int groups = (rows + ROWS - 1) / ROWS;
    dim3 grid(stretches, groups < 65535 ? groups : 65535);  // the most that y can count
    bias_hardtanh_mish_kernel<<<grid, THREADS>>>(y, shift, out, rows, channels);
}
