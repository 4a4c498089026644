#include "quads.cuh"

constexpr int THREADS = 128;  // a block owns 4 * THREADS channels
constexpr int ROWS = 2;       // of ROWS rows at a time

// swish(swish(y) * scale), for one element
__device__ float activate(float y, float scale) {
    // BEGIN SOLUTION
    float x = __fdividef(y, 1.0f + __expf(-y)) * scale;
    return __fdividef(x, 1.0f + __expf(-x));
    // STARTER: return y;  // replace this line: your code here
    // END SOLUTION
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
        // BEGIN SOLUTION
        float4 v[ROWS];
        for (int i = 0; i < ROWS; i++) {  // all are on their way before the first is needed
            const float* from = y + size_t(row0 + i) * channels;
            if (row0 + i < rows) v[i] = load4(from, 1, channels, 0, col, whole);
        }
        float4 s = load4(scale, 1, channels, 0, col, whole);  // once, for all these rows
        for (int i = 0; i < ROWS && row0 + i < rows; i++) {
            float4 activated = make_float4(activate(v[i].x, s.x), activate(v[i].y, s.y),  //
                                           activate(v[i].z, s.z), activate(v[i].w, s.w));
            store4(out + size_t(row0 + i) * channels, 1, channels, 0, col, activated, whole);
        }
        // END SOLUTION
    }
}

void swish_multiply_swish(const float* y, const float* scale, float* out, int rows, int channels) {
    int stretches = (channels + 4 * THREADS - 1) / (4 * THREADS);
    int groups = (rows + ROWS - 1) / ROWS;
    dim3 grid(stretches, groups < 65535 ? groups : 65535);  // the most that y can count
    swish_multiply_swish_kernel<<<grid, THREADS>>>(y, scale, out, rows, channels);
}
