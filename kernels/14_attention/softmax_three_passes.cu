#include "reduce.cuh"

constexpr int WARPS = 8;  // of a block

// x, out: (rows, channels). out = exp(x - m) / (sum of exp(x - m)), m the largest value of the row
// One thread owns every 32nd value of a row, and one warp the row. One block owns 8 rows.
__global__ void softmax_three_passes_kernel(const float* x, float* out, int rows, int channels) {
    int r = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (r >= rows) return;  // the whole warp leaves
    const float* row = x + size_t(r) * channels;
    float* to = out + size_t(r) * channels;
    float m = -INFINITY, sum = 0.0f;
    for (int c = lane; c < channels; c += 32) {
        m = fmaxf(m, row[c]);
    }
    for (int step = 16; step > 0; step /= 2) {
        m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, step));
    }
    for (int c = lane; c < channels; c += 32) {
        sum += expf(row[c] - m);
    }
    sum = warp_sum(sum);
    for (int c = lane; c < channels; c += 32) {
        to[c] = expf(row[c] - m) / sum;
    }
}

void softmax_three_passes(const float* x, float* out, int rows, int channels) {
    int blocks = (rows + WARPS - 1) / WARPS;
    softmax_three_passes_kernel<<<blocks, 32 * WARPS>>>(x, out, rows, channels);
}
