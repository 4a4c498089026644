// reject: wrong values
// Fault: fminf() and fmaxf() turn a NaN into a limit
#include "quads.cuh"
#include "groups.cuh"

constexpr float EPS = 1e-5f;
constexpr int THREADS = 256;

// mish(hardtanh(y + shift)), with mish(x) = x * tanh(ln(1 + e^x))
__device__ float activate(float y, float shift) {
    float x = y + shift;
    x = fminf(fmaxf(x, -1.0f), 1.0f);
    float n = expf(x), m = n * (n + 2.0f);
    return x * (m / (m + 2.0f));
}

// y, out: (rows, channels), weight, bias, shift: (channels), for groups of 4 * LANES channels
// out = GroupNorm(mish(hardtanh(y + shift)))
// One thread owns a quad, LANES neighbouring lanes a group. One block owns 256 quads in a row.
template <int LANES>
__global__ void bias_hardtanh_mish_gn_kernel(const float* y, const float* weight, const float* bias,
                                             const float* shift, float* out, int rows,
                                             int channels) {
    int first = (blockIdx.x * THREADS + threadIdx.x) * 4;  // the quad, counted through all rows
    bool inside = first < rows * channels;
    int channel = first % channels;
    float4 w = quad(&weight[channel]), b = quad(&bias[channel]);
    float4 s = quad(&shift[channel]);
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (inside) v = quad(&y[first]);
    v = {activate(v.x, s.x), activate(v.y, s.y), activate(v.z, s.z), activate(v.w, s.w)};
    v = normalised<LANES>(v, EPS);
    v = {v.x * w.x + b.x, v.y * w.y + b.y, v.z * w.z + b.z, v.w * w.w + b.w};
    if (inside) quad(&out[first]) = v;
}

// The same for groups of any size.
// One thread owns every 32nd value of a group, one warp the group. One block owns 8 groups.
__global__ void any_size_kernel(const float* y, const float* weight, const float* bias,
                                const float* shift, float* out, int rows, int channels,
                                int groups) {
    int group = (blockIdx.x * THREADS + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (group >= rows * groups) return;  // the whole warp leaves
    int size = channels / groups, first = group * size, channel = first % channels;
    float sum = 0.0f, squares = 0.0f;
    for (int i = lane; i < size; i += 32) sum += activate(y[first + i], shift[channel + i]);
    float mean = warp_sum(sum) / size;
    for (int i = lane; i < size; i += 32) {
        float d = activate(y[first + i], shift[channel + i]) - mean;
        squares += d * d;
    }
    float rstd = rsqrtf(warp_sum(squares) / size + EPS);
    for (int i = lane; i < size; i += 32) {
        float x = (activate(y[first + i], shift[channel + i]) - mean) * rstd;
        out[first + i] = x * weight[channel + i] + bias[channel + i];
    }
}

template <int LANES>
void launch(const float* y, const float* weight, const float* bias, const float* shift, float* out,
            int rows, int channels) {
    int blocks = (rows * channels / 4 + THREADS - 1) / THREADS;
    bias_hardtanh_mish_gn_kernel<LANES>
        <<<blocks, THREADS>>>(y, weight, bias, shift, out, rows, channels);
}

void bias_hardtanh_mish_gn(const float* y, const float* weight, const float* bias,
                           const float* shift, float* out, int rows, int channels, int groups) {
    int size = channels / groups, blocks = (rows * groups * 32 + THREADS - 1) / THREADS;
    if (size == 4) return launch<1>(y, weight, bias, shift, out, rows, channels);
    if (size == 8) return launch<2>(y, weight, bias, shift, out, rows, channels);
    if (size == 16) return launch<4>(y, weight, bias, shift, out, rows, channels);
    if (size == 32) return launch<8>(y, weight, bias, shift, out, rows, channels);
    if (size == 64) return launch<16>(y, weight, bias, shift, out, rows, channels);
    if (size == 128) return launch<32>(y, weight, bias, shift, out, rows, channels);
    any_size_kernel<<<blocks, THREADS>>>(y, weight, bias, shift, out, rows, channels, groups);
}
