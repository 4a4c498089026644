// x * W^T for the tile of a block, as exact as fp32, in registers: exercise 10.4 as a function.
#pragma once

#include "mma_tile.cuh"

constexpr int PROMOTE = 4;  // rounds of BK, after which sums go into totals: 256 of K

// totals = x * W^T of this lane's part of the tile, for the halves of x and W and without scales.
// All threads of the block must call it. ring: RING bytes of shared memory
__device__ inline void multiply(float (&totals)[2][32], uint4* ring, const Operands& in,
                                const Patch& patch) {
    int rounds = in.padded / BK;
    for (int s = 0; s < STAGES - 1; s++) bring(ring, patch, in, s);
    for (int begin = 0; begin < rounds; begin += PROMOTE) {
        float sums[2][32] = {};
        for (int round = begin; round < min(rounds, begin + PROMOTE); round++) {
            wait_for_copies<STAGES - 2>();
            __syncthreads();  // the tiles are there for all, and everyone has read those before
            bring(ring, patch, in, round + STAGES - 1);
            const uint4* tiles = ring + round % STAGES * 4 * TILE;
#pragma unroll
            for (int k = 0; k < CHUNKS; k += 2) {
                unsigned high[2][4], low[2][4], w[4][4];
                load_x(high, tiles, patch, k);
                load_x(low, tiles + TILE, patch, k);
                load_W(w, tiles + 3 * TILE, patch, k);
                add_products(sums, high, w);
                load_W(w, tiles + 2 * TILE, patch, k);
                add_products(sums, low, w);
                add_products(sums, high, w);
            }
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
#pragma unroll
            for (int e = 0; e < 32; e++) totals[i][e] += sums[i][e];
        }
    }
}
