#include "quads.cuh"
#include "reduce.cuh"

constexpr int THREADS = 1024;
constexpr int STEP = 4 * THREADS;  // channels that a block goes over at a time
constexpr int KEPT = 2;            // quads of a row that a thread keeps in registers

// x, out: (rows, channels), weight: (channels). out = x * rstd * weight, with
// rstd = 1 / sqrt(mean of x * x + eps) of x's own row
// One thread owns every 1024th quad of a row. One block owns the row. Loads 2 * rows * channels
// floats, of x and of weight, up to 8192 channels.
__global__ void __launch_bounds__(THREADS)
    rms_norm_kernel(const float* x, const float* weight, float* out, int channels, float eps) {
    const float* row = x + size_t(blockIdx.x) * channels;
    float* to = out + size_t(blockIdx.x) * channels;
    int c0 = 4 * threadIdx.x;
    auto whole = [=](int c) { return channels % 4 == 0 && c < channels; };
    // BEGIN SOLUTION
    float4 kept[KEPT], weights[KEPT];  // all on their way before anyone waits for the sum
    float squares = 0.0f;
    auto add = [&](float4 v) { squares += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w); };
#pragma unroll
    for (int i = 0, c = c0; i < KEPT; i++, c += STEP) {
        kept[i] = load4(row, 1, channels, 0, c, whole(c));
        weights[i] = load4(weight, 1, channels, 0, c, whole(c));
    }
#pragma unroll
    for (int i = 0; i < KEPT; i++) add(kept[i]);
    for (int c = c0 + KEPT * STEP; c < channels; c += STEP) {
        add(load4(row, 1, channels, 0, c, whole(c)));
    }
    float rstd = rsqrtf(block_sum<THREADS>(squares) / channels + eps);
    auto write = [=](int c, float4 v, float4 w) {
        v = {v.x * rstd * w.x, v.y * rstd * w.y, v.z * rstd * w.z, v.w * rstd * w.w};
        store4(to, 1, channels, 0, c, v, whole(c));
    };
#pragma unroll
    for (int i = 0; i < KEPT; i++) write(c0 + i * STEP, kept[i], weights[i]);
    for (int c = c0 + KEPT * STEP; c < channels; c += STEP) {
        write(c, load4(row, 1, channels, 0, c, whole(c)),
              load4(weight, 1, channels, 0, c, whole(c)));
    }
    // END SOLUTION
}

void rms_norm(const float* x, const float* weight, float* out, int rows, int channels, float eps) {
    rms_norm_kernel<<<rows, THREADS>>>(x, weight, out, channels, eps);
}
