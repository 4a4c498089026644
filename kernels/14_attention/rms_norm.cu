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
    // your code here
}

void rms_norm(const float* x, const float* weight, float* out, int rows, int channels, float eps) {
    rms_norm_kernel<<<rows, THREADS>>>(x, weight, out, channels, eps);
}
