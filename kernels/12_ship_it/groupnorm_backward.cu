#include "groups_backward.cuh"

constexpr int THREADS = 256;

// x, grad_out, dx: (rows, channels), weight: (channels), for groups of 4 * LANES channels
// weights, biases: (parts, channels), what each part of the rows adds to dweight and dbias
// Changed from `groupnorm_backward_serial`: quads in registers, and 16 rows a thread, so that a
// part is stored once; loads 2 * rows * channels + 3 * rows * channels / 16 floats.
// One thread owns a quad of channels in ROWS rows, LANES neighbouring lanes a group of each.
template <int LANES>
__global__ void groupnorm_backward_kernel(const float* x, const float* weight,
                                          const float* grad_out, float* dx, float* weights,
                                          float* biases, int rows, int channels) {
    Stretch own(channels);
    float4 w = quad(&weight[own.channel]), dw = {}, db = {};
    // your code here
}

void groupnorm_backward(const float* x, const float* weight, const float* grad_out, float* dx,
                        float* dweight, float* dbias, int rows, int channels, int groups) {
    Gradients<Nothing, 2> sums(rows, channels, groups);
    auto launch = [&](auto lanes) {
        groupnorm_backward_kernel<lanes()><<<sums.blocks(THREADS), THREADS>>>(
            x, weight, grad_out, dx, sums.part(0), sums.part(1), rows, channels);
    };
    sums.launch(launch, {x, weight, nullptr, nullptr, grad_out, rows, channels, groups}, dx);
    sums.add_up(dweight, dbias);
}
