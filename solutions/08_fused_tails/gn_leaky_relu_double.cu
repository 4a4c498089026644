#include "tails.cuh"

constexpr int THREADS = 256;

// x twice, and a hundredth of that below zero
__device__ float activate(float x) {
    // BEGIN SOLUTION
    return x > 0.0f ? 2.0f * x : 0.02f * x;
    // STARTER: return x;  // replace this line: your code here
    // END SOLUTION
}

// y, out: (rows, channels), weight, bias: (channels), for groups of 4 * LANES channels
// out = 2 * leaky_relu(GroupNorm(y))
// One thread owns a quad, LANES neighbouring lanes a group. One block owns 256 quads in a row.
template <int LANES>
__global__ void gn_leaky_relu_double_kernel(const float* y, const float* weight, const float* bias,
                                            float* out, int rows, int channels) {
    int first = (blockIdx.x * THREADS + threadIdx.x) * 4;  // the quad, counted through all rows
    bool inside = first < rows * channels;
    int channel = first % channels;
    float4 w = quad(&weight[channel]), b = quad(&bias[channel]);
    // BEGIN SOLUTION
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (inside) v = quad(&y[first]);
    v = normalised<LANES>(v, EPS);
    v = {v.x * w.x + b.x, v.y * w.y + b.y, v.z * w.z + b.z, v.w * w.w + b.w};
    v = {activate(v.x), activate(v.y), activate(v.z), activate(v.w)};
    if (inside) quad(&out[first]) = v;
    // END SOLUTION
}

void gn_leaky_relu_double(const float* y, const float* weight, const float* bias, float* out,
                          int rows, int channels, int groups) {
    int blocks = (rows * channels / 4 + THREADS - 1) / THREADS;
    auto launch = [=](auto lanes) {
        gn_leaky_relu_double_kernel<lanes()>
            <<<blocks, THREADS>>>(y, weight, bias, out, rows, channels);
    };
    if (dispatch(channels / groups, launch)) return;
    groupnorm_any_size<identity, activate>(y, weight, bias, nullptr, out, rows, channels, groups,
                                           EPS);
}
