// What the epilogues of chapter 09 share. From exercise 09.1.
#pragma once

#include "linear_tile.cuh"

constexpr float EPS = 1e-5f;  // of GroupNorm

// values[j] = all[tile.col(j)], 0 outside of out. all: (N)
__device__ inline void read_columns(float (&values)[TN], const float* all, const Tile& tile) {
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
        quad(&values[j]) = load4(all, 1, tile.N, 0, tile.col(j), tile.whole);
    }
}

// What this thread owns of out, (M, N).
__device__ inline void store(float* out, const float (&sums)[TM][TN], const Tile& tile) {
#pragma unroll
    for (int i = 0; i < TM; i++) {
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            float* to = out + tile.row(i) * tile.N + tile.col(j);
            if (tile.whole) {
                quad(to) = quad(&sums[i][j]);
            } else {
                for (int e = 0; e < 4; e++) {
                    if (tile.owns(i, j + e)) to[e] = sums[i][j + e];
                }
            }
        }
    }
}

// GroupNorm without weight and bias, for groups of any size up to BN. Slow: one group of the tile
// after the other, and two warps may own parts of it. All threads of the block must call it.
__device__ inline void normalise_in_block(float (&sums)[TM][TN], const Tile& tile, int size) {
    __shared__ float partials[BN / WN][BM];
    for (int from = tile.col0; from < tile.right; from += size) {
        for (int pass = 0; pass < 2; pass++) {  // first the means, then the squared differences
#pragma unroll
            for (int i = 0; i < TM; i++) {
                float sum = 0.0f;
#pragma unroll
                for (int j = 0; j < TN; j++) {
                    bool mine = from <= tile.col(j) && tile.col(j) < from + size;
                    if (mine) sum += pass == 0 ? sums[i][j] : sums[i][j] * sums[i][j];
                }
                for (int step = 2; step < 2 * LANES_N; step *= 2) {  // over the lanes of this row
                    sum += __shfl_xor_sync(0xffffffffu, sum, step);
                }
                if (tile.left % WN == 0) partials[tile.left / WN][tile.row(i) - tile.row0] = sum;
            }
            __syncthreads();  // the parts of both warps are there before anyone adds them
#pragma unroll
            for (int i = 0; i < TM; i++) {
                int row = tile.row(i) - tile.row0;
                float mean = (partials[0][row] + partials[1][row]) / size;
#pragma unroll
                for (int j = 0; j < TN; j++) {
                    bool mine = from <= tile.col(j) && tile.col(j) < from + size;
                    if (mine)
                        sums[i][j] =
                            pass == 0 ? sums[i][j] - mean : sums[i][j] * rsqrtf(mean + EPS);
                }
            }
            __syncthreads();  // everyone has read them before the next pass overwrites them
        }
    }
}
