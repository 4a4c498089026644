// What the epilogues of chapter 09 share: parameters in, rows out. From exercise 09.1.
#pragma once

#include "eps.cuh"
#include "linear_tile.cuh"

// values[j] = all[tile.col(j)], 0 outside of out. all: (N)
__device__ inline void read_columns(float (&values)[TN], const float* all, const Tile& tile) {
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
        quad(&values[j]) = load4(all, 1, tile.N, 0, tile.col(j), tile.whole);
    }
}

// out[tile.row(i)][tile.col(j)] = y[j], as far as the block owns it. out: (M, N)
__device__ inline void store_row(float* out, const float (&y)[TN], const Tile& tile, int i) {
    float* row = out + tile.row(i) * tile.N;
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
        if (tile.whole) quad(&row[tile.col(j)]) = quad(&y[j]);
    }
    if (tile.whole) return;
#pragma unroll
    for (int j = 0; j < TN; j++) {
        if (tile.owns(i, j)) row[tile.col(j)] = y[j];
    }
}

// GroupNorm of a row, without weight and bias, for groups of any size up to BN. Slow: each thread
// adds up whole groups, from shared memory. All threads of the block must call it.
__device__ inline void normalise_in_block(float (&y)[TN], const Tile& tile, int size) {
    __shared__ float rows[BM / TM][BN];  // the rows of all threads: 8 of the tile
    float* row = rows[tile.top / WM * LANES_M + tile.top % WM / 4];
#pragma unroll
    for (int j = 0; j < TN; j++) row[tile.col(j) - tile.col0] = y[j];
    __syncthreads();  // the rows are complete before anyone adds them up
#pragma unroll
    for (int j = 0; j < TN; j++) {
        const float* group = row + (tile.col(j) - tile.col0) / size * size;
        float sum = 0.0f, squares = 0.0f;
        int many = tile.col(j) < tile.right ? size : 0;  // to the right are no whole groups
#pragma unroll 1
        for (int e = 0; e < many; e++) sum += group[e];
#pragma unroll 1
        for (int e = 0; e < many; e++) {
            float d = group[e] - sum / size;
            squares += d * d;
        }
        y[j] = (y[j] - sum / size) * rsqrtf(squares / size + EPS);
    }
    __syncthreads();  // everyone has read them before the next rows overwrite them
}
