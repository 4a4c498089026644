#include "hopper_tile.cuh"

constexpr int PROMOTE = 4;  // rounds of BK, after which sums go into totals: 256 of K
constexpr int SUMS = Exact::BN / 2;

// totals = x * W^T for this thread's part of a tile, of the halves of x and W and without scales.
// All threads of both consumers must call it.
__device__ void multiply(float (&totals)[SUMS], Ring<Exact>& ring, int K) {
    int top = threadIdx.x / 128 * 64;
    for (int i = 0; i < SUMS; i++) totals[i] = 0.0f;
    for (int k0 = 0; k0 < K; k0 += PROMOTE * Exact::BK) {
        float sums[SUMS];
        for (int k = k0; k < min(K, k0 + PROMOTE * Exact::BK); k += Exact::BK) {
            auto& tiles = ring.filled();
            wgmma_fence();
#pragma unroll
            for (int i = 0; i < Exact::BK; i += 16) {
                auto x_high = make_descriptor(&tiles.x[0][top][i]),
                     x_low = make_descriptor(&tiles.x[1][top][i]);
                auto W_high = make_descriptor(&tiles.W[0][0][i]),
                     W_low = make_descriptor(&tiles.W[1][0][i]);
                // your code here
            }
            wgmma_commit();
            wgmma_wait<1>();
            ring.release_before();
        }
        // your code here
    }
}

// in: x (M, K) and W (N, K) as halves, high and low; out: (M, N). out = x * W^T, as exact as fp32
// One thread owns 64 elements of each tile, if its warpgroup multiplies: two rows of its warp's 16,
// every fourth pair of columns. One block owns many tiles; one thread of the last warpgroup brings
// those of x and W.
__global__ void __launch_bounds__(Exact::THREADS, 1)
    linear_split_wgmma_kernel(const __grid_constant__ Operands in, float* out) {
    extern __shared__ __align__(1024) char memory[];
    Ring<Exact> ring(memory);
    int group = threadIdx.x / 128;
    if (group == CONSUMERS) return bring_all(ring, in);
    more_registers<Exact::REGISTERS>();
    for (Tiles<Exact::BN> tile(in.M, in.N); tile.more(); tile.next()) {
        float y[SUMS];
        Patch patch(tile.row() + 64 * group, tile.col());
        float2 x_scale = scales_of_rows(in, patch);
        multiply(y, ring, in.K);
        scale(y, x_scale, ring.columns().W_scale, in, patch);
        ring.release_columns();
        store(out, in.M, in.N, patch, y);
    }
}

void linear_split_wgmma(const float* x, const float* W, float* out, int M, int N, int K) {
    Prepared<Exact> in(x, W, M, N, K);
    start(linear_split_wgmma_kernel, in, Channels(), out);
}
