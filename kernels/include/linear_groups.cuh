// GroupNorm in the registers of a product. From exercise 09.2.
#pragma once

#include "linear_epilogue.cuh"

// The sum over LANES lanes that own the same rows and neighbouring quads of columns: lanes whose
// numbers differ in bits 2, 4 and 8. Each of them gets it. All 32 lanes of the warp must call it.
template <int LANES>
__device__ inline float sum_along_row(float value) {
#pragma unroll
    for (int step = 1; step < LANES; step *= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, 2 * step);
    }
    return value;
}

// GroupNorm of a row, without weight and bias, for groups of SIZE columns: 16, 32 or 64.
template <int SIZE>
__device__ inline void normalise_in_warp(float (&y)[TN]) {
    constexpr int LANES = SIZE < 4 * LANES_N ? SIZE / 4 : LANES_N;  // that share a group
    constexpr int EACH = SIZE / LANES;                              // of its columns in each lane
#pragma unroll
    for (int j = 0; j < TN; j += EACH) {  // y[j] to y[j + EACH - 1] are of one group
        float sum = 0.0f, squares = 0.0f;
        for (int e = j; e < j + EACH; e++) sum += y[e];
        float mean = sum_along_row<LANES>(sum) / SIZE;
        for (int e = j; e < j + EACH; e++) {
            y[e] -= mean;
            squares += y[e] * y[e];
        }
        float rstd = rsqrtf(sum_along_row<LANES>(squares) / SIZE + EPS);
        for (int e = j; e < j + EACH; e++) y[e] *= rstd;
    }
}

// GroupNorm of a row, without weight and bias. All threads of the block must call it.
__device__ inline void normalise(float (&y)[TN], const Tile& tile, int size) {
    if (size == 16) {
        normalise_in_warp<16>(y);
    } else if (size == 32) {
        normalise_in_warp<32>(y);
    } else if (size == 64) {
        normalise_in_warp<64>(y);
    } else {
        normalise_in_block(y, tile, size);
    }
}
