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
    // BEGIN SOLUTION
    for (int row = own.row; row < own.row + ROWS; row++) {
        int at = row * channels + own.channel;
        float4 v = {}, g = {};
        if (row < rows) {
            v = quad(&x[at]);
            g = quad(&grad_out[at]);
        }
        Normalised n = normalise<LANES>(v);
        dw = dw + g * n.x;
        db = db + g;
        float4 d = through<LANES>(n, g * w);
        if (row < rows) quad(&dx[at]) = d;
    }
    own.store(weights, dw, rows, channels);
    own.store(biases, db, rows, channels);
    // END SOLUTION
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
