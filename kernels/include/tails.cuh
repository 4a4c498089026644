// What the tails of chapter 08 are made of, and a minimum for groups that quads do not fill.
#pragma once

#include "eps.cuh"
#include "groups.cuh"
#include "quads.cuh"

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
