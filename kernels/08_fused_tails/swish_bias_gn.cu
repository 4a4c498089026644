#include "tails.cuh"

constexpr int THREADS = 128;
constexpr int ROWS = 4;  // for each thread

// swish(y) + shift
__device__ float activate(float y, float shift) {
    return y;  // replace this line: your code here
}

// y, out: (rows, channels), weight, bias, shift: (channels), for groups of 4 * LANES channels
// out = GroupNorm(swish(y) + shift)
// One thread owns a quad of channels in ROWS rows, LANES neighbouring lanes a group of each.
// One block owns 128 quads, side by side, in ROWS rows.
template <int LANES>
__global__ void swish_bias_gn_kernel(const float* y, const float* weight, const float* bias,
                                     const float* shift, float* out, int rows, int channels) {
    int thread = blockIdx.x * THREADS + threadIdx.x, quads = channels / 4;  // quads of a row
    int channel = thread % quads * 4, row = thread / quads * ROWS;          // the first of each
    float4 w = quad(&weight[channel]), b = quad(&bias[channel]);
    float4 s = quad(&shift[channel]);
    // your code here
}

void swish_bias_gn(const float* y, const float* weight, const float* bias, const float* shift,
                   float* out, int rows, int channels, int groups) {
    int blocks = (channels / 4 * ((rows + ROWS - 1) / ROWS) + THREADS - 1) / THREADS;
    auto launch = [=](auto lanes) {
        swish_bias_gn_kernel<lanes()>
            <<<blocks, THREADS>>>(y, weight, bias, shift, out, rows, channels);
    };
    if (dispatch(channels / groups, launch)) return;
    groupnorm_any_size<activate, identity>(y, weight, bias, shift, out, rows, channels, groups,
                                           EPS);
}
