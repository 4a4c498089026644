#include "mma_tile.cuh"

constexpr int PROMOTE = 4;  // rounds of BK, after which sums go into totals: 256 of K

// in: x (M, K) and W (N, K) as halves, high and low; out: (M, N). out = x * W^T, by three products
// One warp owns WM x WN elements of out: 2 x 8 products of mma. One block owns a tile BM x BN.
__global__ void __launch_bounds__(THREADS, 1) linear_split_kernel(const Operands in, float* out) {
    extern __shared__ uint4 ring[];
    Patch patch;
    float totals[2][32] = {};
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
                // your code here
            }
        }
        // your code here
    }
    in.scale(totals, patch);
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
        for (int e = 0; e < 32; e++) {
            int row = patch.row(i, e % 4), col = patch.col(e / 4, e % 4);
            // your code here
        }
    }
}

void linear_split(const float* x, const float* W, float* out, int M, int N, int K) {
    Planes xs(M, K), Ws(N, K);
    xs.split(x, K);
    Ws.split(W, K);
    allow_ring(linear_split_kernel);
    Operands in(x, xs, W, Ws, K);
    linear_split_kernel<<<tiles(M, N), THREADS, RING>>>(in, out);
}
