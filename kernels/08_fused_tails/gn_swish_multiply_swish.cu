#include "tails.cuh"

constexpr int THREADS = 256;

// swish(swish(x) * scale)
__device__ float activate(float x, float scale) {
    return x;  // replace this line: your code here
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
    // your code here
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
