// How the tails of chapter 08 start: the kernel for groups that quads fill, or one for the others.
#pragma once

#include "eps.cuh"
#include "groups.cuh"
#include "quads.cuh"

// Starts kernel(lanes) on blocks of `threads` threads, where lanes() lanes fill a group. For groups
// of other sizes the slow path takes over: out = AFTER(GroupNorm(BEFORE(y))).
// y, out: (rows, channels), weight, bias: (channels)
template <auto BEFORE, auto AFTER, class Kernel>
void launch_tail(Kernel kernel, int blocks, int threads, const float* y, const float* weight,
                 const float* bias, float* out, int rows, int channels, int groups) {
    auto launch = [=](auto lanes) {
        kernel(lanes)<<<blocks, threads>>>(y, weight, bias, out, rows, channels);
    };
    if (dispatch(channels / groups, launch)) return;
    groupnorm_any_size<BEFORE, AFTER>(y, weight, bias, nullptr, out, rows, channels, groups, EPS);
}

// The same where BEFORE or AFTER has a parameter, too: (channels)
template <auto BEFORE, auto AFTER, class Kernel>
void launch_tail(Kernel kernel, int blocks, int threads, const float* y, const float* weight,
                 const float* bias, const float* parameter, float* out, int rows, int channels,
                 int groups) {
    auto launch = [=](auto lanes) {
        kernel(lanes)<<<blocks, threads>>>(y, weight, bias, parameter, out, rows, channels);
    };
    if (dispatch(channels / groups, launch)) return;
    groupnorm_any_size<BEFORE, AFTER>(y, weight, bias, parameter, out, rows, channels, groups, EPS);
}

// y: (rows, channels), weight, bias, shift: (channels), out: (channels, rows)
// out[c, b] = min over row b of GroupNorm(y) + shift[c], for groups of any size.
// One thread owns every 32nd value of a group, one warp a group. One block owns ROWS rows of y.
template <int THREADS, int ROWS, auto BLOCK_MIN, auto SPREAD>
__global__ void __launch_bounds__(THREADS)
    min_of_any_size_kernel(const float* y, const float* weight, const float* bias,
                           const float* shift, float* out, int rows, int channels, int groups) {
    __shared__ alignas(16) float least[ROWS];
    int row0 = blockIdx.x * ROWS;
    float mine[ROWS];
    for (int r = 0; r < ROWS; r++) {
        const float* row = &y[(row0 + r) * channels];
        bool inside = row0 + r < rows;
        mine[r] = inside ? least_of_lane(row, weight, bias, channels, groups, EPS) : INFINITY;
    }
    BLOCK_MIN(mine, least);
    SPREAD(least, shift, out, rows, channels, row0);
}

// launch_tail for minima: the slow path has ROWS rows a block, and the learner's own two functions.
template <int THREADS, int ROWS, auto BLOCK_MIN, auto SPREAD, class Kernel>
void launch_min(Kernel kernel, int blocks, const float* y, const float* weight, const float* bias,
                const float* shift, float* out, int rows, int channels, int groups) {
    auto launch = [=](auto lanes) {
        kernel(lanes)<<<blocks, THREADS>>>(y, weight, bias, shift, out, rows, channels);
    };
    if (dispatch(channels / groups, launch)) return;
    min_of_any_size_kernel<THREADS, ROWS, BLOCK_MIN, SPREAD>
        <<<blocks, THREADS>>>(y, weight, bias, shift, out, rows, channels, groups);
}
