#include "groups_backward.cuh"

constexpr int THREADS = 256;

struct Chain : Nothing {
    // swish(y) + shift, with swish(x) = x / (1 + e^-x)
    __device__ static float before(float y, float shift) { return y / (1.0f + expf(-y)) + shift; }

    // d, the gradient of that -> that of y; that of shift is added to dshift
    __device__ static float before_backward(float y, float, float d, float& dshift) {
        return d;  // replace this line: your code here
    }
};

// y, grad_out, dy: (rows, channels), weight, shift: (channels), for groups of 4 * LANES channels
// weights, biases, shifts: (parts, channels), what each part adds to dweight, dbias and dshift
// One thread owns a quad of channels in ROWS rows, LANES neighbouring lanes a group of each.
template <int LANES>
__global__ void swish_bias_gn_backward_kernel(const float* y, const float* weight,
                                              const float* shift, const float* grad_out, float* dy,
                                              float* weights, float* biases, float* shifts,
                                              int rows, int channels) {
    Stretch own(channels);
    float4 w = quad(&weight[own.channel]), s = quad(&shift[own.channel]);
    float4 dw = {}, db = {}, ds = {};
    for (int row = own.row; row < own.row + ROWS; row++) {
        int at = row * channels + own.channel;
        bool inside = row < rows;
        // your code here
    }
    own.store(weights, dw, rows, channels);
    own.store(biases, db, rows, channels);
    own.store(shifts, ds, rows, channels);
}

void swish_bias_gn_backward(const float* y, const float* weight, const float* shift,
                            const float* grad_out, float* dy, float* dweight, float* dbias,
                            float* dshift, int rows, int channels, int groups) {
    Gradients<Chain, 3> sums(rows, channels, groups);
    auto launch = [&](auto lanes) {
        swish_bias_gn_backward_kernel<lanes()>
            <<<sums.blocks(THREADS), THREADS>>>(y, weight, shift, grad_out, dy, sums.part(0),
                                                sums.part(1), sums.part(2), rows, channels);
    };
    sums.launch(launch, {y, weight, nullptr, shift, grad_out, rows, channels, groups}, dy);
    sums.add_up(dweight, dbias, dshift);
}
