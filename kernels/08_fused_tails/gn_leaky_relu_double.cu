#include "tails.cuh"

constexpr int THREADS = 256;

// x twice, and a hundredth of that below zero
__device__ float activate(float x) {
    return x;  // replace this line: your code here
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
    // your code here
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
