#include "linear_groups.cuh"

// BEGIN SOLUTION
__device__ float swish(float x) { return __fdividef(x, 1.0f + expf(-x)); }
// END SOLUTION

// x: (M, K), W: (N, K), b, weight, bias, scale: (N), out: (M, N).
// out = swish(swish(GroupNorm(x * W^T + b)) * scale)
// One thread owns TM x TN elements of out, in patches of 4 x 4. One block owns a tile of out: BM
// rows, and as many whole groups of `size` channels as fit into BN.
__global__ void __launch_bounds__(THREADS, 2)
    linear_gn_swish_multiply_swish_kernel(const float* x, const float* W, const float* b,
                                          const float* weight, const float* bias,
                                          const float* scale, float* out, int M, int N, int K,
                                          int size) {
    Tile tile(M, N, size);
    alignas(16) float sums[TM][TN] = {}, y[TN], add[TN], w[TN], c[TN], s[TN];
    multiply(sums, tile, x, W, K);
    // BEGIN SOLUTION
    read_columns(add, b, tile);
    read_columns(w, weight, tile);
    read_columns(c, bias, tile);
    read_columns(s, scale, tile);
#pragma unroll 1
    for (int i = 0; i < TM; i++) {
        next_row(y, sums);
        for (int j = 0; j < TN; j++) y[j] += add[j];
        normalise(y, tile, size);
        for (int j = 0; j < TN; j++) y[j] = swish(swish(y[j] * w[j] + c[j]) * s[j]);
        store_row(out, y, tile, i);
    }
    // END SOLUTION
}

void linear_gn_swish_multiply_swish(const float* x, const float* W, const float* b,
                                    const float* weight, const float* bias, const float* scale,
                                    float* out, int M, int N, int K, int groups) {
    int size = N / groups;
    linear_gn_swish_multiply_swish_kernel<<<tiles(M, N, size), THREADS>>>(
        x, W, b, weight, bias, scale, out, M, N, K, size);
}
