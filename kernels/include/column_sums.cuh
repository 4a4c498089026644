// Sums of columns, the same bits every time. From exercise 12.1.
#pragma once

#include "scratch.cuh"

// x: (rows, channels), out: (parts, channels). out[p][c] = the sum of x[r][c] over the rows from
// p * each on, `each` of them. One thread owns every 8th value of a column.
// One block of (32, 8) threads owns 32 columns of a part.
static __global__ void column_sums_kernel(const float* x, float* out, int rows, int channels,
                                          int each) {
    __shared__ float sums[8][32];
    int channel = blockIdx.x * 32 + threadIdx.x;
    int first = blockIdx.y * each, end = min(first + each, rows);
    float sum = 0.0f;
    for (int row = first + threadIdx.y; row < end && channel < channels; row += 8) {
        sum += x[size_t(row) * channels + channel];
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();  // the sums of all 8 warps are there before the first warp adds them
    if (threadIdx.y > 0 || channel >= channels) return;
    for (int i = 1; i < 8; i++) sum += sums[i][threadIdx.x];
    out[size_t(blockIdx.y) * channels + channel] = sum;
}

// out[c] = the sum of column c. x: (rows, channels), out: (channels)
inline void add_columns(const float* x, float* out, int rows, int channels) {
    constexpr int EACH = 128;  // rows of a block
    int parts = (rows + EACH - 1) / EACH;
    dim3 block(32, 8), grid((channels + 31) / 32, parts);
    Scratch<float> partials(parts > 1 ? size_t(parts) * channels : 0);
    if (parts > 1) {
        column_sums_kernel<<<grid, block>>>(x, partials.data, rows, channels, EACH);
        x = partials.data;
        rows = parts;
    }
    column_sums_kernel<<<grid.x, block>>>(x, out, rows, channels, rows);
}
