#include "linear_tile.cuh"

constexpr float SLOPE = 0.01f;

// x: (M, K), W: (N, K), b: (N), out: (M, N), all row-major. out = LeakyReLU(x * W^T + b)
// One thread owns TM x TN elements of out, in patches of 4 x 4: in row number i, y[j] belongs to
// row tile.row(i) and column tile.col(j). One block owns a tile of BM x BN.
__global__ void __launch_bounds__(THREADS, 2)
    linear_bias_act_kernel(const float* x, const float* W, const float* b, float* out, int M, int N,
                           int K) {
    Tile tile(M, N);
    alignas(16) float sums[TM][TN] = {}, y[TN], add[TN];
    multiply(sums, tile, x, W, K);
    for (int j = 0; j < TN; j += 4) {
        // your code here
    }
#pragma unroll 4
    for (int i = 0; i < TM; i++) {
        next_row(y, sums);
        // your code here
    }
}

void linear_bias_act(const float* x, const float* W, const float* b, float* out, int M, int N,
                     int K) {
    linear_bias_act_kernel<<<tiles(M, N), THREADS>>>(x, W, b, out, M, N, K);
}
