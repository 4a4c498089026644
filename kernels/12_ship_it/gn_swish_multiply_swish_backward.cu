#include "groups_backward.cuh"

constexpr int THREADS = 256;

// The derivative of swish(x) = x / (1 + e^-x)
__device__ float swish_derivative(float x) {
    return x;  // replace this line: your code here
}

struct Chain : Nothing {
    // g, the gradient of swish(swish(z) * scale) -> that of z; that of scale is added to dscale
    __device__ static float after_backward(float z, float scale, float g, float& dscale) {
        return g;  // replace this line: your code here
    }
};

// y, grad_out, dy: (rows, channels), weight, bias, scale: (channels), groups of 4 * LANES channels
// weights, biases, scales: (parts, channels), what each part adds to dweight, dbias and dscale
// One thread owns a quad of channels in ROWS rows, LANES neighbouring lanes a group of each.
template <int LANES>
__global__ void gn_swish_multiply_swish_backward_kernel(const float* y, const float* weight,
                                                        const float* bias, const float* scale,
                                                        const float* grad_out, float* dy,
                                                        float* weights, float* biases,
                                                        float* scales, int rows, int channels) {
    Stretch own(channels);
    float4 w = quad(&weight[own.channel]), b = quad(&bias[own.channel]);
    float4 s = quad(&scale[own.channel]), dw = {}, db = {}, ds = {};
    for (int row = own.row; row < own.row + ROWS; row++) {
        int at = row * channels + own.channel;
        bool inside = row < rows;
        // your code here
    }
    own.store(weights, dw, rows, channels);
    own.store(biases, db, rows, channels);
    own.store(scales, ds, rows, channels);
}

void gn_swish_multiply_swish_backward(const float* y, const float* weight, const float* bias,
                                      const float* scale, const float* grad_out, float* dy,
                                      float* dweight, float* dbias, float* dscale, int rows,
                                      int channels, int groups) {
    Gradients<Chain, 3> sums(rows, channels, groups);
    auto launch = [&](auto lanes) {
        gn_swish_multiply_swish_backward_kernel<lanes()>
            <<<sums.blocks(THREADS), THREADS>>>(y, weight, bias, scale, grad_out, dy, sums.part(0),
                                                sums.part(1), sums.part(2), rows, channels);
    };
    sums.launch(launch, {y, weight, bias, scale, grad_out, rows, channels, groups}, dy);
    sums.add_up(dweight, dbias, dscale);
}
