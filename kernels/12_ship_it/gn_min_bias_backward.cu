#include "column_sums.cuh"
#include "eps.cuh"
#include "gather_gradients.cuh"
#include "groups.cuh"

constexpr int THREADS = 256;

// grad_out: (channels, rows), dshift: (channels). dshift[c] = the sum of grad_out[c][r]
// One warp owns a channel. One block owns 8 of them.
__global__ void row_sums_kernel(const float* grad_out, float* dshift, int rows, int channels) {
    int channel = (blockIdx.x * THREADS + threadIdx.x) / 32;
    if (channel >= channels) return;  // the whole warp leaves
    float sum = 0.0f;
    for (int r = threadIdx.x % 32; r < rows; r += 32) sum += grad_out[size_t(channel) * rows + r];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) dshift[channel] = sum;
}

// y, dy: (rows, channels), weight: (channels), argmin, d: (rows), normal: (rows)
// d[r] is the gradient of row r's minimum, which is at channel argmin[r]. normal[r] = its value in
// y, normalised. One thread owns every 256th channel of a row. One block owns a row, and its first
// warp the group of the minimum.
__global__ void gn_min_bias_backward_kernel(const float* y, const float* weight, const int* argmin,
                                            const float* d, float* dy, float* normal, int channels,
                                            int size) {
    int row = blockIdx.x, least = argmin[row];
    int first = least / size * size;  // the first channel of the group
    const float* values = &y[row * channels + first];
    // your code here
}

void gn_min_bias_backward(const float* y, const float* weight, const int* argmin,
                          const float* grad_out, float* dy, float* dweight, float* dbias,
                          float* dshift, int rows, int channels, int groups) {
    Scratch<float> d(rows), normal(rows);
    add_columns(grad_out, d.data, channels, rows);
    row_sums_kernel<<<(channels + 7) / 8, THREADS>>>(grad_out, dshift, rows, channels);
    gn_min_bias_backward_kernel<<<rows, THREADS>>>(y, weight, argmin, d.data, dy, normal.data,
                                                   channels, channels / groups);
    gather_gradients_kernel<<<(channels + 31) / 32, dim3(32, 8)>>>(argmin, d.data, normal.data,
                                                                   dweight, dbias, rows, channels);
}
