#include "groups_backward.cuh"

constexpr int THREADS = 256;

// x, grad_out, dx: (rows, channels), weight: (channels), for groups of 4 * LANES channels
// u = grad_out * weight, n = (x - mean) * rstd: dx = (u - mean of u - n * mean of u * n) * rstd
// One thread owns a quad, LANES neighbouring lanes a group. One block owns 256 quads in a row.
template <int LANES>
__global__ void groupnorm_dx_kernel(const float* x, const float* weight, const float* grad_out,
                                    float* dx, int rows, int channels) {
    constexpr int SIZE = 4 * LANES;                        // channels of a group
    int first = (blockIdx.x * THREADS + threadIdx.x) * 4;  // the quad, counted through all rows
    bool inside = first < rows * channels;
    float4 w = quad(&weight[first % channels]), v = {}, g = {};
    // BEGIN SOLUTION
    if (inside) {
        v = quad(&x[first]);
        g = quad(&grad_out[first]);
    }
    v = v - warp_sum<LANES>(total(v)) / SIZE;
    float rstd = rsqrtf(warp_sum<LANES>(total(v * v)) / SIZE + EPS);
    float4 n = v * rstd, u = g * w;
    float mean = warp_sum<LANES>(total(u)) / SIZE;
    float along = warp_sum<LANES>(total(u * n)) / SIZE;
    if (inside) quad(&dx[first]) = (u - mean - n * along) * rstd;
    // END SOLUTION
}

void groupnorm_dx(const float* x, const float* weight, const float* grad_out, float* dx, int rows,
                  int channels, int groups) {
    int blocks = (rows * channels / 4 + THREADS - 1) / THREADS;
    auto launch = [=](auto lanes) {
        groupnorm_dx_kernel<lanes()><<<blocks, THREADS>>>(x, weight, grad_out, dx, rows, channels);
    };
    Gradients<Nothing, 0> none(rows, channels, groups);
    none.launch(launch, {x, weight, nullptr, nullptr, grad_out, rows, channels, groups}, dx);
}
