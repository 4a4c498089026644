#include "tails.cuh"

constexpr int THREADS = 256;

// swish(swish(x) * scale)
__device__ float activate(float x, float scale) {
    // BEGIN SOLUTION
    x = __fdividef(x, 1.0f + expf(-x)) * scale;
    return __fdividef(x, 1.0f + expf(-x));
    // STARTER: return x;  // replace this line: your code here
    // END SOLUTION
}

// y, out: (rows, channels), weight, bias, scale: (channels), for groups of 4 * LANES channels
// out = swish(swish(GroupNorm(y)) * scale), with swish(x) = x / (1 + e^-x)
// One thread owns a quad, LANES neighbouring lanes a group. One block owns 256 quads in a row.
template <int LANES>
__global__ void gn_swish_multiply_swish_kernel(const float* y, const float* weight,
                                               const float* bias, const float* scale, float* out,
                                               int rows, int channels) {
    int first = (blockIdx.x * THREADS + threadIdx.x) * 4;  // the quad, counted through all rows
    bool inside = first < rows * channels;
    int channel = first % channels;
    float4 w = quad(&weight[channel]), b = quad(&bias[channel]);
    float4 s = quad(&scale[channel]);
    // BEGIN SOLUTION
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (inside) v = quad(&y[first]);
    v = normalised<LANES>(v, EPS);
    v = {v.x * w.x + b.x, v.y * w.y + b.y, v.z * w.z + b.z, v.w * w.w + b.w};
    v = {activate(v.x, s.x), activate(v.y, s.y), activate(v.z, s.z), activate(v.w, s.w)};
    if (inside) quad(&out[first]) = v;
    // END SOLUTION
}

void gn_swish_multiply_swish(const float* y, const float* weight, const float* bias,
                             const float* scale, float* out, int rows, int channels, int groups) {
    int blocks = (rows * channels / 4 + THREADS - 1) / THREADS;
    auto launch = [=](auto lanes) {
        gn_swish_multiply_swish_kernel<lanes()>
            <<<blocks, THREADS>>>(y, weight, bias, scale, out, rows, channels);
    };
    if (dispatch(channels / groups, launch)) return;
    groupnorm_any_size<identity, activate>(y, weight, bias, scale, out, rows, channels, groups,
                                           EPS);
}
