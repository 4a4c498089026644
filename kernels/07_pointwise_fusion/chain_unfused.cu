#include "quads.cuh"

constexpr int THREADS = 128;  // a block owns 4 * THREADS channels of a row

// x, out: (rows, channels). out = swish(x). x and out may be the same matrix.
// One thread owns 4 neighbouring channels of a row. One block owns 4 * THREADS of them.
__global__ void swish_kernel(const float* x, float* out, int rows, int channels) {
    int col = 4 * (blockIdx.x * THREADS + threadIdx.x);
    for (int row = blockIdx.y; row < rows && col < channels; row += gridDim.y) {
        size_t start = size_t(row) * channels;  // where the row begins
        float4 v = load4(x + start, 1, channels, 0, col, channels % 4 == 0);
        v.x = v.x / (1.0f + expf(-v.x));
        v.y = v.y / (1.0f + expf(-v.y));
        v.z = v.z / (1.0f + expf(-v.z));
        v.w = v.w / (1.0f + expf(-v.w));
        store4(out + start, 1, channels, 0, col, v, channels % 4 == 0);
    }
}

// x, out: (rows, channels), scale: (channels). out[r, c] = x[r, c] * scale[c]
// One thread owns 4 neighbouring channels of a row. One block owns 4 * THREADS of them.
__global__ void multiply_kernel(const float* x, const float* scale, float* out, int rows,
                                int channels) {
    int col = 4 * (blockIdx.x * THREADS + threadIdx.x);
    for (int row = blockIdx.y; row < rows && col < channels; row += gridDim.y) {
        size_t start = size_t(row) * channels;
        float4 v = load4(x + start, 1, channels, 0, col, channels % 4 == 0);
        float4 s = load4(scale, 1, channels, 0, col, channels % 4 == 0);
        v = make_float4(v.x * s.x, v.y * s.y, v.z * s.z, v.w * s.w);
        store4(out + start, 1, channels, 0, col, v, channels % 4 == 0);
    }
}

// swish(swish(y) * scale), one operation after the other. out holds what lies between them.
void chain_unfused(const float* y, const float* scale, float* out, int rows, int channels) {
    // x counts stretches of channels, y counts rows: at most 65535 of them, hence the loops
    dim3 grid((channels + 4 * THREADS - 1) / (4 * THREADS), rows < 65535 ? rows : 65535);
    swish_kernel<<<grid, THREADS>>>(y, out, rows, channels);
    multiply_kernel<<<grid, THREADS>>>(out, scale, out, rows, channels);
    swish_kernel<<<grid, THREADS>>>(out, out, rows, channels);
}
